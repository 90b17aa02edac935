"""Exchanges and votes within a tile of threads: shuffles of the tile's width."""

from __future__ import annotations

from migrate.cuda.ast import Binary, Expression, Shuffle
from migrate.cuda.conversions import convert
from migrate.cuda.intrinsics import SHUFFLES
from migrate.cuda.library.build import arithmetic, by_component, integer, linear
from migrate.cuda.library.request import Lowered, Request, unclear
from migrate.cuda.origins import Where
from migrate.cuda.types import BOOL, INT, UNSIGNED, Library, Scalar, Struct, Vector

EXCHANGES = {
    "shfl": "__shfl_sync",
    "shfl_up": "__shfl_up_sync",
    "shfl_down": "__shfl_down_sync",
    "shfl_xor": "__shfl_xor_sync",
}
VOTES = {"any": "__any_sync", "all": "__all_sync", "ballot": "__ballot_sync"}


def exchange(group: Library, request: Request) -> Lowered:
    """`tile.shfl_down(value, 1)` and the votes."""
    if group.name != "thread_block_tile":
        return request.opaque(f"{group.name}::{request.name} is not understood")
    values = request.values()
    bad = unclear(values)
    if bad is not None:
        return bad
    where = request.where
    width = group.parameters[0]
    assert isinstance(width, int)
    if request.name in VOTES:
        if len(values) != 1:
            return None
        return _vote(request.name, width, values[0], where)
    if len(values) != 2:
        return None
    return exchanged(EXCHANGES[request.name], values[0], values[1], width, request)


def exchanged(
    entry: str, value: Expression, partner: Expression, width: int, request: Request
) -> Expression:
    """A shuffle of a number, or of each component of a short vector."""
    where = request.where
    full = integer(0xFFFFFFFF, where, UNSIGNED)
    lane = convert(partner, INT)
    part = integer(width, where) if width != 32 else None

    def shuffled(given: Expression) -> Expression:
        assert isinstance(given.type, Scalar)
        return Shuffle(SHUFFLES[entry], full, given, lane, part, given.type, where)

    match value.type:
        case Scalar():
            return shuffled(value)
        case (Vector() | Struct()) as kind:
            return by_component(entry, [value, lane], lambda given: shuffled(given[0]), kind, where)
        case kind:
            return request.opaque(f"an exchange of {kind} is not understood", kind)


def _vote(name: str, width: int, value: Expression, where: Where) -> Expression | None:
    """A vote; within a part of a warp it is read off the whole warp's ballot."""
    holds = convert(value, BOOL)
    full = integer(0xFFFFFFFF, where, UNSIGNED)
    if width == 32:
        kind = UNSIGNED if name == "ballot" else INT
        return Shuffle(SHUFFLES[VOTES[name]], full, holds, None, None, kind, where)
    ballot = Shuffle(SHUFFLES["__ballot_sync"], full, holds, None, None, UNSIGNED, where)
    ones = integer((1 << width) - 1, where, UNSIGNED)
    place = arithmetic("fmod", linear("threadIdx", "blockDim", where), integer(32, where, UNSIGNED))
    size = integer(width, where, UNSIGNED)
    first = arithmetic("multiply", arithmetic("divide", place, size), size)
    mine = arithmetic("bitwise_and", arithmetic("right_shift", ballot, first), ones)
    match name:
        case "ballot":
            return mine
        case "any":
            return convert(_compare("not_equal", mine, integer(0, where, UNSIGNED)), INT)
        case _:
            return convert(_compare("equal", mine, ones), INT)


def _compare(operator: str, left: Expression, right: Expression) -> Expression:
    return Binary(operator, left, right, BOOL, left.where)
