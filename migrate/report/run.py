"""What came of a run, as text for a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from migrate.report.words import counted
from migrate.source import neutral

if TYPE_CHECKING:
    from migrate.pipeline.run_document import RunDocument, RunResult, RunWarning, TracedStep


def render(document: RunDocument) -> str:
    """Results and statistics of a whole run; a trace is told while it is made (`step`)."""
    return "".join(f"{neutral(line)}\n" for line in _lines(document))


def warning(told: RunWarning) -> str:
    """A warning with its places, in one line."""
    place = f"{told.span}: " if told.span is not None else ""
    related = f" (allocated at {told.related})" if told.related is not None else ""
    return neutral(f"{place}{told.message}{related}")


def step(told: TracedStep) -> str:
    """An instruction of a trace: place, operands with shapes, what it has written."""
    lines = [f"#{told.number} {told.span} {told.opcode} ({told.engine})"]
    lines[0] += "".join(f" {name}={value}" for name, value in told.attributes.items())
    for operand in told.operands:
        shape = ", ".join(map(str, operand.shape))
        line = f"    {operand.name}: {operand.tensor} {operand.memory} {operand.dtype}[{shape}]"
        if operand.values is not None:
            more = ", ..." if _elements(operand.shape) > len(operand.values) else ""
            line += f" = {', '.join(map(_number, operand.values))}{more}"
        lines.append(line)
    return "\n".join(map(neutral, lines))


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _lines(document: RunDocument) -> Iterator[str]:
    target = f", {document.target}" if document.target is not None else ""
    many = ""
    if document.instructions is not None:
        many = f", {counted(document.instructions, 'instruction')}"
    yield f"{document.file}::{document.kernel}{target}: ran to its end{many}"
    width = max((len(result.name) for result in document.results), default=0)
    for result in document.results:
        yield f"  {result.name:{width}}  {_result(result)}"
    statistics = document.statistics
    if statistics is None:
        return
    yield "instructions by engine"
    yield from _table(statistics.engines)
    yield "instructions by name"
    yield from _table(statistics.opcodes)
    yield "bytes moved"
    yield from _table({f"{m.source} to {m.destination}": m.bytes for m in statistics.moved})


def _table(rows: Mapping[str, int]) -> Iterator[str]:
    if not rows:
        yield "  none"
        return
    width = max(map(len, rows))
    most = max(len(f"{count:,}") for count in rows.values())
    for name, count in rows.items():
        yield f"  {name:{width}}  {count:>{most},}"


def _result(result: RunResult) -> str:
    shape = ", ".join(map(str, result.shape))
    words = f"{result.dtype}[{shape}]"
    if result.least is not None:
        words += f"  {_number(result.least)} to {_number(result.greatest)}"
    if result.nan:
        words += f", {result.nan:,} NaN"
    if result.infinite:
        words += f", {result.infinite:,} infinite"
    return words
