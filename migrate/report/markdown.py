"""A result as Markdown: for a pull request, or as feedback to the author.

What is wrong comes first, each finding with both places quoted and what to write instead;
then what became what, the runs, and what was assumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from migrate.report import words
from migrate.report.markup import block, cell, code, plain
from migrate.report.score import PARTS
from migrate.report.text import GLYPHS
from migrate.score.losses import account

if TYPE_CHECKING:
    from migrate.results import (
        Comparison,
        Construct,
        ConstructSide,
        Finding,
        Run,
        Side,
    )
    from migrate.source import Source, Span

EXCERPT_LINES: Final = 8
EXCERPT_WIDTH: Final = 160

_SIDES: Final[dict[Side, str]] = {"cuda": "CUDA", "nki": "NKI"}
_LANGUAGES: Final[dict[Side, str]] = {"cuda": "cuda", "nki": "python"}
_RIGHT: Final = frozenset({"matched", "transformed", "not-needed"})


def render(result: Comparison, sources: Mapping[str, Source]) -> str:
    """The report as Markdown; `sources` are the files that are quoted, by name."""
    parts = [*_heading(result)]
    if result.findings:
        parts.append("## Findings")
        for finding in result.findings:
            parts += _finding(finding, sources)
    if result.constructs:
        parts += ["## What became what", *_constructs(result.constructs)]
    if result.runs:
        parts += ["## Runs", _runs(result.runs)]
    if result.inferred:
        parts += ["## Assumed", _list(map(plain, result.inferred))]
    if not result.deterministic:
        parts.append("A limit in seconds was reached: another machine may say more.")
    return "\n\n".join(parts) + "\n"


def _heading(result: Comparison) -> Iterator[str]:
    cuda = code(f"{result.cuda.file}::{result.cuda.kernel}")
    nki = code(f"{result.nki.file}::{result.nki.kernel}")
    yield f"# {cuda} → {nki}"
    target = [
        plain(word)
        for word in (result.nki.target, result.nki.version and f"NKI {result.nki.version}")
        if word
    ]
    yield (
        f"**{result.verdict}** with confidence {result.confidence:.2f}; correspondence"
        f" {result.correspondence:.2f}; understood: CUDA {words.share(result.coverage.cuda)},"
        f" NKI {words.share(result.coverage.nki)}"
        + (f"; for {', '.join(target)}" if target else "")
    )
    if result.reasons:
        yield _list(map(plain, result.reasons))
    yield from _score(result)


def _score(result: Comparison) -> Iterator[str]:
    score = result.score
    if score.fidelity is None:
        yield "No score: too little was understood for a number."
        return
    parts = [f"{name} {part:g}" for name in PARTS if (part := getattr(score, name)) is not None]
    told = account(result)
    of = f" ({', '.join(parts)})" if parts else ""
    cap = f"; {told.cap}" if told.cap is not None else ""
    yield f"Score **{score.fidelity:g}** of 100{of}{cap}."
    for loss in told.losses:
        if loss.finding is None:
            yield f"{-loss.points:g} points: {plain(loss.reason)}."


def _finding(finding: Finding, sources: Mapping[str, Source]) -> Iterator[str]:
    costs = f", costs {-finding.points:g} points" if finding.points else ""
    yield f"### {plain(finding.rule)} {finding.severity} ({finding.effect}{costs})"
    yield plain(finding.message)
    if finding.suppressed is not None:
        yield f"*Suppressed:* {plain(finding.suppressed)}"
    yield from _place(finding.side, finding.span, None, sources)
    for related in finding.related:
        yield from _place(related.side, related.span, related.note, sources)
    if finding.witness is not None:
        yield f"{plain(_sentence(words.witness(finding.witness)))}."
    instead = _instead(finding.rule)
    if instead is not None:
        yield f"**Use instead**\n\n{instead}"


def _instead(id: str) -> str | None:  # noqa: A002
    """What the rule's page says to write; a result of another version may name others."""
    from migrate.rules.pages import sections
    from migrate.rules.registry import BY_ID

    rule = BY_ID.get(id)
    return sections(rule)["Use instead"] if rule is not None else None


def _place(
    side: Side, span: Span, note: str | None, sources: Mapping[str, Source]
) -> Iterator[str]:
    through = "".join(
        f", through {frame.kind} {code(frame.name)} at"
        f" {code(f'{frame.file}:{frame.line}:{frame.column}')}"
        for frame in span.via
    )
    about = f" ({plain(note)})" if note else ""
    yield f"{_SIDES[side]}{about} {code(str(span))}{through}"
    source = sources.get(span.file)
    if source is None or span.start_line > source.line_count:
        return
    last = span.end_line if span.end_column > 1 else span.end_line - 1
    last = max(span.start_line, min(last, source.line_count))
    shown = [
        _cut(source.line(number), span, number)
        for number in range(span.start_line, min(last, span.start_line + EXCERPT_LINES - 1) + 1)
    ]
    if last - span.start_line >= EXCERPT_LINES:
        shown.append("…")
    yield block("\n".join(shown), _LANGUAGES[side])


def _cut(text: str, span: Span, number: int) -> str:
    """A line, or of a long one what stands around the place."""
    if len(text) <= EXCERPT_WIDTH:
        return text
    start = span.start_column - 1 if number == span.start_line else 0
    first = max(0, min(start - EXCERPT_WIDTH // 4, len(text) - EXCERPT_WIDTH))
    end = first + EXCERPT_WIDTH
    return ("…" if first else "") + text[first:end] + ("…" if end < len(text) else "")


def _constructs(constructs: tuple[Construct, ...]) -> Iterator[str]:
    right = sum(construct.verdict in _RIGHT for construct in constructs if construct.cuda)
    asked = sum(bool(construct.cuda) for construct in constructs)
    yield f"{right} of {asked} CUDA constructs arrived."
    rows = ["| construct | verdict | CUDA | NKI | why |", "| --- | --- | --- | --- | --- |"]
    for construct in constructs:
        verdict = f"{GLYPHS[construct.verdict][0]} {construct.verdict}"
        rows.append(
            f"| {plain(construct.id)} {construct.kind} | {verdict} | {_sides(construct.cuda)}"
            f" | {_sides(construct.nki)} | {plain(construct.reason)} |"
        )
    yield "\n".join(rows)


def _sides(sides: tuple[ConstructSide, ...]) -> str:
    return "<br>".join(f"{s.span.start_line}: {cell(s.summary)}" for s in sides) or "–"


def _runs(runs: tuple[Run, ...]) -> str:
    rows = ["| sizes | inputs | status | outputs |", "| --- | --- | --- | --- |"]
    for run in runs:
        told = [plain(run.reason)] if run.reason else []
        told += [plain(words.output(output)) for output in run.outputs]
        inputs = plain(f"{run.inputs.family}, seed {run.inputs.seed}")
        rows.append(
            f"| {plain(words.sizes(run.sizes)) or '–'} | {inputs} | {run.status}"
            f" | {'<br>'.join(told)} |"
        )
    return "\n".join(rows)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _list(items: Iterator[str]) -> str:
    return "\n".join(f"* {item}" for item in items)
