"""Statements lifted: guards, loops as folds, inlined calls.

A branch that leaves (returns, or goes on with the next round) takes what follows it into
its other branch, so that leaving needs no operation of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from migrate.budget import Meter
from migrate.cuda import ast
from migrate.cuda.lifting.base import RETURNED, STAYS
from migrate.cuda.lifting.declarations import Declarations
from migrate.cuda.lifting.loops import Saved
from migrate.cuda.lifting.matrices import contracted
from migrate.cuda.lifting.memory import is_place, packed, scalars_of
from migrate.cuda.lifting.scan import addressed, assigned, leaves, places, statements, stores
from migrate.cuda.lifting.switches import branches
from migrate.cuda.lifting.symbolic import (
    Data,
    Known,
    NotLifted,
    Pointer,
    Symbolic,
    Truth,
    Unknown,
)
from migrate.cuda.types import VOID, Array, Scalar, Type, scalar_of
from migrate.cuda.types import Pointer as PointerType
from migrate.ir.index import Index, TooComplex
from migrate.ir.nodes import (
    Axis,
    Barrier,
    Carried,
    Condition,
    Opaque,
    Version,
)
from migrate.ir.predicate import FALSE, indices, less
from migrate.source import Frame as SpanFrame
from migrate.source import Span

MAX_CALLS = 32


MAX_COPIES = 4096

MAX_NESTING = 72
"""Branches, loops and calls inside one another: what follows an early return is inside it.

Each takes about eleven of Python's thousand frames, a loop more (`loops.MAX_LOOPS`)."""

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


_LEAVING = (ast.Return, ast.Continue, ast.Break)
_RETURNING = (ast.Return,)


