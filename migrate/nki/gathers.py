"""Positions that are read from memory, as IR: what a gather or a scatter takes as its index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from migrate.ir.index import Index
from migrate.ir.nodes import Cast, Map, Op, Position, Rounding, Value
from migrate.nki.errors import Unsupported
from migrate.nki.positions import ONE, ZERO, Place, element_index, same_base
from migrate.nki.values import View
from migrate.numerics.dtypes import DType

if TYPE_CHECKING:
    from migrate.ir.index import Range
    from migrate.nki.program import Program
    from migrate.source import Span

Mixed: TypeAlias = tuple[Index | Value, ...]


class Emits(Protocol):
    """What emits operations: the builder of a site."""

    program: Program
    span: Span
    block: list[Op]
    ranges: dict[str, Range]


@dataclass(frozen=True, slots=True)
class Moved:
    """A dimension of a buffer along which an operand is moved by numbers in memory.

    `at` gives the number at a place of the operand; it counts steps of `factor` elements.
    `extent` is the dimension's.
    """

    dimension: int
    at: Callable[[Place], Value]
    factor: Index
    extent: Index


def moved(
    view: View,
    own: Place,
    tiles: Sequence[Callable[[Place], Value]],
    equal: Callable[[Index, Index], bool],
) -> list[Moved]:
    """The dimensions of a buffer of shape `own` that a view's positions go along.

    Raises `Unsupported` where they do not go along one dimension each.
    """
    found: list[Moved] = []
    for part, tile in zip(view.indirect, tiles, strict=True):
        along, factor = _dimension(view, own, part.dimension, part.step.index(), equal)

        def at(place: Place, axes: tuple[int | None, ...] = part.axes, tile: _At = tile) -> Value:
            return tile(tuple(ZERO if axis is None else place[axis] for axis in axes))

        found.append(Moved(along, at, factor, own[along]))
    return found


_At: TypeAlias = Callable[[Place], Value]


def _dimension(
    view: View, own: Place, dimension: int, step: Index, equal: Callable[[Index, Index], bool]
) -> tuple[int, Index]:
    if same_base(view, own):
        return dimension, step
    flat = step
    for extent in view.base[dimension + 1 :]:
        flat = flat * extent.index()
    stride = ONE
    for along in range(len(own) - 1, -1, -1):
        if equal(flat, stride) and own[along] != ONE:
            return along, ONE
        stride = stride * own[along]
    raise Unsupported("positions from memory that go across the dimensions of the tensor")


def mixed_index(
    emits: Emits,
    view: View,
    place: Place,
    leading: Place,
    own: Place,
    parts: Sequence[Moved],
    *,
    within: bool,
) -> Mixed:
    """Where an element is in its buffer.

    `within` keeps positions inside their dimension: for elements that are then left out.
    """
    index: list[Index | Value] = [*leading, *element_index(view, place, own, emits.ranges)]
    for part in parts:
        here = index[len(leading) + part.dimension]
        if not isinstance(here, Index):
            raise Unsupported("two positions from memory along one dimension")
        value = position(emits, part, place, here)
        if within:
            value = _clamped(emits, value, part.extent)
        index[len(leading) + part.dimension] = value
    return tuple(index)


def position(emits: Emits, part: Moved, place: Place, here: Index) -> Value:
    """`here + factor * (the number in memory)`."""
    value = part.at(place)
    if here == ZERO and part.factor == ONE:
        return value
    if value.dtype is not DType.INT32:
        cast = emits.program.value(DType.INT32)
        emits.block.append(Cast(cast, value, emits.span, Rounding.EXACT))
        value = cast
    if part.factor != ONE:
        value = _apply(emits, "multiply", value, _number(emits, part.factor), DType.INT32)
    if here != ZERO:
        value = _apply(emits, "add", value, _number(emits, here), DType.INT32)
    return value


def inside(emits: Emits, view: View, place: Place, own: Place, parts: Sequence[Moved]) -> Value:
    """Whether an element's positions are inside their dimensions."""
    here = element_index(view, place, own, emits.ranges)
    found: Value | None = None
    for part in parts:
        value = position(emits, part, place, here[part.dimension])
        last = _number(emits, part.extent - 1, value.dtype)
        tests = [_apply(emits, "less_equal", value, last, DType.BOOL)]
        if value.dtype in _SIGNED:
            zero = _number(emits, ZERO, value.dtype)
            tests.append(_apply(emits, "greater_equal", value, zero, DType.BOOL))
        for test in tests:
            found = test if found is None else _apply(emits, "logical_and", found, test, DType.BOOL)
    assert found is not None
    return found


_SIGNED = frozenset({DType.INT8, DType.INT16, DType.INT32, DType.INT64})


def _clamped(emits: Emits, value: Value, extent: Index) -> Value:
    low = _number(emits, ZERO, value.dtype)
    high = _number(emits, extent - 1, value.dtype)
    value = _apply(emits, "maximum", value, low, value.dtype)
    return _apply(emits, "minimum", value, high, value.dtype)


def _number(emits: Emits, index: Index, dtype: DType = DType.INT32) -> Value:
    result = emits.program.value(dtype)
    emits.block.append(Position(result, index, emits.span))
    return result


def _apply(emits: Emits, operator: str, left: Value, right: Value, dtype: DType) -> Value:
    result = emits.program.value(dtype)
    emits.block.append(Map(result, operator, (left, right), emits.span))
    return result


def names(operands: Sequence[tuple[str, object]]) -> Mapping[int, str]:
    """The names of operands that are tensors, by identity."""
    return {id(operand): name for name, operand in operands if isinstance(operand, View)}
