"""The typed syntax tree of a device function.

What building it has already done: names are resolved to `Variable`s, the usual arithmetic
conversions are explicit `Cast`s, operators carry the names of `migrate.numerics.operators`,
macros are expanded, template parameters are replaced, `*p` and `p[i]` are both `Element`.

An expression's `type` is the type of its value.  A place (something that can be assigned)
is a `Name`, an `Element`, or a `Component` of one.

    statement  = Declare | Evaluate | Block | If | Loop | Switch | Break | Continue | Return
               | Barrier | WarpContract | AsyncCopy | AsyncGroup | Assert | Opaque
    expression = Literal | Name | Builtin | Unary | Binary | Logical | Conditional | Comma
               | Assign | Step | Cast | Element | Address | Component | MakeVector
               | Intrinsic | Call | Atomic | Shuffle | OpaqueExpression
"""

from __future__ import annotations

from typing import Literal as OneOf
from typing import Protocol

import msgspec

from migrate.cuda.intrinsics import AtomicEntry, IntrinsicEntry, ShuffleEntry
from migrate.cuda.origins import Where, span_of
from migrate.cuda.types import Pointer, Scalar, Type
from migrate.source import Span

COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})

Storage = OneOf["parameter", "local", "shared", "dynamic-shared", "global", "constant", "reference"]


class _HasPlace(Protocol):
    @property
    def where(self) -> Where: ...


class _Placed(msgspec.Struct, frozen=True, gc=False):
    """A node that stands `where`: in a text, or where a node that it was made for does."""

    @property
    def span(self: _HasPlace) -> Span:
        """The place in reviewed text."""
        return span_of(self.where)


class Variable(_Placed, frozen=True, gc=False):
    """A declared object.  `id` is unique inside one function."""

    id: int
    name: str
    type: Type
    storage: Storage
    where: Where
    const: bool = False


class Literal(_Placed, frozen=True, gc=False):
    value: int | float | bool
    type: Scalar
    where: Where


class Name(_Placed, frozen=True, gc=False):
    variable: Variable
    type: Type
    where: Where


class Builtin(_Placed, frozen=True, gc=False):
    """`threadIdx.x` and its like; `axis` is 0 for x.  `warpSize` is a `Literal`."""

    which: OneOf["threadIdx", "blockIdx", "blockDim", "gridDim"]
    axis: int
    type: Scalar
    where: Where


class Unary(_Placed, frozen=True, gc=False):
    operator: str
    operand: Expression
    type: Scalar
    where: Where


class Binary(_Placed, frozen=True, gc=False):
    """Both operands have one type already (but a shift's right side, which keeps its own).

    With a pointer on the left, `operator` is `add` or `subtract` in elements; comparisons and
    the difference of two pointers are in elements too.
    """

    operator: str
    left: Expression
    right: Expression
    type: Type
    where: Where


class Logical(_Placed, frozen=True, gc=False):
    """`&&` and `||`: the right side is evaluated only where it decides."""

    operator: OneOf["and", "or"]
    left: Expression
    right: Expression
    type: Scalar
    where: Where


class Conditional(_Placed, frozen=True, gc=False):
    condition: Expression
    then: Expression
    otherwise: Expression
    type: Type
    where: Where


class Comma(_Placed, frozen=True, gc=False):
    first: Expression
    second: Expression
    type: Type
    where: Where


class Assign(_Placed, frozen=True, gc=False):
    """`target = value`, or `target op= value` computed in `compute` and cast back."""

    target: Expression
    operator: str | None
    value: Expression
    compute: Type
    type: Type
    where: Where


class Step(_Placed, frozen=True, gc=False):
    """`++` and `--`; `delta` is 1 or -1, `prefix` tells which value the expression has."""

    target: Expression
    delta: int
    prefix: bool
    type: Type
    where: Where


class Cast(_Placed, frozen=True, gc=False):
    """A conversion between arithmetic types, or of a pointer's element type.

    `written` is false for conversions that the language inserts.
    """

    operand: Expression
    type: Type
    where: Where
    written: bool = True


class Element(_Placed, frozen=True, gc=False):
    """`base[index]`, in units of the pointed-to type.  `base` is a pointer or an array."""

    base: Expression
    index: Expression
    type: Type
    where: Where


class Address(_Placed, frozen=True, gc=False):
    place: Expression
    type: Pointer
    where: Where


class Component(_Placed, frozen=True, gc=False):
    """One component of a vector, or one member of a struct: a value or a place.

    `index` counts the components, or the members in `Struct.members`.
    """

    base: Expression
    index: int
    type: Type
    where: Where


class MakeVector(_Placed, frozen=True, gc=False):
    """A vector of its components, a struct of its members, an array of its elements."""

    parts: tuple[Expression, ...]
    type: Type
    where: Where


class Intrinsic(_Placed, frozen=True, gc=False):
    """A function of the table in `intrinsics`, with operands in its operand type."""

    entry: IntrinsicEntry
    arguments: tuple[Expression, ...]
    type: Scalar
    where: Where


class Call(_Placed, frozen=True, gc=False):
    """A device function of the same program; reference parameters take places."""

    function: Function
    arguments: tuple[Expression, ...]
    type: Type
    where: Where


class Atomic(_Placed, frozen=True, gc=False):
    """A read-modify-write; its value is what the place held before."""

    entry: AtomicEntry
    pointer: Expression
    values: tuple[Expression, ...]
    type: Scalar
    where: Where


