"""One kernel on the CPU: arrays in, arrays out.

`run` is called as the kernel is; `cuda_ran` and `nki_ran` take arguments by name and give
results by name, as the command line needs them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from migrate.budget import Exhausted
from migrate.pipeline.kernels import cuda_kernel
from migrate.pipeline.run_document import RunDocument, described
from migrate.pipeline.run_options import (
    Options,
    Outside,
    OverCapacity,
    Overwritten,
    Ran,
    UnwrittenRead,
    by_name,
    plain_array,
    with_bound,
)
from migrate.pipeline.running_nki import bound_arguments, opened, same_bytes, simulated, whole
from migrate.pipeline.texts import cuda_program
from migrate.source import SourceError, read

if TYPE_CHECKING:
    from migrate.cuda.parse import Program
    from migrate.nki.simulate import Happening
    from migrate.nki.specialize import Structure

__all__ = [
    "Options",
    "OverCapacity",
    "Overwritten",
    "UnwrittenRead",
    "cuda_ran",
    "extents",
    "nki_ran",
    "run",
]


def run(
    file: str,
    kernel: str | None,
    args: Sequence[Any],
    named: Mapping[str, Any],
    *,
    block: int | Sequence[int] | None,
    template: Mapping[str, object] | None,
    shared: int,
    options: Options,
) -> Any:
    """See `migrate.api.run`."""
    if Path(file).suffix == ".py" and block is None:
        if template is not None or shared:
            raise SourceError("template and shared are of CUDA kernels", file=file)
        try:
            return _nki(file, kernel, args, named, options)
        except Outside as error:
            raise error.told() from None
    if not options.grid or block is None:
        raise SourceError("a CUDA kernel needs grid and block", file=file)
    try:
        return _cuda(
            file, kernel, args, named, _three(extents(block), file), template, shared, options
        )
    except Outside as error:
        raise error.told() from None


def extents(grid: int | Sequence[int]) -> tuple[int, ...]:
    """A grid as the kernel's own launch may give it: a number, or numbers."""
    return (grid,) if isinstance(grid, int) else tuple(int(n) for n in grid)


def _three(found: tuple[int, ...], file: str) -> tuple[int, int, int]:
    if not 1 <= len(found) <= 3:
        raise SourceError("grid and block have one to three extents", file=file)
    x, y, z = (*found, 1, 1)[:3]
    return x, y, z


def _nki(
    file: str,
    kernel: str | None,
    args: Sequence[Any],
    named: Mapping[str, Any],
    options: Options,
) -> Any:
    module, chosen = opened(file, kernel, options)
    values = bound_arguments(chosen, args, named, file)
    execution, live = simulated(module, chosen, values, options)
    whole(execution, file)
    for happening in execution.happenings:
        warnings.warn(_words(happening), UnwrittenRead, stacklevel=4)
    for problem in live:
        kind = Overwritten if problem.code == "address-overlap" else OverCapacity
        warnings.warn(f"{problem.span}: {problem.message}", kind, stacklevel=4)
    for name, content in execution.inputs_after.items():
        given, after = values[name], plain_array(content)
        if isinstance(given, np.ndarray) and not same_bytes(given, after):
            given[...] = after
    return _shaped(execution.specialization.structure, execution.outputs)


def _shaped(structure: Structure, outputs: Sequence[Any]) -> Any:
    match structure:
        case int():
            return with_bound(outputs[structure])
        case tuple():
            return tuple(_shaped(part, outputs) for part in structure)
        case list():
            return [_shaped(part, outputs) for part in structure]
        case dict():
            return {key: _shaped(part, outputs) for key, part in structure.items()}
        case None:
            return None


def _words(happening: Happening) -> str:
    related = f" (allocated at {happening.related})" if happening.related is not None else ""
    return f"{happening.span}: {happening.message}{related}"


def nki_ran(file: str, kernel: str | None, args: Mapping[str, Any], options: Options) -> Ran:
    """See `migrate.api.ran_nki`."""
    from migrate.pipeline.running_nki import ran

    return ran(file, kernel, args, options)


def _cuda(
    file: str,
    kernel: str | None,
    args: Sequence[Any],
    named: Mapping[str, Any],
    block: tuple[int, int, int],
    template: Mapping[str, object] | None,
    shared: int,
    options: Options,
) -> None:
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
    results = _executed(program, definition.name, values, block, template, shared, file, options)
    for name, content in results.items():
        given = values.get(name)
        if isinstance(given, np.ndarray):
            given[...] = plain_array(content)


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
        found = _executed(program, name, args, block, template, shared, file, options)
    except Outside as error:
        raise error.refusal(file) from None
    results = by_name(found)
    document = RunDocument(
        file=file,
        kernel=name,
        side="cuda",
        precision=options.precision,
        results=described(results),
    )
    return Ran(results, document)


def _executed(
    program: Program,
    name: str,
    args: Mapping[str, Any],
    block: tuple[int, int, int],
    template: Mapping[str, object] | None,
    shared: int,
    file: str,
    options: Options,
) -> dict[str, Any]:
    from migrate.cuda.execute import execute
    from migrate.cuda.runtime import Fault, Unsupported

    definition = cuda_kernel(program, name)
    try:
        execution = execute(
            program,
            name,
            args,
            _three(options.grid, file),
            block,
            domain=options.domain(),
            template=template,
            shared_bytes=shared,
            meter=options.meter(name),
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
    return {
        parameter: _reshaped(content, np.shape(args[parameter]))
        for parameter, content in execution.outputs.items()
    }


def _reshaped(content: Any, shape: tuple[int, ...]) -> Any:
    """An array of device memory in the shape that it was given in."""
    from migrate.numerics.errors import BoundedValue
    from migrate.numerics.parts import mapped

    if isinstance(content, BoundedValue):
        return mapped(content, lambda part: part.reshape(shape))
    return plain_array(content).reshape(shape)
