"""CUDA wherever it stands: beside NKI in a Python file, in headers."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.budget import Budget
from migrate.pipeline.compare import compared
from migrate.pipeline.single import inspected, side_of
from migrate.source import SourceError

BOTH = '''
import nki
import nki.isa as nisa
import nki.language as nl

REFERENCE = r"""
__global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * 2.0f;
}
__global__ void other(float* y) { y[threadIdx.x] = 0.0f; }
"""
FILLED = """__global__ void filled(float* y) { y[0] = %d; }""" % 3


@nki.jit
def scale_nki(x):
    assert x.shape[0] % 128 == 0
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in nl.affine_range(x.shape[0] // 128):
        tile = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[start * 128 : start * 128 + 128])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=y[start * 128 : start * 128 + 128], src=tile)
    return y
'''


@pytest.fixture
def both(tmp_path: Path) -> str:
    file = tmp_path / "both.py"
    file.write_text(BOTH)
    return str(file)


def names(file: str, kernel: str | None = None, side: str | None = None) -> tuple[str, list[str]]:
    document = inspected(file, kernel, case=None, side=side)  # type: ignore[arg-type]
    return document.side, [found.name for found in document.kernels]


def test_the_side_is_chosen_by_name_or_by_what_is_asked(both: str) -> None:
    assert names(both) == ("nki", ["scale_nki"])
    assert names(both, side="cuda") == ("cuda", ["scale", "other", "filled"])
    assert names(both, "other") == ("cuda", ["other"])
    assert names(both, "scale_nki") == ("nki", ["scale_nki"])


def test_a_text_that_is_filled_in_says_so(both: str) -> None:
    *_, filled = inspected(both, None, case=None, side="cuda").kernels
    assert filled.coverage == 0.0
    assert "not known: values are put into the text with `%`" in filled.constructs[0].summary
    with pytest.raises(SourceError, match="CUDA text of filled is not known"):
        inspected(both, "filled", case=None)


def test_spans_are_of_the_python_file(both: str) -> None:
    (kernel,) = inspected(both, "scale", case=None).kernels
    lines = BOTH.splitlines()
    store = next(c for c in kernel.constructs if c.kind == "output-store")
    line = lines[store.span.start_line - 1]
    assert line[store.span.start_column - 1 :].startswith("y[i] =")


def test_both_sides_of_one_file_are_compared(both: str, tmp_path: Path) -> None:
    case = tmp_path / "case.toml"
    case.write_text("""
[cuda]
file = "both.py"
kernel = "scale"
grid = ["N // 128"]
block = [128]
[nki]
file = "both.py"
kernel = "scale_nki"
[sizes]
N = [256]
[[tensor]]
name = "x"
shape = ["N", 1]
dtype = "float32"
role = "in"
cuda = "x"
nki = "x"
[[tensor]]
name = "y"
shape = ["N", 1]
dtype = "float32"
role = "out"
cuda = "y"
nki_out = 0
[[scalar]]
name = "n"
value = "N"
cuda = "n"
dtype = "int32"
""")
    result = compared(None, None, case=str(case), run="never", budget=Budget())
    assert result.verdict == "faithful"
    assert {side.span.file for c in result.constructs for side in c.cuda} == {both}


def test_a_kernel_of_neither_side(both: str) -> None:
    with pytest.raises(SourceError, match="no kernel called nothing"):
        inspected(both, "nothing", case=None)
    with pytest.raises(SourceError, match="no kernel called nothing"):
        inspected(both, "nothing", case=None, side="cuda")


@pytest.mark.parametrize("ending", ["cu", "cuh", "h", "hpp", "cuda"])
def test_headers_have_kernels_too(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"k.{ending}"
    file.write_text(
        "#pragma once\nnamespace kernels {\n"
        "static __global__ void fill(float* y) { y[threadIdx.x] = 1.0f; }\n}\n"
    )
    assert side_of(str(file)) == "cuda"
    assert names(str(file)) == ("cuda", ["fill"])
    with pytest.raises(SourceError, match="no Python file"):
        names(str(file), side="nki")
