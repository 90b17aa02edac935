"""Exchanges between lanes: warp shuffles and votes, and atomics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from migrate.cuda.ast import Atomic, Shuffle
from migrate.cuda.machine import Machine
from migrate.cuda.runtime import WARP, Array, Mask, Ref
from migrate.source import Span


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
    if node.type.is_float:
        return machine.domain.take(spread, position)
    return spread[position]


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
    pointer: Ref,
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
    unsure = machine.unsure(mask)
    if unsure is not None:
        unsure = unsure & machine.inside(pointer, 1, mask)
    mask = machine.real(mask)
    if not mask.any() and (unsure is None or pointer.buffer is None):
        return machine.nothing(kind, node.span)
    buffer, position = machine.flat(pointer, 1, mask, node.span)
    if buffer.scalar.dtype is not kind.dtype:
        raise machine.unsupported(f"memory of {buffer.scalar} accessed as {kind}", node.span)
    buffer.written = True
    position = np.broadcast_to(position, mask.shape)
    spread = tuple(machine.spread(value, kind) for value in values)
    _check_defined(machine, buffer.defined, position, mask, node.span, buffer.name)
    if buffer.stored is not None:
        buffer.stored[position[mask if unsure is None else mask | unsure]] = True
    old = machine.nothing(kind, node.span)
    if not wanted and unsure is None and node.entry.operator in _COMBINING:
        if kind.is_float:
            machine.domain.combine(node.entry.operator, buffer.data, position, spread[0], mask)
        else:
            _INTEGER[node.entry.operator].at(buffer.data, position[mask], spread[0][mask])
        return old
    for turn in _turns(machine, position, mask):
        seen = machine.load(pointer, kind, turn, node.span)
        old = machine.select(turn, seen, old, kind, node.span)
        new = _combined(machine, node, seen, spread, turn)
        if kind.is_float:
            machine.domain.put(buffer.data, position, machine.spread(new, kind), turn)
        else:
            buffer.data[position[turn]] = np.broadcast_to(new, mask.shape)[turn]
    if unsure is not None and kind.is_float:
        # One that may not have happened leaves the cell unknown.
        seen = machine.spread(machine.domain.take(buffer.data, position), kind)
        machine.domain.put(buffer.data, position, machine.domain.mark(seen, unsure), unsure)
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


def _check_defined(
    machine: Machine, defined: Mask | None, position: Array, mask: Mask, span: Span, name: str
) -> None:
    if defined is None:
        return
    undefined = mask & ~defined[position]
    if undefined.any():
        machine.report(
            "uninitialised",
            f"{name} is read before it is written",
            span,
            int(np.argmax(undefined)),
            buffer=name,
        )
    defined[position[mask]] = True


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
            same = machine.compare("equal", seen, values[0], kind)[0]
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
