"""What stands on which line of a source, and which line answers which on the other side."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from migrate.results import Construct, ConstructVerdict, Finding, Severity, Side
from migrate.source import Span

PROBLEMS: Final[tuple[ConstructVerdict, ...]] = ("mismapped", "missing", "extra", "unknown")
"""The verdicts that need a look, gravest first."""


@dataclass(frozen=True, slots=True)
class Place:
    """Lines (inclusive) on which a construct stands; `construct` is its index."""

    construct: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of one side.

    A line shows one construct: of those that begin on it the gravest, else the innermost
    that covers it.  `edges` and `tops` say which from which line on.
    """

    places: tuple[Place, ...]
    edges: tuple[int, ...]
    tops: tuple[int | None, ...]
    findings: dict[int, tuple[int, ...]]
    severities: dict[int, Severity]

    @staticmethod
    def of(
        constructs: Sequence[Construct], findings: Sequence[Finding], side: Side, file: str
    ) -> Marks:
        """The marks in one file; a place in another file has none."""
        places = tuple(
            dict.fromkeys(
                Place(index, span.start_line, last_line(span))
                for index, construct in enumerate(constructs)
                for span in spans(construct, side)
                if span.file == file
            )
        )
        on_line: dict[int, list[int]] = {}
        for index, finding in enumerate(findings):
            if finding.side == side and finding.span.file == file:
                on_line.setdefault(finding.span.start_line, []).append(index)
        order: tuple[Severity, ...] = ("error", "warning", "note")
        severities = {
            line: min((findings[index].severity for index in indices), key=order.index)
            for line, indices in on_line.items()
        }
        edges, tops = _tops(places, constructs)
        return Marks(
            places=places,
            edges=edges,
            tops=tops,
            findings={line: tuple(indices) for line, indices in on_line.items()},
            severities=severities,
        )

    def top(self, line: int) -> int | None:
        """The construct that the line shows."""
        at = bisect_right(self.edges, line) - 1
        return self.tops[at] if at >= 0 else None

    def covering(self, line: int) -> tuple[int, ...]:
        """Every construct on the line, innermost first."""
        found = [place for place in self.places if place.first <= line <= place.last]
        found.sort(key=lambda place: (place.last - place.first, place.construct))
        return tuple(dict.fromkeys(place.construct for place in found))


def _tops(
    places: Sequence[Place], constructs: Sequence[Construct]
) -> tuple[tuple[int, ...], tuple[int | None, ...]]:
    def gravity(place: Place) -> int:
        verdict = constructs[place.construct].verdict
        return PROBLEMS.index(verdict) if verdict in PROBLEMS else len(PROBLEMS)

    begins: dict[int, list[Place]] = {}
    ends: dict[int, list[Place]] = {}
    edges: set[int] = set()
    for place in places:
        begins.setdefault(place.first, []).append(place)
        ends.setdefault(place.last + 1, []).append(place)
        edges.update((place.first, place.first + 1, place.last + 1))
    ordered = sorted(edges)
    tops: list[int | None] = []
    # In the order of insertion, unlike a set, so that equals are always ranked alike.
    active: dict[Place, None] = {}
    for line in ordered:
        for place in ends.get(line, ()):
            active.pop(place)
        beginning = begins.get(line, ())
        active.update(dict.fromkeys(beginning))
        if beginning:
            best = min(beginning, key=lambda place: (gravity(place), place.last, place.construct))
        elif active:
            best = min(
                active,
                key=lambda place: (place.last - place.first, gravity(place), place.construct),
            )
        else:
            tops.append(None)
            continue
        tops.append(best.construct)
    return tuple(ordered), tuple(tops)


@dataclass(frozen=True, slots=True)
class Links:
    """Pairs of lines that answer each other, rising on both sides.

    Between two pairs a line is placed in proportion, so that the two sources scroll
    together by what they do and not by line number.
    """

    cuda: tuple[int, ...]
    nki: tuple[int, ...]

    @staticmethod
    def of(
        constructs: Iterable[Construct], files: tuple[str, str], counts: tuple[int, int]
    ) -> Links:
        """From the constructs that stand on both sides; `counts` are the numbers of lines."""
        pairs = {
            (here.start_line, there.start_line)
            for construct in constructs
            for here in spans(construct, "cuda")[:1]
            for there in spans(construct, "nki")[:1]
            if (here.file, there.file) == files
            and 1 < here.start_line <= counts[0]
            and 1 < there.start_line <= counts[1]
        }
        rising = _rising(sorted(pairs, key=lambda pair: (pair[0], -pair[1])))
        chain = [(1, 1), *rising, (counts[0] + 1, counts[1] + 1)]
        return Links(tuple(pair[0] for pair in chain), tuple(pair[1] for pair in chain))

    def across(self, side: Side, line: int) -> int:
        """The line of the other side that answers a line of `side`."""
        here, there = (self.cuda, self.nki) if side == "cuda" else (self.nki, self.cuda)
        line = max(1, min(line, here[-1] - 1))
        at = bisect_right(here, line) - 1
        length, other = here[at + 1] - here[at], there[at + 1] - there[at]
        return min(there[at] + (line - here[at]) * other // length, there[-1] - 1)


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest chain that rises on both sides (patience sorting)."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int | None] = []
    for index, (_, line) in enumerate(pairs):
        at = bisect_left(tails, line)
        before.append(ends[at - 1] if at else None)
        if at == len(tails):
            tails.append(line)
            ends.append(index)
        else:
            tails[at] = line
            ends[at] = index
    chain: list[tuple[int, int]] = []
    index_: int | None = ends[-1] if ends else None
    while index_ is not None:
        chain.append(pairs[index_])
        index_ = before[index_]
    return chain[::-1]


def spans(construct: Construct, side: Side) -> tuple[Span, ...]:
    """Where a construct stands on a side."""
    return tuple(part.span for part in (construct.cuda if side == "cuda" else construct.nki))


def last_line(span: Span) -> int:
    """The last line that a span covers."""
    last = span.end_line if span.end_column > 1 else span.end_line - 1
    return max(last, span.start_line)
