"""What a kernel's IR computes, in an algebra of choice.

`evaluate` interprets the IR for all parallel points at once with NumPy.  What a number
*is* comes from an `Algebra`: `Reals` computes in float64, `terms.Terms` builds canonical
terms, so that one interpreter gives both values and normal forms.

Parallel axes are array dimensions: entering a region puts its axes in front, so arrays
made outside broadcast inside.  Axes of a `Fold` are bound to one integer at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from migrate.budget import Budget, Exhausted, Meter
from migrate.ir.evaluation import (
    Algebra,
    Array,
    Evaluation,
    Mask,
    Trouble,
    Unevaluable,
    Write,
    choose,
    simple,
)
from migrate.ir.memory import Memory
from migrate.ir.nodes import (
    AsyncCopy,
    Axis,
    Barrier,
    Block,
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
    Scan,
    Scatter,
    Select,
    Store,
    Transpose,
    Value,
    Version,
)
from migrate.ir.points import Points
from migrate.ir.predicate import TRUE, Predicate, holds
from migrate.ir.work import least_operations
from migrate.numerics.operators import OPERATORS

__all__ = [
    "Algebra",
    "Array",
    "Evaluation",
    "Mask",
    "Trouble",
    "Unevaluable",
    "Write",
    "evaluate",
]


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
    meter = meter or Meter(Budget(), "evaluating the IR")
    room = meter.budget.steps - meter.steps
    if least_operations(kernel.body, sizes) * OPERATION_STEPS > room:
        raise Exhausted("steps", meter.budget.steps, meter.doing)
    run = _Run(kernel, sizes, algebra, meter)
    # Values that are not numbers are the point (unwritten cells, overflow in a branch not taken).
    with np.errstate(all="ignore"):
        run.block(kernel.body)
    return run.memory.left([output.version for output in kernel.outputs])


OPERATION_STEPS = 100
"""What an operation costs beside its elements."""


class _Run:
    """Regions and values; buffers are in `memory`."""

    def __init__(
        self, kernel: Kernel, sizes: Mapping[str, int], algebra: Algebra, meter: Meter
    ) -> None:
        self.algebra = algebra
        self.meter = meter
        self.points = Points(sizes, meter)
        self.memory = Memory(kernel, self.points, algebra, meter)
        self.values: dict[Value, Array] = {}
        self.bound: list[Value] = []

    # -- regions --------------------------------------------------------------------

    def block(self, block: Block) -> None:
        for op in block:
            self.op(op)

    def op(self, op: Op) -> None:
        self.meter.step(OPERATION_STEPS)
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
                value = self.points.spread(self.values[arg], len(axes))
                combined = self.algebra.reduce(operator, value, self.points.active, len(axes), op)
                self.leave(axes, saved)
                self.bind_total(op, operator, result, combined)
            case Contract(result=result, axes=axes, left=left, right=right):
                saved = self.enter(axes, op.where)
                self.block(op.body)
                product = self.algebra.apply(
                    "multiply", (self.values[left], self.values[right]), op
                )
                value = self.points.spread(product, len(axes))
                combined = self.algebra.reduce("add", value, self.points.active, len(axes), op)
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

    def enter(self, axes: Sequence[Axis], where: Predicate) -> tuple[Any, int]:
        return self.points.enter(axes, where), len(self.bound)

    def leave(self, axes: Sequence[Axis], saved: tuple[Any, int]) -> None:
        points, bound = saved
        self.points.leave(axes, points)
        for value in self.bound[bound:]:
            self.meter.give(_owned(self.values.pop(value)))
        del self.bound[bound:]

    def fold(self, op: Fold) -> None:
        carried: list[Array] = []
        for state in op.state:
            if isinstance(state.initial, Version):
                content = self.memory.content[state.initial]
                carried.append(
                    content if self.memory.lives.in_place(op, state.initial) else content.copy()
                )
            else:
                carried.append(self.values[state.initial])
        outside = self.points.active
        for exists in self.points.rounds(op.axes):
            self.meter.step()
            where = holds(op.where, self.points.scope) if op.where != TRUE else True
            self.points.active = simple(outside & exists & where)
            if not np.any(self.points.active):
                continue
            for state, content in zip(op.state, carried, strict=True):
                if isinstance(state.inner, Version):
                    self.memory.content[state.inner] = content
                else:
                    self.bind(state.inner, content)
            self.block(op.body)
            for position, state in enumerate(op.state):
                if isinstance(state.next, Version):
                    carried[position] = self.memory.content[state.next]
                else:
                    new = self.values[state.next]
                    carried[position] = choose(self.points.active, new, carried[position])
        self.points.active = outside
        for state, content in zip(op.state, carried, strict=True):
            if isinstance(state.result, Version):
                self.memory.content[state.result] = content
            else:
                self.bind(state.result, content)

    def guard(self, op: Guard) -> None:
        outside = self.points.active
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
            truth = holds(condition, self.points.scope)
        made_inside = self.memory.lives.made_in(op)
        self.points.active = simple(outside & truth) if data is None else outside
        if data is not None:
            self.points.guards.append(data)
        if np.any(self.points.active):
            self.block(op.body)
        else:
            self.skip(op.merges, made_inside, "then")
        if data is not None:
            self.points.guards[-1] = self.algebra.apply("logical_not", (data,), op)
        saved: dict[Version, Array] = {}
        for merge in op.merges:
            if isinstance(merge.then, Version):
                entry = self.entry(merge.then, made_inside)
                saved[entry] = self.memory.content[entry]
                self.memory.content[entry] = self.memory.content[merge.then]
        self.points.active = outside & np.logical_not(truth) if data is None else outside
        if op.otherwise and np.any(self.points.active):
            self.block(op.otherwise)
        else:
            self.skip(op.merges, made_inside, "otherwise")
        if data is not None:
            self.points.guards.pop()
        self.points.active = outside
        for merge in op.merges:
            self.merge(merge, truth, data, op)
        self.memory.content.update(saved)

    def entry(self, version: Version, inside: frozenset[Version]) -> Version:
        while version in inside and version in self.memory.lives.parent:
            version = self.memory.lives.parent[version]
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
                self.memory.content[carried] = self.memory.content[self.entry(carried, inside)]
            else:
                if carried not in self.values:
                    self.bind(carried, np.asarray(self.algebra.missing))

    def merge(self, merge: Merge, truth: Mask, data: Array | None, op: Guard) -> None:
        match merge.result:
            case Version():
                # Stores were masked, so the last branch's content is right everywhere.
                last = merge.otherwise if merge.otherwise in self.memory.content else merge.then
                assert isinstance(last, Version)
                self.memory.content[merge.result] = self.memory.content[last]
            case Value():
                assert isinstance(merge.then, Value)
                assert isinstance(merge.otherwise, Value)
                then, other = self.values[merge.then], self.values[merge.otherwise]
                if data is None:
                    self.bind(merge.result, choose(truth, then, other))
                else:
                    self.bind(merge.result, self.algebra.apply("select", (data, then, other), op))

    # -- leaves ---------------------------------------------------------------------

    def leaf(self, op: Op) -> None:
        algebra, values = self.algebra, self.values
        match op:
            case Load(result=result, source=source, index=index, where=where):
                flat, inside = self.memory.address(source, index, op)
                self.bind(result, self.memory.load(source, flat, inside, where, op))
            case Gather(result=result, source=source, index=index, where=where):
                if (address := self.memory.data_address(source, index, values, op)) is None:
                    given = [values[i] for i in index if isinstance(i, Value)]
                    self.unknown(result, given, op)
                else:
                    self.bind(result, self.memory.load(source, *address, where, op))
            case Store(result=result, into=into, index=index, value=value):
                flat, inside = self.memory.address(into, index, op)
                self.memory.store(op, result, into, flat, inside, values[value], mask=self.mask(op))
            case Scatter(result=result, into=into, index=index, value=value, combine=combine):
                if (address := self.memory.data_address(into, index, values, op)) is None:
                    self.memory.content[result] = algebra.unknown(
                        op, (values[value],), self.memory.content[into].shape
                    )
                    self.memory.note(
                        "opaque", into.buffer, "a scattered store by data", op, 1, (0, 0)
                    )
                else:
                    self.memory.store(
                        op, result, into, *address, values[value], combine, self.mask(op)
                    )
            case AsyncCopy(result=result, into=into, source=source, where=where):
                flat, inside = self.memory.address(source, op.source_index, op)
                value_read = self.memory.load(source, flat, inside, where, op)
                flat, inside = self.memory.address(into, op.index, op)
                self.memory.store(op, result, into, flat, inside, value_read)
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
                    chosen = holds(condition, self.points.scope)
                    self.bind(result, choose(chosen, values[then], values[otherwise]))
            case Fill(result=result, number=number):
                self.bind(result, algebra.constant(number, result.dtype))
            case Position(result=result, index=index):
                numbers = np.asarray(self.points.index(index, op.span))
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
                        shape = self.memory.content[Version(carried.buffer, 0)].shape
                        self.memory.content[carried] = algebra.unknown(op, given_, shape)
                self.memory.note("opaque", "", op.reason, op, 1, (0, 0))
            case _:
                raise AssertionError(op)

    def mask(self, op: Store | Scatter) -> Array | None:
        return None if op.mask is None else self.values[op.mask]

    def bind(self, value: Value, content: Array) -> None:
        self.meter.step(max(1, content.size // 64))
        self.meter.take(_owned(content))
        if value in self.values:
            self.meter.give(_owned(self.values[value]))
        else:
            self.bound.append(value)
        self.values[value] = content

    def unknown(self, value: Value, given: Sequence[Array], op: Op) -> None:
        self.values[value] = self.algebra.unknown(op, given, self.points.extents)

    def scanned(self, op: Scan) -> Array:
        points = self.points.scope[op.axis]
        if not isinstance(points, np.ndarray):
            raise Unevaluable(f"a scan runs along {op.axis}, which a loop steps through", op.span)
        value = self.points.spread(self.values[op.arg], self.points.depth)
        identity = OPERATORS[op.operator].identity
        if self.points.active is not True and identity is not None:
            neutral = self.algebra.constant(identity, op.arg.dtype)
            value = choose(self.points.active, value, neutral)
        return self.algebra.scan(op.operator, value, value.ndim - points.ndim, op.inclusive, op)

    def transposed(
        self, value: Array, renames: tuple[tuple[str, str], ...], op: Transpose
    ) -> Array:
        value = self.points.spread(value, self.points.depth)
        total = value.ndim
        order = list(range(total))
        for old, new in renames:
            source = total - np.ndim(self.points.scope[old])
            target = total - np.ndim(self.points.scope[new])
            if total in (source, target) or value.shape[source] != value.shape[target]:
                raise Unevaluable(f"{old} and {new} do not run over the same points", op.span)
            order[target] = source
        if sorted(order) != list(range(total)):
            raise Unevaluable("a transpose does not permute its axes", op.span)
        return value.transpose(order)


def _owned(content: Array) -> int:
    """The bytes an array holds itself, not as a view of another."""
    return int(content.nbytes) if content.base is None else 0
