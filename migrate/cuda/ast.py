"""The typed syntax tree of a device function.

What building it has already done: names are resolved to `Variable`s, the usual arithmetic
conversions are explicit `Cast`s, operators carry the names of `migrate.numerics.operators`,
macros are expanded, template parameters are replaced, `*p` and `p[i]` are both `Element`.

An expression's `type` is the type of its value.  A place (something that can be assigned)
is a `Name`, an `Element`, or a `Component` of one.

    statement  = Declare | Evaluate | Block | If | Loop | Switch | Break | Continue | Return
               | Barrier | Opaque
    expression = Literal | Name | Builtin | Unary | Binary | Logical | Conditional | Comma
               | Assign | Step | Cast | Element | Address | Component | MakeVector
               | Intrinsic | Call | Atomic | Shuffle | OpaqueExpression
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf

from migrate.cuda.intrinsics import AtomicEntry, IntrinsicEntry, ShuffleEntry
from migrate.cuda.types import Pointer, Scalar, Type, Vector
from migrate.source import Span

Storage = OneOf["parameter", "local", "shared", "dynamic-shared", "global", "constant", "reference"]


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared object.  `id` is unique inside one function."""

    id: int
    name: str
    type: Type
    storage: Storage
    span: Span
    const: bool = False


@dataclass(frozen=True, slots=True)
class Literal:
    value: int | float | bool
    type: Scalar
    span: Span


@dataclass(frozen=True, slots=True)
class Name:
    variable: Variable
    type: Type
    span: Span


@dataclass(frozen=True, slots=True)
class Builtin:
    """`threadIdx.x` and its like; `axis` is 0 for x.  `warpSize` is a `Literal`."""

    which: OneOf["threadIdx", "blockIdx", "blockDim", "gridDim"]
    axis: int
    type: Scalar
    span: Span


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str
    operand: Expression
    type: Scalar
    span: Span


@dataclass(frozen=True, slots=True)
class Binary:
    """Both operands have one type already (but a shift's right side, which keeps its own).

    With a pointer on the left, `operator` is `add` or `subtract` in elements; comparisons and
    the difference of two pointers are in elements too.
    """

    operator: str
    left: Expression
    right: Expression
    type: Type
    span: Span


@dataclass(frozen=True, slots=True)
class Logical:
    """`&&` and `||`: the right side is evaluated only where it decides."""

    operator: OneOf["and", "or"]
    left: Expression
    right: Expression
    type: Scalar
    span: Span


@dataclass(frozen=True, slots=True)
class Conditional:
    condition: Expression
    then: Expression
    otherwise: Expression
    type: Type
    span: Span


@dataclass(frozen=True, slots=True)
class Comma:
    first: Expression
    second: Expression
    type: Type
    span: Span


@dataclass(frozen=True, slots=True)
class Assign:
    """`target = value`, or `target op= value` computed in `compute` and cast back."""

    target: Expression
    operator: str | None
    value: Expression
    compute: Type
    type: Type
    span: Span


@dataclass(frozen=True, slots=True)
class Step:
    """`++` and `--`; `delta` is 1 or -1, `prefix` tells which value the expression has."""

    target: Expression
    delta: int
    prefix: bool
    type: Type
    span: Span


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion between arithmetic types, or of a pointer's element type.

    `written` is false for conversions that the language inserts.
    """

    operand: Expression
    type: Type
    span: Span
    written: bool = True


@dataclass(frozen=True, slots=True)
class Element:
    """`base[index]`, in units of the pointed-to type.  `base` is a pointer or an array."""

    base: Expression
    index: Expression
    type: Type
    span: Span


@dataclass(frozen=True, slots=True)
class Address:
    place: Expression
    type: Pointer
    span: Span


@dataclass(frozen=True, slots=True)
class Component:
    """One component of a vector value or place."""

    base: Expression
    index: int
    type: Scalar
    span: Span


@dataclass(frozen=True, slots=True)
class MakeVector:
    parts: tuple[Expression, ...]
    type: Vector
    span: Span


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A function of the table in `intrinsics`, with operands in its operand type."""

    entry: IntrinsicEntry
    arguments: tuple[Expression, ...]
    type: Scalar
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    """A device function of the same program; reference parameters take places."""

    function: Function
    arguments: tuple[Expression, ...]
    type: Type
    span: Span


