"""Calls of a kernel in the rest of its file: what arrays and numbers it is given there.

Tests and the code under `if __name__ == "__main__"` make arrays with NumPy or torch and call the
kernel with them; `migrate.host` follows that code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from migrate.host import values
from migrate.host.reader import read
from migrate.nki.parse import Kernel, Module
from migrate.numerics.dtypes import DType
from migrate.source import Span


@dataclass(frozen=True, slots=True)
class Array:
    """An array of host code."""

    shape: tuple[int, ...]
    dtype: DType


Known: TypeAlias = Array | bool | int | float | str | DType | tuple[object, ...] | None


@dataclass(frozen=True, slots=True)
class Example:
    """A call of the kernel: what its parameters are given, and the grid it is launched on."""

    arguments: Mapping[str, Known]
    grid: tuple[int, ...]
    span: Span


def examples(module: Module, kernel: Kernel) -> tuple[Example, ...]:
    """The calls of a kernel in its file of which some arguments are known, in order."""
    found: list[Example] = []
    for reading in read(module, kernel):
        for call in reading.calls:
            arguments = {n: _known(v) for n, v in call.arguments.items() if values.whole(v)}
            if any(isinstance(value, Array) for value in arguments.values()):
                grid = call.grid or ()
                dims = tuple(d for d in grid if isinstance(d, int) and not isinstance(d, bool))
                found.append(Example(arguments, dims if len(dims) == len(grid) else (), call.span))
    return tuple(found)


def _known(value: object) -> Known:
    match value:
        case values.Listed():
            return values.Listed(map(_known, value))
        case tuple():
            return tuple(map(_known, value))
        case values.Array(shape=tuple() as shape, dtype=dtype):
            numbers = tuple(extent for extent in shape if isinstance(extent, int))
            return Array(numbers, dtype or DType.FLOAT32)
        case bool() | int() | float() | str() | DType():
            return value
        case _:
            return None
