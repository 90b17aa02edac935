"""What a kernel's IR computes, in an algebra of choice.

`evaluate` interprets the IR for all parallel points at once with NumPy.  What a number
*is* comes from an `Algebra`: `Reals` computes in float64, `terms.Terms` builds canonical
terms, so that one interpreter gives both values and normal forms.

Parallel axes are array dimensions: entering a region puts its axes in front, so arrays
made outside broadcast inside.  Axes of a `Fold` are bound to one integer at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.budget import Budget, Meter
from migrate.ir.index import Index
from migrate.ir.nodes import (
    AsyncCopy,
    Axis,
    Barrier,
    Block,
    Buffer,
    Cast,
    Contract,
    Fill,
    Fold,
    Gather,
    Guard,
    Kernel,
    Load,
    Map,
    Merge,
    Op,
    Opaque,
    Parallel,
    Position,
    Random,
    Reduce,
    Rounding,
    Scan,
    Scatter,
    Select,
    Store,
    Transpose,
    Value,
    Version,
    operands,
    results,
    walk,
)
from migrate.ir.predicate import TRUE, Predicate, holds
from migrate.numerics.dtypes import DType
from migrate.numerics.operators import OPERATORS
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


def evaluate(
    kernel: Kernel,
    sizes: Mapping[str, int],
    algebra: Algebra,
    *,
    meter: Meter | None = None,
) -> Evaluation:
    """Evaluate a well-formed kernel at concrete sizes.

    Raises `Unevaluable` where an extent or index has no value, `budget.Exhausted` when
    the meter ends it.
    """
    run = _Run(kernel, sizes, algebra, meter or Meter(Budget(), "evaluating the IR"))
    # Values that are not numbers are the point (unwritten cells, overflow in a branch not taken).
    with np.errstate(all="ignore"):
        run.block(kernel.body)
    return run.finish()


@dataclass(slots=True)
class _Lives:
    """Where versions are made and last used, to know which stores may be in place."""

    last: dict[Version, int] = field(default_factory=dict)
    home: dict[Version, int] = field(default_factory=dict)
    parent: dict[Version, Version] = field(default_factory=dict)
    number: dict[int, int] = field(default_factory=dict)
    fold_of: dict[int, int] = field(default_factory=dict)
    latest: dict[str, Version] = field(default_factory=dict)
    inside: dict[int, frozenset[Version]] = field(default_factory=dict)

    @staticmethod
    def of(kernel: Kernel) -> _Lives:
        lives = _Lives()
        for buffer in kernel.buffers:
            lives.home[Version(buffer.name, 0)] = -1
        lives._block(kernel.body, -1)
        end = len(lives.number)
        for output in kernel.outputs:
            lives.last[output.version] = end
        return lives

    def _block(self, block: Block, fold: int) -> None:
        for op in block:
            position = len(self.number)
            self.number[id(op)] = position
            self.fold_of[id(op)] = fold
            self._use(op, position)
            match op:
                case Parallel(body=body) | Reduce(body=body) | Contract(body=body):
                    self._block(body, fold)
                case Guard(body=body, otherwise=otherwise):
                    self._block(body, fold)
                    self._block(otherwise, fold)
                case Fold(body=body, state=state):
                    for carried in state:
                        if isinstance(carried.inner, Version):
                            self.home[carried.inner] = position
                    first = len(self.number)
                    self._block(body, position)
                    end = len(self.number)
                    # The next round reads again what this one read from outside the loop.
                    for version, used in self.last.items():
                        if used >= first and self.home.get(version, -1) < position:
                            self.last[version] = end
                    for carried in state:
                        if isinstance(carried.next, Version):
                            self.last[carried.next] = end
                case (
                    Store(result=result, into=into)
                    | Scatter(result=result, into=into)
                    | AsyncCopy(result=result, into=into)
                ):
                    self.parent[result] = into
            self.parent.update(_origins(op))
            for made in results(op):
                if isinstance(made, Version):
                    self.home.setdefault(made, fold)
                    if isinstance(op, Opaque):
                        before = self.latest.get(made.buffer, Version(made.buffer, 0))
                        self.parent[made] = before
                    self.latest[made.buffer] = made

    def _use(self, op: Op, position: int) -> None:
        for used in operands(op):
            if isinstance(used, Version):
                self.last[used] = position

    def made_in(self, op: Guard) -> frozenset[Version]:
        """The versions made in the branches of a guard, at any depth."""
        if id(op) not in self.inside:
            made = (made for inner in walk((*op.body, *op.otherwise)) for made in results(inner))
            self.inside[id(op)] = frozenset(v for v in made if isinstance(v, Version))
        return self.inside[id(op)]

    def in_place(self, op: Op, into: Version) -> bool:
        return (
            self.last.get(into) == self.number[id(op)]
            and self.home.get(into) == self.fold_of[id(op)]
        )


def _origins(op: Op) -> Iterator[tuple[Version, Version]]:
    """Which version each result of a region continues."""
    match op:
        case Fold(state=state):
            pairs = [(s.result, s.initial) for s in state]
        case Guard(merges=merges):
            pairs = [(m.result, m.then) for m in merges]
        case _:
            return
    for result, origin in pairs:
        if isinstance(result, Version) and isinstance(origin, Version):
            yield result, origin


class _Run:
    def __init__(
        self, kernel: Kernel, sizes: Mapping[str, int], algebra: Algebra, meter: Meter
    ) -> None:
        self.kernel = kernel
        self.algebra = algebra
        self.meter = meter
        self.lives = _Lives.of(kernel)
        self.scope: dict[str, Any] = dict(sizes)
        self.depth = 0
        self.active: Mask = True
        self.extents: tuple[int, ...] = ()
        self.idle = np.asarray(algebra.idle)
        self.guards: list[Array] = []
        self.values: dict[Value, Array] = {}
        self.bound: list[Value] = []
        self.memory: dict[Version, Array] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.buffers = {buffer.name: buffer for buffer in kernel.buffers}
        self.writers: dict[str, NDArray[np.int32]] = {}
        self.writes: dict[str, list[Write]] = {}
        self.stores: list[Op] = []
        self.store_numbers: dict[int, int] = {}
        self.trouble: dict[tuple[str, int], Trouble] = {}
        written = {output.version.buffer for output in kernel.outputs}
        for buffer in kernel.buffers:
            shape = tuple(self.number(extent, buffer.span) for extent in buffer.shape)
            if min(shape, default=0) < 0:
                raise Unevaluable(f"{buffer.name} has a negative extent", buffer.span)
            size = math.prod(shape)
            meter.take(8 * size)
            self.shapes[buffer.name] = shape
            self.memory[Version(buffer.name, 0)] = algebra.content(buffer, size)
            if buffer.name in written:
                self.writers[buffer.name] = np.full(size, -1, np.int32)

    def finish(self) -> Evaluation:
        outputs: dict[str, Array] = {}
        for output in self.kernel.outputs:
            outputs[output.version.buffer] = self.memory[output.version]
        return Evaluation(
            outputs=outputs,
            shapes={name: self.shapes[name] for name in outputs},
            writers=self.writers,
            stores=tuple(self.stores),
            writes={name: tuple(made) for name, made in self.writes.items()},
            trouble=tuple(self.trouble.values()),
        )

    # -- regions --------------------------------------------------------------------

    def block(self, block: Block) -> None:
        for op in block:
            self.op(op)

    def op(self, op: Op) -> None:
        match op:
            case Parallel(axes=axes, where=where, body=body):
                saved = self.enter(axes, where)
                self.block(body)
                self.leave(axes, saved)
            case Fold():
                self.fold(op)
            case Guard():
                self.guard(op)
            case Reduce(result=result, operator=operator, axes=axes, arg=arg):
                saved = self.enter(axes, op.where)
                self.block(op.body)
                value = self.spread(self.values[arg], len(axes))
                combined = self.algebra.reduce(operator, value, self.active, len(axes), op)
                self.leave(axes, saved)
                self.bind_total(op, operator, result, combined)
            case Contract(result=result, axes=axes, left=left, right=right):
                saved = self.enter(axes, op.where)
                self.block(op.body)
                product = self.algebra.apply(
                    "multiply", (self.values[left], self.values[right]), op
                )
                value = self.spread(product, len(axes))
                combined = self.algebra.reduce("add", value, self.active, len(axes), op)
                self.leave(axes, saved)
                self.bind_total(op, "add", result, combined)
            case _:
                self.leaf(op)

    def bind_total(
        self, op: Reduce | Contract, operator: str, result: Value, combined: Array
    ) -> None:
        if op.initial is not None:
            combined = self.algebra.apply(operator, (self.values[op.initial], combined), op)
        self.bind(result, combined)

    def enter(self, axes: Sequence[Axis], where: Predicate) -> tuple[Any, ...]:
        saved = (self.depth, self.active, self.extents, len(self.bound))
        for axis in axes:
            extent = self.index(axis.extent, axis.span)
            longest = int(np.max(extent)) if np.size(extent) else 0
            longest = max(longest, 0)
            points = np.arange(longest, dtype=np.int64).reshape((-1,) + (1,) * self.depth)
            self.scope[axis.name] = points
            self.depth += 1
            self.extents = (longest, *self.extents)
            count = math.prod(self.extents)
            self.meter.step(max(1, count // 64))
            # Refused before an array over all points is made.
            self.meter.take(8 * count)
            self.meter.give(8 * count)
            if np.ndim(extent):
                self.active = _unless_all(self.active & (points < extent))
        if where != TRUE:
            self.active = _simple(self.active & holds(where, self.scope))
        return saved

    def leave(self, axes: Sequence[Axis], saved: tuple[Any, ...]) -> None:
        self.depth, self.active, self.extents, bound = saved
        for axis in axes:
            del self.scope[axis.name]
        for value in self.bound[bound:]:
            self.meter.give(_owned(self.values.pop(value)))
        del self.bound[bound:]

    def rounds(self, axes: Sequence[Axis]) -> Iterator[Mask]:
        """Bind the axes to each point in order; yields where the point exists."""
        if not axes:
            yield True
            return
        axis, *rest = axes
        extent = self.index(axis.extent, axis.span)
        longest = int(np.max(extent)) if np.size(extent) else 0
        for number in range(longest):
            self.scope[axis.name] = number
            exists = number < extent
            for inner in self.rounds(rest):
                yield exists & inner
        self.scope.pop(axis.name, None)

    def fold(self, op: Fold) -> None:
        carried: list[Array] = []
        for state in op.state:
            if isinstance(state.initial, Version):
                content = self.memory[state.initial]
                carried.append(
                    content if self.lives.in_place(op, state.initial) else content.copy()
                )
            else:
                carried.append(self.values[state.initial])
        outside = self.active
        for exists in self.rounds(op.axes):
            self.meter.step()
            where = holds(op.where, self.scope) if op.where != TRUE else True
            self.active = _simple(outside & exists & where)
            if not np.any(self.active):
                continue
            for state, content in zip(op.state, carried, strict=True):
                if isinstance(state.inner, Version):
                    self.memory[state.inner] = content
                else:
                    self.bind(state.inner, content)
            self.block(op.body)
            for position, state in enumerate(op.state):
                if isinstance(state.next, Version):
                    carried[position] = self.memory[state.next]
                else:
                    new = self.values[state.next]
                    carried[position] = _choose(self.active, new, carried[position])
        self.active = outside
        for state, content in zip(op.state, carried, strict=True):
            if isinstance(state.result, Version):
                self.memory[state.result] = content
            else:
                self.bind(state.result, content)

    def guard(self, op: Guard) -> None:
        outside = self.active
        condition = op.condition
        data: Array | None = None
        if isinstance(condition, Value):
            known = self.algebra.truth(self.values[condition])
            if known is None:
                data = self.values[condition]
                truth: Mask = True
            else:
                truth = known
        else:
            truth = holds(condition, self.scope)
        made_inside = self.lives.made_in(op)
        self.active = _simple(outside & truth) if data is None else outside
        if data is not None:
            self.guards.append(data)
        if np.any(self.active):
            self.block(op.body)
        else:
            self.skip(op.merges, made_inside, "then")
        if data is not None:
            self.guards[-1] = self.algebra.apply("logical_not", (data,), op)
        saved: dict[Version, Array] = {}
        for merge in op.merges:
            if isinstance(merge.then, Version):
                entry = self.entry(merge.then, made_inside)
                saved[entry] = self.memory[entry]
                self.memory[entry] = self.memory[merge.then]
        self.active = outside & np.logical_not(truth) if data is None else outside
        if op.otherwise and np.any(self.active):
            self.block(op.otherwise)
        else:
            self.skip(op.merges, made_inside, "otherwise")
        if data is not None:
            self.guards.pop()
        self.active = outside
        for merge in op.merges:
            self.merge(merge, truth, data, op)
        self.memory.update(saved)

    def entry(self, version: Version, inside: frozenset[Version]) -> Version:
        while version in inside and version in self.lives.parent:
            version = self.lives.parent[version]
        return version

    def skip(
        self,
        merges: tuple[Merge, ...],
        inside: frozenset[Version],
        which: Literal["then", "otherwise"],
    ) -> None:
        """Give the names of a branch that no point takes what they would have been."""
        for merge in merges:
            carried = merge.then if which == "then" else merge.otherwise
            if isinstance(carried, Version):
                self.memory[carried] = self.memory[self.entry(carried, inside)]
            else:
                if carried not in self.values:
                    self.bind(carried, np.asarray(self.algebra.missing))

    def merge(self, merge: Merge, truth: Mask, data: Array | None, op: Guard) -> None:
        match merge.result:
            case Version():
                # Stores were masked, so the last branch's content is right everywhere.
                last = merge.otherwise if merge.otherwise in self.memory else merge.then
                assert isinstance(last, Version)
                self.memory[merge.result] = self.memory[last]
            case Value():
                assert isinstance(merge.then, Value)
                assert isinstance(merge.otherwise, Value)
                then, other = self.values[merge.then], self.values[merge.otherwise]
                if data is None:
                    self.bind(merge.result, _choose(truth, then, other))
                else:
                    self.bind(merge.result, self.algebra.apply("select", (data, then, other), op))

    # -- leaves ---------------------------------------------------------------------

    def leaf(self, op: Op) -> None:
        algebra, values = self.algebra, self.values
        match op:
            case Load(result=result, source=source, index=index, where=where):
                flat, inside = self.address(source, index, op)
                self.bind(result, self.load(source, flat, inside, where, op))
            case Gather(result=result, source=source, index=index, where=where):
                if (address := self.data_address(source, index, op)) is None:
                    given = [values[i] for i in index if isinstance(i, Value)]
                    self.unknown(result, given, op)
                else:
                    self.bind(result, self.load(source, *address, where, op))
            case Store(result=result, into=into, index=index, value=value):
                flat, inside = self.address(into, index, op)
                self.store(op, result, into, flat, inside, values[value], None)
            case Scatter(result=result, into=into, index=index, value=value, combine=combine):
                if (address := self.data_address(into, index, op)) is None:
                    self.memory[result] = algebra.unknown(
                        op, (values[value],), self.memory[into].shape
                    )
                    self.note("opaque", into.buffer, "a scattered store by data", op, 1, (0, 0))
                else:
                    self.store(op, result, into, *address, values[value], combine)
            case AsyncCopy(result=result, into=into, source=source, where=where):
                flat, inside = self.address(source, op.source_index, op)
                value_read = self.load(source, flat, inside, where, op)
                flat, inside = self.address(into, op.index, op)
                self.store(op, result, into, flat, inside, value_read, None)
            case Map(result=result, operator=operator, args=args):
                self.bind(result, algebra.apply(operator, [values[a] for a in args], op))
            case Cast(result=result, arg=arg, rounding=rounding):
                cast = algebra.cast(values[arg], arg.dtype, result.dtype, rounding, op)
                self.bind(result, cast)
            case Select(result=result, condition=condition, then=then, otherwise=otherwise):
                if isinstance(condition, Value):
                    args_ = (values[condition], values[then], values[otherwise])
                    self.bind(result, algebra.apply("select", args_, op))
                else:
                    chosen = holds(condition, self.scope)
                    self.bind(result, _choose(chosen, values[then], values[otherwise]))
            case Fill(result=result, number=number):
                self.bind(result, algebra.constant(number, result.dtype))
            case Position(result=result, index=index):
                numbers = np.asarray(self.index(index, op.span))
                self.bind(result, algebra.position(numbers, result.dtype))
            case Scan(result=result):
                self.bind(result, self.scanned(op))
            case Transpose(result=result, arg=arg, renames=renames):
                self.bind(result, self.transposed(values[arg], renames, op))
            case Random(result=result, seed=seed):
                self.unknown(result, [values[s] for s in seed], op)
            case Barrier():
                pass
            case Opaque(results=made, args=args):
                given_ = [values[a] for a in args if isinstance(a, Value)]
                for carried in made:
                    if isinstance(carried, Value):
                        self.unknown(carried, given_, op)
                    else:
                        shape = self.memory[Version(carried.buffer, 0)].shape
                        self.memory[carried] = algebra.unknown(op, given_, shape)
                self.note("opaque", "", op.reason, op, 1, (0, 0))
            case _:
                raise AssertionError(op)

    def bind(self, value: Value, content: Array) -> None:
        self.meter.step(max(1, content.size // 64))
        self.meter.take(_owned(content))
        if value in self.values:
            self.meter.give(_owned(self.values[value]))
        else:
            self.bound.append(value)
        self.values[value] = content

    def unknown(self, value: Value, given: Sequence[Array], op: Op) -> None:
        self.values[value] = self.algebra.unknown(op, given, self.extents)

    def load(self, source: Version, flat: Array, inside: Mask, where: Predicate, op: Op) -> Array:
        taking = self.active
        if where != TRUE:
            taking = taking & holds(where, self.scope)
        content = self.memory[source]
        ok = self.check(source.buffer, flat, inside, taking, op)
        if content.size == 0:
            return np.broadcast_to(np.asarray(self.algebra.missing), np.shape(flat))
        if ok is True:
            value = content[flat]
        else:
            safe = np.where(ok, flat, 0)
            lost = np.logical_not(ok) & self.active
            nowhere = self.idle
            if np.any(lost):
                nowhere = np.where(lost, self.algebra.missing, self.idle)
            value = _choose(ok, content[safe], nowhere)
        self.algebra.loaded(self.buffers[source.buffer], value, op)
        return value

    def store(
        self,
        op: Op,
        result: Version,
        into: Version,
        flat: Array,
        inside: Mask,
        value: Array,
        combine: str | None,
    ) -> None:
        assert isinstance(op, Store | Scatter | AsyncCopy)
        content = self.memory[into]
        if not self.lives.in_place(op, into):
            self.meter.step(content.size // 64 + 1)
            if result not in self.memory:
                self.meter.take(content.nbytes)
            content = content.copy()
        self.memory[result] = content
        taking = self.active
        if op.where != TRUE:
            taking = taking & holds(op.where, self.scope)
        ok = self.check(into.buffer, flat, inside, taking, op)
        conditions = list(self.guards)
        mask = getattr(op, "mask", None)
        if mask is not None:
            truth = self.algebra.truth(self.values[mask])
            if truth is None:
                conditions.append(self.values[mask])
            else:
                ok = ok & truth
        # Points that all combine the same number into one cell still do so each.
        spread = self.extents if combine is not None else ()
        given = (np.shape(array) for array in (flat, ok, value, *conditions))
        shape = np.broadcast_shapes(*given, spread)
        if combine is not None:
            # Every point adds its own, also where no operand tells the points apart.
            shape = np.broadcast_shapes(shape, self.extents)
        self.meter.step(max(1, math.prod(shape) // 32))
        cells = np.broadcast_to(flat, shape)
        new = np.broadcast_to(value, shape)
        chosen = np.broadcast_to(ok, shape)
        cells, new = cells[chosen], new[chosen]
        if cells.size == 0:
            return
        held = [np.broadcast_to(condition, shape)[chosen] for condition in conditions]
        if combine is not None:
            self.combine(op, content, cells, new, combine, held)
        elif held:
            self.in_turn(op, content, cells, new, None, held)
        else:
            self.conflicts(into.buffer, content, cells, new, op)
            content[cells] = new
        if into.buffer in self.writers:
            self.writers[into.buffer][cells] = self.store_number(op)
            self.writes.setdefault(into.buffer, []).append(Write(op, cells, new))
            lost = self.algebra.unwritten(new)
            if lost.any():
                self.note(
                    "unwritten-read",
                    into.buffer,
                    "what is stored depends on a cell that nobody wrote",
                    op,
                    int(lost.sum()),
                    (int(cells[lost][0]), content.size),
                )

    def combine(
        self,
        op: Op,
        content: Array,
        cells: Array,
        new: Array,
        operator: str,
        held: Sequence[Array],
    ) -> None:
        """Apply an atomic: all at once where the order of the points does not matter."""
        entry = OPERATORS[operator]
        if not (entry.associative and entry.commutative) or entry.identity is None:
            self.in_turn(op, content, cells, new, operator, held)
            return
        neutral = self.algebra.constant(entry.identity, DType.FLOAT64)
        for condition in held:
            new = self.algebra.apply("select", (condition, new, neutral), op)
        order = np.argsort(cells, kind="stable")
        targets, starts, counts = np.unique(cells[order], return_index=True, return_counts=True)
        # Cells with about as many contributions make one table, so that little of it is empty.
        magnitude = np.ceil(np.log2(counts)).astype(np.int64)
        for size in np.unique(magnitude):
            alike = np.flatnonzero(magnitude == size)
            turn = np.arange(counts[alike].max())[:, None]
            taking = turn < counts[alike]
            self.meter.step(max(1, taking.size // 32))
            table = new[order[np.where(taking, starts[alike] + turn, 0)]]
            given = self.algebra.reduce(operator, table, taking, 1, op)
            where = targets[alike]
            content[where] = self.algebra.apply(operator, (content[where], given), op)

    def in_turn(
        self,
        op: Op,
        content: Array,
        cells: Array,
        new: Array,
        operator: str | None,
        held: Sequence[Array],
    ) -> None:
        """Store or combine in the order of the points, each where its conditions hold."""
        order = np.argsort(cells, kind="stable")
        while order.size:
            first = np.ones(order.size, bool)
            first[1:] = cells[order[1:]] != cells[order[:-1]]
            turn = order[first]
            old = content[cells[turn]]
            made = new[turn]
            if operator is not None:
                made = self.algebra.apply(operator, (old, made), op)
            for condition in held:
                made = self.algebra.apply("select", (condition[turn], made, old), op)
            content[cells[turn]] = made
            order = order[~first]
            self.meter.step(max(1, order.size // 64))

    def conflicts(self, buffer: str, content: Array, cells: Array, new: Array, op: Op) -> None:
        counts = np.bincount(cells, minlength=1)
        if counts.max(initial=0) <= 1:
            return
        content[cells] = new
        differing = content[cells] != new
        if np.issubdtype(new.dtype, np.floating):
            differing &= ~(np.isnan(content[cells]) & np.isnan(new))
        if differing.any():
            cell = int(cells[differing][0])
            self.note(
                "conflict",
                buffer,
                "several points write different numbers to one cell in one statement",
                op,
                int(differing.sum()),
                (cell, content.size),
            )

    def check(self, buffer: str, flat: Array, inside: Mask, taking: Mask, op: Op) -> Mask:
        if isinstance(inside, bool | np.bool_) and inside and taking is True:
            return True
        ok = inside & taking
        outside = np.logical_not(inside) & taking
        # Under a condition on data that this algebra cannot decide, out of range proves nothing.
        if np.any(outside) and np.size(flat) and not self.guards:
            shape = np.broadcast_shapes(np.shape(flat), np.shape(outside))
            spread = np.broadcast_to(outside, shape)
            cell = int(np.broadcast_to(flat, shape)[spread][0])
            size = math.prod(self.shapes[buffer])
            self.note(
                "out-of-range",
                buffer,
                f"an element outside {buffer} is touched",
                op,
                int(spread.sum()),
                (cell, size),
            )
        return ok

    def note(
        self, kind: Any, buffer: str, message: str, op: Op, count: int, example: tuple[int, int]
    ) -> None:
        key = (kind, id(op))
        if key not in self.trouble:
            self.trouble[key] = Trouble(kind, buffer, message, op.span, count, example)

    def store_number(self, op: Op) -> int:
        number = self.store_numbers.get(id(op))
        if number is None:
            number = self.store_numbers[id(op)] = len(self.stores)
            self.stores.append(op)
        return number

    # -- indices --------------------------------------------------------------------

    def address(self, version: Version, index: Sequence[Index], op: Op) -> tuple[Array, Mask]:
        parts = [np.asarray(self.index(part, op.span), np.int64) for part in index]
        return self.flatten(version.buffer, parts)

    def data_address(
        self, version: Version, index: Sequence[Index | Value], op: Op
    ) -> tuple[Array, Mask] | None:
        parts: list[Array] = []
        for part in index:
            if isinstance(part, Index):
                parts.append(np.asarray(self.index(part, op.span), np.int64))
                continue
            whole = self.algebra.whole(self.values[part])
            if whole is None:
                return None
            parts.append(whole)
        return self.flatten(version.buffer, parts)

    def flatten(self, buffer: str, parts: Sequence[Array]) -> tuple[Array, Mask]:
        flat: Array = np.int64(0)  # type: ignore[assignment]
        inside: Mask = True
        for part, extent in zip(parts, self.shapes[buffer], strict=True):
            flat = flat * extent + part
            if part.size and (part.min() < 0 or part.max() >= extent):
                inside = inside & (part >= 0) & (part < extent)
        return np.asarray(flat), inside

    def index(self, index: Index, span: Span) -> Any:
        constant = index.constant
        if constant is not None:
            return constant
        try:
            return index.evaluate(self.scope)
        except KeyError as error:
            raise Unevaluable(f"{error.args[0]} has no value", span) from None
        except ZeroDivisionError:
            raise Unevaluable(f"division by zero in {index}", span) from None

    def number(self, index: Index, span: Span) -> int:
        return int(self.index(index, span))

    def spread(self, value: Array, dims: int) -> Array:
        """Give the first `dims` dimensions of the scope their full extent."""
        missing = len(self.extents) - value.ndim
        if missing > 0:
            value = value.reshape((1,) * missing + value.shape)
        shape = (*self.extents[:dims], *value.shape[dims:])
        return np.broadcast_to(value, shape)

    def scanned(self, op: Scan) -> Array:
        points = self.scope[op.axis]
        if not isinstance(points, np.ndarray):
            raise Unevaluable(f"a scan runs along {op.axis}, which a loop steps through", op.span)
        value = self.spread(self.values[op.arg], self.depth)
        identity = OPERATORS[op.operator].identity
        if self.active is not True and identity is not None:
            neutral = self.algebra.constant(identity, op.arg.dtype)
            value = _choose(self.active, value, neutral)
        return self.algebra.scan(op.operator, value, value.ndim - points.ndim, op.inclusive, op)

    def transposed(
        self, value: Array, renames: tuple[tuple[str, str], ...], op: Transpose
    ) -> Array:
        value = self.spread(value, self.depth)
        total = value.ndim
        order = list(range(total))
        for old, new in renames:
            source = total - np.ndim(self.scope[old])
            target = total - np.ndim(self.scope[new])
            if total in (source, target) or value.shape[source] != value.shape[target]:
                raise Unevaluable(f"{old} and {new} do not run over the same points", op.span)
            order[target] = source
        if sorted(order) != list(range(total)):
            raise Unevaluable("a transpose does not permute its axes", op.span)
        return value.transpose(order)


def _owned(content: Array) -> int:
    """The bytes an array holds itself, not as a view of another."""
    return int(content.nbytes) if content.base is None else 0


def _simple(mask: Mask) -> Mask:
    """A mask without dimensions as a plain `bool`, which is quick to recognise."""
    return bool(mask) if np.ndim(mask) == 0 else mask


def _unless_all(mask: Mask) -> Mask:
    """A mask that holds everywhere as `True`, which is quick to recognise."""
    return True if np.all(mask) else mask


def _choose(condition: Mask, then: Array, otherwise: Array) -> Array:
    if condition is True:
        return then
    return np.where(condition, then, otherwise)
