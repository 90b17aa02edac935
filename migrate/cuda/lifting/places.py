"""Places: what an expression names, in memory or of a variable, and assignments to it."""

from __future__ import annotations

from migrate.cuda import ast
from migrate.cuda.lifting.memory import Memory, unset
from migrate.cuda.lifting.symbolic import (
    Data,
    Number,
    Parts,
    Pointer,
    Symbolic,
    Truth,
    Unset,
    from_here,
)
from migrate.cuda.types import INT, Scalar
from migrate.cuda.types import Pointer as PointerType
from migrate.ir.index import Index
from migrate.source import Span


class Places(Memory):
    """Finds and changes what places hold."""

    def pointer(self, place: ast.Expression) -> Pointer:
        """The pointer to a place in memory."""
        match place:
            case ast.Element(base=base, index=index, type=kind, span=span):
                return self.moved(self.lift(base), self.lift(index), index.type, kind, span)
            case ast.Component(base=base, index=position, span=span):
                return self.member(self.pointer(base), base.type, position, span)
            case ast.Name(variable=variable):
                key = self.key(variable)
                if key in self.places:
                    return Pointer(self.places[key], Number(Index.of(0)))
                target = self.references.get(key)
                if isinstance(target, Pointer):
                    return target
                if target is not None:
                    with self.in_frame(target[1]):
                        return self.pointer(target[0])
        raise self.not_lifted("the address of a local variable", place.span)

    def in_memory(self, place: ast.Expression) -> bool:
        """Whether a place is one of memory, rather than of a variable that has only a value."""
        while isinstance(place, ast.Component):
            place = place.base
        if not isinstance(place, ast.Name):
            return True
        target = self.references.get(self.key(place.variable))
        if isinstance(target, tuple):
            with self.in_frame(target[1]):
                return self.in_memory(target[0])
        return target is not None or self.key(place.variable) in self.places

    def _address(self, node: ast.Address) -> Symbolic:
        return self.pointer(node.place)

    def write(self, target: ast.Expression, value: Symbolic, span: Span) -> None:
        """Assign to a place."""
        if self.in_memory(target):
            self.store(self.pointer(target), value, target.type, span)
            return
        match target:
            case ast.Name(variable=variable):
                key = self.key(variable)
                reference = self.references.get(key)
                if isinstance(reference, tuple):
                    with self.in_frame(reference[1]):
                        self.write(reference[0], value, span)
                else:
                    self.state.variables[key] = from_here(value, self.at(span))
            case ast.Component(base=base, index=index):
                old = self._current(base)
                items = list(old.items) if isinstance(old, Parts) else unset(base.type)
                if index >= len(items):
                    raise self.not_lifted(f"a part of {base.type}", span)
                items[index] = value
                self.write(base, Parts(tuple(items)), span)
            case _:
                raise self.not_lifted(f"an assignment to {target.type}", span)

    def _current(self, place: ast.Expression) -> Symbolic:
        """What a place of no memory holds, parts of it perhaps unset."""
        match place:
            case ast.Name(variable=variable):
                key = self.key(variable)
                reference = self.references.get(key)
                if isinstance(reference, tuple):
                    with self.in_frame(reference[1]):
                        return self._current(reference[0])
                return self.state.variables.get(key, Unset())
            case ast.Component(base=base, index=index):
                whole = self._current(base)
                return whole.items[index] if isinstance(whole, Parts) else Unset()
            case _:
                return Unset()

    def _assign(self, node: ast.Assign) -> Symbolic:
        if node.operator is None:
            value = self.lift(node.value)
            if isinstance(node.type, Scalar) and isinstance(value, Truth | Number):
                # Booleans stay conditions, integers stay indices.
                value = (
                    value if node.type.is_integer else Data(self.value(value, node.type, node.span))
                )
            self.write(node.target, value, node.span)
            return value
        old = self.lift(node.target)
        right = self.lift(node.value)
        if isinstance(node.compute, PointerType):
            if node.operator == "subtract":
                right = self.arithmetic("subtract", Number(Index.of(0)), right, INT, INT, node.span)
            made: Symbolic = self.moved(
                old, right, node.value.type, node.compute.element, node.span
            )
        else:
            assert isinstance(node.compute, Scalar)
            left = self.cast(old, node.target.type, node.compute, node.span)
            computed = self.arithmetic(
                node.operator, left, right, node.compute, node.value.type, node.span
            )
            made = self.cast(computed, node.compute, node.type, node.span)
        self.write(node.target, made, node.span)
        return made

    def _step(self, node: ast.Step) -> Symbolic:
        old = self.lift(node.target)
        one = Number(Index.of(node.delta))
        if isinstance(node.type, PointerType):
            new: Symbolic = self.moved(old, one, INT, node.type.element, node.span)
        elif isinstance(node.type, Scalar):
            amount: Symbolic = one
            if node.type.is_float:
                amount = self.lift(ast.Literal(float(node.delta), node.type, node.span))
            new = self.arithmetic("add", old, amount, node.type, node.type, node.span)
        else:
            raise self.not_lifted(f"a step of {node.type}", node.span)
        self.write(node.target, new, node.span)
        return new if node.prefix else old
