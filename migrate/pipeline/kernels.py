"""Both files, parsed, and the kernels chosen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from migrate.case import Case, Launch, load
from migrate.case import parse as parse_case
from migrate.source import Source, SourceError, read, shortened

if TYPE_CHECKING:
    from migrate.cuda.parse import Definition, Program
    from migrate.nki.parse import Kernel, Module


@dataclass(frozen=True, slots=True)
class Pair:
    """Two kernels to compare, with what the case says about them."""

    case: Case
    cuda_source: Source
    nki_source: Source
    program: Program
    module: Module
    cuda: Definition
    nki: Kernel
    launch: Launch
    inferred: tuple[str, ...] = ()


def open_pair(
    cuda: str | None,
    nki: str | None,
    case: str | None,
    *,
    defines: Mapping[str, str] | None = None,
    include: Sequence[str] = (),
) -> Pair:
    """Read what the caller named; raises `SourceError`."""
    stated = load(case) if case is not None else Case()
    stated = stated.preprocessed(defines or {}, include)
    cuda_file, cuda_name = _reference(cuda, stated.cuda.file, "CUDA", stated)
    nki_file, nki_name = _reference(nki, stated.nki.file, "NKI", stated)
    cuda_source = _read(cuda, cuda_file, stated)
    nki_source = _read(nki, nki_file, stated)
    place = nki_file if nki is not None else str(stated.path(nki_file))
    return _pair(stated, cuda_source, nki_source, cuda_name, nki_name, place)


def pair_of_text(cuda: str, nki: str, case: str | None) -> Pair:
    """As `open_pair`, of texts: `kernel.cu`, `kernel.py`, `case.toml`; reads no file.

    The kernels are those the case names, else the only ones.  Raises `SourceError`.
    """
    stated = Case() if case is None else parse_case(Source.of(case, "case.toml"))
    for tensor in stated.tensors:
        for file in (tensor.fill, tensor.expect):
            if file is not None and file.endswith(".npy"):
                raise SourceError(
                    f"'{file}' of {tensor.name} cannot be read: a case given as text has no folder",
                    file="case.toml",
                )
    return _pair(stated, Source.of(cuda, "kernel.cu"), Source.of(nki, "kernel.py"), None, None)


def _pair(
    stated: Case,
    cuda_source: Source,
    nki_source: Source,
    cuda_name: str | None,
    nki_name: str | None,
    nki_file: str | None = None,
) -> Pair:
    if len(stated.cuda.launch) > 1:
        raise SourceError(
            "several launches against one NKI kernel cannot be compared yet; state one",
            file=stated.file or "case",
        )
    from migrate.pipeline.texts import cuda_program

    launch = stated.cuda.launch[0] if stated.cuda.launch else Launch()
    name = cuda_name or launch.kernel
    program = cuda_program(cuda_source, name, stated.cuda.define, stated.include_folders())
    module = parse_nki(nki_source, nki_file)
    definition = cuda_kernel(program, name)
    kernel = nki_kernel(module, nki_name or stated.nki.kernel)
    return Pair(stated, cuda_source, nki_source, program, module, definition, kernel, launch)


def parse_cuda(
    source: Source,
    defines: Mapping[str, bool | int | float | str] | None = None,
    include: Sequence[Path] = (),
) -> Program:
    """Parse CUDA; `#include` reads what lies in the folders `include`, and nothing else.

    Raises `SourceError` where there is nothing of it.
    """
    from migrate.cuda.parse import parse

    texts = {name: _define(value) for name, value in (defines or {}).items()}
    if not include:
        return parse(source, defines=texts)
    from migrate.cuda.includes import finder

    return parse(source, defines=texts, include=finder(include))


def parse_nki(source: Source, file: str | None = None) -> Module:
    """Parse an NKI file; raises `SourceError` where it is not Python.

    With the `file` that it is the text of, modules of its project are read as text, too.
    """
    from migrate.nki.parse import parse
    from migrate.nki.project import Project

    return parse(source, Project.around(Path(file), source.name) if file is not None else None)


class _Named(Protocol):
    @property
    def name(self) -> str: ...


K = TypeVar("K", bound=_Named)

MAX_NEAR: Final = 1000
"""Names among which a similar one is looked for."""


def cuda_kernel(program: Program, name: str | None) -> Definition:
    """The kernel named, or the only one; raises `SourceError`."""
    from migrate.cuda.parse import first_error

    kernels = [
        definition
        for definitions in program.functions.values()
        for definition in definitions
        if definition.kind == "kernel" and not definition.specialised
    ]
    if not kernels:
        raise _left_out(program, name) or no_cuda_kernel(program)
    try:
        return _chosen(kernels, name, program.source.name)
    except SourceError as refusal:
        excluded = _left_out(program, name)
        if excluded is not None:
            raise excluded from None
        place = first_error(program) if name is not None else None
        if place is None:
            raise
        # The kernel may be in what could not be read.
        message = f"{refusal.message}; {_UNREADABLE}"
        raise SourceError(message, file=refusal.file, where=place) from None


def _left_out(program: Program, name: str | None) -> SourceError | None:
    """The refusal of a kernel that stands in a branch of `#if` that is not read."""
    if name is None:
        return None
    kernel = re.compile(rb"\b__global__\b[^;{}]{0,2000}\b" + re.escape(name.encode()) + rb"\s*\(")
    for part in program.expanded.left_out:
        found = kernel.search(program.source.encoded, part.start, part.end)
        if found is not None:
            where = program.source.span(found.end() - 1, found.end())
            message = f"{name} is left out by '{shortened(part.directive, 80)}' in line {part.line}"
            return SourceError(f"{message}; see -D", file=program.source.name, where=where)
    return None


_UNREADABLE: Final = "from here on it could not be read as CUDA C++"


def no_cuda_kernel(program: Program) -> SourceError:
    """Why a file has no CUDA kernel."""
    from migrate.cuda.parse import first_error

    message = "has no CUDA kernel (no __global__ function)"
    place = first_error(program)
    if place is not None:
        message = f"{message}; {_UNREADABLE}"
    return SourceError(message, file=program.source.name, where=place)


def nki_kernel(module: Module, name: str | None) -> Kernel:
    """The kernel named, or the only one; raises `SourceError`."""
    if not module.kernels:
        raise no_nki_kernel(module)
    return _chosen(list(module.kernels), name, module.source.name)


def no_nki_kernel(module: Module) -> SourceError:
    """Why a file has no NKI kernel."""
    message = "has no NKI kernel (no function with @nki.jit)"
    return SourceError(message, file=module.source.name)


def _chosen(kernels: Sequence[K], name: str | None, file: str) -> K:
    names = [kernel.name for kernel in kernels]
    if name is not None:
        for kernel in kernels:
            if kernel.name == name:
                return kernel
        near = _nearest(name, names[:MAX_NEAR])
        known = f"did you mean {near}?" if near else f"there are: {_listed(names)}"
        raise SourceError(f"has no kernel called {name} ({known})", file=file)
    if len(kernels) > 1:
        shown = _listed(names)
        raise SourceError(
            f"has {len(kernels)} kernels ({shown}); choose one with {file}::NAME", file=file
        )
    return kernels[0]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def _nearest(name: str, names: Sequence[str]) -> str | None:
    from cydifflib import get_close_matches

    found = get_close_matches(name, names, n=1)
    return found[0] if found else None


def _define(value: bool | int | float | str) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _reference(
    given: str | None, stated: str | None, side: str, case: Case
) -> tuple[str, str | None]:
    if given is None:
        if stated is None:
            raise SourceError(f"names no {side} file", file=case.file or "the comparison")
        return stated, None
    file, _, kernel = given.partition("::")
    return file, kernel or None


def _read(given: str | None, file: str, case: Case) -> Source:
    if given is not None:
        return read(file)
    return read(case.path(file), name=case.shown(file))
