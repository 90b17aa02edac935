"""Going through the differences of all readings, each told once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from migrate.align.difference import Difference, What
from migrate.align.mismatch import Mismatch
from migrate.align.relation import Relation
from migrate.ir.forms import Element, Form, Table
from migrate.ir.nodes import Kernel, Op, walk
from migrate.ir.scene import place as bare
from migrate.ir.wording import said
from migrate.results import Related
from migrate.rules.places import at, described, output_of, related
from migrate.rules.rule import Evidence, Reading
from migrate.source import Span


def mismatches(evidence: Evidence, what: What) -> Iterator[tuple[Reading, Relation, Mismatch]]:
    """Mismatches of refuted outputs with one kind of difference."""
    for reading, relation, mismatch in refuted(evidence):
        if any(difference.what == what for difference in mismatch.differences):
            yield reading, relation, mismatch


def refuted(evidence: Evidence) -> Iterator[tuple[Reading, Relation, Mismatch]]:
    """Every mismatch of a refuted output; one that only large inputs refute is for NUM303."""
    for reading in evidence.readings:
        relation = reading.relation
        if relation is None:
            continue
        for output in relation.outputs:
            if output.status != "refuted" or output.overflow is not None:
                continue
            for mismatch in output.mismatches:
                yield reading, relation, mismatch


@dataclass(frozen=True, slots=True)
class Parted:
    """One difference of one mismatch, in words and places."""

    reading: Reading
    relation: Relation
    mismatch: Mismatch
    difference: Difference
    span: Span
    related: tuple[Related, ...]
    cuda_text: str
    nki_text: str
    where: str


def parted(evidence: Evidence, *whats: What) -> Iterator[Parted]:
    """Differences of the given kinds, with the NKI place to show.

    The place is the operator that the difference is an operand of; for another element of
    the same tensor, the access that reads it.
    """
    for what in whats:
        for reading, relation, mismatch in mismatches(evidence, what):
            total = next(t.size for t in reading.binding.outputs if t.name == mismatch.output)
            if mismatch.overwritten:
                continue  # what was right and then overwritten is told by MAP109
            for difference in mismatch.differences:
                if difference.what != what:
                    continue
                span, others = _place(mismatch, difference, reading.nki)
                if span is None:
                    continue
                elements = described(_with_alike(mismatch, difference, relation), total)
                where = f"{elements} of {mismatch.output} at {at(relation.sizes.items())}"
                yield Parted(
                    reading,
                    relation,
                    mismatch,
                    difference,
                    span,
                    (
                        *related("nki", (s for s in others if s != span)),
                        *related("cuda", [difference.cuda_span or _span(mismatch.cuda_op)]),
                    ),
                    _worded(difference.cuda, difference, mismatch, relation),
                    _worded(difference.nki, difference, mismatch, relation),
                    where,
                )


def _with_alike(mismatch: Mismatch, difference: Difference, relation: Relation) -> Mismatch:
    """The mismatch with the elements of all that differ as it does.

    CUDA threads may write the elements of a row in several statements; the difference is one.
    """
    alike = [
        other
        for other in output_of(relation, mismatch).mismatches
        if not other.overwritten
        and any(
            (d.what, d.nki_span) == (difference.what, difference.nki_span)
            for d in other.differences
        )
    ]
    if len(alike) < 2:
        return mismatch
    return replace(
        mismatch,
        elements=np.unique(np.concatenate([other.elements for other in alike])),
        count=sum(other.count for other in alike),
        sampled=any(other.sampled for other in alike),
    )


def _place(
    mismatch: Mismatch, difference: Difference, kernel: Kernel | None
) -> tuple[Span | None, tuple[Span, ...]]:
    reads = [op.span for op in mismatch.reads]
    inner = [span for op in mismatch.reads for span in getattr(op, "sources", ())]
    store = _span(mismatch.nki_op)
    candidates = [*reads, *inner]
    if difference.what == "element" and reads:
        first = (kernel and _argument(mismatch.reads[0], kernel)) or reads[0]
        others = (reads[0], *inner, difference.nki_span, store)
        return first, tuple(s for s in others if s is not None)
    others = (*candidates, store)
    return difference.nki_span or store, tuple(s for s in others if s is not None)


def _argument(read: Op, kernel: Kernel) -> Span | None:
    """The argument of a call that makes a read go wrong which is right from another call."""
    span = read.span
    if not span.via:
        return None
    for op in walk(kernel.body):
        if type(op) is type(read) and bare(op.span) == bare(span) and op.span != span:
            depth = len(span.via)
            given = (s for s in getattr(read, "sources", ()) if len(s.via) < depth)
            return next(given, None)
    return None


def _span(op: object) -> Span | None:
    span = getattr(op, "span", None)
    return span if isinstance(span, Span) else None


def _worded(form: Form, difference: Difference, mismatch: Mismatch, relation: Relation) -> str:
    """The form in words; of elements without a rule, one that only this side reads."""
    sides = (difference.cuda, difference.nki)
    if difference.what != "element" or not isinstance(form, Element):
        return said(form)
    other = sides[0] if form is difference.nki else sides[1]
    if not isinstance(other, Element) or not any(
        isinstance(place, Table) for side in (form, other) for place in side.index
    ):
        return said(form)
    shape = output_of(relation, mismatch).shape
    first = int(mismatch.elements[0])
    cell = np.array(np.unravel_index(first, shape) if shape else (), np.int64).reshape(1, -1)
    # Of elements in equal steps a table has two; more are not needed to name one.
    tables = [
        p.listed.shape[1:] for side in (form, other) for p in side.index if isinstance(p, Table)
    ]
    if len({len(shape) for shape in tables}) > 1:
        return said(form)
    counts = tuple(map(max, zip(*tables, strict=True)))
    mine, theirs = _elements(form, cell, counts), _elements(other, cell, counts)
    alone = Counter(mine) - Counter(theirs)
    chosen = min(alone) if alone else mine[0]
    return f"{form.tensor}[{', '.join(f'{number:,}' for number in chosen)}]"


def _elements(
    form: Element, cell: NDArray[np.int64], counts: tuple[int, ...]
) -> list[tuple[int, ...]]:
    """The elements that a form reads for its first cell, over the counters of reductions."""
    columns = []
    for place in form.index:
        if isinstance(place, Table):
            columns.append(place.numbers(cell, counts)[0].reshape(-1))
        else:
            used = counts[: len(place.counters)]
            numbers = place.numbers(cell, used)[0]
            spread = numbers.reshape(used + (1,) * (len(counts) - len(used)))
            columns.append(np.broadcast_to(spread, counts).reshape(-1))
    return list(zip(*(column.tolist() for column in columns), strict=True)) or [()]
