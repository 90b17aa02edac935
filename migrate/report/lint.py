"""What `migrate lint` found, as text for a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.text import Text

from migrate.report import console
from migrate.report.findings import finding_lines
from migrate.report.words import counted
from migrate.source import neutral

if TYPE_CHECKING:
    from migrate.results import LintDocument, LintedKernel
    from migrate.source import Source


def write(document: LintDocument, stream: TextIO, sources: Mapping[str, Source]) -> None:
    """Print to a stream: in colour on a terminal, unless `NO_COLOR` is set."""
    _print(document, console.to(stream), sources)


def render(document: LintDocument, sources: Mapping[str, Source]) -> str:
    """As plain text."""
    return console.plain(lambda there: _print(document, there, sources))


def _print(document: LintDocument, there: Console, sources: Mapping[str, Source]) -> None:
    for number, kernel in enumerate(document.kernels):
        if number:
            there.print()
        for line in _heading(document, kernel):
            there.print(line)
        for finding in kernel.findings:
            there.print()
            for line in finding_lines(finding, sources, there.width):
                there.print(line)


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
