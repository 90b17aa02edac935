"""Advice for the constructs of a CUDA kernel."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from migrate import facts
from migrate.facts.nki import names
from migrate.pipeline.mapping import MapDocument, MappedKernel, mapped
from migrate.report import mapping
from migrate.results import ConstructKind
from migrate.source import Source, SourceError, Span

ROWS = """
__global__ void row_sums(const float* x, const double* d, float* y, int cols) {
  __shared__ float part[256];
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 256) sum += x[blockIdx.x * cols + c] / 3.0f;
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0] + (float)d[0];
}
void run(const float* x, const double* d, float* y, int rows, int cols) {
  row_sums<<<rows, 256>>>(x, d, y, cols);
}
"""


@pytest.fixture
def told(tmp_path: Path) -> MapDocument:
    file = tmp_path / "rows.cu"
    file.write_text(ROWS)
    return mapped(str(file), None, case=None, target="trn2")


def kernel(document: MapDocument) -> MappedKernel:
    (found,) = document.kernels
    return found


@pytest.mark.parametrize("kind", get_args(ConstructKind))
def test_every_kind_of_construct_has_advice(kind: ConstructKind) -> None:
    main = [piece for piece in facts.advice(kind) if not piece.caution]
    assert main
    # One of them asks for nothing, so that something always fits.
    assert not main[-1].when


def test_advice_names_what_there_is() -> None:
    for entry in facts.mappings().values():
        for piece in entry.advice:
            assert set(piece.instructions) <= set(names()), piece.id
            for target in facts.targets().values():
                assert all(hasattr(target, name) for name in piece.limits), piece.id


def test_each_construct_is_realised_with_numbers_and_sources(told: MapDocument) -> None:
    found = kernel(told)
    assert found.coverage == 1.0
    assert any("grid [rows]" in inferred for inferred in found.inferred)
    by_kind = {construct.kind: construct for construct in found.constructs}
    reduction = by_kind["reduction"]
    assert reduction.realisation.id == "reduction.free-axis"
    assert reduction.realisation.engines
    assert any("128 partitions" in limit.states for limit in reduction.realisation.limits)
    assert all(limit.source for limit in reduction.realisation.limits)
    assert by_kind["barrier"].realisation.id == "barrier.none"
    assert "128 partitions" in " ".join(by_kind["tile-axis"].numbers)
    assert [(array.name, array.length, array.bytes_per_partition) for array in found.shared] == [
        ("part", "256", "8")
    ]
    divided = next(c for c in found.constructs if "divide" in c.summary)
    assert "elementwise.quotient" in [caution.id for caution in divided.cautions]


def test_targets_differ(tmp_path: Path) -> None:
    file = tmp_path / "rows.cu"
    file.write_text(ROWS)
    room = {
        target: next(
            limit.states
            for construct in kernel(mapped(str(file), None, case=None, target=target)).constructs
            for limit in construct.realisation.limits
            if "SBUF bytes" in limit.states
        )
        for target in ("trn1", "trn2")
    }
    assert room["trn1"] != room["trn2"]


def test_text_and_markdown_say_the_same_once(told: MapDocument) -> None:
    text = mapping.text(told)
    assert text.count("Leave it out: instructions on the same tile") == 1
    assert "(barrier.none)" in text
    assert "limits" in text
    shown = mapping.markdown(told)
    assert shown.startswith("# `")
    assert "**Mind:**" in shown


def test_hostile_names_are_harmless() -> None:
    where = kernel_span()
    document = MapDocument(
        file="`x`\x1b[2J<script>",
        target="trn2",
        kernels=(MappedKernel(name="k\x1b[2J", span=where, reason="*a* <b>\x1b[2J"),),
    )
    for shown in (mapping.text(document), mapping.markdown(document)):
        assert "\x1b" not in shown
    assert "<b>" not in mapping.markdown(document)
    assert "\x1b" not in document.to_json().decode()


def kernel_span() -> Span:
    return Source.of(ROWS, "rows.cu").whole()


def test_a_kernel_that_is_not_read_says_why(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text("template <int N> __global__ void k(float* x) { x[threadIdx.x] = N; }")
    found = kernel(mapped(str(file), None, case=None, target="trn2"))
    assert found.constructs == ()
    assert "template parameter N" in found.reason


def test_cuda_in_a_python_file(tmp_path: Path) -> None:
    file = tmp_path / "ext.py"
    file.write_text(f'SRC = r"""{ROWS}"""\nimport cupy\nk = cupy.RawKernel(SRC, "row_sums")\n')
    found = kernel(mapped(f"{file}", "row_sums", case=None, target="trn2"))
    # The text begins behind SRC = r""", with a line end of its own.
    assert (found.span.start_line, found.span.start_column) == (2, 1)


def test_what_is_no_cuda(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text("x = 1\n")
    with pytest.raises(SourceError, match="no CUDA kernel"):
        mapped(str(file), None, case=None, target="trn2")
