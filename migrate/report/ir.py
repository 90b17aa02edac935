"""What was understood of a file's kernels, as text."""

from __future__ import annotations

from collections.abc import Iterator

from migrate.results import IrDocument, LiftedKernel
from migrate.source import neutral


def render(document: IrDocument) -> str:
    """Plain text, one paragraph a kernel."""
    blocks = ["\n".join(_kernel(kernel, document.side)) for kernel in document.kernels]
    return "\n\n".join(blocks) + "\n"


def _kernel(kernel: LiftedKernel, side: str) -> Iterator[str]:
    yield f"{neutral(str(kernel.span))}: {side} kernel {neutral(kernel.name)}"
    yield f"  computes      {neutral(kernel.computes)}"
    yield f"  work mapping  {neutral(kernel.work_mapping)}"
    if kernel.versions is not None:
        yield f"  NKI versions  {kernel.versions.words}"
        for reason in (*kernel.versions.lower, *kernel.versions.upper):
            yield f"    line {reason.span.start_line:<7} {neutral(reason.message)}"
    yield f"  understood    {kernel.coverage:.0%} of the statements"
    for words in kernel.inferred:
        yield f"  inferred      {neutral(words)}"
    if kernel.parameters:
        yield "  parameters"
    for parameter in kernel.parameters:
        shape = "" if parameter.shape is None else f" [{', '.join(parameter.shape)}]"
        typed = f"{parameter.name}: {parameter.type}{shape}"
        yield f"    {parameter.role:<8} {neutral(typed)}"
    if kernel.axes:
        yield "  axes"
    for axis in kernel.axes:
        yield f"    {axis.kind:<10} {neutral(axis.name)} < {neutral(axis.extent)}"
    if kernel.constructs:
        yield "  constructs"
    for construct in kernel.constructs:
        after = f" after {', '.join(construct.after)}" if construct.after else ""
        where = f"{construct.span.start_line}:{construct.span.start_column}"
        yield (
            f"    {construct.id:<4} {construct.kind:<16} {where:<8}"
            f" {neutral(construct.summary)}{after}"
        )
    if kernel.ir:
        yield "  ir"
    for op in kernel.ir:
        where = f"{op.span.start_line}:{op.span.start_column}"
        yield f"    {where:<8} {'  ' * op.depth}{neutral(op.text)}"
