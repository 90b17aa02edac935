"""Well-formedness of IR: what every lifter must deliver and every pass may assume."""

from __future__ import annotations

from migrate.ir.index import Index
from migrate.ir.nodes import (
    AsyncCopy,
    Axis,
    Block,
    Carried,
    Contract,
    Fold,
    Gather,
    Guard,
    Kernel,
    Load,
    Map,
    Op,
    Parallel,
    Position,
    Random,
    Reduce,
    Scan,
    Scatter,
    Store,
    Value,
    Version,
    operands,
    results,
)
from migrate.ir.predicate import Predicate, indices
from migrate.ir.text import render_op
from migrate.numerics.operators import OPERATORS


def problems(kernel: Kernel) -> tuple[str, ...]:
    """What is wrong with the IR, as sentences; empty for a well-formed kernel.

    Checked: every value and version is defined once and before its use, in a scope that
    is still open; indices have the rank of their buffer and name only axes in scope and
    sizes of the kernel; operators exist with that number of arguments; stores, loops and
    branches follow the versions of one buffer.
    """
    checker = _Checker(kernel)
    known: set[Carried] = {Version(buffer.name, 0) for buffer in kernel.buffers}
    checker.block(kernel.body, known, frozenset())
    for output in kernel.outputs:
        if output.version not in known:
            checker.found.append(f"output {output.version} is never made")
    return tuple(checker.found)


class _Checker:
    def __init__(self, kernel: Kernel) -> None:
        self.found: list[str] = []
        self.ranks = {buffer.name: len(buffer.shape) for buffer in kernel.buffers}
        self.sizes = frozenset(kernel.sizes)
        self.made: set[Carried] = set()

    def block(self, block: Block, known: set[Carried], axes: frozenset[str]) -> None:
        for op in block:
            self.op(op, known, axes)
            for result in results(op):
                self.define(result, op, known)

    def define(self, result: Carried, op: Op, known: set[Carried]) -> None:
        if isinstance(op, Parallel):
            known.add(result)
            return
        if result in self.made:
            self.found.append(f"{result} is defined twice, the second time by {render_op(op)}")
        self.made.add(result)
        known.add(result)

    def op(self, op: Op, known: set[Carried], axes: frozenset[str]) -> None:
        match op:
            case Parallel(axes=own, body=body, where=where):
                inner = self.axes(own, op, axes)
                self.predicate(where, op, inner)
                self.block(body, set(known), inner)
            case Fold(axes=own, body=body, where=where, state=state):
                inner = self.axes(own, op, axes)
                self.predicate(where, op, inner)
                scope = set(known)
                for carried in state:
                    self.alike(op, carried.result, carried.initial, carried.inner, carried.next)
                    self.use(carried.initial, op, known)
                    self.define(carried.inner, op, scope)
                self.block(body, scope, inner)
                for carried in state:
                    self.use(carried.next, op, scope)
            case Guard(condition=condition, body=body, otherwise=otherwise, merges=merges):
                if isinstance(condition, Value):
                    self.use(condition, op, known)
                else:
                    self.predicate(condition, op, axes)
                then, other = set(known), set(known)
                self.block(body, then, axes)
                self.block(otherwise, other, axes)
                for merge in merges:
                    self.alike(op, merge.result, merge.then, merge.otherwise)
                    self.use(merge.then, op, then)
                    self.use(merge.otherwise, op, other)
            case (
                Reduce(axes=own, body=body, where=where)
                | Contract(axes=own, body=body, where=where)
            ):
                inner = self.axes(own, op, axes)
                self.predicate(where, op, inner)
                scope = set(known)
                self.block(body, scope, inner)
                for used in operands(op):
                    # What it starts from is there before its points are.
                    self.use(used, op, known if used == op.initial else scope)
            case _:
                for used in operands(op):
                    self.use(used, op, known)
                self.leaf(op, axes)

    def leaf(self, op: Op, axes: frozenset[str]) -> None:
        match op:
            case Load(source=source, index=index, where=where):
                self.access(source, index, op, axes)
                self.predicate(where, op, axes)
            case Store(result=result, into=into, index=index, where=where):
                self.access(into, index, op, axes)
                self.predicate(where, op, axes)
                self.same_buffer(result, into, op)
            case Gather(source=source, index=mixed, where=where):
                self.access(source, mixed, op, axes)
                self.predicate(where, op, axes)
            case Scatter(result=result, into=into, index=mixed, where=where):
                self.access(into, mixed, op, axes)
                self.predicate(where, op, axes)
                self.same_buffer(result, into, op)
            case AsyncCopy(result=result, into=into, source=source, where=where):
                self.access(into, op.index, op, axes)
                self.access(source, op.source_index, op, axes)
                self.predicate(where, op, axes)
                self.same_buffer(result, into, op)
            case Position(index=index) | Random(index=index):
                self.index(index, op, axes)
            case Scan(axis=axis):
                if axis not in axes:
                    self.found.append(f"axis {axis} is not in scope at {render_op(op)}")
            case Map(operator=operator, args=args):
                entry = OPERATORS.get(operator)
                if entry is None:
                    self.found.append(f"no operator is called {operator}")
                elif entry.arity != len(args):
                    self.found.append(f"{operator} takes {entry.arity} arguments, not {len(args)}")

    def use(self, used: Carried, op: Op, known: set[Carried]) -> None:
        if used not in known:
            self.found.append(f"{used} is used before it is made, or out of scope: {render_op(op)}")

    def alike(self, op: Op, *carried: Carried) -> None:
        """What is one thing at several places is a value everywhere, or one buffer."""
        kinds = {c.buffer if isinstance(c, Version) else None for c in carried}
        if len(kinds) > 1:
            names = ", ".join(map(str, carried))
            self.found.append(f"{names} are not one thing: {render_op(op)}")

    def axes(self, own: tuple[Axis, ...], op: Op, axes: frozenset[str]) -> frozenset[str]:
        inner = axes
        for axis in own:
            if axis.name in inner:
                self.found.append(f"axis {axis.name} is bound twice at {render_op(op)}")
            if axis.name in self.sizes:
                self.found.append(f"{axis.name} is both an axis and a size: {render_op(op)}")
            self.index(axis.extent, op, inner)
            inner |= {axis.name}
        return inner

    def access(
        self,
        version: Version,
        index: tuple[Index | Value, ...],
        op: Op,
        axes: frozenset[str],
    ) -> None:
        rank = self.ranks.get(version.buffer)
        if rank is None:
            self.found.append(f"there is no buffer {version.buffer}")
        elif rank != len(index):
            self.found.append(
                f"{version.buffer} has {rank} dimensions, not {len(index)}: {render_op(op)}"
            )
        for part in index:
            if isinstance(part, Index):
                self.index(part, op, axes)

    def predicate(self, predicate: Predicate, op: Op, axes: frozenset[str]) -> None:
        for index in indices(predicate):
            self.index(index, op, axes)

    def index(self, index: Index, op: Op, axes: frozenset[str]) -> None:
        for symbol in index.symbols():
            bound = axes if symbol.kind == "axis" else self.sizes
            if symbol.name not in bound:
                self.found.append(f"{symbol.kind} {symbol.name} is unknown at {render_op(op)}")

    def same_buffer(self, result: Version, into: Version, op: Op) -> None:
        if result.buffer != into.buffer:
            self.found.append(f"a store into {into.buffer} makes {result}: {render_op(op)}")
