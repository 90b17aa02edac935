"""Declarations: variables that are values, arrays and shared memory that are buffers."""

from __future__ import annotations

from migrate.cuda import ast
from migrate.cuda.lifting.loops import Loops
from migrate.cuda.lifting.memory import unset
from migrate.cuda.lifting.scan import views
from migrate.cuda.lifting.symbolic import Number, Parts, Pointer, Symbolic, Unset, from_here
from migrate.cuda.types import Array, Scalar, Type, scalar_of, scalars_in
from migrate.ir.index import Index
from migrate.ir.nodes import Axis, Space
from migrate.source import Frame as SpanFrame
from migrate.source import Span


class Declarations(Loops):
    """Gives what is declared a value or a place."""

    grid_axes: tuple[Axis, ...]
    block_axes: tuple[Axis, ...]
    dynamic_bytes: Index
    dynamic: str | None
    shared: dict[tuple[Span, tuple[SpanFrame, ...]], str]
    addressed: frozenset[int]
    body: ast.Block | None

    def _typed(self, symbolic: Symbolic, kind: Type, span: Span) -> Symbolic:
        """Floats as values; integers and conditions as they are."""
        raise NotImplementedError

    def _resolved(self, place: ast.Expression, frame: int) -> tuple[ast.Expression, int] | Pointer:
        """What a reference to a place names."""
        raise NotImplementedError

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
            assert initial is not None
            assert not isinstance(initial, tuple)
            self.references[key] = self._resolved(initial, self.frame)
            return
        if isinstance(kind, Array):
            self._array(variable, initial, span)
            return
        if variable.id in self.addressed and scalar_of(kind) is not None:
            assert not isinstance(initial, tuple)
            self._settle(variable, None if initial is None else self.lift(initial), span)
            return
        if initial is None:
            parts = unset(kind)
            self.state.variables[key] = Parts(tuple(parts)) if parts else Unset()
            return
        assert not isinstance(initial, tuple)
        value = self._typed(self.lift(initial), kind, span)
        self.state.variables[key] = from_here(value, self.at(span))

    def _seen_as(self, element: Type) -> Type:
        """What memory of bytes holds: the type that all pointers into bytes are made to."""
        if not isinstance(element, Scalar) or element.size != 1 or element.is_bool:
            return element
        seen = views(self.body)
        return seen.pop() if len(seen) == 1 else element

    def _settle(self, variable: ast.Variable, initial: Symbolic | None, span: Span) -> None:
        """Give a variable whose address is taken a place in memory."""
        axes = (*self.grid_axes, *self.block_axes)
        made = self.storage(variable.name, variable.type, Space.PRIVATE, axes, variable.span)
        self.places[self.key(variable)] = made
        if initial is not None:
            self.store(Pointer(made, Number(Index.of(0))), initial, variable.type, span)

    def _shared(self, variable: ast.Variable) -> str:
        name = (variable.span, tuple(self.calls))
        if name in self.shared:
            return self.shared[name]
        kind = variable.type
        if not isinstance(kind, Array):
            kind = Array(kind, 1)
        element = self._seen_as(kind.element)
        if not element.size:
            raise self.not_lifted("shared memory whose elements have no size", variable.span)
        if variable.storage == "dynamic-shared":
            if self.dynamic is None:
                size = self.dynamic_bytes // element.size
                self.dynamic = self.storage(
                    variable.name, element, Space.ONCHIP, self.grid_axes, variable.span, size
                )
            made = self.dynamic
        else:
            size = Index.of(scalars_in(kind))
            if element != kind.element:
                size = Index.of(kind.size // element.size)
            made = self.storage(
                variable.name, element, Space.ONCHIP, self.grid_axes, variable.span, size
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
