"""Which buffer holds which tensor, and in which order."""

from __future__ import annotations

import numpy as np
import pytest

from migrate.align.binding import Binding, bind, given_shape, logical_tensors
from migrate.case import parse
from migrate.case.layout import LayoutError
from migrate.numerics.dtypes import DType
from migrate.source import Source
from tests.pairs import ADD, ADD_NKI, case, read, tensor, tiles


def bound(text: str, **sizes: int) -> Binding:
    stated = parse(Source.of(text, "case.toml"))
    return bind(stated, sizes or next(iter(stated.runs())))


def test_shapes_and_scalars_are_at_the_sizes() -> None:
    binding = bound(case(), n=100)
    assert [(t.name, t.shape, t.role) for t in binding.tensors] == [
        ("x", (100,), "in"),
        ("y", (100,), "in"),
        ("out", (100,), "out"),
    ]
    assert [(s.name, s.value) for s in binding.scalars] == [("n", 100)]
    assert [t.name for t in binding.outputs] == ["out"]


def test_a_side_can_have_a_format_of_its_own() -> None:
    text = case(tensor("x", cuda_dtype="float16", nki_dtype="bfloat16"), tensor("y"))
    x, y = bound(text).tensors
    assert (x.cuda_dtype, x.nki_dtype) == (DType.FLOAT16, DType.BFLOAT16)
    assert (y.cuda_dtype, y.nki_dtype) == (DType.FLOAT32, DType.FLOAT32)


def test_scratch_is_nobodys_tensor() -> None:
    text = case(tensor("x"), tensor("work", role="scratch"))
    assert [t.name for t in bound(text).tensors] == ["x"]


def test_in_and_out_is_both() -> None:
    (x,) = bound(case(tensor("x", role="inout"))).tensors
    assert x.is_input
    assert x.is_output


@pytest.mark.parametrize(
    ("layout", "shape"),
    [
        ("transpose(1, 0)", (3, 4)),
        ("pad(C + 4, 4)", (7, 4)),
        ("reshape(R * C)", (12,)),
        ("transpose(1, 0) pad(4, 8)", (4, 8)),
    ],
)
def test_a_layout_leads_there_and_back(layout: str, shape: tuple[int, ...]) -> None:
    rows = tensor("x", shape=["R", "C"], nki_layout=layout)
    if layout.startswith("pad"):
        rows = tensor("x", shape=["C", "R"], nki_layout=layout)
    text = case(rows).replace("n = [100, 700]", "R = 4\nC = 3\nn = 4")
    binding = bound(text)
    (x,) = binding.tensors
    assert binding.nki_shape(x) == shape
    array = np.arange(12, dtype=np.float32).reshape(x.shape)
    there = binding.to_nki(x, array)
    assert there.shape == shape
    assert np.array_equal(binding.from_nki(x, there), array)
    with pytest.raises(LayoutError):
        binding.from_nki(x, np.zeros((5, 5), np.float32))


def test_buffers_hold_tensors_by_parameter_and_by_position() -> None:
    _, positions = read(ADD, ADD_NKI)
    reading = positions.readings[0]
    assert reading.cuda is not None
    assert reading.nki is not None
    left = logical_tensors(reading.binding, reading.cuda, "cuda")
    right = logical_tensors(reading.binding, reading.nki, "nki")
    assert {name: t.name for name, t in left.items()} == {"x": "x", "y": "y", "out": "out"}
    assert {t.name for t in right.values()} == {"x", "y", "out"}
    assert all(t.elements is None for t in (*left.values(), *right.values()))


def test_padding_holds_no_element() -> None:
    padded = ADD_NKI.replace("((n,), dtype", "((n + 28,), dtype")
    stated = case(
        tensor("x"), tensor("y"), tensor("out", role="out", nki_layout="pad(n + 28)"), n=[100]
    )
    _, positions = read(ADD, padded, stated)
    reading = positions.readings[0]
    assert reading.nki is not None
    tensors = logical_tensors(reading.binding, reading.nki, "nki")
    (held,) = [t.elements for t in tensors.values() if t.name == "out"]
    assert held is not None
    assert held.tolist() == [*range(100), *[-1] * 28]
    assert reading.relation is not None
    assert reading.relation.status == "proved"


def test_the_shape_that_is_given() -> None:
    _, positions = read(ADD, ADD_NKI.replace("(n,), dtype", "(n, 1), dtype"))
    reading = positions.readings[0]
    assert reading.nki is not None
    sizes = {"n": 100}
    shapes = {
        t.name: given_shape(reading.binding, reading.nki, t, sizes) for t in reading.binding.tensors
    }
    assert shapes == {"x": (100,), "y": (100,), "out": (100, 1)}


def test_what_is_not_given_has_no_shape() -> None:
    stated = case(
        tensor("x"), tensor("y"), tensor("out", role="out"), tensor("two", role="out", nki_out=3)
    )
    left = ADD.replace("int n", "float* two, int n")
    _, positions = read(left, tiles("nisa.tensor_copy(dst=a, src=b)"), stated)
    reading = positions.readings[0]
    assert reading.nki is not None
    two = next(t for t in reading.binding.tensors if t.name == "two")
    assert given_shape(reading.binding, reading.nki, two, {"n": 100}) is None