class Lifter(Declarations):
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
        self.nested = 0
        self.exchanges: set[str] = set()
        # Variables of the function that is lifted whose address is taken.
        self.addressed: frozenset[int] = frozenset()
        self.body: ast.Block | None = None

    def linear_thread(self, span: Span) -> Index:
        """The thread's number in its block, x fastest."""
        total = Index.of(0)
        for axis in (2, 1, 0):
            total = total * self.dimensions[("blockDim", axis)] + self.axes[("threadIdx", axis)]
        del span
        return total

    def diverges(self) -> bool:
        """Whether conditions around choose among the threads of a block."""
        threads = {axis.name for axis in self.block_axes}
        own = {less(Index.axis(axis.name), axis.extent) for axis in self.block_axes}
        return any(
            index.axes() & threads
            for fact in self.known.facts
            if fact not in own
            for index in indices(fact)
        )

    def sequence(self, body: Sequence[ast.Statement]) -> bool:
        """Lift statements in order; whether all threads have left at the end."""
        if self.nested >= MAX_NESTING and body:
            reason = f"statements nest deeper than {MAX_NESTING} levels"
            raise self.not_lifted(reason, body[0].span)
        self.nested += 1
        try:
            for position, statement in enumerate(body):
                self.meter.step(STATEMENT_STEPS)
                rest = body[position + 1 :]
                match statement:
                    case ast.Block(body=inner):
                        if self.scans.once(leaves, statement, _LEAVING):
                            return self.sequence((*inner, *rest))
                        self.sequence(inner)
                    case ast.If() if self.scans.once(leaves, statement, _LEAVING):
                        return self._leaving_branch(statement, rest)
                    case ast.Return(value=value):
                        self._count(statement)
                        if value is not None:
                            self._attempt(statement, lambda v=value: self._return(v))  # type: ignore[misc]
                        if (self.frame, STAYS) in self.state.variables:
                            self.state.variables[(self.frame, STAYS)] = Truth(FALSE)
                        return True
                    case ast.Continue():
                        self._count(statement)
                        return True
                    case ast.Break():
                        self._count(statement)
                        self.state.variables[self.leaving[-1]] = Truth(FALSE)
                        return True
                    case ast.Switch() if (chain := branches(statement)) is not None:
                        return self.sequence((*chain, *rest))
                    case ast.Loop() if self.scans.once(leaves, statement.body, _RETURNING):
                        self._statement(statement)
                        staying = self.staying([(self.frame, STAYS)], statement.span)
                        if FALSE in staying:
                            return True
                        if staying and rest:
                            self._attempt(statement, lambda r=rest, s=staying: self._rest(r, s))  # type: ignore[misc]
                            return True
                    case _:
                        self._statement(statement)
            return False
        finally:
            self.nested -= 1

    def _rest(self, rest: Sequence[ast.Statement], staying: list[Condition]) -> None:
        """What follows a loop, for the threads that have not returned from inside it."""
        self._guarded(staying, lambda: self._run(rest), lambda: None, self.at(rest[0].span))

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
        except (NotLifted, TooComplex, RecursionError) as error:
            # Long expressions in deep branches use more frames than either alone may.
            reason = error.reason if isinstance(error, NotLifted) else str(error)
            if isinstance(error, RecursionError):
                reason = "nests too deeply to be lifted"
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
        inside = self.scans.once(places, statement)
        self.seen |= inside
        self.opaque |= inside
        if self._opaque_value(statement, reason):
            return
        results: list[Carried] = []
        if isinstance(statement, ast.Return):
            self.state.variables[(self.frame, RETURNED)] = Unknown(reason)
        results += self._lost(statement, reason)
        text = statement.text if isinstance(statement, ast.Opaque) else ""
        self.emit(Opaque(tuple(results), (), text, reason, span))

    def _lost(self, node: ast.Statement | ast.Expression, reason: str) -> list[Version]:
        """New versions of all that something may have changed; its variables are not known."""
        for identity in self.scans.once(assigned, node):
            self.state.variables[(self.frame, identity)] = Unknown(reason)
        if not self.scans.once(stores, node):
            return []
        changed = [
            name
            for name, buffer in self.buffers.items()
            if buffer.role != "in" and name not in self.exchanges
        ]
        self.stored.update(changed)
        return [self.next_version(name) for name in changed]

    def _opaque_value(self, statement: ast.Statement, reason: str) -> bool:
        """Keep where a value goes that is not understood itself; whether that was possible."""
        match statement:
            case ast.Evaluate(expression=ast.Assign(target=target, value=value)):
                place: ast.Expression = target
            case ast.Declare(variable=variable, initial=value) if variable.storage == "local":
                place = ast.Name(variable, variable.type, statement.span)
            case _:
                return False
        if value is None or isinstance(value, tuple):
            return False
        kinds = scalars_of(place.type)
        if kinds is None or isinstance(place.type, PointerType | Array):
            return False
        saved = self._save()
        try:
            if isinstance(statement, ast.Declare):
                self._declare(ast.Declare(statement.variable, None, statement.span))
            made = [self.fresh(kind.dtype) for kind in kinds]
            lost = self._lost(value, reason)
            self.emit(Opaque((*made, *lost), (), "", reason, self.at(statement.span)))
            items: list[Symbolic] = [Data(one) for one in made]
            self.write(place, packed(iter(items), place.type), statement.span)
        except (NotLifted, TooComplex):
            self._restore(saved)
            return False
        return True

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
                if scope == "grid":
                    self._make_opaque(statement, "a barrier of the whole grid")
                elif scope != "fence":
                    self.emit(Barrier(scope, self.at(span)))
            case ast.AsyncCopy(body=body):
                # A wait and a barrier stand before whoever reads it, or it is a fault of the
                # kernel's, which its execution reports.
                self.sequence(body.body)
            case ast.AsyncGroup() | ast.Assert():
                pass
            case ast.WarpContract():
                self._attempt(statement, lambda: contracted(self, statement))
            case ast.Opaque(reason=reason):
                self._make_opaque(statement, reason)
            case ast.Switch():
                self._make_opaque(statement, "a switch with breaks inside its cases")
            case _:
                raise AssertionError(statement)

    def _evaluate(self, expression: ast.Expression) -> None:
        if isinstance(expression, ast.Call) and expression.type == VOID:
            self._inline(expression)
            return
        self.lift(expression)

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
        outer, self.addressed = self.addressed, addressed(function.body)
        around, self.body = self.body, function.body
        try:
            for parameter in function.parameters:
                given = self.state.variables.get(self.key(parameter))
                if parameter.id in self.addressed and given is not None:
                    if scalar_of(parameter.type) is not None:
                        self._settle(parameter, given, parameter.span)
            self.sequence(function.body.body)
        finally:
            self.calls.pop()
            self.frame, self.addressed, self.body = caller, outer, around
            # What is copied at every branch and loop would grow with each call.
            variables = self.state.variables
            for gone in [key for key in variables if key[0] == own and key[1] != RETURNED]:
                del variables[gone]
        self.frames = own

    def _argument(self, argument: ast.Expression) -> Symbolic:
        return self._typed(self.lift(argument), argument.type, argument.span)

    def _resolved(self, place: ast.Expression, frame: int) -> tuple[ast.Expression, int] | Pointer:
        """What a reference to a place names; a reference to a reference is one to what that names.

        A place in memory is settled here and now: what decides its index may change later.
        """
        with self.in_frame(frame):
            if not is_place(place):
                raise self.not_lifted("a reference to a value", place.span)
            if self.in_memory(place):
                return self.pointer(place)
            if isinstance(place, ast.Name):
                return self.references.get(self.key(place.variable), (place, frame))
            return place, frame
