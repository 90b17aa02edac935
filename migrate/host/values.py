"""What host code makes of arrays: where a value comes from, and the steps it went through.

A value is a root (a parameter of the function that is read, an array that is made there, a
result of the kernel) and a chain of steps.  What is not understood is a root of its own,
`Opaque`, with the reason.  Extents are index expressions: `x.shape[0]` is the extent of a
parameter, a plain name a number that the function is given.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from migrate.ir.index import Index
from migrate.numerics.dtypes import DType
from migrate.source import Span

MAX_STEPS = 16
"""In one chain."""

Extent: TypeAlias = int | Index
Shape: TypeAlias = tuple[Extent, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """An array that the function is given."""

    name: str


@dataclass(frozen=True, slots=True)
class Created:
    """An array that the function makes; `zero`: of zeros."""

    zero: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """What a launch gives back, `position` where it gives several."""

    call: Span
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Opaque:
    reason: str
    span: Span


Root: TypeAlias = Parameter | Created | Result | Opaque


@dataclass(frozen=True, slots=True)
class Transposed:
    """All axes in reverse."""

    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Swapped:
    first: int
    second: int
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Permuted:
    axes: tuple[int, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Reshaped:
    """`None` is the extent that follows from the others."""

    extents: tuple[Extent | None, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Inserted:
    """An axis of one element."""

    axis: int
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Flattened:
    """The axes from `first` to `last`, both included, as one."""

    first: int
    last: int
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Padded:
    """Zeros around it: axis, how many before, how many after.  Axes may count from the end."""

    edges: tuple[tuple[int, Extent, Extent], ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Placed:
    """At the start of every axis of an array of zeros; `part` is what it must fill."""

    extents: Shape
    part: tuple[Extent | None, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Cast:
    """`None` is a format that is not known."""

    dtype: DType | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Sliced:
    """For every leading axis its bounds; `None` is the edge of the array."""

    bounds: tuple[tuple[Extent | None, Extent | None], ...]
    span: Span = field(compare=False)


Step: TypeAlias = (
    Transposed
    | Swapped
    | Permuted
    | Reshaped
    | Inserted
    | Flattened
    | Padded
    | Placed
    | Cast
    | Sliced
)


@dataclass(frozen=True, slots=True)
class Array:
    """An array of host code; `shape` is `None` where it is not known."""

    root: Root
    shape: Shape | None = None
    dtype: DType | None = None
    steps: tuple[Step, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether it is made here, with a shape of numbers."""
        return (
            isinstance(self.root, Created)
            and self.shape is not None
            and all(isinstance(extent, int) for extent in self.shape)
        )

    @property
    def untouched(self) -> bool:
        """Whether nothing happened to a parameter."""
        return isinstance(self.root, Parameter) and not self.steps


def opaque(reason: str, span: Span) -> Array:
    """An array of which nothing is known."""
    return Array(Opaque(reason, span))


def moved(array: Array, step: Step, shape: Shape | None) -> Array:
    """The array after a step, which gives it a shape."""
    if isinstance(array.root, Opaque):
        return array
    if len(array.steps) >= MAX_STEPS:
        return opaque(f"more than {MAX_STEPS} steps", step.span)
    return replace(array, shape=shape, steps=(*array.steps, step))


@dataclass(frozen=True, slots=True)
class ShapeOf:
    """The shape of a parameter whose rank is not known."""

    parameter: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """A slice as it is written; `full` is one without any bound."""

    start: object
    stop: object


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value of which nothing is known."""


UNKNOWN = Unknown()


def extent_of(name: str, axis: int) -> Index:
    """The extent of a parameter; axes may count from the end."""
    return Index.size(f"{name}.shape[{axis}]")


def number(value: object) -> Extent | None:
    """A value as an extent: a number, an expression, or a parameter that is used as a number."""
    match value:
        case bool():
            return None
        case int() | Index():
            return value
        case Array(root=Parameter(name), steps=()):
            return Index.size(name)
        case _:
            return None


class Listed(tuple[object, ...]):
    """The items of a list that stands in the text, which equals no tuple of the same items."""

    __slots__ = ()


def whole(value: object) -> bool:
    """Whether a value is known throughout, without any expression."""
    if isinstance(value, tuple):
        return all(map(whole, value))
    if isinstance(value, Array):
        return value.plain
    return isinstance(value, bool | int | float | str | DType) or value is None
