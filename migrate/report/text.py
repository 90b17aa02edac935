"""A result as text for a terminal or a pipe.

Everything that comes from reviewed files goes through `neutral` into `rich.text.Text`
objects, which take no markup: a kernel cannot colour, hide or move what is printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, TextIO

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from migrate.report import console, words
from migrate.report.console import PIPE_WIDTH
from migrate.report.findings import finding_lines
from migrate.source import neutral

if TYPE_CHECKING:
    from migrate.results import (
        Comparison,
        Construct,
        ConstructSide,
        ConstructVerdict,
        Run,
        Status,
        Verdict,
    )
    from migrate.source import Source

GLYPHS: Final[dict[ConstructVerdict, tuple[str, str]]] = {
    "matched": ("✓", "green"),
    "transformed": ("≈", "green"),
    "not-needed": ("·", "dim"),
    "mismapped": ("✗", "bold red"),
    "missing": ("−", "bold red"),
    "extra": ("+", "yellow"),
    "unknown": ("?", "yellow"),
}
"""A sign and a style for each construct verdict; the word always stands beside it."""

_VERDICTS: Final[dict[Verdict, str]] = {
    "faithful": "bold green",
    "faithful-with-findings": "bold yellow",
    "not-faithful": "bold red",
    "undetermined": "bold yellow",
}
_STATUS: Final[dict[Status, str]] = {
    "pass": "green",
    "investigate": "yellow",
    "fail": "bold red",
    "not-run": "dim",
}


def write(result: Comparison, stream: TextIO, sources: Mapping[str, Source]) -> None:
    """Print the report to a stream: in colour on a terminal, unless `NO_COLOR` is set."""
    _print(result, console.to(stream), sources)


def render(result: Comparison, sources: Mapping[str, Source], *, width: int = PIPE_WIDTH) -> str:
    """The report as plain text."""
    return console.plain(lambda there: _print(result, there, sources), width)


def _print(result: Comparison, there: Console, sources: Mapping[str, Source]) -> None:
    for line in _heading(result):
        there.print(line)
    if result.constructs:
        there.print()
        for row in _constructs(result.constructs):
            there.print(row)
    for finding in result.findings:
        there.print()
        for line in finding_lines(finding, sources, there.width):
            there.print(line)
    if result.runs:
        there.print()
        there.print(_runs(result.runs))
    for line in _footer(result):
        there.print(line)


def _heading(result: Comparison) -> Iterator[Text]:
    target = "".join(
        f", {word}"
        for word in (result.nki.target, result.nki.version and f"NKI {result.nki.version}")
        if word
    )
    yield Text.assemble(
        (neutral(f"{result.cuda.file}::{result.cuda.kernel}"), "bold"),
        " -> ",
        (neutral(f"{result.nki.file}::{result.nki.kernel}"), "bold"),
        neutral(target),
    )
    yield Text.assemble(
        ("verdict  ", "dim"),
        (result.verdict, _VERDICTS[result.verdict]),
        f"   confidence {result.confidence:.2f}   correspondence {result.correspondence:.2f}",
        f"   understood CUDA {words.share(result.coverage.cuda)},"
        f" NKI {words.share(result.coverage.nki)}",
    )
    for reason in result.reasons:
        yield Text(f"  {neutral(reason)}")


def _constructs(constructs: tuple[Construct, ...]) -> Iterator[RenderableType]:
    """A row for each construct, and below it why the verdict is what it is."""
    names = [f"{neutral(construct.id)} {construct.kind}" for construct in constructs]
    widths = (
        max(map(cell_len, ["construct", *names])),
        max(len(construct.verdict) for construct in constructs) + 2,
    )
    yield _row(widths, *(Text(word, "dim") for word in ("construct", "verdict", "CUDA", "NKI")))
    for name, construct in zip(names, constructs, strict=True):
        glyph, style = GLYPHS[construct.verdict]
        verdict = Text(f"{glyph} {construct.verdict}", style)
        yield _row(widths, Text(name), verdict, _places(construct.cuda), _places(construct.nki))
        if construct.reason:
            reason = Text(neutral(construct.reason), "dim")
            yield Padding(reason, (0, 0, 0, sum(widths) + 4))


def _row(widths: tuple[int, int], *cells: Text) -> Table:
    row = Table.grid(padding=(0, 2, 0, 0), expand=True)
    for width in widths:
        row.add_column(width=width, no_wrap=True)
    for _ in cells[len(widths) :]:
        row.add_column(ratio=1, overflow="fold")
    row.add_row(*cells)
    return row


def _places(sides: tuple[ConstructSide, ...]) -> Text:
    lines = [
        Text.assemble((f"{side.span.start_line}: ", "dim"), neutral(side.summary)) for side in sides
    ]
    return Text("\n").join(lines) if lines else Text("–", "dim")


def _runs(runs: tuple[Run, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("run", overflow="fold")
    table.add_column("inputs", overflow="fold")
    table.add_column("status", no_wrap=True)
    table.add_column("outputs", overflow="fold")
    for run in runs:
        lines = [Text(neutral(run.reason))] if run.reason else []
        lines += [Text(words.output(output)) for output in run.outputs]
        table.add_row(
            Text(words.sizes(run.sizes) or "–"),
            Text(neutral(f"{run.inputs.family} #{run.inputs.seed}")),
            Text(run.status, _STATUS[run.status]),
            Text("\n").join(lines),
        )
    return table


def _footer(result: Comparison) -> Iterator[Text]:
    if result.score.fidelity is not None:
        parts = [
            f"{name} {points:g}"
            for name in ("mapping", "hardware", "numerics", "performance")
            if (points := getattr(result.score, name)) is not None
        ]
        yield Text()
        yield Text.assemble(
            ("score  ", "dim"),
            (f"{result.score.fidelity:g}", "bold"),
            f" of 100 ({', '.join(parts)})",
        )
    if result.inferred:
        yield Text()
        for fact in result.inferred:
            yield Text(f"inferred: {neutral(fact)}", "dim")
    if not result.deterministic:
        yield Text()
        yield Text("a limit in seconds was reached: another machine may say more", "yellow")
