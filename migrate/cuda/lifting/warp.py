"""Warp exchanges in the IR: registers written out by every lane, and read by its partner.

The exchange goes through a scratch buffer with one cell for each thread.  Between the
store and the load stands a `Barrier` of scope `warp`, which is what `_sync` means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.cuda import ast
from migrate.cuda.lifting.symbolic import Data, Number, Symbolic, Truth
from migrate.cuda.types import BOOL, UNSIGNED, Scalar
from migrate.ir.index import Index
from migrate.ir.nodes import (
    Axis,
    AxisKind,
    Barrier,
    Cast,
    Fill,
    Load,
    Map,
    Position,
    Reduce,
    Rounding,
    Select,
    Space,
    Store,
    Value,
)
from migrate.ir.predicate import TRUE, Predicate, less, negate
from migrate.numerics.dtypes import DType
from migrate.source import Span

if TYPE_CHECKING:
    from migrate.cuda.lifting.lifter import Lifter

WARP = 32


def exchanged(lifter: Lifter, node: ast.Shuffle) -> Symbolic:
    """A shuffle as store, barrier and load; raises `NotLifted` for odd lanes."""
    span = lifter.at(node.span)
    kind = node.entry.kind
    if kind in VOTES:
        return _voted(lifter, node)
    if kind not in ("index", "up", "down", "xor") or node.lane is None:
        raise lifter.not_lifted(f"{node.entry.name} is not put into the IR", node.span)
    thread = lifter.linear_thread(node.span)
    if not isinstance(node.type, Scalar):
        return _address(lifter, node, thread)
    value = lifter.data(node.value)
    lane = lifter.lift(node.lane)
    width = _width(lifter, node)
    if not isinstance(lane, Number):
        raise lifter.not_lifted("a lane that depends on data", node.span)
    own = (thread % WARP).simplify(lifter.known.ranges)
    place = own % width
    source, inside = _partner(lifter, node, kind, place, lane.index, width)
    buffer = lifter.storage(
        "exchange", node.type, Space.PRIVATE, lifter.grid_axes, node.span, lifter.block_size
    )
    lifter.exchanges.add(buffer)
    into = lifter.state.versions[buffer]
    leading = lifter.leading[buffer]
    stored = lifter.next_version(buffer)
    lifter.emit(Store(stored, into, (*leading, thread), value, span))
    lifter.emit(Barrier("warp", span))
    result = lifter.fresh(node.type.dtype)
    index = (*leading, (thread - place + source).simplify(lifter.known.ranges))
    lifter.emit(Load(result, stored, index, span, inside, lane.sources))
    if inside == TRUE:
        return Data(result)
    # Outside its part of the warp a lane keeps what it has.
    chosen = lifter.fresh(node.type.dtype)
    lifter.emit(Select(chosen, inside, result, value, span))
    return Data(chosen)


VOTES = {
    "any": "logical_or",
    "all": "logical_and",
    "ballot": "add",
    "sum": "add",
    "minimum": "minimum",
    "maximum": "maximum",
}
"""What a warp's lanes are combined by; the bits of a ballot are added, each lane has its own."""


