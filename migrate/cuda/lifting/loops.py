"""Counted loops as folds; irregular ones round by round where constants decide them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from migrate.cuda import ast
from migrate.cuda.lifting.base import GOES_ON, RETURNED, STAYS, Key, State
from migrate.cuda.lifting.branches import Branches
from migrate.cuda.lifting.memory import flat, packed, scalars_of
from migrate.cuda.lifting.scan import assigned, leaves, nodes, stores
from migrate.cuda.lifting.symbolic import (
    Data,
    Known,
    NotLifted,
    Pointer,
    Symbolic,
    Truth,
    Unknown,
    Unset,
)
from migrate.cuda.lifting.trips import Trip, trip_of
from migrate.cuda.types import BOOL, LONG, Type
from migrate.cuda.types import Pointer as PointerType
from migrate.ir.index import Index
from migrate.ir.nodes import (
    Axis,
    AxisKind,
    Condition,
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
MAX_ROUNDS = 4096
"""Rounds that are read one by one, of all loops together: those of nested ones multiply."""

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
        self.rounds = 0
        # The flags of the loops around, the innermost last.
        self.leaving: list[Key] = []

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
        for start in statement.initial:
            self._count(start)
            match start:
                case ast.Declare():
                    self._declare(start)
                case ast.Evaluate(expression=expression):
                    self.lift(expression)
        trip = trip_of(self, statement)
        self.loops += 1
        exits = self._exits(statement)
        self.leaving.append((self.frame, GOES_ON - self.loops))
        try:
            if isinstance(trip, str):
                self._unroll(statement, trip, exits)
            else:
                self._fold(statement, trip, exits)
        finally:
            self.loops -= 1
            self.state.variables.pop(self.leaving.pop(), None)

    def _exits(self, statement: ast.Loop) -> tuple[Key, ...]:
        """The flags of the ways in which a thread may leave a loop early, set to staying."""
        found: list[Key] = []
        if self.scans.once(leaves, statement.body, (ast.Break,)):
            found.append((self.frame, GOES_ON - self.loops))
            self.state.variables[found[-1]] = Truth(TRUE)
        if self.scans.once(leaves, statement.body, (ast.Return,)):
            found.append((self.frame, STAYS))
            self.state.variables.setdefault(found[-1], Truth(TRUE))
        return tuple(found)

    def staying(self, exits: Sequence[Key], span: Span) -> list[Condition]:
        """The conditions under which a thread has taken none of its ways out."""
        flags = [self.state.variables.get(key, Truth(TRUE)) for key in exits]
        conditions = [self.condition(flag, BOOL, span) for flag in flags]
        return [condition for condition in conditions if condition != TRUE]

    def _passage(
        self,
        statement: ast.Loop,
        exits: tuple[Key, ...],
        moving: dict[Key, Symbolic],
    ) -> None:
        """A round's body and step, for the threads that are still in the loop."""

        # How far the loop's own variables get after it was left is nobody's concern.
        own = self.scans.once(_counts_alone, statement)

        def step() -> None:
            if statement.step is not None:
                self.lift(statement.step)

        def body() -> None:
            self.state.variables.update(moving)
            self.sequence(statement.body.body)
            if not own:
                self._where(self.staying(exits, statement.head), step, statement)

        self._where(self.staying(exits, statement.head), body, statement)
        if own:
            step()

    def _where(
        self, conditions: list[Condition], action: Callable[[], None], statement: ast.Loop
    ) -> None:
        if FALSE in conditions:
            return
        if conditions:
            self._guarded(conditions, action, lambda: None, self.at(statement.head))
        else:
            action()

    def _unroll(self, statement: ast.Loop, reason: str, exits: tuple[Key, ...]) -> None:
        """A loop whose rounds constants decide, round by round."""
        condition = statement.condition
        if condition is None and not exits:
            raise self.not_lifted(reason, statement.head)
        first = statement.kind == "do"
        for _ in range(MAX_UNROLL + 1):
            if FALSE in self.staying(exits, statement.head):
                return
            if not first and condition is not None:
                before = len(self.ops)
                goes = self.truth(condition)
                if goes == FALSE:
                    return
                if goes != TRUE:
                    del self.ops[before:]
                    raise self.not_lifted(reason, statement.head)
            first = False
            self.rounds += 1
            if self.rounds > MAX_ROUNDS:
                raise self.not_lifted(f"loops of more than {MAX_ROUNDS} rounds", statement.head)
            self._passage(statement, exits, {})
        raise self.not_lifted(f"a loop of more than {MAX_UNROLL} irregular rounds", statement.head)

    def _fold(self, statement: ast.Loop, trip: Trip, exits: tuple[Key, ...]) -> None:
        span = self.at(statement.head)
        axis = Axis(self.loop_name(trip.name), trip.extent, AxisKind.SEQUENTIAL, span, trip.sources)
        entry = self.state.copy()
        arrays = sorted(self._stored_in(statement, trip, axis, exits))
        carried = self._carried(statement, trip, entry, exits)
        initial = {
            key: self._scalars(entry.variables.get(key, Unset()), kind, statement.head, first=True)
            for key, kind in carried.items()
        }
        inside = {
            key: [self.fresh(value.dtype) for value in values] for key, values in initial.items()
        }
        inner = self.state.copy()
        for key, kind in carried.items():
            inner.variables[key] = _packed(inside[key], kind, entry.variables.get(key, Unset()))
        for array in arrays:
            inner.versions[array] = self.next_version(array)
            if entry.versions[array] in self.pristine:
                self.pristine.add(inner.versions[array])
        self.state = inner.copy()
        ops, after = self._round(statement, trip, axis, exits, carried)
        states: list[Carry] = []
        final = entry.copy()
        for key, kind in carried.items():
            symbolic = after.variables.get(key, Unset())
            before = entry.variables.get(key, Unset())
            if isinstance(before, Pointer) and not _same_buffer(before, symbolic):
                raise self.not_lifted("a pointer that changes its array in a loop", span)
            outer, self.ops = self.ops, ops
            try:
                following = self._scalars(symbolic, kind, statement.head)
            finally:
                self.ops = outer
            results = [self.fresh(value.dtype) for value in following]
            states += map(Carry, results, initial[key], inside[key], following)
            final.variables[key] = _packed(results, kind, before)
        for array in arrays:
            stored = after.versions[array]
            result = self.next_version(array)
            states.append(Carry(result, entry.versions[array], inner.versions[array], stored))
            final.versions[array] = result
        for key, update in trip.updates.items():
            if key not in carried:
                final.variables[key] = update.after(trip.extent)
        for name in set(after.versions) - set(entry.versions):
            final.versions[name] = Version(name, 0)
        self.state = final
        if ops or states:
            self.emit(Fold((axis,), tuple(states), tuple(ops), span))

    def loop_name(self, name: str) -> str:
        taken = self.loop_names.get(name, 0)
        self.loop_names[name] = taken + 1
        return name if taken == 0 else f"{name}.{taken + 1}"

    def at_round(
        self,
        action: Callable[[], Condition],
        moving: Mapping[Key, Symbolic],
        changed: Sequence[Key],
        axis: str,
    ) -> Condition:
        """A condition in a round that `axis` numbers; what the rounds change is not known."""
        entry, known = self.state.copy(), self.known
        for key in changed:
            if key in self.state.variables:
                self.state.variables[key] = Unknown("it changes in a loop")
        self.state.variables.update(moving)
        self.known = Known({**known.ranges, axis: (0, None)}, known.facts)
        try:
            with self.block():
                return action()
        except NotLifted:
            return FALSE
        finally:
            self.state, self.known = entry, known

    def _round(
        self,
        statement: ast.Loop,
        trip: Trip,
        axis: Axis,
        exits: tuple[Key, ...],
        carried: Mapping[Key, Any],
    ) -> tuple[list[Op], State]:
        """One round with the loop's variables as functions of its axis."""
        moving: dict[Key, Symbolic] = {
            key: update.at(Index.axis(axis.name)) for key, update in trip.updates.items()
        }
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
                for key, value in moving.items():
                    if key not in carried:
                        self.state.variables[key] = value
                self._passage(statement, exits, moving)
        finally:
            self.known, self.guarded = outer, guarded
        return ops, self.state

    def _stored_in(
        self, statement: ast.Loop, trip: Trip, axis: Axis, exits: tuple[Key, ...]
    ) -> frozenset[str]:
        """The arrays that a round stores to, found by lifting one."""
        key = (id(statement), tuple(self.calls))
        if key in self.written:
            return self.written[key]
        if not self.scans.once(stores, statement):
            return frozenset()
        saved = self._save()
        opaque = set(self.opaque)
        carried = self._carried(statement, trip, self.state, exits)
        for variable, kind in carried.items():
            self.state.variables[variable] = _packed(
                [self.fresh(s.dtype) for s in scalars_of(kind) or ()],
                kind,
                self.state.variables.get(variable, Unset()),
            )
        before = dict(self.state.versions)
        with self.block():
            _, after = self._round(statement, trip, axis, exits, carried)
        changed = {name for name in before if after.versions[name] != before[name]}
        self._restore(saved)
        self.opaque = opaque
        self.written[key] = frozenset(changed)
        return self.written[key]

    def _carried(
        self, statement: ast.Loop, trip: Trip, entry: State, exits: tuple[Key, ...]
    ) -> dict[Key, Type]:
        """Variables from outside that a round changes in a way that no index tells."""
        found: dict[Key, Type] = dict.fromkeys(exits, BOOL)
        changed = self.scans.once(_changed, statement)
        types = self.scans.once(_types, statement)
        own = _own(statement)
        for identity in changed:
            key = (self.frame, identity)
            # Where a loop is left early, how far its variables got is no matter of counting.
            counted = key in trip.updates and (not exits or identity in own)
            if counted or key not in entry.variables or key in self.places:
                continue
            kind = types.get(identity)
            if kind is None:
                continue
            if scalars_of(kind) is None:
                raise self.not_lifted(f"a {kind} that changes in a loop", statement.head)
            found[key] = kind
        for node in nodes(statement.body) if (self.frame, STAYS) in exits else ():
            if isinstance(node, ast.Return) and node.value is not None:
                kind = node.value.type
                if scalars_of(kind) is None:
                    raise self.not_lifted(f"a loop that returns {kind}", node.span)
                found[(self.frame, RETURNED)] = kind
        return found

    def _scalars(
        self, symbolic: Symbolic, kind: Type, span: Span, *, first: bool = False
    ) -> list[Value]:
        """A variable as the values it consists of; unset ones come from nowhere at `first`."""
        kinds = scalars_of(kind)
        assert kinds is not None
        if isinstance(kind, PointerType):
            if not isinstance(symbolic, Pointer) or symbolic.buffer is None:
                raise self.not_lifted("a pointer that is not known in a loop", span)
            return [self.value(symbolic.offset, LONG, span)]
        items: list[Symbolic] = list(flat(symbolic))
        if len(items) != len(kinds):
            items = [Unset()] * len(kinds)
        return [
            self.unwritten(part, span)
            if first and isinstance(item, Unset)
            else self.value(item, part, span)
            for item, part in zip(items, kinds, strict=True)
        ]


def _packed(values: list[Value], kind: Type, like: Symbolic) -> Symbolic:
    """Values as a variable; a pointer into what it points into now."""
    if isinstance(like, Pointer):
        return Pointer(like.buffer, Data(values[0]))
    return packed(iter([Data(value) for value in values]), kind)


def _same_buffer(before: Pointer, after: Symbolic) -> bool:
    return isinstance(after, Pointer) and after.buffer == before.buffer


def _own(statement: ast.Loop) -> set[int]:
    """The variables that only the loop itself knows."""
    return {start.variable.id for start in statement.initial if isinstance(start, ast.Declare)}


def _counts_alone(statement: ast.Loop) -> bool:
    """Whether a loop's step changes nothing but the loop's own variables."""
    return not stores(statement.step) and set(assigned(statement.step)) <= _own(statement)


def _changed(statement: ast.Loop) -> Counter[int]:
    return assigned(statement.body, statement.step)


def _types(statement: ast.Loop) -> dict[int, Type]:
    found: dict[int, Type] = {}
    for node in nodes(statement):
        match node:
            case ast.Name(variable=variable) | ast.Declare(variable=variable):
                found[variable.id] = variable.type
    return found
