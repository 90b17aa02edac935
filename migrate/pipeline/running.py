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

from migrate.pipeline.run_options import (
    Options,
    Outside,
    OverCapacity,
    Overwritten,
    Ran,
    RunFault,
    UnwrittenRead,
    plain_array,
    with_bound,
)
from migrate.pipeline.running_cuda import called, cuda_ran
from migrate.pipeline.running_nki import bound_arguments, opened, same_bytes, simulated, whole
from migrate.source import SourceError

if TYPE_CHECKING:
    from migrate.nki.simulate import Happening
    from migrate.nki.specialize import Structure

__all__ = [
    "Options",
    "OverCapacity",
    "Overwritten",
    "RunFault",
    "UnwrittenRead",
    "cuda_ran",
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
        return called(
            file,
            kernel,
            args,
            named,
            block=block,
            template=template,
            shared=shared,
            options=options,
        )
    except Outside as error:
        raise error.told() from None


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
