"""Statements lifted: guards, loops as folds, inlined calls.

A branch that leaves (returns, or goes on with the next round) takes what follows it into
its other branch, so that leaving needs no operation of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from migrate.budget import Meter
from migrate.cuda import ast
from migrate.cuda.lifting.base import RETURNED
from migrate.cuda.lifting.loops import Loops, Saved
from migrate.cuda.lifting.scan import assigned, leaves, statements, stores
from migrate.cuda.lifting.symbolic import (
    Data,
    Known,
    NotLifted,
    Number,
    Parts,
    Pointer,
    Symbolic,
    Unknown,
    Unset,
    from_here,
)
from migrate.cuda.types import VOID, Array, Scalar, Type, Vector, scalars_in
from migrate.ir.index import Index, TooComplex
from migrate.ir.nodes import (
    Axis,
    Barrier,
    Carried,
    Opaque,
    Space,
)
from migrate.source import Frame as SpanFrame
from migrate.source import Span

MAX_CALLS = 32


MAX_COPIES = 4096

# Steps, measured: about half a microsecond each, as in `cuda.evaluate`.
STATEMENT_STEPS = 50
CALL_STEPS = 100


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


_LEAVING = (ast.Return, ast.Continue)


class Lifter(Loops):
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
        self.loop_depth = 0
        self.copies = 0
        self.exchanges: set[str] = set()

    def linear_thread(self, span: Span) -> Index:
        """The thread's number in its block, x fastest."""
        total = Index.of(0)
        for axis in (2, 1, 0):
            total = total * self.dimensions[("blockDim", axis)] + self.axes[("threadIdx", axis)]
        del span
        return total

    def sequence(self, body: Sequence[ast.Statement]) -> bool:
        """Lift statements in order; whether all threads have left at the end."""
        for position, statement in enumerate(body):
            self.meter.step(STATEMENT_STEPS)
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

    def _save(self) -> Saved:
        tables = {name: getattr(self, name).copy() for name in _TABLES}
        return Saved(
            self.state.copy(),
            len(self.ops),
            tables,
            self.dynamic,
            self.known,
            self.guarded,
            self.made,
        )

    def _restore(self, saved: Saved) -> None:
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

    def _shuffle(self, node: ast.Shuffle) -> Symbolic:
        from migrate.cuda.lifting.warp import exchanged

        return exchanged(self, node)

    def _call(self, node: ast.Call) -> Symbolic:
        self._inline(node)
        returned = self.state.variables.pop((self.frames, RETURNED), None)
        if returned is None:
            raise self.not_lifted(f"{node.function.name} returns nothing", node.span)
        if isinstance(returned, Unknown):
            raise self.not_lifted(returned.reason, node.span)
        return returned

    def _inline(self, node: ast.Call) -> None:
        if len(self.calls) >= MAX_CALLS:
            raise self.not_lifted(f"calls nest deeper than {MAX_CALLS} levels", node.span)
        self.meter.step(CALL_STEPS)
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
        try:
            self.sequence(function.body.body)
        finally:
            self.calls.pop()
            self.frame = caller
            # What is copied at every branch and loop would grow with each call.
            variables = self.state.variables
            for gone in [key for key in variables if key[0] == own and key[1] != RETURNED]:
                del variables[gone]
        self.frames = own

    def _argument(self, argument: ast.Expression) -> Symbolic:
        return self._typed(self.lift(argument), argument.type, argument.span)

    def _resolved(self, place: ast.Expression, frame: int) -> tuple[ast.Expression, int]:
        """A reference to a reference is one to what that names."""
        if isinstance(place, ast.Name):
            key = (frame if place.variable.id >= 0 else -1, place.variable.id)
            if key in self.references:
                return self.references[key]
        return place, frame
