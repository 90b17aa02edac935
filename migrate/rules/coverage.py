"""Why elements are never written: the loop, the slice or the branch that leaves them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from migrate.align.mismatch import Mismatch
from migrate.align.relation import Relation
from migrate.ir.index import Index
from migrate.ir.nodes import Axis, AxisKind, Kernel, Load, Store
from migrate.rules.places import Placed, sources, stores, transfers
from migrate.rules.rule import Reading
from migrate.source import Span

_TILE_KINDS = {AxisKind.TILE, AxisKind.SEQUENTIAL, AxisKind.PARALLEL, AxisKind.GRID}


@dataclass(frozen=True, slots=True)
class Blame:
    """The place to point at, the others to show, and the reason as the end of a sentence."""

    span: Span
    others: tuple[Span, ...]
    reason: str = ""
    sure: bool = True


def blamed(reading: Reading, relation: Relation, mismatch: Mismatch) -> Blame:
    """Where the NKI kernel decides not to write the elements of a mismatch."""
    kernel = reading.nki
    assert kernel is not None
    buffer = _buffer(reading, kernel, mismatch.output)
    placed = stores(kernel, buffer) if buffer is not None else ()
    if not placed:
        if kernel.untaken:
            return _suspected(kernel.untaken, (), ": no instruction stores to it")
        return Blame(kernel.span, (), ": no instruction stores to it")
    sizes = dict(kernel.computed_at or ())
    near = _nearest(relation, mismatch, placed)
    others = tuple(dict.fromkeys((near.op.span, *sources(near))))
    strided = _stride(near, sizes, kernel)
    if strided is not None:
        return Blame(strided[0], others, strided[1])
    grown = _loop(near, sizes, int(mismatch.elements[0]), kernel)
    suspects: list[Span] = []
    reason = ""
    if grown is not None:
        suspects.append(grown.sources[0] if grown.sources else grown.span)
        reason = ": the loop over tiles ends too early"
    elif kernel.untaken:
        reason = ", and a branch that stores elements is not taken"
    suspects += kernel.untaken
    suspects += getattr(near.op, "sources", ())
    return _suspected((*suspects, near.op.span), others, reason)


def _suspected(suspects: Sequence[Span], others: tuple[Span, ...], reason: str) -> Blame:
    """The first of several possible causes, to be settled by trying them."""
    every = tuple(dict.fromkeys((*suspects, *others)))
    return Blame(every[0], every, reason, sure=False)


def overwriting(reading: Reading, mismatch: Mismatch) -> Blame:
    """Why the last store to the elements of a mismatch is in the wrong place."""
    kernel, op = reading.nki, mismatch.nki_op
    assert kernel is not None
    assert op is not None
    if isinstance(op, Store):
        for placed in stores(kernel, op.into.buffer):
            if placed.op is op:
                others = tuple(dict.fromkeys((op.span, *sources(placed))))
                strided = _stride(placed, dict(kernel.computed_at or ()), kernel, gaps=False)
                if strided is not None:
                    return Blame(strided[0], others, strided[1])
                return Blame(op.span, others)
    return Blame(op.span, tuple(getattr(op, "sources", ())))


def _buffer(reading: Reading, kernel: Kernel, output: str) -> str | None:
    from migrate.align.binding import logical_tensors

    for buffer, tensor in logical_tensors(reading.binding, kernel, "nki").items():
        if tensor.name == output and any(o.version.buffer == buffer for o in kernel.outputs):
            return buffer
    return None


def _nearest(relation: Relation, mismatch: Mismatch, placed: tuple[Placed, ...]) -> Placed:
    """The store that writes next to the first missing element; else the first store."""
    writers = relation.nki_writers.get(mismatch.output)
    if writers is not None:
        first, last = int(mismatch.elements[0]), int(mismatch.elements[-1])
        for element in (first - 1, last + 1):
            if 0 <= element < writers.size and writers.reshape(-1)[element] >= 0:
                op = relation.nki_stores[int(writers.reshape(-1)[element])]
                for candidate in placed:
                    if candidate.op is op:
                        return candidate
    return placed[0]


def _flat(placed: Placed, kernel_shape: tuple[int, ...], values: Mapping[str, Any]) -> Any:
    assert isinstance(placed.op, Store)
    total: Any = 0
    for part, extent in zip(placed.op.index, kernel_shape, strict=True):
        total = total * extent + part.evaluate(values)
    return total


def _stride(
    placed: Placed, sizes: Mapping[str, int], kernel: Kernel, *, gaps: bool = True
) -> tuple[Span, str] | None:
    """Tiles that overlap, or leave `gaps`: the step from one to the next is not their length."""
    if not isinstance(placed.op, Store) or len(placed.op.index) != 1:
        return None
    tiles = [axis for axis in placed.axes if axis.kind in _TILE_KINDS]
    within = [axis for axis in placed.axes if axis.kind not in _TILE_KINDS]
    if not tiles or not within:
        return None
    axis = tiles[-1]
    values: dict[str, Any] = {**sizes, **{outer.name: 0 for outer in placed.axes}}
    if int(axis.extent.evaluate(values)) < 2:
        return None
    (index,) = placed.op.index
    step, length = _advance(index, placed.axes, axis, values)
    if gaps and step > length:
        reason = f": each tile holds {length:,} elements, but the next starts {step:,} further on"
        if _whole(kernel, axis, values):
            # What is read goes from tile to tile without gaps: the store is what is short.
            return placed.op.span, reason
        return axis.span, reason
    if step == 0:
        reason = ": every tile is written to the same place"
        return placed.op.span, reason
    if step < length:
        reason = (
            f": each tile holds {length:,} elements, but the next starts only {step:,} further on"
        )
        own = placed.op.sources
        return (own[0] if own else placed.op.span), reason
    return None


def _advance(
    index: Index, axes: tuple[Axis, ...], axis: Axis, values: dict[str, Any]
) -> tuple[int, int]:
    """How far an access moves from one tile to the next, and how long a tile is."""
    within = [inner for inner in axes if inner.kind not in _TILE_KINDS]
    step = int(index.evaluate({**values, axis.name: 1})) - int(index.evaluate(values))
    return step, _length(within, index, values)


def _whole(kernel: Kernel, axis: Axis, values: dict[str, Any]) -> bool:
    """Whether all that is read in a loop over tiles is read from end to end."""
    found = [
        _advance(placed.op.index[0], placed.axes, axis, {**values, **dict.fromkeys(names, 0)})
        for placed in transfers(kernel)
        if axis in placed.axes and isinstance(placed.op, Load) and len(placed.op.index) == 1
        for names in [[outer.name for outer in placed.axes]]
    ]
    return bool(found) and all(step == length for step, length in found)


def _length(within: list[Axis], index: Any, values: dict[str, Any]) -> int:
    """From the first to past the last element that one tile touches."""
    ends = dict(values)
    for axis in within:
        ends[axis.name] = max(int(axis.extent.evaluate(ends)) - 1, 0)
    return int(index.evaluate(ends)) - int(index.evaluate(values)) + 1


def _loop(placed: Placed, sizes: Mapping[str, int], missing: int, kernel: Kernel) -> Axis | None:
    """The tile loop whose next trip would reach a missing element."""
    if not isinstance(placed.op, Store):
        return None
    shape = kernel.buffer(placed.op.into.buffer).shape
    extents = tuple(int(extent.evaluate(sizes)) for extent in shape)
    for axis in reversed(placed.axes):
        if axis.kind not in _TILE_KINDS:
            continue
        values: dict[str, Any] = {**sizes, **{other.name: 0 for other in placed.axes}}
        values[axis.name] = int(axis.extent.evaluate(values))
        start = _flat(placed, extents, values)
        ends = dict(values)
        for inner in placed.axes:
            if inner.kind not in _TILE_KINDS:
                ends[inner.name] = max(int(np.max(inner.extent.evaluate(ends))) - 1, 0)
        if start <= missing <= max(_flat(placed, extents, ends), start):
            return axis
    return None
