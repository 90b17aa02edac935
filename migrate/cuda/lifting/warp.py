"""Warp exchanges in the IR: registers written out by every lane, and read by its partner.

The exchange goes through a scratch buffer with one cell for each thread.  Between the
store and the load stands a `Barrier` of scope `warp`, which is what `_sync` means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.cuda import ast
from migrate.cuda.lifting.symbolic import Data, Number, Symbolic
from migrate.ir.index import Index
from migrate.ir.nodes import Barrier, Load, Select, Space, Store
from migrate.ir.predicate import TRUE, Predicate, less, negate

if TYPE_CHECKING:
    from migrate.cuda.lifting.lifter import Lifter

WARP = 32


def exchanged(lifter: Lifter, node: ast.Shuffle) -> Symbolic:
    """A shuffle as store, barrier and load; raises `NotLifted` for votes and odd lanes."""
    span = lifter.at(node.span)
    kind = node.entry.kind
    if kind not in ("index", "up", "down", "xor") or node.lane is None:
        raise lifter.not_lifted(f"{node.entry.name} is not put into the IR", node.span)
    thread = lifter.linear_thread(node.span)
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
