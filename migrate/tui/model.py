"""The state of a review and its transitions: immutable, without any screen.

A `Pair` is what is looked at (the result, if it is there yet, and the two texts), a
`Review` is where the reader stands in it.  Every method that moves gives a new `Review`;
what there is to say about the move itself is in `notice`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias, get_args

from migrate.results import Comparison, Construct, ConstructVerdict, Finding, Side
from migrate.source import Source, Span
from migrate.tui.document import Document
from migrate.tui.marks import PROBLEMS, Links, Marks, spans

VERDICTS: Final[tuple[ConstructVerdict, ...]] = get_args(ConstructVerdict)
UNMATCHED: Final[tuple[ConstructVerdict, ...]] = ("missing", "extra", "unknown")
SIDES: Final[tuple[Side, Side]] = ("cuda", "nki")
NAMES: Final[dict[Side, str]] = {"cuda": "CUDA", "nki": "NKI"}

Layout: TypeAlias = Literal["wide", "single", "narrow"]


def layout(width: int) -> Layout:
    """Both sources, one at a time, or none beside list and detail; `width` in cells."""
    if width >= 110:
        return "wide"
    return "single" if width >= 80 else "narrow"


def other(side: Side) -> Side:
    """The other side."""
    return "nki" if side == "cuda" else "cuda"


@dataclass(frozen=True, slots=True)
class Overview:
    """The verdict on the pair is selected."""


@dataclass(frozen=True, slots=True)
class OnConstruct:
    """A construct is selected, by its index."""

    construct: int


@dataclass(frozen=True, slots=True)
class OnFinding:
    """A finding is selected, by its place in reading order."""

    position: int


Selection: TypeAlias = Overview | OnConstruct | OnFinding


@dataclass(frozen=True, slots=True)
class Filter:
    """Which constructs are listed."""

    verdicts: frozenset[ConstructVerdict] = frozenset(VERDICTS)

    def admits(self, construct: Construct) -> bool:
        return construct.verdict in self.verdicts

    @property
    def open(self) -> bool:
        """Whether nothing is left out."""
        return len(self.verdicts) == len(VERDICTS)

    def toggled(self, verdict: ConstructVerdict) -> Filter:
        return Filter(self.verdicts ^ {verdict})

    @staticmethod
    def problems() -> Filter:
        """Only what needs a look."""
        return Filter(frozenset(PROBLEMS))


@dataclass(frozen=True, slots=True)
class Pair:
    """What is under review, indexed.  Without a result it is still being compared.

    `findings` are in reading order: by the first construct that rests on each, those of
    none last.  `owners` has the index of that construct.
    """

    files: tuple[str, str]
    documents: tuple[Document | None, Document | None]
    result: Comparison | None = None
    findings: tuple[Finding, ...] = ()
    owners: tuple[int | None, ...] = ()
    marks: tuple[Marks, Marks] = field(
        default_factory=lambda: (Marks.of((), (), "cuda", ""), Marks.of((), (), "nki", ""))
    )
    links: Links = field(default_factory=lambda: Links((1, 2), (1, 2)))

    @staticmethod
    def reading(cuda: Source, nki: Source) -> Pair:
        """Two texts whose comparison is not there yet."""
        documents = (Document(cuda, "cuda"), Document(nki, "nki"))
        files = (cuda.name, nki.name)
        counts = (documents[0].line_count, documents[1].line_count)
        return Pair(files, documents, links=Links.of((), files, counts))

    @staticmethod
    def of(result: Comparison, sources: Mapping[str, Source]) -> Pair:
        """A result with its texts (a text may be missing: then it changed since)."""
        files = (result.cuda.file, result.nki.file)
        documents = (_document(files[0], sources, "cuda"), _document(files[1], sources, "nki"))
        counts = (_line_count(documents[0]), _line_count(documents[1]))
        first: dict[str, int] = {}
        for index, construct in enumerate(result.constructs):
            for name in construct.findings:
                first.setdefault(name, index)
        ordered = sorted(
            result.findings, key=lambda finding: first.get(finding.id, len(result.constructs))
        )
        return Pair(
            files=files,
            documents=documents,
            result=result,
            findings=tuple(ordered),
            owners=tuple(first.get(finding.id) for finding in ordered),
            marks=(
                Marks.of(result.constructs, ordered, "cuda", files[0]),
                Marks.of(result.constructs, ordered, "nki", files[1]),
            ),
            links=Links.of(result.constructs, files, counts),
        )

    @property
    def constructs(self) -> tuple[Construct, ...]:
        return self.result.constructs if self.result is not None else ()

    def document(self, side: Side) -> Document | None:
        return self.documents[SIDES.index(side)]

    def file(self, side: Side) -> str:
        return self.files[SIDES.index(side)]

    def marks_of(self, side: Side) -> Marks:
        return self.marks[SIDES.index(side)]

    def line_count(self, side: Side) -> int:
        return _line_count(self.document(side))

    def findings_of(self, construct: int) -> tuple[int, ...]:
        """The findings that rest on a construct, in reading order."""
        names = set(self.constructs[construct].findings)
        return tuple(i for i, finding in enumerate(self.findings) if finding.id in names)


@dataclass(frozen=True, slots=True)
class Review:
    """Where the reader stands.

    `lines` are the cursors of the two sources (lines from 1), `side` is the one in front.
    `visits` counts for each side which place of the selection the next jump goes to.
    """

    pair: Pair
    selection: Selection = Overview()
    side: Side = "cuda"
    lines: tuple[int, int] = (1, 1)
    visits: tuple[int, int] = (0, 0)
    linked: bool = True
    filter: Filter = Filter()
    waited: int = 0
    """Seconds since the comparison began, while there is no result."""
    source_open: bool = False
    """Whether a screen too narrow for both shows a source in place of list and detail."""
    notice: str = ""

    @staticmethod
    def of(result: Comparison, sources: Mapping[str, Source]) -> Review:
        """A review that begins: the verdict selected, the sources where the kernels are."""
        return Review(Pair.of(result, sources))._at_the_kernels()

    @staticmethod
    def reading(cuda: Source, nki: Source) -> Review:
        """A review whose result is not there yet."""
        return Review(Pair.reading(cuda, nki))

    def with_result(self, result: Comparison, sources: Mapping[str, Source]) -> Review:
        """The result has come; a reader who has moved already stays where they are."""
        moved = self.lines != (1, 1)
        review = replace(self, pair=Pair.of(result, sources))
        return review if moved else review._at_the_kernels()

    def _at_the_kernels(self) -> Review:
        firsts = (
            min((place.first for place in marks.places), default=1) for marks in self.pair.marks
        )
        cuda, nki = firsts
        return self._placed("cuda", cuda)._placed("nki", nki)

    # -- what is selected ---------------------------------------------------------------

    @property
    def construct(self) -> int | None:
        """The selected construct, or the one that the selected finding belongs to."""
        match self.selection:
            case OnConstruct(index):
                return index
            case OnFinding(position):
                return self.pair.owners[position]
            case Overview():
                return None

    @property
    def finding(self) -> int | None:
        """The selected finding's place in reading order."""
        return self.selection.position if isinstance(self.selection, OnFinding) else None

    @property
    def listed(self) -> tuple[int, ...]:
        """The constructs that the filter admits, by index."""
        return tuple(i for i, item in enumerate(self.pair.constructs) if self.filter.admits(item))

    def counts(self) -> dict[ConstructVerdict, int]:
        """How many constructs have each verdict, the filter aside."""
        found = Counter(construct.verdict for construct in self.pair.constructs)
        return {verdict: found[verdict] for verdict in VERDICTS}

    def line(self, side: Side) -> int:
        """The cursor of a source."""
        return self.lines[SIDES.index(side)]

    def places(self, side: Side) -> tuple[Span, ...]:
        """Where what is selected stands in the text of a side."""
        found: list[Span] = []
        match self.selection:
            case OnFinding(position):
                finding = self.pair.findings[position]
                if finding.side == side:
                    found.append(finding.span)
                found += [item.span for item in finding.related if item.side == side]
            case _:
                pass
        if not found and self.construct is not None:
            found += spans(self.pair.constructs[self.construct], side)
        file = self.pair.file(side)
        return tuple(dict.fromkeys(span for span in found if span.file == file))

    # -- findings -------------------------------------------------------------------------

    def next_finding(self) -> Review:
        """The next finding in reading order; from the last, the first."""
        return self._step_finding(1)

    def previous_finding(self) -> Review:
        """The one before; from the first, the last."""
        return self._step_finding(-1)

    def _step_finding(self, step: int) -> Review:
        count = len(self.pair.findings)
        if not count:
            return self.noting("there are no findings" if self.pair.result else "still comparing")
        match self.selection:
            case OnFinding(position):
                target = position + step
            case OnConstruct(index):
                # A construct stands before its own findings.
                owners = [len(self.pair.constructs) if o is None else o for o in self.pair.owners]
                before = sum(owner < index for owner in owners)
                target = before if step > 0 else before - 1
            case Overview():
                target = 0 if step > 0 else count - 1
        review = self.select_finding(target % count)
        if 0 <= target < count:
            return review
        return review.noting(
            "on from the first finding" if step > 0 else "on from the last finding"
        )

    def select_finding(self, position: int) -> Review:
        """Select a finding by its place in reading order."""
        side = self.pair.findings[position].side
        return self._selecting(OnFinding(position), side)

    # -- constructs -------------------------------------------------------------------------

    def next_construct(self) -> Review:
        """The next construct listed; at the last one it stays."""
        return self.step_listed(1)

    def previous_construct(self) -> Review:
        """The one before; before the first stands the overview."""
        return self.step_listed(-1)

    def step_listed(self, count: int) -> Review:
        """So many rows down the list (up where negative), as far as it goes."""
        listed = self.listed
        if not listed:
            return self.noting("no construct is listed") if count > 0 else self.overview()
        if self.construct is None:
            # A finding without a construct stands behind the list, the overview before it.
            row = len(listed) if self.finding is not None else -1
        else:
            row = sum(index < self.construct for index in listed)
            if count > 0 and self.construct not in listed:
                row -= 1
        target = max(-1, min(row + count, len(listed) - 1))
        if target == -1:
            return self.overview()
        if listed[target] == self.construct and self.finding is None:
            return self.noting("the last construct")
        return self.select(listed[target])

    def next_with(self, verdicts: Iterable[ConstructVerdict]) -> Review:
        """The next listed construct with one of the verdicts; from the last, the first."""
        wanted = tuple(verdicts)
        found = [i for i in self.listed if self.pair.constructs[i].verdict in wanted]
        if not found:
            return self.noting(f"no construct listed is {' or '.join(wanted)}")
        current = -1 if self.construct is None else self.construct
        later = [index for index in found if index > current]
        if later:
            return self.select(later[0])
        return self.select(found[0]).noting("on from the first")

    def select(self, construct: int) -> Review:
        """Select a construct by its index; both sources go where it stands."""
        return self._selecting(OnConstruct(construct), self.side)

    def overview(self) -> Review:
        """Select the verdict on the pair."""
        return replace(self, selection=Overview(), notice="")

    def _selecting(self, selection: Selection, preferred: Side) -> Review:
        review = replace(self, selection=selection, visits=(0, 0), notice="")
        places = {side: review.places(side) for side in SIDES}
        side = preferred if places[preferred] or not places[other(preferred)] else other(preferred)
        for each in (other(side), side):
            if places[each]:
                review = review._placed(each, places[each][0].start_line)
        if places[side] and not places[other(side)] and self.linked:
            review = review._following(side)
        review = replace(review, side=side)
        return review._visiting(side, 1 % max(1, len(places[side])))

    # -- moving in the sources ----------------------------------------------------------------

    def move(self, side: Side, count: int) -> Review:
        """Move a source's cursor by lines; what it comes to stand on is selected."""
        return self.go(side, self.line(side) + count)

    def go(self, side: Side, line: int) -> Review:
        """Set a source's cursor; beyond the ends it goes to the end."""
        review = replace(self, side=side, notice="")._placed(side, line)
        marks = self.pair.marks_of(side)
        found = marks.findings.get(review.line(side))
        top = marks.top(review.line(side))
        if found:
            if self.finding not in found:
                review = replace(review, selection=OnFinding(found[0]))
        elif top is not None:
            covering = marks.covering(review.line(side))
            if not isinstance(self.selection, OnConstruct) or self.construct not in covering:
                review = replace(review, selection=OnConstruct(top))
        if review.selection != self.selection:
            review = replace(review, visits=(0, 0))
        return review._following(side) if self.linked else review

    def partner(self) -> Review:
        """To where the selection stands on the other side; again, back and on to the next."""
        target = other(self.side)
        places = self.places(target)
        if isinstance(self.selection, Overview):
            return self.front(target)
        if not places:
            where = NAMES[target]
            if self.construct is None:
                return self.noting(f"this finding has no place on the {where} side")
            construct = self.pair.constructs[self.construct]
            return self.noting(f"{construct.verdict}: nothing on the {where} side")
        visit = self.visits[SIDES.index(target)] % len(places)
        review = replace(self, side=target, source_open=True, notice="")
        review = review._placed(target, places[visit].start_line)
        if len(places) > 1:
            review = review.noting(
                f"place {visit + 1} of {len(places)} on the {NAMES[target]} side"
            )
        return review._visiting(target, (visit + 1) % len(places))

    def front(self, side: Side) -> Review:
        """A source in front, where its cursor is."""
        return replace(self, side=side, source_open=True, notice="")

    def other_side(self, shape: Layout = "wide") -> Review:
        """The other source in front; a narrow screen goes CUDA, NKI, list and detail."""
        review = replace(self, notice="")
        if shape == "narrow":
            if not self.source_open:
                return replace(review, source_open=True, side="cuda")
            if self.side == "nki":
                return replace(review, source_open=False)
        return replace(review, side=other(self.side), source_open=True)

    def across(self, side: Side, line: int) -> int:
        """The line of the other source that answers a line of `side`."""
        return self.pair.links.across(side, line)

    def _following(self, side: Side) -> Review:
        return self._placed(other(side), self.across(side, self.line(side)))

    def _placed(self, side: Side, line: int) -> Review:
        line = max(1, min(line, self.pair.line_count(side)))
        at = SIDES.index(side)
        return replace(self, lines=_with(self.lines, at, line))

    def _visiting(self, side: Side, visit: int) -> Review:
        return replace(self, visits=_with(self.visits, SIDES.index(side), visit))

    # -- settings -------------------------------------------------------------------------------

    def toggle_link(self) -> Review:
        """Tie the two sources, or untie them."""
        linked = not self.linked
        notice = "the sources scroll together" if linked else "each source scrolls alone"
        return replace(self, linked=linked, notice=notice)

    def filtered(self, chosen: Filter) -> Review:
        """List only what the filter admits; the selection stays, listed or not."""
        return replace(self, filter=chosen, notice="")

    def waiting(self) -> Review:
        """A second later, still without a result."""
        return replace(self, waited=self.waited + 1)

    def noting(self, notice: str) -> Review:
        """The same place with something to say about it."""
        return replace(self, notice=notice)


Transition: TypeAlias = Callable[[Review], Review]


def _with(pair: tuple[int, int], at: int, value: int) -> tuple[int, int]:
    return (value, pair[1]) if at == 0 else (pair[0], value)


def _document(name: str, sources: Mapping[str, Source], side: Side) -> Document | None:
    source = sources.get(name)
    return Document(source, side) if source is not None else None


def _line_count(document: Document | None) -> int:
    return document.line_count if document is not None else 1
