"""Reading an NKI kernel at sizes that nobody stated."""

from __future__ import annotations

import pytest

from migrate.budget import Meter
from migrate.pipeline.infer_alone import alone
from migrate.pipeline.kernels import parse_nki
from migrate.pipeline.single import inspected
from migrate.source import Source
from tests.pipeline.pairs import HEAD, MATRIX_NKI, PRODUCT_NKI, ROWS_NKI, SAXPY_NKI, VECTOR_NKI


def shapes(nki: str) -> dict[str, tuple[int, ...]] | None:
    module = parse_nki(Source.of(HEAD + nki, "kernel.py"))
    case = alone(module, module.kernels[0], Meter())
    if case is None:
        return None
    return {tensor.name: tensor.extents(case.runs()[0]) for tensor in case.tensors}


@pytest.mark.parametrize(
    ("nki", "wanted"),
    [
        (MATRIX_NKI, {"a": (145, 145), "b": (145, 145)}),
        (VECTOR_NKI, {"x": (577,), "y": (577,)}),
        (PRODUCT_NKI, {"lhs": (128, 128), "rhs": (128, 128)}),
        (ROWS_NKI, None),
        (SAXPY_NKI, None),
    ],
)
def test_shapes(nki: str, wanted: dict[str, tuple[int, ...]] | None) -> None:
    assert shapes(nki) == wanted


def test_the_sizes_are_shown(tmp_path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(HEAD + MATRIX_NKI)
    (kernel,) = inspected(str(file), None, case=None).kernels
    assert kernel.coverage == 1.0
    assert kernel.parameters[0].shape == ("a_0 = 145", "a_1 = 145")


def test_what_cannot_be_read_says_what_to_state(tmp_path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(HEAD + SAXPY_NKI)
    (kernel,) = inspected(str(file), None, case=None).kernels
    assert kernel.coverage == 0.0
    assert "state them in a case" in kernel.constructs[0].summary
