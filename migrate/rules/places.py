"""Where to point: the NKI lines that decide which elements an instruction touches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from migrate.align.mismatch import Mismatch
from migrate.align.relation import OutputRelation, Relation
from migrate.ir.nodes import (
    AsyncCopy,
    Axis,
    Block,
    Contract,
    Fold,
    Gather,
    Guard,
    Kernel,
    Load,
    Op,
    Parallel,
    Reduce,
    Scatter,
    Store,
    walk,
)
from migrate.results import Related, Side, Value, Witness
from migrate.source import Span


@dataclass(frozen=True, slots=True)
class Placed:
    """An op with the axes around it, outermost first."""

    op: Op
    axes: tuple[Axis, ...]


def stores(kernel: Kernel, output: str) -> tuple[Placed, ...]:
    """The ops that write a buffer, with the axes around them."""
    return tuple(
        placed
        for placed in _placed(kernel.body, ())
        if isinstance(placed.op, Store | Scatter | AsyncCopy) and placed.op.into.buffer == output
    )


def transfers(kernel: Kernel) -> tuple[Placed, ...]:
    """The ops that read what the kernel was given, with the axes around them."""
    given = {buffer.name for buffer in kernel.buffers if buffer.role in {"in", "inout"}}
    return tuple(
        placed
        for placed in _placed(kernel.body, ())
        if isinstance(placed.op, Load) and placed.op.source.buffer in given
    )


def _placed(block: Block, axes: tuple[Axis, ...]) -> Iterator[Placed]:
    for op in block:
        yield Placed(op, axes)
        match op:
            case Parallel(axes=own, body=body) | Fold(axes=own, body=body):
                yield from _placed(body, (*axes, *own))
            case Reduce(axes=own, body=body) | Contract(axes=own, body=body):
                yield from _placed(body, (*axes, *own))
            case Guard(body=body, otherwise=otherwise):
                yield from _placed(body, axes)
                yield from _placed(otherwise, axes)


def sources(placed: Placed) -> tuple[Span, ...]:
    """The places whose integers decide which elements the op touches, nearest first."""
    own = getattr(placed.op, "sources", ())
    around = [span for axis in reversed(placed.axes) for span in (*axis.sources, axis.span)]
    return tuple(dict.fromkeys((*own, *around)))


def behind(kernel: Kernel, span: Span) -> tuple[Span, ...]:
    """The places whose integers decide what the ops at a place compute, nearest first.

    Those of the ops themselves and of the loops around them come first, then those of what
    was stored before into the buffers they read.
    """
    placed = list(_placed(kernel.body, ()))
    writers: dict[str, list[Placed]] = {}
    for each in placed:
        if isinstance(each.op, Store | Scatter | AsyncCopy):
            writers.setdefault(each.op.into.buffer, []).append(each)
    pending = [each for each in placed if each.op.span == span]
    found: list[Span] = []
    seen: set[int] = set()
    while pending:
        each = pending.pop(0)
        if id(each.op) in seen:
            continue
        seen.add(id(each.op))
        found += getattr(each.op, "sources", ())
        own = getattr(each.op, "axes", ())
        for axis in (*own, *reversed(each.axes)):
            found += (*axis.sources, axis.span)
        for read in _reads_at(placed, each.op):
            pending += writers.get(read, ())
    return tuple(dict.fromkeys(found))


def _reads_at(placed: Iterable[Placed], op: Op) -> list[str]:
    """The buffers that are read at the place of an op."""
    return [
        other.op.source.buffer
        for other in placed
        if isinstance(other.op, Load | Gather) and other.op.span == op.span
    ]


def accumulator(kernel: Kernel, span: Span) -> Span | None:
    """Where the on-chip tile was made that the instruction at a place stores into."""
    for op in walk(kernel.body):
        if isinstance(op, Store) and op.span == span:
            buffer = kernel.buffer(op.into.buffer)
            return buffer.span if buffer.role == "scratch" else None
    return None


def related(side: Side, spans: Iterable[Span | None]) -> tuple[Related, ...]:
    """Places to show beside a finding, each once."""
    kept = dict.fromkeys(span for span in spans if span is not None)
    return tuple(Related(side=side, span=span) for span in kept)


def output_of(relation: Relation, mismatch: Mismatch) -> OutputRelation:
    """The output a mismatch belongs to."""
    return next(o for o in relation.outputs if o.name == mismatch.output)


def witness_in(relation: Relation, mismatch: Mismatch) -> Witness | None:
    """The output's witness, if it is one of the mismatch's elements."""
    output = output_of(relation, mismatch)
    witness = output.witness
    if witness is None:
        return None
    shape = output.shape
    flat = int(np.ravel_multi_index(witness.index, shape)) if shape else 0
    return witness if flat in mismatch.elements else None


def described(mismatch: Mismatch, total: int) -> str:
    """The elements of a mismatch in words: how many, and which if they are one range."""
    elements = mismatch.elements
    first, last = int(elements[0]), int(elements[-1])
    if mismatch.sampled:
        return f"about {mismatch.count:,} of {total:,} elements (element {first:,} is one)"
    count = len(elements)
    if count == total:
        return f"all {total:,} elements" if total > 1 else "the only element"
    if last - first + 1 == count:
        where = f"{first:,}" if count == 1 else f"{first:,} to {last:,}"
        return f"{count:,} of {total:,} elements ({where})"
    return f"{count:,} of {total:,} elements (the first is {first:,})"


def shown(number: Value) -> str:
    """A result as a reader compares it."""
    return f"{number:.4g}" if isinstance(number, float) else str(number)


def at(sizes: Iterable[tuple[str, int]]) -> str:
    """Sizes in words."""
    return ", ".join(f"{name} = {value}" for name, value in sizes) or "the given sizes"