class Shuffle(_Placed, frozen=True, gc=False):
    """An exchange or a vote within a warp (or a `width`-lane part of one).

    What is exchanged may be a pointer: matrix loads read at addresses of other lanes.
    """

    entry: ShuffleEntry
    participants: Expression
    value: Expression
    lane: Expression | None
    width: Expression | None
    type: Scalar | Pointer
    where: Where


class OpaqueExpression(_Placed, frozen=True, gc=False):
    """Something not understood, with the reason; `changed` are variables it may assign to."""

    text: str
    reason: str
    type: Type
    where: Where
    changed: tuple[int, ...] = ()


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


class Declare(_Placed, frozen=True, gc=False):
    """One declared variable.

    `initial` is one expression, or for an array the flat list of leading elements (the rest
    is zero); `None` leaves it uninitialised.
    """

    variable: Variable
    initial: Expression | tuple[Expression, ...] | None
    where: Where


class Evaluate(_Placed, frozen=True, gc=False):
    expression: Expression
    where: Where


class Block(_Placed, frozen=True, gc=False):
    body: tuple[Statement, ...]
    where: Where


class If(_Placed, frozen=True, gc=False):
    condition: Expression
    then: Block
    otherwise: Block | None
    where: Where


class Loop(_Placed, frozen=True, gc=False):
    """`for`, `while` and `do`: `initial`; while `condition`: `body`; `step`.

    `top` is where the loop's head stands, what a reader would call the loop.
    """

    kind: OneOf["for", "while", "do"]
    initial: tuple[Statement, ...]
    condition: Expression | None
    step: Expression | None
    body: Block
    where: Where
    top: Where

    @property
    def head(self) -> Span:
        """The place of the loop's head in reviewed text."""
        return span_of(self.top)


class Case(_Placed, frozen=True, gc=False):
    """A label with what follows it; `value` is `None` for `default`."""

    value: Expression | None
    body: tuple[Statement, ...]
    where: Where


class Switch(_Placed, frozen=True, gc=False):
    subject: Expression
    cases: tuple[Case, ...]
    where: Where


class Break(_Placed, frozen=True, gc=False):
    where: Where


class Continue(_Placed, frozen=True, gc=False):
    where: Where


class Return(_Placed, frozen=True, gc=False):
    value: Expression | None
    where: Where


class Barrier(_Placed, frozen=True, gc=False):
    """`block`: `__syncthreads`; `warp`: `__syncwarp`; `grid`: of a cooperative launch;
    `fence`: a memory fence alone."""

    scope: OneOf["grid", "block", "warp", "fence"]
    where: Where


class WarpContract(_Placed, frozen=True, gc=False):
    """`d = a b + c` by the threads of a warp together, each matrix spread over their registers.

    `shape` is (m, n, k): `a` has m rows and k columns, `b` k and n, `c` and `d` m and n.  A tuple
    of registers holds a lane's elements in the order of `cuda.library.layout.layout(role, shape,
    element)`, which says which element of the matrix each is.  A register is one element, or a
    vector or an integer of as many as fit in it.  `d` are places; its registers may be those of
    `c`.  `element` is the type of the elements of `a` and `b`, `accumulator` that of `c`, `result`
    that of `d`.  `precision` is `tf32` where floats lose their low 13 bits.  Nothing is said of the
    order of the sum.
    """

    d: tuple[Expression, ...]
    a: tuple[Expression, ...]
    b: tuple[Expression, ...]
    c: tuple[Expression, ...]
    shape: tuple[int, int, int]
    element: Scalar
    accumulator: Scalar
    result: Scalar
    precision: str
    where: Where


class AsyncCopy(_Placed, frozen=True, gc=False):
    """A copy into shared memory that is there after a wait for its group.

    `body` copies (at once: no program can tell that it may rely on); `target` points to what
    it writes, `bytes` long.
    """

    body: Block
    target: Expression
    bytes: int
    where: Where


class AsyncGroup(_Placed, frozen=True, gc=False):
    """`commit`: the copies since the last one are a group.  `wait`: all groups of the thread but
    the `pending` newest are there; with `all`, copies of no group too."""

    action: OneOf["commit", "wait"]
    pending: int
    all: bool
    where: Where


class Assert(_Placed, frozen=True, gc=False):
    """`assert(condition)`: a run reports where it fails; it computes nothing."""

    condition: Expression
    text: str
    where: Where


class Opaque(_Placed, frozen=True, gc=False):
    """A statement not understood, with the reason; `changed` are variables it may assign to."""

    text: str
    reason: str
    where: Where
    changed: tuple[int, ...] = ()


Statement = (
    Declare
    | Evaluate
    | Block
    | If
    | Loop
    | Switch
    | Break
    | Continue
    | Return
    | Barrier
    | WarpContract
    | AsyncCopy
    | AsyncGroup
    | Assert
    | Opaque
)


class Function(msgspec.Struct, frozen=True, gc=False):
    """One device function or kernel with its template parameters replaced.

    `globals_used` are the file's `__constant__` and `__device__` variables it names.
    `variables` is above every id of a variable.  `initials` are the values that the file
    gives to some of the globals, by name, in memory order.
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
    issues: tuple[OpaqueExpression | Opaque, ...] = ()
    variables: int = 0
    initials: tuple[tuple[str, tuple[int | float | bool, ...]], ...] = ()
