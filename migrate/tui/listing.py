"""The review's title, list rows, gutters and source headings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from migrate.report.text import GLYPHS
from migrate.results import ConstructVerdict, Side
from migrate.source import neutral
from migrate.tui.document import Fragment, columns
from migrate.tui.ink import (
    OUTCOMES,
    SEVERITY_INKS,
    SEVERITY_LETTERS,
    VERDICT_INKS,
    Line,
    Piece,
)
from migrate.tui.marks import spans
from migrate.tui.model import NAMES, VERDICTS, Pair, Review

ID_WIDTH = 5
_VERDICT_WIDTH = max(map(len, VERDICTS)) + 2


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a source: the gutter, the code, and whether cursor or selection are on it."""

    gutter: Line
    code: tuple[Fragment, ...]
    cursor: bool
    selected: bool


def title(review: Review) -> Line:
    """The verdict, where the reader is among findings and constructs, the two kernels."""
    result = review.pair.result
    parts = [Piece(review.notice, "warning")] if review.notice else []
    if result is None:
        names = " → ".join(neutral(file) for file in review.pair.files)
        return _joined([*parts, Piece("comparing", "strong"), Piece(names)])
    glyph, ink = OUTCOMES[result.verdict]
    parts.append(Piece(f"{glyph} {result.verdict}", ink))
    if result.score.fidelity is not None:
        parts.append(Piece(f"score {result.score.fidelity:.0f}"))
    parts += [Piece(_finding_count(review)), Piece(_construct_count(review))]
    if not review.linked:
        parts.append(Piece("not linked", "warning"))
    kernels = f"{neutral(result.cuda.kernel)} → {neutral(result.nki.kernel)}"
    parts.append(Piece(kernels, "muted"))
    return _joined(parts)


def _joined(parts: list[Piece]) -> Line:
    between = Piece("  ·  ", "muted")
    return tuple(piece for part in parts for piece in (between, part))[1:]


def _finding_count(review: Review) -> str:
    count = len(review.pair.findings)
    if review.finding is not None:
        return f"finding {review.finding + 1} of {count}"
    return f"{count} finding{'' if count == 1 else 's'}" if count else "no findings"


def _construct_count(review: Review) -> str:
    listed = review.listed
    kind = "construct" if review.filter.open else "listed construct"
    if review.construct in listed:
        return f"{kind} {listed.index(review.construct) + 1} of {len(listed)}"
    return f"{len(listed)} {kind}{'' if len(listed) == 1 else 's'}"


def tally(review: Review) -> Line:
    """The list's heading: how many constructs have which verdict, by sign."""
    pieces = [Piece("constructs", "strong")]
    for verdict, count in review.counts().items():
        if count:
            pieces.append(Piece(f"  {GLYPHS[verdict][0]} {count}", VERDICT_INKS[verdict]))
    if not review.filter.open:
        pieces.append(Piece("  filtered", "warning"))
    return tuple(pieces)


def overview_row(review: Review) -> Line:
    """The first row of the list: the verdict on the pair."""
    result = review.pair.result
    if result is None:
        return (Piece("    comparing", "muted"),)
    glyph, ink = OUTCOMES[result.verdict]
    return (Piece(f"    {glyph} {result.verdict}", ink), Piece("  overview", "muted"))


def row(pair: Pair, index: int) -> Line:
    """A construct in the list: sign and word of its verdict, what it is, where it stands."""
    construct = pair.constructs[index]
    count = len(construct.findings)
    mark = f"{count}!" if count else ""
    return (
        Piece(f"{mark:>3} ", "error"),
        *verdict(construct.verdict),
        Piece(f"{neutral(construct.id)[:ID_WIDTH]:<{ID_WIDTH}}", "muted"),
        Piece(f"{construct.kind:<17}"),
        Piece(f"{_first_line(pair, index, 'cuda')} → {_first_line(pair, index, 'nki')}", "muted"),
    )


def verdict(word: ConstructVerdict) -> Line:
    """A verdict's sign and word, as wide as the widest."""
    return (Piece(f"{GLYPHS[word][0]} {word:<{_VERDICT_WIDTH - 2}} ", VERDICT_INKS[word]),)


def _first_line(pair: Pair, index: int, side: Side) -> str:
    places = spans(pair.constructs[index], side)
    more = f"+{len(places) - 1}" if len(places) > 1 else ""
    return f"{places[0].start_line}{more}" if places else "–"


def heading(review: Review, side: Side) -> Line:
    """Above a source: the side, the file, the cursor, the construct it is in."""
    pair = review.pair
    pieces = [
        Piece(f"{NAMES[side]} ", "strong"),
        Piece(neutral(PurePath(pair.file(side)).name)),
        Piece(f"  {review.line(side)}/{pair.line_count(side)}", "muted"),
    ]
    target = pair.result.nki.target if pair.result is not None and side == "nki" else None
    if target:
        pieces.append(Piece(f"  {neutral(target)}", "muted"))
    top = _marked(review, side, review.line(side))
    if top is not None:
        construct = pair.constructs[top]
        pieces.append(
            Piece(
                f"  {GLYPHS[construct.verdict][0]} {construct.verdict}"
                f" {neutral(construct.id)} {construct.kind}",
                VERDICT_INKS[construct.verdict],
            )
        )
    return tuple(pieces)


def gutter_width(pair: Pair, side: Side) -> int:
    """The cells a gutter takes: finding, line number, verdict, construct."""
    return 1 + len(str(pair.line_count(side))) + 3 + ID_WIDTH


def source_line(review: Review, side: Side, number: int) -> SourceLine | None:
    """A line of a source; `None` without its text."""
    document = review.pair.document(side)
    if document is None or not 1 <= number <= document.line_count:
        return None
    places = review.places(side)
    ranges = [found for span in places if (found := columns(span, number)) is not None]
    return SourceLine(
        gutter=_gutter(review, side, number, bool(ranges)),
        code=document.line(number).fragments(ranges),
        cursor=number == review.line(side),
        selected=bool(ranges),
    )


def _gutter(review: Review, side: Side, number: int, selected: bool) -> Line:
    pair = review.pair
    marks = pair.marks_of(side)
    width = len(str(pair.line_count(side)))
    severity = marks.severities.get(number)
    sign = (
        Piece(SEVERITY_LETTERS[severity], SEVERITY_INKS[severity])
        if severity is not None
        else Piece(" ")
    )
    at = Piece(f"{number:>{width}} ", "strong" if selected else "muted")
    top = _marked(review, side, number)
    if top is None:
        return (sign, at, Piece(" " * (2 + ID_WIDTH)))
    construct = pair.constructs[top]
    begins = number == 1 or _marked(review, side, number - 1) != top
    name = neutral(construct.id)[: ID_WIDTH - 1] if begins else ""
    mark = f"{GLYPHS[construct.verdict][0]} {name:<{ID_WIDTH}}"
    return (sign, at, Piece(mark, VERDICT_INKS[construct.verdict]))


def _marked(review: Review, side: Side, line: int) -> int | None:
    """The construct that a line shows: the selected one if it stands there."""
    chosen = review.construct
    if chosen is not None:
        file = review.pair.file(side)
        for span in spans(review.pair.constructs[chosen], side):
            if span.file == file and span.covers(line):
                return chosen
    return review.pair.marks_of(side).top(line)
