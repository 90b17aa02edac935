"""What a name in a specialised kernel can stand for.

Scalars are `Number` (integers and floats), `bool`, `str` and `None`; containers are
Python's own `tuple`, `list` and `dict` (with plain keys).  Everything else is here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Literal

from migrate.nki.symbols import CallStack, Loop, Number, Origin, binary
from migrate.numerics.dtypes import DType
from migrate.source import Span

if TYPE_CHECKING:
    from migrate.nki.frames import Code, Frame, ModuleScope


MAX_ITEMS = 100_000
"""Items of a list or characters of a string built while specialising."""


class Memory(Enum):
    """Where a tensor lives."""

    HBM = "hbm"
    SHARED_HBM = "shared_hbm"
    SBUF = "sbuf"
    PSUM = "psum"
    REGISTER = "register"

    @property
    def on_chip(self) -> bool:
        return self in (Memory.SBUF, Memory.PSUM)

    @property
    def kind(self) -> str:
        """The name that operand tables use: hbm, sbuf or psum."""
        return "hbm" if self is Memory.SHARED_HBM else self.value


@dataclass(frozen=True, slots=True)
class Problem:
    """Something the compiler or the hardware would not take.

    `code` is stable and made for rules; `numbers` are the figures of the message by
    name; `operand` is the parameter concerned; `sources` are the places whose numbers
    decided it, nearest first.
    """

    code: str
    message: str
    span: Span
    operand: str = ""
    numbers: tuple[tuple[str, int | float], ...] = ()
    sources: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """One place that emits instructions: a call, reached by one chain of calls."""

    key: int
    span: Span
    function: str
    stack: CallStack | None


@dataclass(frozen=True, slots=True)
class LoopValue:
    """The iteration (from 0) that a loop is at, and how many it has (`None` for `while`)."""

    loop: Loop
    iteration: int
    trips: Number | None


@dataclass(slots=True, eq=False, weakref_slot=True)
class Buffer:
    """One allocation.  Tiles allocated in a loop are one buffer an iteration.

    `ordinal` counts allocations of the run; `loops` are the loops around it.  `partition` is
    the axis that goes over the partitions: those before it are blocks (NKI 0.1, `nl.par_dim`).
    """

    name: str
    memory: Memory
    shape: tuple[Number, ...]
    dtype: DType
    site: Site
    loops: tuple[LoopValue, ...]
    role: Literal["parameter", "local"]
    ordinal: int
    partition: int = 0
    address: tuple[int, int] | None = None
    """Where the kernel places it: a partition, and an offset within partitions."""

    @property
    def elements(self) -> int:
        total = 1
        for extent in self.shape:
            total *= int(extent.value)
        return total


@dataclass(frozen=True, slots=True)
class Digit:
    """`scale * (inner // divisor)`, or `scale * (inner % divisor)`: a part of an address."""

    scale: Number
    inner: Address
    divisor: Number
    remainder: bool


@dataclass(frozen=True, slots=True)
class Address:
    """An integer at every position of a view, such as where it stands in its base.

    It is `start`, plus `step * i` for each (view axis, step) in `terms`, plus the `digits`:
    quotients and remainders of such integers, of which a view with plain strides has none.
    """

    start: Number
    terms: tuple[tuple[int, Number], ...] = ()
    digits: tuple[Digit, ...] = ()


@dataclass(frozen=True, slots=True)
class Indirect:
    """A dimension of a view's base whose position is in part read from memory.

    At every position of the view, `step` times an element of `offsets` (a tile of integers) is
    added to the address in `dimension` of the base.  `axes` says for every axis of `offsets`
    which axis of the view it goes along, `None` where it has one element only.
    """

    dimension: int
    offsets: View
    step: Number
    axes: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Mask:
    """Which elements an instruction works on: those where every condition is at least 0.

    The addresses are over the axes of the instruction's destination, or of what it reads where
    an axis is reduced.  Conditions on one axis alone are not kept here: they make the views
    smaller.
    """

    conditions: tuple[Address, ...]


@dataclass(frozen=True, slots=True)
class View:
    """A strided window on a buffer, as `nki.language` tensors are.

    `offset` and `strides` are in elements of the buffer and are the numeric truth;
    `index` says the same per dimension of `base` with expressions.  `base` is the shape
    the buffer is read under (its own, or that of a reshape).  `faults` are problems
    found while slicing; every instruction that uses the view has them.

    A view with `digits` in its index has no strides, one with `indirect` dimensions stands
    where numbers in memory say: for both, `index` alone is the truth.  `dtype` may be another
    than the buffer's, of the same size or not (the base then counts elements of `dtype`).
    """

    buffer: Buffer
    offset: int
    strides: tuple[int, ...]
    shape: tuple[Number, ...]
    dtype: DType
    base: tuple[Number, ...]
    index: tuple[Address, ...]
    faults: tuple[Problem, ...] = ()
    indirect: tuple[Indirect, ...] = ()

    @property
    def strided(self) -> bool:
        """Whether offset and strides say where every element is."""
        return not self.indirect and not any(address.digits for address in self.index)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple([int(extent.value) for extent in self.shape])

    @property
    def elements(self) -> int:
        total = 1
        for extent in self.shape:
            total *= int(extent.value)
        return total

    @property
    def free_elements(self) -> int:
        """Elements in a partition, for an on-chip tile."""
        total = 1
        for extent in self.shape[1:]:
            total *= int(extent.value)
        return total


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor argument: its shape (numbers, named where they are sizes) and dtype."""

    shape: tuple[Number, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Made:
    """An argument that is an object of a class which the kernel's file has: its fields by name."""

    cls: str
    fields: tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class Namespace:
    """A library module as a table of names, never the module itself."""

    path: str


@dataclass(frozen=True, slots=True)
class Member:
    """A member of one of the library's enums (`nl.sbuf` and dtypes apart)."""

    enum: str
    name: str


@dataclass(frozen=True, slots=True)
class OperatorName:
    """`nl.add` and the like: an operator of the tables, also callable."""

    name: str


@dataclass(frozen=True, slots=True)
class DynamicSlice:
    """`nl.ds(start, size)`."""

    start: Number
    size: Number


@dataclass(frozen=True, slots=True)
class Slice:
    """`start:stop:step` in a subscript, or a `slice(...)` value."""

    start: Number | None
    stop: Number | None
    step: Number | None


@dataclass(frozen=True, slots=True)
class Range:
    """`range` and its NKI spellings: `start + step * k` for k in 0 .. trips-1."""

    iterator: str
    start: Number
    step: Number
    trips: Number

    def element(self, position: Number) -> Number:
        scaled = position
        if self.step.symbolic or self.step.value != 1:
            scaled = binary("*", self.step, position, self.step.origin)
        if self.start.symbolic or self.start.value != 0:
            scaled = binary("+", self.start, scaled, self.start.origin)
        return scaled


@dataclass(frozen=True, slots=True)
class Issued:
    """What an ISA call returns: a handle on the instruction, no tensor."""

    opcode: str


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of the reviewed module with its defining frame and defaults."""

    code: Code
    scope: Frame | ModuleScope
    defaults: tuple[object, ...]
    keyword_defaults: tuple[tuple[str, object], ...]
    node: ast.FunctionDef | ast.Lambda
    owner: object = None
    """The class it is a method of."""


@dataclass(frozen=True, slots=True, eq=False)
class Builtin:
    """A host function by name: `call(frame, args, keywords, origin)`."""

    name: str
    call: Callable[[Frame, tuple[object, ...], dict[str, object], Origin], object]


@dataclass(frozen=True, slots=True, eq=False)
class Instructive:
    """`nisa.<opcode>`: calling it emits an instruction."""

    opcode: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """A name that was bound to something not understood: fails when it is used."""

    text: str
    reason: str
    span: Span | None


def describe(value: object) -> str:
    """What a value is, for messages; never its content beyond a few characters."""
    match value:
        case None:
            return "None"
        case bool():
            return str(value)
        case Number():
            return f"the {'integer' if value.integral else 'float'} {value.value}"
        case str():
            shown = value if len(value) <= 24 else value[:24] + "..."
            return f"the string {shown!r}"
        case View():
            shape = ", ".join(str(n) for n in value.sizes)
            return f"a {value.buffer.memory.value} tensor of shape ({shape})"
        case tuple():
            return f"a tuple of {len(value)}"
        case list():
            return f"a list of {len(value)}"
        case dict():
            return f"a dictionary of {len(value)}"
        case DType():
            return f"the dtype {value}"
        case Memory():
            return f"the memory {value.value}"
        case Member():
            return f"{value.enum}.{value.name}"
        case OperatorName():
            return f"the operator {value.name}"
        case Function():
            return "a function"
        case Builtin() | Instructive():
            return "a library function"
        case Namespace():
            return f"the module {value.path}"
        case Issued():
            return f"the handle of an instruction ({value.opcode}), not a tensor"
        case Unknown():
            return f"{value.text} ({value.reason})"
        case _:
            described = getattr(type(value), "described", None)
            return str(described) if described else f"a {type(value).__name__.lower()}"


@dataclass(frozen=True, slots=True, eq=False)
class Iteration:
    """What a loop runs over: `element(k)` is the k-th of `trips` things.

    `counted` says that elements are affine in the position as long as it is a `Range`.
    """

    iterator: str
    trips: Number
    element: Callable[[Number], object]
    counted: bool
