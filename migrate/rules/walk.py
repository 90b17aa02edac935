"""Going through the differences of all readings, each told once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from migrate.align.difference import Difference, What
from migrate.align.relation import Mismatch, Relation
from migrate.results import Related
from migrate.rules.places import at, described, related
from migrate.rules.rule import Evidence, Reading
from migrate.source import Span


def mismatches(evidence: Evidence, what: What) -> Iterator[tuple[Reading, Relation, Mismatch]]:
    """Mismatches of refuted outputs with one kind of difference."""
    for reading in evidence.readings:
        relation = reading.relation
        if relation is None:
            continue
        for output in relation.outputs:
            if output.status != "refuted":
                continue
            for mismatch in output.mismatches:
                if any(difference.what == what for difference in mismatch.differences):
                    yield reading, relation, mismatch


@dataclass(frozen=True, slots=True)
class Parted:
    """One difference of one mismatch, in words and places."""

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
            where = (
                f"{described(mismatch.elements, total)} of {mismatch.output}"
                f" at {at(relation.sizes.items())}"
            )
            for difference in mismatch.differences:
                if difference.what != what:
                    continue
                span, others = _place(mismatch, difference)
                if span is None:
                    continue
                yield Parted(
                    relation,
                    mismatch,
                    difference,
                    span,
                    (
                        *related("nki", (s for s in others if s != span)),
                        *related("cuda", [difference.cuda_span or _span(mismatch.cuda_op)]),
                    ),
                    _short(str(difference.cuda)),
                    _short(str(difference.nki)),
                    where,
                )


def _place(mismatch: Mismatch, difference: Difference) -> tuple[Span | None, tuple[Span, ...]]:
    reads = [op.span for op in mismatch.reads]
    inner = [span for op in mismatch.reads for span in getattr(op, "sources", ())]
    store = _span(mismatch.nki_op)
    candidates = [*reads, *inner]
    if difference.what == "element" and reads:
        others = (*inner, difference.nki_span, store)
        return reads[0], tuple(s for s in others if s is not None)
    others = (*candidates, store)
    return difference.nki_span or store, tuple(s for s in others if s is not None)


def _span(op: object) -> Span | None:
    span = getattr(op, "span", None)
    return span if isinstance(span, Span) else None


def _short(text: str, most: int = 90) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
