"""A CUDA kernel on the CPU: arrays in device memory, changed in place.

What only an execution sees (races, reads of what nothing wrote, barriers that a part of a block
does not reach) is told with the place where it happened first.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from migrate.budget import Exhausted
from migrate.pipeline.kernels import cuda_kernel
from migrate.pipeline.run_document import RunDocument, RunWarning, described
from migrate.pipeline.run_options import (
    Options,
    Outside,
    Ran,
    RunFault,
    UnwrittenRead,
    by_name,
    extents,
    plain_array,
)
from migrate.pipeline.texts import cuda_program
from migrate.source import SourceError, read

if TYPE_CHECKING:
    from migrate.cuda.parse import Program
    from migrate.cuda.runtime import Dim3, Event


@dataclass(frozen=True, slots=True)
class _Launch:
    """How a kernel is launched, the grid aside (that is in the options)."""

    block: tuple[int, int, int]
    template: Mapping[str, object] | None
    shared: int


def called(
    file: str,
    kernel: str | None,
    args: Sequence[Any],
    named: Mapping[str, Any],
    *,
    block: int | Sequence[int],
    template: Mapping[str, object] | None,
    shared: int,
    options: Options,
) -> None:
    """See `migrate.api.run`."""
    from migrate.cuda.check import function

    program = cuda_program(read(file), kernel, {}, ())
    definition = cuda_kernel(program, kernel)
    parameters = [v.name for v in function(program, definition.name, template).parameters]
    if len(args) > len(parameters):
        raise SourceError(
            f"{definition.name} takes {len(parameters)} arguments, not {len(args)}",
            file=file,
            where=definition.span,
        )
    values = {**dict(zip(parameters, args, strict=False)), **named}
    launch = _Launch(_three(extents(block), file), template, shared)
    results, events = _executed(program, definition.name, values, launch, file, options)
    for event in events:
        kind = UnwrittenRead if event.kind == "uninitialised" else RunFault
        warnings.warn(f"{event.span}: {_words(event)}", kind, stacklevel=4)
    for name, content in results.items():
        given = values.get(name)
        if isinstance(given, np.ndarray):
            given[...] = plain_array(content)


def _three(found: tuple[int, ...], file: str) -> tuple[int, int, int]:
    if not 1 <= len(found) <= 3:
        raise SourceError("grid and block have one to three extents", file=file)
    x, y, z = (*found, 1, 1)[:3]
    return x, y, z


def cuda_ran(
    file: str,
    kernel: str | None,
    args: Mapping[str, Any],
    *,
    block: tuple[int, int, int],
    template: Mapping[str, object] | None,
    shared: int,
    defines: Mapping[str, str] | None = None,
    include: Sequence[str] = (),
    options: Options,
) -> Ran:
    """See `migrate.api.ran_cuda`."""
    program = cuda_program(read(file), kernel, defines or {}, tuple(map(Path, include)))
    name = cuda_kernel(program, kernel).name
    try:
        found, events = _executed(
            program, name, args, _Launch(block, template, shared), file, options
        )
    except Outside as error:
        raise error.refusal(file) from None
    results = by_name(found)
    document = RunDocument(
        file=file,
        kernel=name,
        side="cuda",
        precision=options.precision,
        results=described(results),
        warnings=tuple(
            RunWarning(code=event.kind, message=_words(event), span=event.span) for event in events
        ),
    )
    return Ran(results, document)


def _words(event: Event) -> str:
    block, thread = _place(event.block), _place(event.thread)
    return f"{event.message} (first in block {block}, thread {thread})"


def _place(position: Dim3) -> str:
    kept = list(position)
    while len(kept) > 1 and kept[-1] == 0:
        kept.pop()
    return f"({', '.join(map(str, kept))})" if len(kept) > 1 else str(kept[0])


def _executed(
    program: Program,
    name: str,
    args: Mapping[str, Any],
    launch: _Launch,
    file: str,
    options: Options,
) -> tuple[dict[str, Any], tuple[Event, ...]]:
    from migrate.cuda.execute import execute
    from migrate.cuda.runtime import Fault, Unsupported

    definition = cuda_kernel(program, name)
    try:
        execution = execute(
            program,
            name,
            args,
            _three(options.grid, file),
            launch.block,
            domain=options.domain(),
            template=launch.template,
            shared_bytes=launch.shared,
            meter=options.meter(name),
            fma=options.fma,
        )
    except Unsupported as gap:
        raise SourceError(gap.reason, file=file, where=gap.span) from None
    except Fault as fault:
        if fault.event.kind == "out-of-bounds":
            event = fault.event
            index = None
            if event.index is not None and event.size is not None:
                index = (event.index, event.size)
            raise Outside(event.message, event.span, index=index) from None
        raise SourceError(fault.event.message, file=file, where=fault.event.span) from None
    except Exhausted as stop:
        raise SourceError(str(stop), file=file, where=stop.where or definition.span) from None
    outputs = {
        parameter: _reshaped(content, np.shape(args[parameter]))
        for parameter, content in execution.outputs.items()
    }
    return outputs, execution.events


def _reshaped(content: Any, shape: tuple[int, ...]) -> Any:
    """An array of device memory in the shape that it was given in."""
    from migrate.numerics.errors import BoundedValue
    from migrate.numerics.parts import mapped

    if isinstance(content, BoundedValue):
        return mapped(content, lambda part: part.reshape(shape))
    return plain_array(content).reshape(shape)
