"""Counted loops as folds; irregular ones round by round where constants decide them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from migrate.cuda import ast
from migrate.cuda.lifting.base import Key, State
from migrate.cuda.lifting.branches import Branches
from migrate.cuda.lifting.scan import assigned, leaves, stores
from migrate.cuda.lifting.symbolic import (
    Data,
    Known,
    Parts,
    Symbolic,
    Unset,
)
from migrate.cuda.lifting.trips import Trip, trip_of
from migrate.cuda.types import Scalar, Type, Vector
from migrate.ir.index import Index
from migrate.ir.nodes import (
    Axis,
    AxisKind,
    Fold,
    Op,
    Value,
    Version,
)
from migrate.ir.nodes import (
    State as Carry,
)
from migrate.ir.predicate import FALSE, TRUE
from migrate.source import Frame as SpanFrame
from migrate.source import Span

MAX_UNROLL = 64

MAX_LOOPS = 24
"""Loops inside one another.  Each is lifted twice, to see first what it stores."""


@dataclass(slots=True)
class Saved:
    """What a failed or a trial lifting leaves no trace in."""

    state: State
    ops: int
    tables: dict[str, dict[Any, Any] | set[Any]]
    dynamic: str | None
    known: Known
    guarded: int
    made: int


class Loops(Branches):
    """Lifts loops."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.opaque: set[Span] = set()
        self.seen: set[Span] = set()
        self.written: dict[tuple[int, tuple[SpanFrame, ...]], frozenset[str]] = {}
        self.loop_names: dict[str, int] = {}
        self.loops = 0

    def _save(self) -> Saved:
        """The state, to come back to."""
        raise NotImplementedError

    def _restore(self, saved: Saved) -> None:
        raise NotImplementedError

    def _declare(self, statement: ast.Declare) -> None:
        raise NotImplementedError

    def _count(self, statement: ast.Statement) -> None:
        self.seen.add(statement.span)

    def _loop(self, statement: ast.Loop) -> None:
        if self.loops >= MAX_LOOPS:
            raise self.not_lifted(f"loops nest deeper than {MAX_LOOPS} levels", statement.head)
        if leaves(statement.body, (ast.Return,)):
            raise self.not_lifted("a return from inside a loop", statement.span)
        if leaves(statement.body, (ast.Break,)):
            raise self.not_lifted("a loop that is left by break", statement.span)
        for start in statement.initial:
            self._count(start)
            match start:
                case ast.Declare():
                    self._declare(start)
                case ast.Evaluate(expression=expression):
                    self.lift(expression)
        trip = trip_of(self, statement)
        self.loops += 1
        try:
            if isinstance(trip, str):
                self._unroll(statement, trip)
            else:
                self._fold(statement, trip)
        finally:
            self.loops -= 1

    def _unroll(self, statement: ast.Loop, reason: str) -> None:
        """A loop whose rounds constants decide, round by round."""
        condition = statement.condition
        if condition is None:
            raise self.not_lifted(reason, statement.head)
        first = statement.kind == "do"
        for _ in range(MAX_UNROLL + 1):
            if not first:
                before = len(self.ops)
                goes = self.truth(condition)
                if goes == FALSE:
                    return
                if goes != TRUE:
                    del self.ops[before:]
                    raise self.not_lifted(reason, statement.head)
            first = False
            self.sequence(statement.body.body)
            if statement.step is not None:
                self.lift(statement.step)
        raise self.not_lifted(f"a loop of more than {MAX_UNROLL} irregular rounds", statement.head)

    def _fold(self, statement: ast.Loop, trip: Trip) -> None:
        span = self.at(statement.head)
        axis = Axis(
            self._loop_name(trip.name), trip.extent, AxisKind.SEQUENTIAL, span, trip.sources
        )
        entry = self.state.copy()
        arrays = sorted(self._stored_in(statement, trip, axis))
        carried = self._carried(statement, trip, entry)
        initial = {
            key: self._scalars(entry.variables[key], kind, statement.head, first=True)
            for key, kind in carried.items()
        }
        inside = {
            key: [self.fresh(value.dtype) for value in values] for key, values in initial.items()
        }
        inner = self.state.copy()
        for key, kind in carried.items():
            inner.variables[key] = _packed(inside[key], kind)
        for array in arrays:
            inner.versions[array] = self.next_version(array)
            if entry.versions[array] in self.pristine:
                self.pristine.add(inner.versions[array])
        self.state = inner.copy()
        ops, after = self._round(statement, trip, axis)
        states: list[Carry] = []
        final = entry.copy()
        for key, kind in carried.items():
            symbolic = after.variables.get(key, Unset())
            outer, self.ops = self.ops, ops
            try:
                following = self._scalars(symbolic, kind, statement.head)
            finally:
                self.ops = outer
            results = [self.fresh(value.dtype) for value in following]
            states += map(Carry, results, initial[key], inside[key], following)
            final.variables[key] = _packed(results, kind)
        for array in arrays:
            stored = after.versions[array]
            result = self.next_version(array)
            states.append(Carry(result, entry.versions[array], inner.versions[array], stored))
            final.versions[array] = result
        for key, update in trip.updates.items():
            final.variables[key] = update.after(trip.extent)
        for name in set(after.versions) - set(entry.versions):
            final.versions[name] = Version(name, 0)
        self.state = final
        if ops:
            self.emit(Fold((axis,), tuple(states), tuple(ops), span))

    def _loop_name(self, name: str) -> str:
        taken = self.loop_names.get(name, 0)
        self.loop_names[name] = taken + 1
        return name if taken == 0 else f"{name}.{taken + 1}"

    def _round(self, statement: ast.Loop, trip: Trip, axis: Axis) -> tuple[list[Op], State]:
        """One round with the loop's variables as functions of its axis."""
        for key, update in trip.updates.items():
            self.state.variables[key] = update.at(Index.axis(axis.name))
        constant = axis.extent.constant
        outer = self.known
        ranges = dict(outer.ranges)
        ranges[axis.name] = (0, None if constant is None else max(constant - 1, 0))
        self.known = Known(ranges, outer.facts)
        guarded = self.guarded
        try:
            facts = trip.facts(Index.axis(axis.name))
            with self.block() as ops, self.under(*facts):
                self.guarded = len(self.known.facts)
                self.sequence(statement.body.body)
                if statement.step is not None:
                    self.lift(statement.step)
        finally:
            self.known, self.guarded = outer, guarded
        return ops, self.state

    def _stored_in(self, statement: ast.Loop, trip: Trip, axis: Axis) -> frozenset[str]:
        """The arrays that a round stores to, found by lifting one."""
        key = (id(statement), tuple(self.calls))
        if key in self.written:
            return self.written[key]
        if not stores(statement):
            return frozenset()
        saved = self._save()
        opaque = set(self.opaque)
        carried = self._carried(statement, trip, self.state)
        for variable, kind in carried.items():
            self.state.variables[variable] = _packed(
                [self.fresh(s.dtype) for s in _parts_of(kind)], kind
            )
        before = dict(self.state.versions)
        with self.block():
            _, after = self._round(statement, trip, axis)
        changed = {name for name in before if after.versions[name] != before[name]}
        self._restore(saved)
        self.opaque = opaque
        self.written[key] = frozenset(changed)
        return self.written[key]

    def _carried(self, statement: ast.Loop, trip: Trip, entry: State) -> dict[Key, Scalar | Vector]:
        """Variables from outside that a round changes in a way that no index tells."""
        found: dict[Key, Scalar | Vector] = {}
        changed = assigned(statement.body, statement.step)
        types = _types(statement)
        for identity in changed:
            key = (self.frame, identity)
            if key in trip.updates or key not in entry.variables or key in self.places:
                continue
            kind = types.get(identity)
            if kind is None:
                continue
            if isinstance(kind, Scalar | Vector):
                found[key] = kind
            else:
                raise self.not_lifted("a pointer that moves irregularly in a loop", statement.head)
        return found

    def _scalars(
        self, symbolic: Symbolic, kind: Scalar | Vector, span: Span, *, first: bool = False
    ) -> list[Value]:
        """A variable as the values it consists of; unset ones come from nowhere at `first`."""
        element = kind if isinstance(kind, Scalar) else kind.element
        items: tuple[Symbolic, ...] = (symbolic,)
        if isinstance(kind, Vector):
            items = symbolic.items if isinstance(symbolic, Parts) else (Unset(),) * kind.lanes
        return [
            self.unwritten(element, span)
            if first and isinstance(item, Unset)
            else self.value(item, element, span)
            for item in items
        ]


def _packed(values: list[Value], kind: Scalar | Vector) -> Symbolic:
    if isinstance(kind, Vector):
        return Parts(tuple(Data(value) for value in values))
    return Data(values[0])


def _parts_of(kind: Scalar | Vector) -> list[Scalar]:
    return [kind.element] * kind.lanes if isinstance(kind, Vector) else [kind]


def _types(statement: ast.Loop) -> dict[int, Type]:
    from migrate.cuda.lifting.scan import nodes

    found: dict[int, Type] = {}
    for node in nodes(statement):
        match node:
            case ast.Name(variable=variable) | ast.Declare(variable=variable):
                found[variable.id] = variable.type
    return found
