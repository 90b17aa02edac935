"""Statements lifted: guards, loops as folds, inlined calls.

A branch that leaves (returns, or goes on with the next round) takes what follows it into
its other branch, so that leaving needs no operation of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from migrate.budget import Meter
from migrate.cuda import ast
from migrate.cuda.lift_expressions import PURE, RETURNED, Expressions, Key, State
from migrate.cuda.lift_loops import Trip, trip_of
from migrate.cuda.scan import assigned, leaves, statements, stores
from migrate.cuda.symbolic import (
    Data,
    Known,
    NotLifted,
    Number,
    Parts,
    Pointer,
    Symbolic,
    Truth,
    Unknown,
    Unset,
    from_here,
)
from migrate.cuda.types import VOID, Array, Scalar, Type, Vector, scalars_in
from migrate.cuda.types import Pointer as PointerType
from migrate.ir.index import Index, TooComplex
from migrate.ir.nodes import (
    Axis,
    AxisKind,
    Barrier,
    Carried,
    Condition,
    Fold,
    Guard,
    Merge,
    Op,
    Opaque,
    Select,
    Space,
    Value,
    Version,
)
from migrate.ir.nodes import (
    State as Carry,
)
from migrate.ir.predicate import FALSE, TRUE, Predicate, negate
from migrate.source import Frame as SpanFrame
from migrate.source import Span

MAX_UNROLL = 64
MAX_CALLS = 32
MAX_COPIES = 4096
"""Statements that branches may take along before a kernel counts as too entangled."""


@dataclass(slots=True)
class _Saved:
    """What a failed or a trial lifting leaves no trace in."""

    state: State
    ops: int
    tables: dict[str, dict[Any, Any] | set[Any]]
    dynamic: str | None
    known: Known
    guarded: int
    made: int


_TABLES = (
    "references",
    "places",
    "buffers",
    "leading",
    "scalars",
    "counts",
    "loaded",
    "stored",
    "pristine",
    "shared",
    "exchanges",
    "loop_names",
)


class Lifter(Expressions):
    """Lifts the statements of one kernel."""

    def __init__(
        self,
        axes: dict[tuple[str, int], Index],
        dimensions: dict[tuple[str, int], Index],
        known: Known,
        meter: Meter,
        grid_axes: tuple[Axis, ...],
        block_axes: tuple[Axis, ...],
        block_size: Index,
        dynamic_bytes: Index,
    ) -> None:
        super().__init__(axes, dimensions, known, meter)
        self.grid_axes = grid_axes
        self.block_axes = block_axes
        self.block_size = block_size
        self.dynamic_bytes = dynamic_bytes
        self.dynamic: str | None = None
        self.shared: dict[tuple[Span, tuple[SpanFrame, ...]], str] = {}
        self.opaque: set[Span] = set()
        self.seen: set[Span] = set()
        self.loop_depth = 0
        self.copies = 0
        self.written: dict[tuple[int, tuple[SpanFrame, ...]], frozenset[str]] = {}
        self.loop_names: dict[str, int] = {}
        self.exchanges: set[str] = set()

    def linear_thread(self, span: Span) -> Index:
        """The thread's number in its block, x fastest."""
        total = Index.of(0)
        for axis in (2, 1, 0):
            total = total * self.dimensions[("blockDim", axis)] + self.axes[("threadIdx", axis)]
        del span
        return total

    # Sequences

    def sequence(self, body: Sequence[ast.Statement]) -> bool:
        """Lift statements in order; whether all threads have left at the end."""
        for position, statement in enumerate(body):
            self.meter.step()
            rest = body[position + 1 :]
            match statement:
                case ast.Block(body=inner):
                    if leaves(statement, _LEAVING):
                        return self.sequence((*inner, *rest))
                    self.sequence(inner)
                case ast.If() if leaves(statement, _LEAVING):
                    return self._leaving_branch(statement, rest)
                case ast.Return(value=value):
                    self._count(statement)
                    if value is not None:
                        self._attempt(statement, lambda v=value: self._return(v))  # type: ignore[misc]
                    return True
                case ast.Continue():
                    self._count(statement)
                    return True
                case _:
                    self._statement(statement)
        return False

    def _count(self, statement: ast.Statement) -> None:
        self.seen.add(statement.span)

    def _return(self, value: ast.Expression) -> None:
        lifted = self.lift(value)
        self.state.variables[(self.frame, RETURNED)] = self._typed(lifted, value.type, value.span)

    def _typed(self, symbolic: Symbolic, kind: Type, span: Span) -> Symbolic:
        """Floats as values; integers and conditions as they are."""
        if isinstance(kind, Scalar) and kind.is_float:
            return Data(self.value(symbolic, kind, span))
        return symbolic

    def _attempt(self, statement: ast.Statement, action: Callable[[], None]) -> bool:
        """Run an action; where it fails the whole statement becomes opaque."""
        saved = self._save()
        try:
            action()
        except (NotLifted, TooComplex) as error:
            reason = error.reason if isinstance(error, NotLifted) else str(error)
            self._restore(saved)
            self._make_opaque(statement, reason)
            return False
        return True

    def _save(self) -> _Saved:
        tables = {name: getattr(self, name).copy() for name in _TABLES}
        return _Saved(
            self.state.copy(),
            len(self.ops),
            tables,
            self.dynamic,
            self.known,
            self.guarded,
            self.made,
        )

    def _restore(self, saved: _Saved) -> None:
        self.state = saved.state
        del self.ops[saved.ops :]
        for name, table in saved.tables.items():
            setattr(self, name, table)
        self.dynamic, self.known, self.guarded = saved.dynamic, saved.known, saved.guarded
        self.made = saved.made

    def _make_opaque(self, statement: ast.Statement, reason: str) -> None:
        """What was not understood may have changed what it assigns, and any array it can."""
        span = self.at(statement.span)
        for inner in statements(statement):
            self.seen.add(inner.span)
            self.opaque.add(inner.span)
        results: list[Carried] = []
        for identity in assigned(statement):
            key = (self.frame, identity)
            self.state.variables[key] = Unknown(reason)
        if stores(statement):
            for name, buffer in self.buffers.items():
                if buffer.role != "in" and name not in self.exchanges:
                    self.stored.add(name)
                    results.append(self.next_version(name))
        text = statement.text if isinstance(statement, ast.Opaque) else ""
        self.emit(Opaque(tuple(results), (), text, reason, span))

    def _statement(self, statement: ast.Statement) -> None:
        self._count(statement)
        match statement:
            case ast.Evaluate(expression=ast.Atomic() as atomic):
                self._attempt(statement, lambda: self.atomic(atomic))
            case ast.Evaluate(expression=ast.Literal()):
                pass
            case ast.Evaluate(expression=expression):
                self._attempt(statement, lambda: self._evaluate(expression))
            case ast.Declare():
                self._attempt(statement, lambda: self._declare(statement))
            case ast.If():
                self._attempt(statement, lambda: self._branch(statement))
            case ast.Loop():
                self._attempt(statement, lambda: self._loop(statement))
            case ast.Barrier(scope=scope, span=span):
                if scope != "fence":
                    self.emit(Barrier(scope, self.at(span)))
            case ast.Opaque(reason=reason):
                self._make_opaque(statement, reason)
            case ast.Break():
                raise self.not_lifted("a loop that is left by break", statement.span)
            case ast.Switch():
                self._make_opaque(statement, "switch is not put into the IR")
            case _:
                raise AssertionError(statement)

    def _evaluate(self, expression: ast.Expression) -> None:
        if isinstance(expression, ast.Call) and expression.type == VOID:
            self._inline(expression)
            return
        self.lift(expression)

    # Declarations

    def _declare(self, statement: ast.Declare) -> None:
        variable, initial = statement.variable, statement.initial
        key = self.key(variable)
        kind = variable.type
        span = statement.span
        self.references.pop(key, None)
        self.places.pop(key, None)
        if variable.storage in ("shared", "dynamic-shared"):
            self.places[key] = self._shared(variable)
            return
        if variable.storage == "reference":
            assert isinstance(initial, ast.Name | ast.Element | ast.Component)
            self.references[key] = (initial, self.frame)
            return
        if isinstance(kind, Array):
            self._array(variable, initial, span)
            return
        if initial is None:
            if isinstance(kind, Vector):
                self.state.variables[key] = Parts((Unset(),) * kind.lanes)
            else:
                self.state.variables[key] = Unset()
            return
        assert not isinstance(initial, tuple)
        value = self._typed(self.lift(initial), kind, span)
        self.state.variables[key] = from_here(value, self.at(span))

    def _shared(self, variable: ast.Variable) -> str:
        name = (variable.span, tuple(self.calls))
        if name in self.shared:
            return self.shared[name]
        if variable.storage == "dynamic-shared":
            if self.dynamic is None:
                kind = variable.type
                assert isinstance(kind, Array)
                size = self.dynamic_bytes // kind.element.size
                self.dynamic = self.storage(
                    variable.name, kind.element, Space.ONCHIP, self.grid_axes, variable.span, size
                )
            made = self.dynamic
        else:
            made = self.storage(
                variable.name, variable.type, Space.ONCHIP, self.grid_axes, variable.span
            )
        self.shared[name] = made
        return made

    def _array(
        self,
        variable: ast.Variable,
        initial: ast.Expression | tuple[ast.Expression, ...] | None,
        span: Span,
    ) -> None:
        axes = (*self.grid_axes, *self.block_axes)
        made = self.storage(variable.name, variable.type, Space.PRIVATE, axes, variable.span)
        self.places[self.key(variable)] = made
        if initial is None:
            return
        if not isinstance(initial, tuple):
            raise self.not_lifted("an array initialised by one value", span)
        scalar = self.scalars[made]
        offset = 0
        for part in initial:
            place = Pointer(made, Number(Index.of(offset)))
            self.store(place, self.lift(part), part.type, part.span)
            offset += scalars_in(part.type)
        zero: Symbolic = Number(Index.of(0))
        if offset < scalars_in(variable.type):
            zero = self.lift(ast.Literal(0.0 if scalar.is_float else 0, scalar, span))
        for rest in range(offset, scalars_in(variable.type)):
            self.store(Pointer(made, Number(Index.of(rest))), zero, scalar, span)

    # Branches

    def _branch(self, statement: ast.If) -> None:
        otherwise = statement.otherwise.body if statement.otherwise is not None else ()
        self._either(statement, statement.then.body, otherwise)

    def _leaving_branch(self, statement: ast.If, rest: Sequence[ast.Statement]) -> bool:
        """A branch with a way out: what follows belongs to the paths that stay."""
        self._count(statement)
        otherwise = statement.otherwise.body if statement.otherwise is not None else ()
        self.copies += len(rest)
        if self.copies > MAX_COPIES:
            raise self.not_lifted("too many ways out", statement.span)
        then = (*statement.then.body, *rest)
        done = self._attempt(statement, lambda: self._either(statement, then, (*otherwise, *rest)))
        if not done:
            # Nothing is known of who stays.
            for inner in statements(*rest):
                self.seen.add(inner.span)
                self.opaque.add(inner.span)
        return True

    def _either(
        self,
        statement: ast.If,
        then: Sequence[ast.Statement],
        otherwise: Sequence[ast.Statement],
    ) -> None:
        span = self.at(statement.span)
        conditions = self._conditions(statement.condition, bool(otherwise))
        if FALSE in conditions:
            self.sequence(otherwise)
            return
        conditions = [condition for condition in conditions if condition != TRUE]
        if not conditions:
            self.sequence(then)
            return
        self._guarded(conditions, then, otherwise, span)

    def _conditions(self, condition: ast.Expression, has_else: bool) -> list[Condition]:
        """The condition; without an else, a conjunction of an index part and a data part."""
        lifted = self.truth(condition) if has_else or not _mixed(condition) else None
        if lifted is not None:
            return [lifted]
        parts: list[Condition] = []
        # The data part is lifted inside the guard of the index part, see `_guarded`.
        assert isinstance(condition, ast.Logical)
        left = self.truth(condition.left)
        if isinstance(left, Value):
            return [self.truth(condition)]
        before = len(self.ops)
        with self.under(left):
            right = self.truth(condition.right)
        if isinstance(right, Value):
            parts = [left, right]
        else:
            del before
            from migrate.ir.predicate import both

            parts = [both(left, right)]
        return parts

    def _guarded(
        self,
        conditions: list[Condition],
        then: Sequence[ast.Statement],
        otherwise: Sequence[ast.Statement],
        span: Span,
    ) -> None:
        condition, *inner = conditions
        start = self.state.copy()
        body, after_then = self._region(
            condition,
            (lambda: self._guarded(inner, then, (), span)) if inner else (lambda: self._run(then)),
        )
        self.state = start.copy()
        opposite: Condition | None = None
        if not isinstance(condition, Value):
            opposite = negate(condition)
        other, after_other = self._region(opposite, lambda: self._run(otherwise))
        merges = self._merges(start, body, after_then, other, after_other, span)
        if not body and not other and not merges:
            return
        if all(isinstance(op, PURE) for op in (*body, *other)):
            # Nothing but values: they can be computed everywhere and chosen from.
            self.ops += [*body, *other]
            for merge in merges:
                assert isinstance(merge.result, Value)
                assert isinstance(merge.then, Value)
                assert isinstance(merge.otherwise, Value)
                chosen = Select(merge.result, condition, merge.then, merge.otherwise, span)
                self.emit(chosen)
            return
        if not body and opposite is not None:
            flipped = tuple(Merge(m.result, m.otherwise, m.then) for m in merges)
            self.emit(Guard(opposite, tuple(other), span, (), flipped))
        else:
            self.emit(Guard(condition, tuple(body), span, tuple(other), merges))

    def _run(self, body: Sequence[ast.Statement]) -> None:
        self.sequence(body)

    def _region(
        self, condition: Condition | None, action: Callable[[], None]
    ) -> tuple[list[Op], State]:
        """Lift inside a guard; its operations and what is known at its end."""
        facts: tuple[Predicate, ...] = ()
        if condition is not None and not isinstance(condition, Value):
            facts = (condition,)
        guarded = self.guarded
        with self.block() as ops, self.under(*facts):
            self.guarded = len(self.known.facts)
            try:
                action()
            finally:
                self.guarded = guarded
        return ops, self.state

    def _merges(
        self,
        start: State,
        body: list[Op],
        then: State,
        other: list[Op],
        otherwise: State,
        span: Span,
    ) -> tuple[Merge, ...]:
        """Bring together what the two branches know; the state becomes the merged one."""
        merges: list[Merge] = []
        state = start.copy()
        kept = {*start.variables, (self.frame, RETURNED)}
        for key in kept:
            a = then.variables.get(key, Unset())
            b = otherwise.variables.get(key, Unset())
            if key not in then.variables and key not in otherwise.variables:
                continue
            state.variables[key] = self._merged(a, b, body, other, merges, span)
        for name in start.versions:
            a_version, b_version = then.versions[name], otherwise.versions[name]
            if a_version == b_version:
                state.versions[name] = a_version
                continue
            self.counts[name] += 1
            version = Version(name, self.counts[name])
            merges.append(Merge(version, a_version, b_version))
            state.versions[name] = version
        for name in {*then.versions, *otherwise.versions} - set(start.versions):
            # Storage made inside lives on, so that a later passage finds it.
            state.versions[name] = Version(name, 0)
            self.counts[name] = max(self.counts[name], 0)
        self.state = state
        return tuple(merges)

    def _merged(
        self,
        a: Symbolic,
        b: Symbolic,
        body: list[Op],
        other: list[Op],
        merges: list[Merge],
        span: Span,
    ) -> Symbolic:
        if a == b or _same(a, b):
            return a
        if isinstance(a, Unknown) or isinstance(b, Unknown):
            return a if isinstance(a, Unknown) else b
        if isinstance(a, Parts) and isinstance(b, Parts):
            pairs = zip(a.items, b.items, strict=True)
            return Parts(tuple(self._merged(x, y, body, other, merges, span) for x, y in pairs))
        if isinstance(a, Unset) and isinstance(b, Unset):
            return a
        kind = _scalar_type(a) or _scalar_type(b)
        if kind is None or isinstance(a, Pointer) or isinstance(b, Pointer):
            return Unknown("a pointer that depends on a branch")
        try:
            first = self._in(body, lambda: self.value(a, kind, span))
            second = self._in(other, lambda: self.value(b, kind, span))
        except NotLifted as error:
            return Unknown(error.reason)
        result = self.fresh(kind.dtype)
        merges.append(Merge(result, first, second))
        return Data(result)

    def _in(self, ops: list[Op], action: Callable[[], Value]) -> Value:
        outer, self.ops = self.ops, ops
        try:
            return action()
        finally:
            self.ops = outer

    # Loops

    def _loop(self, statement: ast.Loop) -> None:
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
        if isinstance(trip, str):
            self._unroll(statement, trip)
        else:
            self._fold(statement, trip)

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
            key: self._scalars(entry.variables[key], kind, statement.head)
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

    def _scalars(self, symbolic: Symbolic, kind: Scalar | Vector, span: Span) -> list[Value]:
        """A variable as the values it consists of."""
        if isinstance(kind, Scalar):
            return [self.value(symbolic, kind, span)]
        items = symbolic.items if isinstance(symbolic, Parts) else (Unset(),) * kind.lanes
        return [self.value(item, kind.element, span) for item in items]

    # Calls and exchanges

    def _shuffle(self, node: ast.Shuffle) -> Symbolic:
        from migrate.cuda.lift_warp import exchanged

        return exchanged(self, node)

    def _call(self, node: ast.Call) -> Symbolic:
        self._inline(node)
        returned = self.state.variables.get((self.frames, RETURNED))
        if returned is None:
            raise self.not_lifted(f"{node.function.name} returns nothing", node.span)
        if isinstance(returned, Unknown):
            raise self.not_lifted(returned.reason, node.span)
        return returned

    def _inline(self, node: ast.Call) -> None:
        if len(self.calls) >= MAX_CALLS:
            raise self.not_lifted(f"calls nest deeper than {MAX_CALLS} levels", node.span)
        function = node.function
        values: list[Symbolic | None] = []
        for parameter, argument in zip(function.parameters, node.arguments, strict=True):
            reference = parameter.storage == "reference"
            values.append(None if reference else self._argument(argument))
        caller = self.frame
        self.made += 1
        own = self.made
        frame = SpanFrame(
            kind="call",
            name=function.name,
            file=node.span.file,
            line=node.span.start_line,
            column=node.span.start_column,
        )
        for parameter, argument, value in zip(
            function.parameters, node.arguments, values, strict=True
        ):
            key = (own, parameter.id)
            if value is None:
                self.references[key] = self._resolved(argument, caller)
            else:
                self.state.variables[key] = value
        self.frame = own
        self.calls.append(frame)
        before = set(self.opaque)
        try:
            self.sequence(function.body.body)
        finally:
            self.calls.pop()
            self.frame = caller
        self.frames = own
        del before

    def _argument(self, argument: ast.Expression) -> Symbolic:
        return self._typed(self.lift(argument), argument.type, argument.span)

    def _resolved(self, place: ast.Expression, frame: int) -> tuple[ast.Expression, int]:
        """A reference to a reference is one to what that names."""
        if isinstance(place, ast.Name):
            key = (frame if place.variable.id >= 0 else -1, place.variable.id)
            if key in self.references:
                return self.references[key]
        return place, frame


