"""What `migrate lint` found, as text for a terminal or a pipe."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.text import Text

from migrate.report.findings import finding_lines
from migrate.report.text import PIPE_WIDTH
from migrate.report.words import counted
from migrate.source import neutral

if TYPE_CHECKING:
    from migrate.results import LintDocument, LintedKernel
    from migrate.source import Source


def write(document: LintDocument, stream: TextIO, sources: Mapping[str, Source]) -> None:
    """Print to a stream: in colour on a terminal, unless `NO_COLOR` is set."""
    width = None if stream.isatty() else PIPE_WIDTH
    _print(
        document,
        Console(file=stream, width=width, markup=False, highlight=False, emoji=False),
        sources,
    )


def render(document: LintDocument, sources: Mapping[str, Source]) -> str:
    """As plain text."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=PIPE_WIDTH,
        markup=False,
        highlight=False,
        emoji=False,
        color_system=None,
        force_terminal=False,
    )
    _print(document, console, sources)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def _print(document: LintDocument, console: Console, sources: Mapping[str, Source]) -> None:
    for number, kernel in enumerate(document.kernels):
        if number:
            console.print()
        for line in _heading(document, kernel):
            console.print(line)
        for finding in kernel.findings:
            console.print()
            for line in finding_lines(finding, sources, console.width):
                console.print(line)


def _heading(document: LintDocument, kernel: LintedKernel) -> Iterator[Text]:
    versions = f", NKI {kernel.versions.words}" if kernel.versions is not None else ""
    yield Text.assemble(
        (neutral(f"{document.file}::{kernel.name}"), "bold"),
        neutral(f", {kernel.target}{versions}"),
    )
    active = [f for f in kernel.findings if f.suppressed is None]
    found = ", ".join(
        counted(count, severity)
        for severity in ("error", "warning", "note")
        if (count := sum(f.severity == severity for f in active))
    )
    at = ", ".join(f"{neutral(name)} = {value}" for name, value in kernel.sizes.items())
    read = counted(kernel.instructions, "instruction") + (f" at {at}" if at else "")
    whole = read if kernel.complete else f"not read to its end ({read})"
    yield Text(f"  {found or 'nothing found'}; {whole}")
    for reason in kernel.reasons:
        yield Text(f"  {neutral(reason)}", "yellow")
    for words in kernel.inferred:
        yield Text(f"  inferred: {neutral(words)}", "dim")