@dataclass(frozen=True, slots=True)
class Atomic:
    """A read-modify-write; its value is what the place held before."""

    entry: AtomicEntry
    pointer: Expression
    values: tuple[Expression, ...]
    type: Scalar
    span: Span


@dataclass(frozen=True, slots=True)
class Shuffle:
    """An exchange or a vote within a warp (or a `width`-lane part of one)."""

    entry: ShuffleEntry
    participants: Expression
    value: Expression
    lane: Expression | None
    width: Expression | None
    type: Scalar
    span: Span


@dataclass(frozen=True, slots=True)
class OpaqueExpression:
    """Something not understood, with the reason."""

    text: str
    reason: str
    type: Type
    span: Span


Expression = (
    Literal
    | Name
    | Builtin
    | Unary
    | Binary
    | Logical
    | Conditional
    | Comma
    | Assign
    | Step
    | Cast
    | Element
    | Address
    | Component
    | MakeVector
    | Intrinsic
    | Call
    | Atomic
    | Shuffle
    | OpaqueExpression
)


@dataclass(frozen=True, slots=True)
class Declare:
    """One declared variable.

    `initial` is one expression, or for an array the flat list of leading elements (the rest
    is zero); `None` leaves it uninitialised.
    """

    variable: Variable
    initial: Expression | tuple[Expression, ...] | None
    span: Span


@dataclass(frozen=True, slots=True)
class Evaluate:
    expression: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Block:
    body: tuple[Statement, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class If:
    condition: Expression
    then: Block
    otherwise: Block | None
    span: Span


@dataclass(frozen=True, slots=True)
class Loop:
    """`for`, `while` and `do`: `initial`; while `condition`: `body`; `step`.

    `head` is the span of the loop's head, what a reader would call the loop.
    """

    kind: OneOf["for", "while", "do"]
    initial: tuple[Statement, ...]
    condition: Expression | None
    step: Expression | None
    body: Block
    span: Span
    head: Span


@dataclass(frozen=True, slots=True)
class Case:
    """A label with what follows it; `value` is `None` for `default`."""

    value: Expression | None
    body: tuple[Statement, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Switch:
    subject: Expression
    cases: tuple[Case, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Break:
    span: Span


@dataclass(frozen=True, slots=True)
class Continue:
    span: Span


@dataclass(frozen=True, slots=True)
class Return:
    value: Expression | None
    span: Span


@dataclass(frozen=True, slots=True)
class Barrier:
    """`block`: `__syncthreads`; `warp`: `__syncwarp`; `fence`: a memory fence alone."""

    scope: OneOf["block", "warp", "fence"]
    span: Span


@dataclass(frozen=True, slots=True)
class Opaque:
    """A statement not understood, with the reason."""

    text: str
    reason: str
    span: Span


Statement = (
    Declare | Evaluate | Block | If | Loop | Switch | Break | Continue | Return | Barrier | Opaque
)


@dataclass(frozen=True, slots=True)
class Function:
    """One device function or kernel with its template parameters replaced.

    `globals_used` are the file's `__constant__` and `__device__` variables it names.
    """

    name: str
    parameters: tuple[Variable, ...]
    result: Type
    body: Block
    span: Span
    kernel: bool
    template: tuple[tuple[str, str], ...] = ()
    globals_used: tuple[Variable, ...] = ()
    launch_bounds: tuple[int, ...] = ()
    issues: tuple[OpaqueExpression | Opaque, ...] = field(default=(), compare=False)