_LEAVING = (ast.Return, ast.Continue)


def _mixed(condition: ast.Expression) -> bool:
    return isinstance(condition, ast.Logical) and condition.operator == "and"


def _same(a: Symbolic, b: Symbolic) -> bool:
    """Equal but for the places that decided them."""
    match a, b:
        case Number(index=x), Number(index=y):
            return x == y
        case Truth(predicate=p), Truth(predicate=q):
            return p == q
        case Pointer(buffer=m, offset=x), Pointer(buffer=n, offset=y):
            return m == n and _same(x, y)
        case _:
            return False


def _scalar_type(symbolic: Symbolic) -> Scalar | None:
    from migrate.cuda.types import BOOL, INT, NAMED

    match symbolic:
        case Number():
            return INT
        case Truth():
            return BOOL
        case Data(value=value):
            for kind in NAMED.values():
                if isinstance(kind, Scalar) and kind.dtype is value.dtype:
                    return kind
            return None
        case _:
            return None


def _packed(values: list[Value], kind: Scalar | Vector) -> Symbolic:
    if isinstance(kind, Vector):
        return Parts(tuple(Data(value) for value in values))
    return Data(values[0])


def _parts_of(kind: Scalar | Vector) -> list[Scalar]:
    return [kind.element] * kind.lanes if isinstance(kind, Vector) else [kind]


def _types(statement: ast.Loop) -> dict[int, Type]:
    from migrate.cuda.scan import nodes

    found: dict[int, Type] = {}
    for node in nodes(statement):
        match node:
            case ast.Name(variable=variable) | ast.Declare(variable=variable):
                found[variable.id] = variable.type
    return found


__all__ = ["Lifter", "PointerType"]
