"""One kernel on the CPU: arrays in, arrays out.

`run` is called as the kernel is; `cuda_run` and `nki_run` take arguments by name and give
results by name, as the command line needs them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from migrate.budget import Budget, Exhausted, Meter
from migrate.pipeline.kernels import cuda_kernel, nki_kernel, parse_nki
from migrate.pipeline.texts import cuda_program
from migrate.source import SourceError, read

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from migrate.cuda.parse import Program
    from migrate.nki.parse import Kernel, Module
    from migrate.nki.simulate import Execution, Happening
    from migrate.nki.specialize import Structure
    from migrate.source import Span


class _Outside(Exception):
    """An access outside an array: where it is, and where the array is from."""

    def __init__(
        self,
        message: str,
        place: Span | None,
        allocated: Span | None = None,
        index: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(message)
        self.place = place
        self.allocated = allocated
        self.index = index

    def told(self) -> IndexError:
        """As NumPy says it of the flat tensor, with what happened and where as notes."""
        error = IndexError(str(self))
        if self.index is not None:
            index, size = self.index
            error = IndexError(f"index {index} is out of bounds for axis 0 with size {size}")
            error.add_note(str(self))
        if self.place is not None:
            error.add_note(f"at {self.place}")
        if self.allocated is not None:
            error.add_note(f"allocated at {self.allocated}")
        return error


SEED = 0
"""Of the numbers that kernels draw."""


class UnwrittenRead(UserWarning):
    """A kernel read memory that nothing had been written to."""


def run(
    file: str,
    kernel: str | None,
    args: Sequence[Any],
    named: Mapping[str, Any],
    *,
    grid: int | Sequence[int] | None,
    block: int | Sequence[int] | None,
    template: Mapping[str, object] | None,
    shared: int,
    target: str,
) -> Any:
    """See `migrate.api.run`."""
    if Path(file).suffix == ".py" and block is None:
        if template is not None or shared:
            raise SourceError("template and shared are of CUDA kernels", file=file)
        try:
            return _nki(file, kernel, args, named, extents(grid or ()), target)
        except _Outside as error:
            raise error.told() from None
    if grid is None or block is None:
        raise SourceError("a CUDA kernel needs grid and block", file=file)
    try:
        return _cuda(
            file, kernel, args, named, _three(grid, file), _three(block, file), template, shared
        )
    except _Outside as error:
        raise error.told() from None


def extents(grid: int | Sequence[int]) -> tuple[int, ...]:
    """A grid as the kernel's own launch may give it: a number, or numbers."""
    return (grid,) if isinstance(grid, int) else tuple(int(n) for n in grid)


def _three(given: int | Sequence[int], file: str) -> tuple[int, int, int]:
    found = extents(given)
    if not 1 <= len(found) <= 3:
        raise SourceError("grid and block have one to three extents", file=file)
    x, y, z = (*found, 1, 1)[:3]
    return x, y, z


def _nki(
    file: str,
    kernel: str | None,
    args: Sequence[Any],
    named: Mapping[str, Any],
    grid: tuple[int, ...],
    target: str,
) -> Any:
    module = parse_nki(read(file), file)
    chosen = nki_kernel(module, kernel)
    if len(args) > len(chosen.parameters):
        raise SourceError(
            f"{chosen.name} takes {len(chosen.parameters)} arguments, not {len(args)}",
            file=file,
            where=chosen.span,
        )
    values = dict(zip(chosen.parameters, args, strict=False))
    for name in named:
        if name in values:
            raise SourceError(f"{name} is given twice", file=file, where=chosen.span)
    values.update(named)
    execution = _simulated(module, chosen, values, grid, target)
    for name, content in execution.inputs_after.items():
        given, after = values[name], np.asarray(content)
        if isinstance(given, np.ndarray) and not same_bytes(given, after):
            given[...] = after
    return _shaped(execution.specialization.structure, execution.outputs)


def _simulated(
    module: Module, chosen: Kernel, args: Mapping[str, Any], grid: tuple[int, ...], target: str
) -> Execution[Any]:
    """A run to the kernel's end; raises where there is none, or its numbers mean nothing."""
    from migrate.nki.simulate import simulate
    from migrate.numerics.rounded import Rounded

    file = module.source.name
    plain = {name: _plain(value) for name, value in args.items()}
    meter = Meter(Budget(), f"running {chosen.name}")
    try:
        execution = simulate(
            module,
            chosen.name,
            plain,
            domain=Rounded(),
            target=target,
            grid=grid,
            meter=meter,
            seed=SEED,
        )
    except Exhausted as stop:
        raise SourceError(str(stop), file=file, where=stop.where or chosen.span) from None
    except TypeError as error:
        raise SourceError(str(error), file=file, where=chosen.span) from None
    _check(execution, file, chosen.span)
    return execution


