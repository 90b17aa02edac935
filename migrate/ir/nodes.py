"""The types of the IR.  The grammar is in the package's docstring."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, TypeAlias

from migrate.ir.index import Index
from migrate.ir.predicate import TRUE, Predicate
from migrate.numerics.dtypes import DType
from migrate.source import Span

Side: TypeAlias = Literal["cuda", "nki"]
Role: TypeAlias = Literal["in", "out", "inout", "scratch"]


class Space(Enum):
    """Where a buffer lives."""

    HBM = "hbm"
    """Device memory: CUDA global, Trainium HBM."""
    ONCHIP = "onchip"
    """CUDA shared memory, Trainium SBUF."""
    ACCUMULATOR = "accumulator"
    """Trainium PSUM, or CUDA registers that carry a running sum."""
    PRIVATE = "private"
    """CUDA registers and local arrays."""
    CONSTANT = "constant"
    """Kernel scalars and CUDA `__constant__` memory."""


class AxisKind(Enum):
    """What an axis is in the program it came from."""

    GRID = "grid"
    BLOCK = "block"
    WARP = "warp"
    LANE = "lane"
    TILE = "tile"
    PARALLEL = "parallel"
    SEQUENTIAL = "sequential"
    PARTITION = "partition"
    FREE = "free"


class Rounding(Enum):
    """How a cast rounds."""

    NEAREST_EVEN = "nearest-even"
    TOWARD_ZERO = "toward-zero"
    AWAY = "nearest-away"
    STOCHASTIC = "stochastic"
    EXACT = "exact"


@dataclass(frozen=True, slots=True)
class Axis:
    """A dimension of iteration: `name` takes 0 .. extent-1."""

    name: str
    extent: Index
    kind: AxisKind
    span: Span
    sources: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Buffer:
    """Storage with a shape in elements, row-major.

    The first `instances` dimensions number the copies that iterations or blocks have of
    their own: they are not storage that exists at once.
    """

    name: str
    shape: tuple[Index, ...]
    dtype: DType
    space: Space
    role: Role
    span: Span
    instances: int = 0


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """The content of a buffer at one moment."""

    buffer: str
    number: int

    def __str__(self) -> str:
        return f"{self.buffer}.{self.number}"


@dataclass(frozen=True, slots=True)
class Value:
    """A number at every point of the axes in scope.  Names are unique in a kernel."""

    name: str
    dtype: DType

    def __str__(self) -> str:
        return f"%{self.name}"


Carried: TypeAlias = Value | Version
Condition: TypeAlias = Predicate | Value


@dataclass(frozen=True, slots=True)
class State:
    """One thing a `Fold` carries.

    `initial` enters, `inner` is its name inside the body, `next` what the body makes of
    it, `result` what is known after the last point.
    """

    result: Carried
    initial: Carried
    inner: Carried
    next: Carried


@dataclass(frozen=True, slots=True)
class Merge:
    """What a thing is after a `Guard`: `then` where the condition held."""

    result: Carried
    then: Carried
    otherwise: Carried


@dataclass(frozen=True, slots=True)
class Parallel:
    axes: tuple[Axis, ...]
    body: Block
    span: Span
    where: Predicate = TRUE


@dataclass(frozen=True, slots=True)
class Fold:
    axes: tuple[Axis, ...]
    state: tuple[State, ...]
    body: Block
    span: Span
    where: Predicate = TRUE


@dataclass(frozen=True, slots=True)
class Guard:
    condition: Condition
    body: Block
    span: Span
    otherwise: Block = ()
    merges: tuple[Merge, ...] = ()


@dataclass(frozen=True, slots=True)
class Reduce:
    """`result` = operator over all points of `axes` where `where` holds."""

    result: Value
    operator: str
    axes: tuple[Axis, ...]
    body: Block
    arg: Value
    span: Span
    where: Predicate = TRUE
    initial: Value | None = None


@dataclass(frozen=True, slots=True)
class Contract:
    """`result` = sum over `axes` of left * right."""

    result: Value
    axes: tuple[Axis, ...]
    body: Block
    left: Value
    right: Value
    span: Span
    where: Predicate = TRUE
    initial: Value | None = None


@dataclass(frozen=True, slots=True)
class Load:
    result: Value
    source: Version
    index: tuple[Index, ...]
    span: Span
    where: Predicate = TRUE
    sources: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Store:
    """`mask` is a condition on data; cells where it fails keep what they had."""

    result: Version
    into: Version
    index: tuple[Index, ...]
    value: Value
    span: Span
    where: Predicate = TRUE
    mask: Value | None = None
    sources: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Gather:
    """A load whose position depends on data."""

    result: Value
    source: Version
    index: tuple[Index | Value, ...]
    span: Span
    where: Predicate = TRUE
    sources: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Scatter:
    """A store whose position depends on data, or that combines with what is there."""

    result: Version
    into: Version
    index: tuple[Index | Value, ...]
    value: Value
    span: Span
    combine: str | None = None
    where: Predicate = TRUE
    mask: Value | None = None
    sources: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class AsyncCopy:
    """A copy that completes at the next barrier (cp.async, DMA kept as such)."""

    result: Version
    into: Version
    index: tuple[Index, ...]
    source: Version
    source_index: tuple[Index, ...]
    span: Span
    where: Predicate = TRUE


@dataclass(frozen=True, slots=True)
class Map:
    """An elementwise operator of `numerics.operators`, computed in `result.dtype`.

    `mapping` is the entry of the side's table it came from (`expf`, `nl.exp`).
    """

    result: Value
    operator: str
    args: tuple[Value, ...]
    span: Span
    mapping: str = ""


@dataclass(frozen=True, slots=True)
class Cast:
    result: Value
    arg: Value
    span: Span
    rounding: Rounding = Rounding.NEAREST_EVEN


@dataclass(frozen=True, slots=True)
class Select:
    result: Value
    condition: Condition
    then: Value
    otherwise: Value
    span: Span


@dataclass(frozen=True, slots=True)
class Fill:
    result: Value
    number: float | int | bool
    span: Span


@dataclass(frozen=True, slots=True)
class Position:
    """An index expression used as data (iota, a thread's number written out)."""

    result: Value
    index: Index
    span: Span


@dataclass(frozen=True, slots=True)
class Scan:
    """Running result along an axis that is in scope."""

    result: Value
    operator: str
    axis: str
    arg: Value
    span: Span
    inclusive: bool = True


@dataclass(frozen=True, slots=True)
class Transpose:
    """The same numbers under other axes: `renames` pairs (axis of arg, axis of result)."""

    result: Value
    arg: Value
    renames: tuple[tuple[str, str], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Random:
    result: Value
    distribution: str
    seed: tuple[Value, ...]
    index: Index
    span: Span


@dataclass(frozen=True, slots=True)
class Barrier:
    scope: Literal["warp", "block", "grid", "core"]
    span: Span


@dataclass(frozen=True, slots=True)
class Opaque:
    """What was not understood: the text, why, and what it may have changed."""

    results: tuple[Carried, ...]
    args: tuple[Carried, ...]
    text: str
    reason: str
    span: Span


Op: TypeAlias = (
    Parallel
    | Fold
    | Guard
    | Reduce
    | Contract
    | Load
    | Store
    | Gather
    | Scatter
    | AsyncCopy
    | Map
    | Cast
    | Select
    | Fill
    | Position
    | Scan
    | Transpose
    | Random
    | Barrier
    | Opaque
)
Block: TypeAlias = tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """What the kernel leaves behind: the last version of a buffer.

    `position` is its place in the kernel's return value, `None` where it is written in
    place.
    """

    version: Version
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Statements:
    """How much of the source was understood, in source statements."""

    total: int
    opaque: int = 0

    @property
    def coverage(self) -> float:
        return 1.0 - self.opaque / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Told:
    """Labels of `ir.census` that the source tells where the IR has gaps; "" where it does not."""

    computes: str = ""
    mapping: str = ""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel.  `sizes` names the integers that are fixed for a run.

    `computed_at` holds the sizes a specialised kernel (NKI) was read at: its IR is only
    valid there.  An IR that is valid at every size has `None`.  `untaken` are the
    conditions that no point of such a reading took, though instructions depend on them.
    """

    name: str
    side: Side
    span: Span
    sizes: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    body: Block
    outputs: tuple[Output, ...]
    statements: Statements
    computed_at: tuple[tuple[str, int], ...] | None = None
    untaken: tuple[Span, ...] = ()
    notes: tuple[str, ...] = field(default=())
    told: Told = field(default=Told())

    def buffer(self, name: str) -> Buffer:
        for buffer in self.buffers:
            if buffer.name == name:
                return buffer
        raise KeyError(name)


def walk(block: Block) -> Iterator[Op]:
    """Every op, outer before inner, in program order."""
    pending = list(reversed(block))
    while pending:
        op = pending.pop()
        yield op
        match op:
            case Guard(body=body, otherwise=otherwise):
                pending.extend(reversed((*body, *otherwise)))
            case Parallel(body=body) | Fold(body=body) | Reduce(body=body) | Contract(body=body):
                pending.extend(reversed(body))


def results(op: Op) -> tuple[Carried, ...]:
    """What the op defines for those after it."""
    single: Carried
    match op:
        case Parallel(body=body):
            made = [r for inner in body for r in results(inner)]
            return tuple(r for r in made if isinstance(r, Version))
        case Fold(state=state):
            return tuple(s.result for s in state)
        case Guard(merges=merges):
            return tuple(m.result for m in merges)
        case Barrier():
            return ()
        case Opaque():
            return op.results
        case _:
            single = op.result
            return (single,)


def operands(op: Op) -> tuple[Carried, ...]:
    """What the op itself reads (not what the blocks inside it read)."""
    match op:
        case Parallel() | Barrier() | Fill() | Position():
            return ()
        case Fold(state=state):
            return tuple(x for s in state for x in (s.initial, s.next))
        case Guard(condition=condition, merges=merges):
            merged = tuple(x for m in merges for x in (m.then, m.otherwise))
            return (condition, *merged) if isinstance(condition, Value) else merged
        case Reduce(arg=arg, initial=initial):
            return (arg,) if initial is None else (arg, initial)
        case Contract(left=left, right=right, initial=initial):
            return (left, right) if initial is None else (left, right, initial)
        case Load(source=source):
            return (source,)
        case Store(into=into, value=value, mask=mask):
            return (into, value) if mask is None else (into, value, mask)
        case Gather(source=source, index=index):
            return (source, *_values(index))
        case Scatter(into=into, value=value, index=index, mask=mask):
            given: list[Carried] = [into, value, *_values(index)]
            return tuple(given) if mask is None else (*given, mask)
        case AsyncCopy(into=into, source=source):
            return (into, source)
        case Map() | Opaque():
            return op.args
        case Cast(arg=arg) | Scan(arg=arg) | Transpose(arg=arg):
            return (arg,)
        case Select(condition=condition, then=then, otherwise=otherwise):
            chosen = (then, otherwise)
            return (condition, *chosen) if isinstance(condition, Value) else chosen
        case Random(seed=seed):
            return seed


def _values(index: tuple[Index | Value, ...]) -> tuple[Value, ...]:
    return tuple(part for part in index if isinstance(part, Value))