def _voted(lifter: Lifter, node: ast.Shuffle) -> Symbolic:
    """A vote or a reduction of the whole warp: every lane gets what all lanes come to."""
    assert isinstance(node.type, Scalar)
    span = lifter.at(node.span)
    if node.width is not None or lifter.diverges():
        raise lifter.not_lifted(f"{node.entry.name} by a part of the warp", node.span)
    kind = node.entry.kind
    thread = lifter.linear_thread(node.span)
    own = (thread % WARP).simplify(lifter.known.ranges)
    dtype = node.type.dtype
    value: Value
    if kind in ("any", "all", "ballot"):
        value = _truth(lifter, node)
        dtype = DType.BOOL
        if kind == "ballot":
            value, dtype = _bit(lifter, value, own, span), DType.UINT32
    else:
        value = lifter.data(node.value)
    held = next(k for k in (BOOL, UNSIGNED, node.type) if k.dtype is dtype)
    buffer = lifter.storage(
        "exchange", held, Space.PRIVATE, lifter.grid_axes, node.span, lifter.block_size
    )
    lifter.exchanges.add(buffer)
    into = lifter.state.versions[buffer]
    leading = lifter.leading[buffer]
    stored = lifter.next_version(buffer)
    lifter.emit(Store(stored, into, (*leading, thread), value, span))
    lifter.emit(Barrier("warp", span))
    axis = Axis(lifter.loop_name("lane"), Index.of(WARP), AxisKind.LANE, span)
    other = (thread - own + Index.axis(axis.name)).simplify(lifter.known.ranges)
    # The last warp of a block may have fewer lanes.
    whole = (lifter.block_size % WARP).constant == 0
    there = TRUE if whole else less(other, lifter.block_size)
    seen = lifter.fresh(dtype)
    load = Load(seen, stored, (*leading, other), span)
    result = lifter.fresh(dtype)
    lifter.emit(Reduce(result, VOTES[kind], (axis,), (load,), seen, span, there))
    if result.dtype is node.type.dtype:
        return Data(result)
    made = lifter.fresh(node.type.dtype)
    lifter.emit(Cast(made, result, span, Rounding.EXACT))
    return Data(made)


def _truth(lifter: Lifter, node: ast.Shuffle) -> Value:
    condition = lifter.truth(node.value)
    if isinstance(condition, Value):
        return condition
    return lifter.value(Truth(condition), BOOL, node.span)


def _bit(lifter: Lifter, truth: Value, lane: Index, span: Span) -> Value:
    """The lane's bit where the condition holds, else 0."""
    one, zero = lifter.fresh(DType.UINT32), lifter.fresh(DType.UINT32)
    place, bit = lifter.fresh(DType.UINT32), lifter.fresh(DType.UINT32)
    chosen = lifter.fresh(DType.UINT32)
    lifter.emit(Fill(one, 1, span))
    lifter.emit(Fill(zero, 0, span))
    lifter.emit(Position(place, lane, span))
    lifter.emit(Map(bit, "left_shift", (one, place), span))
    lifter.emit(Select(chosen, truth, bit, zero, span))
    return chosen


def _address(lifter: Lifter, node: ast.Shuffle, thread: Index) -> Symbolic:
    """An address from another lane of the whole warp."""
    from migrate.cuda.lifting.matrices import address_of

    lane = lifter.lift(node.lane) if node.lane is not None else None
    if node.entry.kind != "index" or node.width is not None or not isinstance(lane, Number):
        raise lifter.not_lifted("this exchange of addresses", node.span)
    # The modulus of an index is never negative, and neither are the bits of a lane that count.
    own = (thread % WARP).simplify(lifter.known.ranges)
    return address_of(lifter, node, thread - own + lane.index % WARP)


def _width(lifter: Lifter, node: ast.Shuffle) -> int:
    if node.width is None:
        return WARP
    width = lifter.lift(node.width)
    constant = width.index.constant if isinstance(width, Number) else None
    if constant not in (2, 4, 8, 16, 32):
        raise lifter.not_lifted("a shuffle width that is no constant power of two", node.span)
    return constant


def _partner(
    lifter: Lifter, node: ast.Shuffle, kind: str, place: Index, lane: Index, width: int
) -> tuple[Index, Predicate]:
    """The partner's place within the part of the warp, and where there is one."""
    match kind:
        case "index":
            constant = lane.constant
            if constant is None and not lifter.known.natural(lane):
                raise lifter.not_lifted("a source lane that may be negative", node.span)
            return lane % width, TRUE
        case "down":
            return place + lane, less(place + lane, width)
        case "up":
            return place - lane, negate(less(place - lane, 0))
    distance = lane.constant
    if distance is None or not 0 <= distance < WARP:
        raise lifter.not_lifted("an exchange distance that is not constant", node.span)
    partner = place
    bit = 1
    while bit <= distance:
        if distance & bit:
            # Flipping a bit: what has it loses it, what has it not gains it.
            partner = partner + bit - (place // bit % 2) * (2 * bit)
        bit *= 2
    return partner, TRUE if distance < width else less(partner, width)