def _plain(value: Any) -> Any:
    """NumPy's scalars as Python's; functions of NumPy and NKI as the operators they stand for."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) or not (callable(value) or hasattr(value, "_name")):
        return value
    from migrate.nki.library import resolve
    from migrate.nki.values import Unknown

    # What stands in for a package that is not installed has the dotted name (`_name`).
    dotted = getattr(value, "_name", None)
    if not isinstance(dotted, str):
        module = getattr(value, "__module__", None) or "numpy"
        dotted = f"{module}.{getattr(value, '__name__', '')}"
    path, _, name = dotted.removeprefix("neuronxcc.").rpartition(".")
    found = resolve(path.replace("numpy.core.fromnumeric", "numpy"), name)
    return value if isinstance(found, Unknown) else found


def _shaped(structure: Structure, outputs: Sequence[Any]) -> Any:
    match structure:
        case int():
            return np.asarray(outputs[structure])
        case tuple():
            return tuple(_shaped(part, outputs) for part in structure)
        case list():
            return [_shaped(part, outputs) for part in structure]
        case dict():
            return {key: _shaped(part, outputs) for key, part in structure.items()}
        case None:
            return None


def _check(execution: Execution[Any], file: str, where: Span) -> None:
    """Raise for what makes the numbers of a run mean nothing, warn of what may."""
    for happening in execution.happenings:
        if happening.code == "out-of-bounds":
            raise _Outside(
                happening.message,
                happening.span,
                happening.related,
                (happening.index, happening.size),
            )
    if not execution.complete:
        for event in execution.specialization.events:
            if event.kind != "print":
                raise SourceError(event.message, file=file, where=event.span)
        for happening in execution.happenings:
            if happening.code == "unsupported":
                raise SourceError(happening.message, file=file, where=happening.span)
        raise SourceError("the kernel did not run to its end", file=file, where=where)
    for happening in execution.happenings:
        warnings.warn(_words(happening), UnwrittenRead, stacklevel=5)


def _words(happening: Happening) -> str:
    related = f" (allocated at {happening.related})" if happening.related is not None else ""
    return f"{happening.span}: {happening.message}{related}"


def same_bytes(before: NDArray[Any], after: NDArray[Any]) -> bool:
    """Whether two arrays hold the same, NaN and zeros of either sign by their bits."""
    if before.dtype != after.dtype or before.shape != after.shape:
        return False
    return before.tobytes() == after.tobytes()


def _cuda(
    file: str,
    kernel: str | None,
    args: Sequence[Any],
    named: Mapping[str, Any],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    template: Mapping[str, object] | None,
    shared: int,
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
    results = _executed(program, definition.name, values, grid, block, template, shared, file)
    for name, content in results.items():
        given = values.get(name)
        if isinstance(given, np.ndarray):
            given[...] = content


def cuda_run(
    file: str,
    kernel: str | None,
    args: Mapping[str, Any],
    *,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    template: Mapping[str, object] | None,
    shared: int,
    defines: Mapping[str, str] | None = None,
    include: Sequence[str] = (),
) -> dict[str, NDArray[Any]]:
    """See `migrate.api.run_cuda`."""
    program = cuda_program(read(file), kernel, defines or {}, tuple(map(Path, include)))
    name = cuda_kernel(program, kernel).name
    try:
        return _executed(program, name, args, grid, block, template, shared, file)
    except _Outside as error:
        raise SourceError(str(error), file=file, where=error.place) from None


def _executed(
    program: Program,
    name: str,
    args: Mapping[str, Any],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    template: Mapping[str, object] | None,
    shared: int,
    file: str,
) -> dict[str, NDArray[Any]]:
    from migrate.cuda.execute import execute
    from migrate.cuda.runtime import Fault, Unsupported
    from migrate.numerics.rounded import Rounded

    definition = cuda_kernel(program, name)
    meter = Meter(Budget(), f"running {name}")
    try:
        execution = execute(
            program,
            name,
            args,
            grid,
            block,
            domain=Rounded(),
            template=template,
            shared_bytes=shared,
            meter=meter,
        )
    except Unsupported as gap:
        raise SourceError(gap.reason, file=file, where=gap.span) from None
    except Fault as fault:
        if fault.event.kind == "out-of-bounds":
            event = fault.event
            index = None
            if event.index is not None and event.size is not None:
                index = (event.index, event.size)
            raise _Outside(event.message, event.span, index=index) from None
        raise SourceError(fault.event.message, file=file, where=fault.event.span) from None
    except Exhausted as stop:
        raise SourceError(str(stop), file=file, where=stop.where or definition.span) from None
    return {
        parameter: np.asarray(content).reshape(np.shape(args[parameter]))
        for parameter, content in execution.outputs.items()
    }


def nki_run(
    file: str, kernel: str | None, args: Mapping[str, Any], *, target: str
) -> dict[str, NDArray[Any]]:
    """See `migrate.api.run_nki`."""
    try:
        module = parse_nki(read(file), file)
        execution = _simulated(module, nki_kernel(module, kernel), args, (), target)
    except _Outside as error:
        raise SourceError(str(error), file=file, where=error.place) from None
    results = {f"out{n}": np.asarray(v) for n, v in enumerate(execution.outputs)}
    for name, content in execution.inputs_after.items():
        before, after = args.get(name), np.asarray(content)
        if before is not None and not same_bytes(np.asarray(before), after):
            results[name] = after
    return results
