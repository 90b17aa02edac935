"""Exchanges between lanes: warp shuffles and votes, and atomics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from migrate.cuda.ast import Atomic, Shuffle
from migrate.cuda.intrinsics import WARP_REDUCTIONS
from migrate.cuda.machine import Machine
from migrate.cuda.memory import as_bits
from migrate.cuda.runtime import WARP, Array, Mask, Ref, Refs
from migrate.cuda.types import Pointer, Scalar


def shuffle(
    machine: Machine, node: Shuffle, value: Any, lane: Array | None, width: Array | None, mask: Mask
) -> Any:
    """A warp exchange (PTX ISA, shfl.sync) or vote among the active lanes.

    A lane whose source is outside its part of the warp keeps its own value; one whose source
    does not take part gets nothing defined, which is reported.
    """
    lanes = machine.lanes
    if node.entry.kind in ("any", "all", "ballot", "active"):
        return _vote(machine, node, value, mask)
    if node.entry.kind == "match" or node.entry.kind in WARP_REDUCTIONS:
        return _together(machine, node, value, mask)
    if lane is None:
        raise machine.unsupported(f"{node.entry.name} is not understood", node.span)
    own = lanes.thread % WARP
    segment = np.asarray(WARP) if width is None else width.astype(np.int64)
    low = own - own % segment
    given = lane.astype(np.int64)
    match node.entry.kind:
        case "index":
            source = low + given % segment
        case "up":
            source = np.where(own - given >= low, own - given, own)
        case "down":
            source = np.where(own + given < low + segment, own + given, own)
        case _:
            # A partner before the own segment can be read, one behind it cannot (shfl.bfly).
            partner = own ^ given
            source = np.where(partner < low + segment, partner, own)
    position = np.arange(lanes.total, dtype=np.int64) - own + source
    # The last warp of a block may be short.
    missing = (source - own + lanes.thread) >= lanes.threads
    position = np.where(missing, np.arange(lanes.total, dtype=np.int64), position)
    real = machine.real(mask)
    absent = real & (missing | ~real[position])
    if absent.any():
        machine.report(
            "inactive-shuffle-source",
            f"{node.entry.name} reads from a thread that does not take part",
            node.span,
            int(np.argmax(absent)),
        )
    spread = machine.spread(value, node.type)
    if isinstance(node.type, Pointer):
        if isinstance(spread, Refs):
            parts = tuple(
                (
                    where[position],
                    Ref(part.buffer, np.broadcast_to(part.offset, mask.shape)[position]),
                )
                for where, part in spread.parts
            )
            return Refs(parts)
        return Ref(spread.buffer, spread.offset[position])
    if node.type.is_float:
        return machine.domain.take(spread, position)
    return spread[position]


def check_participants(machine: Machine, node: Shuffle, participants: Any, mask: Mask) -> None:
    """Report a lane that takes part in an exchange whose mask leaves it out."""
    named = np.asarray(participants)
    if named.ndim == 0 and int(named) & 0xFFFFFFFF == 0xFFFFFFFF:
        return
    bits = named.astype(np.uint64) >> (machine.lanes.thread % WARP).astype(np.uint64)
    left_out = machine.real(mask) & (bits & np.uint64(1) == 0)
    if left_out.any():
        machine.report(
            "excluded-lane",
            f"{node.entry.name} is executed by a thread that its mask leaves out",
            node.span,
            int(np.argmax(left_out)),
        )


def _together(machine: Machine, node: Shuffle, value: Any, mask: Mask) -> Array:
    """What all the active lanes of a warp give: the value combined, or who has the same one."""
    lanes = machine.lanes
    warps = -(-lanes.threads // WARP)
    flat = np.zeros((lanes.count, warps * WARP), dtype=np.bool_)
    flat[lanes.slot, lanes.thread] = mask
    taking = flat.reshape(lanes.count, warps, WARP)
    if node.entry.kind == "match" and isinstance(node.value.type, Scalar):
        spread = as_bits(machine.spread(value, node.value.type), node.value.type, machine.domain)
    else:
        spread = np.broadcast_to(value, mask.shape)
    held = np.zeros((lanes.count, warps * WARP), dtype=spread.dtype)
    held[lanes.slot, lanes.thread] = spread
    held = held.reshape(taking.shape)
    result: Array
    if node.entry.kind == "match":
        same = (held[..., :, None] == held[..., None, :]) & taking[..., None, :]
        bits = np.uint32(1) << np.arange(WARP, dtype=np.uint32)
        result = np.where(same, bits, np.uint32(0)).sum(axis=-1, dtype=np.uint32)
        return np.asarray(result.reshape(lanes.count, -1)[lanes.slot, lanes.thread])
    combine = _INTEGER[WARP_REDUCTIONS[node.entry.kind]]
    first = np.argmax(taking, axis=2)
    # Lanes that do not take part repeat one that does; of a sum or xor they add nothing.
    neutral = np.take_along_axis(held, first[..., None], axis=2)
    if node.entry.kind in ("sum", "bitwise_xor"):
        neutral = np.zeros_like(neutral)
    result = combine.reduce(np.where(taking, held, neutral), axis=2, dtype=held.dtype)
    return np.asarray(result[lanes.slot, lanes.thread // WARP])


def _vote(machine: Machine, node: Shuffle, value: Any, mask: Mask) -> Array:
    lanes = machine.lanes
    warps_in_block = -(-lanes.threads // WARP)
    padded = np.zeros((lanes.count, warps_in_block * WARP), dtype=np.bool_)
    holds = np.broadcast_to(value, mask.shape) & mask
    padded[lanes.slot, lanes.thread] = holds
    votes = padded.reshape(lanes.count, warps_in_block, WARP)
    result: Array
    match node.entry.kind:
        case "any":
            result = np.asarray(votes.any(axis=2).astype(np.int32))
        case "all":
            taking = np.zeros_like(padded)
            taking[lanes.slot, lanes.thread] = mask
            everyone = (votes | ~taking.reshape(votes.shape)).all(axis=2)
            result = np.asarray(everyone.astype(np.int32))
        case _:
            bits = np.uint32(1) << np.arange(WARP, dtype=np.uint32)
            result = np.where(votes, bits, np.uint32(0)).sum(axis=2, dtype=np.uint32)
    return np.asarray(result[lanes.slot, lanes.thread // WARP])


# `domain.combine` has these; the others are integer only.
_COMBINING = frozenset(
    {
        "add",
        "subtract",
        "maximum_number",
        "minimum_number",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
    }
)


def atomic(
    machine: Machine,
    node: Atomic,
    pointer: Ref | Refs,
    values: tuple[Any, ...],
    mask: Mask,
    *,
    wanted: bool = True,
) -> Any:
    """A read-modify-write by every active lane, in lane order; what was there before.

    The order among lanes is the device's choice; lane order is one that it may choose.
    Where the former value is not `wanted`, all lanes that meet in a cell go at once.
    """
    kind = node.type
    if isinstance(pointer, Refs):
        old = machine.nothing(kind, node.span)
        for where, part in pointer.parts:
            here = mask & where
            seen = atomic(machine, node, part, values, here, wanted=wanted)
            old = machine.select(here, seen, old, kind, node.span)
        return old
    unsure = machine.unsure(mask)
    if unsure is not None:
        unsure = unsure & machine.inside(pointer, kind.size, mask)
    mask = machine.real(mask)
    if not mask.any() and (unsure is None or pointer.buffer is None):
        return machine.nothing(kind, node.span)
    buffer, plane, at = machine.cells(pointer, kind, mask, node.span)
    if wanted and buffer.space == "shared":
        # A lock or a flag, for all that is known.
        machine.races.give_up()
    buffer.written = True
    position = at >> plane.shift
    spread = tuple(machine.spread(value, kind) for value in values)
    buffer.touch(at[mask if unsure is None else mask | unsure], kind.size)
    data = plane.data if kind.is_float else plane.data.view(kind.dtype.numpy)
    old = machine.nothing(kind, node.span)
    if not wanted and unsure is None and node.entry.operator in _COMBINING:
        if kind.is_float:
            machine.domain.combine(node.entry.operator, data, position, spread[0], mask)
        else:
            _INTEGER[node.entry.operator].at(data, position[mask], spread[0][mask])
        return old
    for turn in _turns(machine, position, mask):
        seen = machine.domain.take(data, position) if kind.is_float else data[position]
        old = machine.select(turn, seen, old, kind, node.span)
        new = _combined(machine, node, seen, spread, turn)
        if kind.is_float:
            machine.domain.put(data, position, machine.spread(new, kind), turn)
        else:
            data[position[turn]] = np.broadcast_to(new, mask.shape)[turn]
    if unsure is not None and kind.is_float:
        # One that may not have happened leaves the cell unknown.
        seen = machine.spread(machine.domain.take(data, position), kind)
        machine.domain.put(data, position, machine.domain.mark(seen, unsure), unsure)
    return old


_INTEGER: dict[str, np.ufunc] = {
    "add": np.add,
    "subtract": np.subtract,
    "maximum_number": np.maximum,
    "minimum_number": np.minimum,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}


def _turns(machine: Machine, position: Array, mask: Mask) -> Iterator[Mask]:
    """The mask split so that no two lanes of a part share a cell, lane order kept."""
    chosen = np.flatnonzero(mask)
    cells = position[chosen]
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    starts = np.ones(len(ordered), dtype=np.bool_)
    starts[1:] = ordered[1:] != ordered[:-1]
    first = np.maximum.accumulate(np.where(starts, np.arange(len(ordered)), 0))
    rank = np.empty(len(ordered), dtype=np.int64)
    rank[order] = np.arange(len(ordered)) - first
    for turn in range(int(rank.max(initial=-1)) + 1):
        machine.meter.step(100 + mask.size // 64)
        part = np.zeros_like(mask)
        part[chosen[rank == turn]] = True
        yield part


def _combined(
    machine: Machine, node: Atomic, seen: Any, values: tuple[Any, ...], mask: Mask
) -> Any:
    name, kind = node.entry.operator, node.type
    match name:
        case "exchange":
            return values[0]
        case "compare_exchange":
            same = machine.compare("equal", seen, values[0], kind, node.span)[0]
            return machine.select(same, values[1], seen, kind, node.span)
        case "increment":
            return np.where(seen >= values[0], seen.dtype.type(0), seen + seen.dtype.type(1))
        case "decrement":
            wraps = (seen == 0) | (seen > values[0])
            return np.where(wraps, values[0], seen - seen.dtype.type(1))
        case _ if name in _COMBINING:
            return machine.binary(name, seen, values[0], kind, mask, node.span)
        case _:
            raise machine.unsupported(f"{node.entry.name} is not understood", node.span)
