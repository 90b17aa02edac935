"""`migrate map` as text and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from textwrap import wrap

from migrate.pipeline.mapping import MapDocument, MappedConstruct, MappedKernel, Told
from migrate.report.markup import code, plain
from migrate.source import neutral

WIDTH = 96


def text(document: MapDocument) -> str:
    """Plain text, one paragraph a kernel; what was said of an earlier construct is named."""
    blocks = ["\n".join(_text(kernel, document.target)) for kernel in document.kernels]
    return "\n\n".join(blocks) + "\n"


def markdown(document: MapDocument) -> str:
    """Markdown that nothing in the reviewed file can break out of."""
    lines = [f"# {code(document.file)} on {document.target}", ""]
    for kernel in document.kernels:
        lines += _markdown(kernel)
    return "\n".join(lines).rstrip() + "\n"


# -- text -------------------------------------------------------------------------------


def _text(kernel: MappedKernel, target: str) -> Iterator[str]:
    yield f"{neutral(str(kernel.span))}: cuda kernel {neutral(kernel.name)} on {target}"
    if kernel.reason:
        yield f"  not read      {neutral(kernel.reason)}"
        return
    yield f"  computes      {neutral(kernel.computes)}"
    yield f"  work mapping  {neutral(kernel.work_mapping)}"
    yield f"  understood    {kernel.coverage:.0%} of the statements"
    for inferred in kernel.inferred:
        yield f"  inferred      {neutral(inferred)}"
    for array in kernel.shared:
        each = array.bytes_per_partition
        shown = f"{array.name}: {array.length} {array.type} a block, {each} bytes a partition"
        yield f"  shared        {neutral(shown)}"
    said: dict[str, str] = {}
    for construct in kernel.constructs:
        yield ""
        where = f"{construct.span.start_line}:{construct.span.start_column}"
        head = f"{construct.id:<4} {construct.kind:<16} {where:<8} {construct.summary}"
        yield f"  {neutral(head)}"
        for number in construct.numbers:
            yield f"       {neutral(number)}"
        yield from _advice(construct.realisation, construct, said, "")
        for caution in construct.cautions:
            yield from _advice(caution, construct, said, "mind: ")
    limits = dict.fromkeys(
        (limit.of, limit.states, limit.source)
        for construct in kernel.constructs
        for told in (construct.realisation, *construct.cautions)
        for limit in told.limits
    )
    if limits:
        yield ""
        yield "  limits"
    for of, states, source in limits:
        yield f"    {of:<20} {states}"
        yield f"    {'':<20}   [{source}]"


def _advice(
    told: Told, construct: MappedConstruct, said: dict[str, str], label: str
) -> Iterator[str]:
    if told.id in said:
        yield f"       {label}as for {said[told.id]} ({told.id})"
        return
    said[told.id] = construct.id
    why = f" ({told.why})" if told.why else ""
    yield from (f"       {line}" for line in wrap(f"{label}{told.how}{why}", WIDTH - 7))
    if told.instructions:
        engines = f" on {', '.join(told.engines)}" if told.engines else ""
        yield f"       with {', '.join(told.instructions)}{engines}"
    yield f"       [{told.id}: {told.source}]"


# -- Markdown -----------------------------------------------------------------------------


def _markdown(kernel: MappedKernel) -> Iterator[str]:
    yield f"## {code(kernel.name)} ({code(str(kernel.span))})"
    yield ""
    if kernel.reason:
        yield f"Not read: {plain(kernel.reason)}"
        yield ""
        return
    yield (
        f"Computes {plain(kernel.computes)}, mapped {plain(kernel.work_mapping)};"
        f" {kernel.coverage:.0%} of the statements understood."
    )
    yield ""
    yield from _listed(kernel.inferred, plain, "Inferred: ")
    for array in kernel.shared:
        yield (
            f"* Shared {code(array.name)}: {code(array.length)} {array.type} a block,"
            f" {code(array.bytes_per_partition)} bytes a partition"
        )
    if kernel.inferred or kernel.shared:
        yield ""
    for construct in kernel.constructs:
        span = construct.span
        yield f"### {construct.id}. {construct.kind}: {code(construct.summary)}"
        yield ""
        yield f"At {code(f'{span.file}:{span.start_line}:{span.start_column}')}."
        yield ""
        yield from _listed(construct.numbers, plain, "")
        yield from _told(construct.realisation, "")
        for caution in construct.cautions:
            yield from _told(caution, "**Mind:** ")
        yield ""


def _listed(items: tuple[str, ...], shown: Callable[[str], str], label: str) -> Iterator[str]:
    for item in items:
        yield f"* {label}{shown(item)}"


def _told(told: Told, label: str) -> Iterator[str]:
    why = f" ({told.why})" if told.why else ""
    by = ""
    if told.instructions:
        engines = f" on {', '.join(told.engines)}" if told.engines else ""
        by = f" With {', '.join(f'`{name}`' for name in told.instructions)}{engines}."
    yield f"* {label}{told.how}{why}{by} *Source: {told.source}*"
    for limit in told.limits:
        yield f"  * {limit.of}: {limit.states} *({limit.source})*"
