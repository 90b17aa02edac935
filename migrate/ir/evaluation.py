"""What an evaluation of the IR is given, an algebra, and what it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.ir.nodes import Buffer, Op, Rounding
from migrate.numerics.dtypes import DType
from migrate.source import Span

Array: TypeAlias = NDArray[Any]
Mask: TypeAlias = NDArray[np.bool_] | np.bool_ | bool


class Algebra(Protocol):
    """What numbers are.  Every array is of the algebra's own element type."""

    missing: Any
    """What a cell holds that nobody wrote, and what a load out of range gives."""

    idle: Any
    """What a load gives at points that do not exist; nothing that is kept depends on it."""

    def constant(self, number: float, dtype: DType) -> Array: ...

    def position(self, numbers: Array, dtype: DType) -> Array: ...

    def content(self, buffer: Buffer, size: int) -> Array:
        """The flat content of a buffer at entry, `missing` where there is none."""
        ...

    def loaded(self, buffer: Buffer, value: Array, op: Op) -> None:
        """Told of every value that came out of a buffer."""
        ...

    def apply(self, operator: str, args: Sequence[Array], op: Op) -> Array: ...

    def cast(self, value: Array, source: DType, to: DType, rounding: Rounding, op: Op) -> Array: ...

    def reduce(self, operator: str, value: Array, active: Mask, dims: int, op: Op) -> Array:
        """Combine over the first `dims` dimensions the elements that are active."""
        ...

    def scan(self, operator: str, value: Array, dim: int, inclusive: bool, op: Op) -> Array: ...

    def truth(self, value: Array) -> NDArray[np.bool_] | None:
        """Where a condition on data holds; `None` if the algebra cannot know."""
        ...

    def whole(self, value: Array) -> NDArray[np.int64] | None:
        """Data as integer positions; `None` if the algebra cannot know."""
        ...

    def unwritten(self, value: Array) -> NDArray[np.bool_]:
        """Which elements depend on what nobody wrote, as far as the algebra can tell."""
        ...

    def unknown(self, op: Op, args: Sequence[Array], shape: tuple[int, ...]) -> Array:
        """The result of what is not understood."""
        ...


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something only an evaluation sees.

    `count` points were concerned; `example` is one of them: flat cell and buffer size.
    """

    kind: Literal["out-of-range", "conflict", "opaque", "unwritten-read"]
    buffer: str
    message: str
    span: Span
    count: int
    example: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Write:
    """One store as it happened: the flat cells and what went into them."""

    op: Op
    cells: Array
    content: Array


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an evaluation left: flat content of each output buffer, in output order.

    `writers` gives for every cell of an output the position in `stores` of the op that
    wrote it last, -1 for none.  `writes` are all stores to an output, in order.
    """

    outputs: dict[str, Array]
    shapes: dict[str, tuple[int, ...]]
    writers: dict[str, NDArray[np.int32]]
    stores: tuple[Op, ...]
    writes: dict[str, tuple[Write, ...]]
    trouble: tuple[Trouble, ...]


class Unevaluable(Exception):
    """The IR cannot be evaluated at these sizes: a size without value, a bad extent."""

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(message)
        self.span = span


def unless_all(mask: Mask) -> Mask:
    """A mask that holds everywhere as `True`, which is quick to recognise."""
    return True if np.all(mask) else mask


def simple(mask: Mask) -> Mask:
    """A mask without dimensions as a plain `bool`, which is quick to recognise."""
    return bool(mask) if np.ndim(mask) == 0 else mask


def choose(condition: Mask, then: Array, otherwise: Array) -> Array:
    """`then` where the condition holds, else `otherwise`."""
    if condition is True:
        return then
    return np.where(condition, then, otherwise)
