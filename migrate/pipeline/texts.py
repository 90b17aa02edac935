"""The CUDA programs of a file: the file itself, or the texts in the strings of a Python file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.pipeline.kernels import parse_cuda
from migrate.results import Side
from migrate.source import Source, SourceError

if TYPE_CHECKING:
    from migrate.cuda.embedded import Refused
    from migrate.cuda.parse import Program

Defines = Mapping[str, bool | int | float | str]


@dataclass(frozen=True, slots=True)
class Programs:
    """What of a file could be read as CUDA, and which texts are only known at run time."""

    programs: tuple[Program, ...]
    refused: tuple[Refused, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The kernels of all of them, in order."""
        return tuple(kernel.name for program in self.programs for kernel in program.kernels)


def is_python(name: str) -> bool:
    """Whether a file is Python by its name."""
    return name.endswith(".py")


def cuda_programs(source: Source, defines: Defines, include: Sequence[Path] = ()) -> Programs:
    """Every CUDA program of a file; raises `SourceError` where it cannot be read."""
    if not is_python(source.name):
        return Programs((parse_cuda(source, defines, include),))
    from migrate.cuda.embedded import embedded

    found = embedded(source)
    return Programs(
        tuple(parse_cuda(text, {**text.defines, **defines}, include) for text in found.texts),
        found.refused,
    )


def cuda_program(
    source: Source, name: str | None, defines: Defines, include: Sequence[Path] = ()
) -> Program:
    """The program that has the kernel `name`, or the only one; raises `SourceError`."""
    found = cuda_programs(source, defines, include)
    for program in found.programs:
        if name is not None and any(kernel.name == name for kernel in program.kernels):
            return program
    refused = next((r for r in found.refused if name is None or name in r.kernels), None)
    if refused is not None and (name is not None or not found.programs):
        shown = ", ".join(refused.kernels)
        raise SourceError(
            f"the CUDA text of {shown} is not known: {refused.reason}",
            file=source.name,
            where=refused.span,
        )
    if not found.programs:
        raise SourceError(
            "has no CUDA kernel (no string with a __global__ function)", file=source.name
        )
    if len(found.programs) == 1:
        return found.programs[0]
    if name is None:
        shown = ", ".join(found.names[:8]) + (", …" if len(found.names) > 8 else "")
        raise SourceError(
            f"has {len(found.names)} CUDA kernels ({shown}); choose one with {source.name}::NAME",
            file=source.name,
        )
    names = ", ".join(found.names[:8])
    raise SourceError(f"has no CUDA kernel called {name} (there are: {names})", file=source.name)


def chosen_side(source: Source, kernel: str | None) -> Side:
    """Which side of a Python file is meant, where it may have both.

    By the kernel's name where only one side has it; a file with CUDA and without NKI kernels
    is of the CUDA side.  Raises `SourceError` where both sides have the name.
    """
    if not is_python(source.name):
        return "cuda"
    from migrate.cuda.embedded import embedded, has_cuda

    if not has_cuda(source):
        return "nki"
    from migrate.nki.parse import parse

    found = embedded(source)
    cuda = {definition.name for text in found.texts for definition in parse_cuda(text).kernels} | {
        name for refused in found.refused for name in refused.kernels
    }
    nki = {entry.name for entry in parse(source).kernels}
    if kernel is not None and kernel in cuda and kernel in nki:
        raise SourceError(
            f"has {kernel} as a CUDA and as an NKI kernel; choose with --side", file=source.name
        )
    if kernel is not None and kernel in cuda | nki:
        return "cuda" if kernel in cuda else "nki"
    return "cuda" if cuda and not nki else "nki"
