"""Index arithmetic gives the integers that NumPy gives."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.nki import addresses, index_arithmetic, indices
from migrate.nki.indices import Condition, IndexTensor
from migrate.nki.symbols import Origin, constant
from migrate.nki.values import Slice
from migrate.source import Source

ORIGIN = Origin(Source.of("x", "kernel.py"), ast.parse("x", mode="eval").body)
ALL = Slice(None, None, None)


def line(start: int, stop: int, step: int, keys: tuple[Any, ...]) -> tuple[Any, Any]:
    made = indices.counted(constant(start), constant(stop), constant(step), ORIGIN)
    plain = np.arange(start, stop, step)
    found = indices.subscript(made, keys, ORIGIN)
    return found, plain[tuple(slice(None) if key is ALL else key for key in keys)]


@st.composite
def leaves(draw: st.DrawFn) -> tuple[Any, Any]:
    if draw(st.booleans()):
        value = draw(st.integers(-20, 40))
        return constant(value), value
    start, step = draw(st.integers(0, 6)), draw(st.integers(1, 3))
    axis = draw(st.integers(0, 2))
    count = draw(st.sampled_from([1, (4, 6, 8)[axis]]))
    keys: list[Any] = [None, None, None]
    keys[axis] = ALL
    return line(start, start + step * count, step, tuple(keys))


def combined(parts: st.SearchStrategy[tuple[Any, Any]]) -> st.SearchStrategy[tuple[Any, Any]]:
    def join(sign: str, left: tuple[Any, Any], right: tuple[Any, Any], by: int) -> tuple[Any, Any]:
        (a, x), (b, y) = left, right
        if sign in ("*", "//", "%"):
            b, y = constant(by), by
        if not isinstance(a, IndexTensor) and not isinstance(b, IndexTensor):
            return left
        plain = {"+": x + y, "-": x - y, "*": x * y, "//": x // by, "%": x % by}[sign]
        return index_arithmetic.arithmetic(sign, a, b, ORIGIN), plain

    signs = st.sampled_from(["+", "-", "*", "//", "%"])
    return st.builds(join, signs, parts, parts, st.integers(1, 9))


expressions = st.recursive(leaves(), combined, max_leaves=6)


def dense(found: Any) -> Any:
    if not isinstance(found, IndexTensor):
        return np.asarray(found.value)
    return np.broadcast_to(addresses.evaluated(found.address, found.sizes), found.sizes)


@settings(max_examples=300, deadline=None)
@given(expressions)
def test_values_and_bounds(pair: tuple[Any, Any]) -> None:
    found, plain = pair
    np.testing.assert_array_equal(np.broadcast_to(dense(found), np.shape(plain)), plain)
    if isinstance(found, IndexTensor):
        assert found.sizes == np.shape(plain)
        low, high = addresses.bounds(found.address, found.sizes)
        assert low <= np.min(plain)
        assert np.max(plain) <= high
        if not found.address.digits:
            assert (low, high) == (np.min(plain), np.max(plain))


@settings(max_examples=300, deadline=None)
@given(expressions, expressions, st.sampled_from(["<", "<=", ">", ">=", "=="]))
def test_comparisons(left: tuple[Any, Any], right: tuple[Any, Any], sign: str) -> None:
    (a, x), (b, y) = left, right
    if not isinstance(a, IndexTensor) and not isinstance(b, IndexTensor):
        return
    found = index_arithmetic.compare(sign, a, b, ORIGIN)
    wanted: Any = {"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y, "==": x == y}[sign]
    if isinstance(found, Condition):
        held = np.ones(found.sizes, bool)
        for part in found.parts:
            held = held & (addresses.evaluated(part, found.sizes) >= 0)
        np.testing.assert_array_equal(held, np.broadcast_to(wanted, found.sizes))
    else:
        assert bool(np.all(wanted == found))


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 5),
    st.integers(1, 20),
    st.integers(1, 4),
    st.integers(0, 9),
    st.integers(0, 12),
    st.integers(1, 3),
)
def test_parts_of_index_tensors(
    start: int, count: int, step: int, first: int, length: int, by: int
) -> None:
    made = indices.counted(constant(start), constant(start + count * step), constant(step), ORIGIN)
    plain = np.arange(start, start + count * step, step)
    key = Slice(constant(first), constant(first + length), constant(by))
    wanted = plain[first : first + length : by]
    if wanted.size == 0:
        return
    found = indices.subscript(made, key, ORIGIN)
    np.testing.assert_array_equal(dense(found), wanted)
