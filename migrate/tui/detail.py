"""What there is to say about the selection: verdict, reason, findings, evidence, runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from migrate.report import words
from migrate.report.text import GLYPHS
from migrate.results import Comparison, Construct, Finding, Run, Side
from migrate.source import Span, neutral
from migrate.tui.document import Fragment, columns
from migrate.tui.ink import (
    OUTCOMES,
    SEVERITY_INKS,
    STATUS_INKS,
    VERDICT_INKS,
    Line,
    Piece,
)
from migrate.tui.marks import last_line
from migrate.tui.model import NAMES, SIDES, OnConstruct, OnFinding, Overview, Pair, Review

MAX_PLACES: Final = 12
MAX_RUNS: Final = 40
MAX_FACTS: Final = 40
EXCERPT_LINES: Final = 4
EXCERPT_WIDTH: Final = 200
_PARTS: Final = ("mapping", "hardware", "numerics", "performance")

BLANK: Final[Line] = ()


def detail(review: Review, *, excerpts: bool = False) -> tuple[Line, ...]:
    """The detail pane's lines; with `excerpts` also the text of each place.

    The excerpts are for screens on which the two sources do not stand beside it.
    """
    result = review.pair.result
    if result is None:
        return (
            (Piece("The two kernels are being compared", "strong"), Piece(f"  {review.waited} s")),
            (Piece("Both sources can be read meanwhile; leaving ends the comparison.", "muted"),),
        )
    match review.selection:
        case Overview():
            return tuple(_overview(result))
        case OnConstruct(index):
            return tuple(_construct(review.pair, index, excerpts))
        case OnFinding(position):
            return tuple(_finding_first(review.pair, position, excerpts))


def _overview(result: Comparison) -> Iterator[Line]:
    glyph, ink = OUTCOMES[result.verdict]
    yield (
        Piece(f"{glyph} {result.verdict}", ink),
        Piece(f"  confidence {result.confidence:.2f}  correspondence {result.correspondence:.2f}"),
    )
    for reason in result.reasons:
        yield (Piece(neutral(reason)),)
    yield BLANK
    score = result.score
    if score.fidelity is None:
        yield (Piece("score ", "strong"), Piece("none: too little was understood", "muted"))
    else:
        parts = [
            f"{name} {points:.0f}"
            for name in _PARTS
            if (points := getattr(score, name)) is not None
        ]
        shown = f"{score.fidelity:.0f} of 100  {', '.join(parts)}"
        yield (Piece("score ", "strong"), Piece(shown))
    yield (
        Piece("understood ", "strong"),
        Piece(f"CUDA {words.share(result.coverage.cuda)}, NKI {words.share(result.coverage.nki)}"),
    )
    for side, subject in zip(SIDES, (result.cuda, result.nki), strict=True):
        extra = "".join(
            f", {neutral(word)}"
            for word in (subject.target, subject.version and f"NKI {subject.version}")
            if word
        )
        yield (
            Piece(f"{NAMES[side]} ", "strong"),
            Piece(neutral(f"{subject.file}::{subject.kernel}") + extra),
        )
    if not result.deterministic:
        text = "a limit in seconds was reached: another machine may say more"
        yield (Piece(text, "warning"),)
    yield from _runs(result.runs)
    if result.inferred:
        yield BLANK
        yield (Piece("inferred", "strong"),)
        for fact in result.inferred[:MAX_FACTS]:
            yield (Piece(f"  {neutral(fact)}"),)
        yield from _more(len(result.inferred) - MAX_FACTS)


def _finding_first(pair: Pair, position: int, excerpts: bool) -> Iterator[Line]:
    finding = pair.findings[position]
    yield from _finding(pair, finding, excerpts)
    owner = pair.owners[position]
    if owner is not None:
        yield BLANK
        yield from _construct_head(pair, pair.constructs[owner], excerpts)
    if finding.effect in ("wrong", "inaccurate") and pair.result is not None:
        yield from _runs([run for run in pair.result.runs if run.status != "pass"])


def _construct(pair: Pair, index: int, excerpts: bool) -> Iterator[Line]:
    construct = pair.constructs[index]
    yield from _construct_head(pair, construct, excerpts)
    for position in pair.findings_of(index):
        yield BLANK
        yield from _finding(pair, pair.findings[position], excerpts)


def _construct_head(pair: Pair, construct: Construct, excerpts: bool) -> Iterator[Line]:
    yield (
        Piece(
            f"{GLYPHS[construct.verdict][0]} {construct.verdict}", VERDICT_INKS[construct.verdict]
        ),
        Piece(f"  {neutral(construct.id)} {construct.kind}", "strong"),
    )
    if construct.reason:
        yield (Piece(neutral(construct.reason)),)
    if construct.mapping:
        yield (Piece("mapping ", "muted"), Piece(neutral(construct.mapping)))
    for side in SIDES:
        parts = construct.cuda if side == "cuda" else construct.nki
        if not parts:
            yield (Piece(f"{NAMES[side]} ", "strong"), Piece("nothing", "muted"))
        for part in parts[:MAX_PLACES]:
            yield from _place(pair, side, part.span, part.summary, excerpts)
        yield from _more(len(parts) - MAX_PLACES)


def _finding(pair: Pair, finding: Finding, excerpts: bool) -> Iterator[Line]:
    ink = SEVERITY_INKS[finding.severity]
    yield (
        Piece(f"{finding.severity} {neutral(finding.rule)}", ink),
        Piece(f"  {finding.effect}, {finding.family}", "muted"),
    )
    yield (Piece(neutral(finding.message), "strong"),)
    if finding.suppressed is not None:
        yield (Piece(f"suppressed: {neutral(finding.suppressed)}", "muted"),)
    yield from _place(pair, finding.side, finding.span, "", excerpts)
    for related in finding.related[:MAX_PLACES]:
        yield from _place(pair, related.side, related.span, related.note or "", excerpts)
    yield from _more(len(finding.related) - MAX_PLACES)
    if finding.witness is not None:
        yield (Piece(words.witness(finding.witness)),)
    if finding.points:
        yield (Piece(f"costs {-finding.points:g} points", "muted"),)


def _place(pair: Pair, side: Side, span: Span, note: str, excerpts: bool) -> Iterator[Line]:
    yield (
        Piece(f"{NAMES[side]} ", "strong"),
        Piece(neutral(str(span)), "muted"),
        Piece(f"  {neutral(note)}" if note else ""),
    )
    for frame in span.via:
        place = neutral(f"{frame.file}:{frame.line}:{frame.column}")
        yield (Piece(f"  through {frame.kind} {neutral(frame.name)} at {place}", "muted"),)
    document = pair.document(side)
    if not excerpts or document is None or span.file != document.source.name:
        return
    last = min(last_line(span), span.start_line + EXCERPT_LINES - 1, document.line_count)
    width = len(str(last))
    for number in range(span.start_line, last + 1):
        marked = columns(span, number) or (0, 0)
        fragments = document.line(number).fragments([marked])
        yield (Piece(f"  {number:>{width}} │ ", "muted"), *_excerpt(fragments))


def _excerpt(fragments: Sequence[Fragment]) -> Iterator[Piece]:
    """A line around what is marked, `EXCERPT_WIDTH` characters of it."""
    before = 0
    for part in fragments:
        if part.marked:
            break
        before += len(part.text)
    skip = max(0, before - EXCERPT_WIDTH // 2)
    if skip:
        yield Piece("…", "muted")
    room = EXCERPT_WIDTH
    for part in fragments:
        text = part.text[skip:][:room]
        skip = max(0, skip - len(part.text))
        room -= len(text)
        if text:
            yield Piece(text, "strong" if part.marked else "muted")
    if not room:
        yield Piece("…", "muted")


def _runs(runs: Sequence[Run]) -> Iterator[Line]:
    if not runs:
        return
    yield BLANK
    yield (Piece("runs", "strong"),)
    for run in runs[:MAX_RUNS]:
        inputs = neutral(f"{run.inputs.family} #{run.inputs.seed}")
        yield (
            Piece(f"  {run.status:<11} ", STATUS_INKS[run.status]),
            Piece(f"{words.sizes(run.sizes) or '–'}  {inputs}"),
        )
        if run.reason:
            yield (Piece(f"    {neutral(run.reason)}", "muted"),)
        for output in run.outputs:
            yield (Piece(f"    {words.output(output)}", "muted"),)
    yield from _more(len(runs) - MAX_RUNS)


def _more(count: int) -> Iterator[Line]:
    if count > 0:
        yield (Piece(f"  and {count:,} more", "muted"),)
