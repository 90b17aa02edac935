"""The CUDA kernels of a file read without a partner: each as IR, or why not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.budget import Budget, Exhausted, Meter
from migrate.case import Case, Launch
from migrate.ir.index import Index
from migrate.ir.nodes import Kernel
from migrate.pipeline.kernels import Pair, cuda_kernel, no_cuda_kernel
from migrate.pipeline.texts import cuda_program, cuda_programs, is_python
from migrate.source import Source, SourceError, Span

if TYPE_CHECKING:
    from migrate.cuda.launches import Launch as HostLaunch
    from migrate.cuda.parse import Definition, Program

Triple = tuple[Index, Index, Index]
OPEN_GRID: Triple = (Index.size("gridDim.x"), Index.size("gridDim.y"), Index.size("gridDim.z"))
OPEN_BLOCK: Triple = (Index.size("blockDim.x"), Index.size("blockDim.y"), Index.size("blockDim.z"))


@dataclass(frozen=True, slots=True)
class ReadAlone:
    """One kernel as read; `reason` says why there is no IR, `inferred` what was taken for it."""

    name: str
    span: Span
    kernel: Kernel | None
    reason: str = ""
    inferred: tuple[str, ...] = ()


def read_alone(
    source: Source, name: str | None, case: Case, *, launched: bool = False
) -> tuple[ReadAlone, ...]:
    """Every CUDA kernel of a file, or the one named.

    With `launched`, grid and block are those of the host code's launch where it says them;
    else, and otherwise, any (`gridDim.x`, …).  Raises `SourceError` for a file without
    kernels and for an unknown name.
    """
    if name is not None:
        program = cuda_program(source, name, case.cuda.define, case.include_folders())
        return (_read(program, cuda_kernel(program, name), case, launched),)
    found = cuda_programs(source, case.cuda.define, case.include_folders())
    kernels = list(_all(found.programs, case, launched))
    for refused in found.refused:
        kernels += [
            ReadAlone(kernel, refused.span, None, f"the CUDA text is not known: {refused.reason}")
            for kernel in refused.kernels
        ]
    if not kernels:
        if is_python(source.name):
            raise SourceError(
                "has no CUDA kernel (no string with a __global__ function)", file=source.name
            )
        raise no_cuda_kernel(found.programs[0])
    return tuple(kernels)


def _all(programs: tuple[Program, ...], case: Case, launched: bool) -> Iterator[ReadAlone]:
    seen: set[Span] = set()
    for program in programs:
        host: tuple[HostLaunch, ...] | None = None
        for definition in program.kernels:
            if definition.span in seen:
                continue  # one text that is part of two programs
            seen.add(definition.span)
            if host is None:
                host = _launches(program)
            yield _read(program, definition, case, launched, host)


def _launches(program: Program) -> tuple[HostLaunch, ...]:
    from migrate.cuda.launches import launches

    return launches(program, Meter(doing=f"reading the launches of {program.source.name}"))


def _read(
    program: Program,
    definition: Definition,
    case: Case,
    launched: bool,
    host: tuple[HostLaunch, ...] | None = None,
) -> ReadAlone:
    meter = Meter(Budget(), f"reading {definition.name}")
    try:
        given = next((la for la in case.cuda.launch if la.kernel in (None, definition.name)), None)
        if given is not None and given.grid is not None and given.block is not None:
            if case.tensors:
                kernel = _of_case(program, definition, case, given, meter)
                return ReadAlone(definition.name, definition.span, kernel)
        return _of_host(
            program,
            definition,
            given or Launch(),
            _launches(program) if host is None else host,
            launched,
            meter,
        )
    except (SourceError, Exhausted) as reason:
        return ReadAlone(definition.name, definition.span, None, str(reason))


def _of_host(
    program: Program,
    definition: Definition,
    given: Launch,
    host: tuple[HostLaunch, ...],
    launched: bool,
    meter: Meter,
) -> ReadAlone:
    from migrate.cuda.lift import lift
    from migrate.pipeline.infer_launch import begun

    template = dict(given.template)
    integers: dict[str, Index | int] = {}
    grid, block = OPEN_GRID, OPEN_BLOCK
    shared: Index | None = None
    inferred: tuple[str, ...] = ()
    if launched or any(p.name not in template for p in definition.template):
        begin = begun(program, definition, given, host, {})
        template = dict(begin.template)
        if launched and begin.grid is not None and begin.block is not None:
            grid, block, shared = begin.grid, begin.block, begin.shared
            integers = dict(begin.integers)
            inferred = begin.told
        else:
            inferred = tuple(told for told in begin.told if not told.startswith(("grid", "block")))
    kernel = lift(
        program,
        definition.name,
        integers,
        grid,
        block,
        template or None,
        shared_bytes=shared if shared is not None else 0,
        meter=meter,
    )
    return ReadAlone(definition.name, definition.span, kernel, "", inferred)


def _of_case(
    program: Program, definition: Definition, case: Case, launch: Launch, meter: Meter
) -> Kernel:
    from migrate.align.binding import bind
    from migrate.pipeline.sides import read_cuda

    pair = Pair(
        case=case,
        cuda_source=program.source,
        nki_source=program.source,
        program=program,
        module=None,  # type: ignore[arg-type]  # the CUDA side alone is read
        cuda=definition,
        nki=None,  # type: ignore[arg-type]
        launch=launch,
    )
    kernel = read_cuda(pair, bind(case, case.runs()[0]), meter).kernel
    if kernel is None:
        raise SourceError("was not read soundly", file=program.source.name, where=definition.span)
    return kernel
