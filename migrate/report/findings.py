"""One finding as lines of a terminal: what is said, where, and the text it is about.

What comes from reviewed files goes through `neutral` into `rich.text.Text`, which takes no
markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.text import Text

from migrate.report import words
from migrate.source import neutral

if TYPE_CHECKING:
    from migrate.results import Finding, Severity, Side
    from migrate.source import Source, Span

_SEVERITIES: Final[dict[Severity, str]] = {"error": "bold red", "warning": "yellow", "note": "cyan"}
_SIDES: Final[dict[Side, str]] = {"cuda": "CUDA", "nki": "NKI"}
EXCERPT_LINES: Final = 3


def finding_lines(finding: Finding, sources: Mapping[str, Source], width: int) -> Iterator[Text]:
    style = _SEVERITIES[finding.severity]
    head = Text.assemble(
        (f"{finding.severity} {finding.rule}", style),
        (f" [{finding.effect}] ", "dim"),
        (neutral(finding.message), "bold"),
    )
    if finding.suppressed is not None:
        head.append(f"  (suppressed: {neutral(finding.suppressed)})", "dim")
    yield head
    yield from _place(_SIDES[finding.side], finding.span, sources, style, width)
    for related in finding.related:
        note = f" {neutral(related.note)}" if related.note else ""
        yield from _place(f"{_SIDES[related.side]}{note}", related.span, sources, "cyan", width)
    if finding.witness is not None:
        yield Text(f"  {words.witness(finding.witness)}")
    if finding.points:
        yield Text(f"  costs {-finding.points:g} points", "dim")


def _place(
    label: str, span: Span, sources: Mapping[str, Source], style: str, width: int
) -> Iterator[Text]:
    """`label file:line:column`, the way there, and the text with what is meant underlined."""
    yield Text.assemble(("  --> ", "dim"), f"{label} {neutral(str(span))}")
    for frame in span.via:
        place = f"{frame.file}:{frame.line}:{frame.column}"
        yield Text(f"      through {frame.kind} {neutral(frame.name)} at {neutral(place)}", "dim")
    source = sources.get(span.file)
    if source is None or span.start_line > source.line_count:
        return
    last = span.end_line if span.end_column > 1 else span.end_line - 1
    last = max(min(last, source.line_count), span.start_line)
    shown = range(span.start_line, min(last, span.start_line + EXCERPT_LINES - 1) + 1)
    gutter = len(str(shown[-1]))
    for number in shown:
        line = source.line(number)
        start = span.start_column - 1 if number == span.start_line else _indent(line)
        end = span.end_column - 1 if number == span.end_line else len(line)
        before, marked, after = _window(
            line, min(start, len(line)), min(end, len(line)), max(20, width - gutter - 11)
        )
        carets = (" " * cell_len(before), ("^" * max(1, cell_len(marked)), style))
        for head, rest in (
            (f"{number:>{gutter}}", (before, marked, after)),
            (" " * gutter, carets),
        ):
            yield Text.assemble((f"  {head} | ", "dim"), *rest, no_wrap=True, overflow="crop")
    if last > shown[-1]:
        yield Text(f"  {'':>{gutter}} | ... to line {last}", "dim")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _window(line: str, start: int, end: int, width: int) -> tuple[str, str, str]:
    """A line before, in and after the marked part: harmless, and `width` characters of it."""
    first = max(0, start - width // 2) if len(line) > width else 0
    last = min(len(line), first + width)
    before = ("..." if first else "") + _flat(line[first:start])
    marked = _flat(line[start : min(end, last)])
    after = _flat(line[end:last]) if end < last else ""
    return before, marked, after + ("..." if last < len(line) else "")


def _flat(text: str) -> str:
    return neutral(text).replace("\t", "    ")
