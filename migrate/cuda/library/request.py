"""One use of a device library, as written: names and syntax nodes, nothing typed yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tree_sitter import Node

from migrate.cuda.ast import Expression, OpaqueExpression, Statement
from migrate.cuda.origins import Where
from migrate.cuda.scope import Scope
from migrate.cuda.types import Library, Scalar, Type, Unknown, Vector


@dataclass(frozen=True, slots=True)
class Request:
    """A call of a library function, or of a member of one of its objects.

    `base` is the object.
    """

    name: str
    template: tuple[Node, ...]
    arguments: tuple[Node, ...]
    node: Node
    scope: Scope
    base: Expression | None = None

    @property
    def where(self) -> Where:
        return self.scope.where(self.node)

    def value(self, position: int) -> Expression:
        """The typed expression of one argument."""
        from migrate.cuda.expressions import expression

        return expression(self.arguments[position], self.scope)

    def values(self) -> list[Expression]:
        return [self.value(position) for position in range(len(self.arguments))]

    def parameter(self, position: int) -> Type | int | float | bool | None:
        """A template argument: a type, or a constant; `None` where it is not written."""
        from migrate.cuda.expressions import template_argument

        if position >= len(self.template):
            return None
        return template_argument(self.template[position], self.scope)

    def constant(self, position: int) -> int | float | bool | None:
        """The constant value of an argument."""
        from migrate.cuda.folding import fold

        if position >= len(self.arguments):
            return None
        mark = len(self.scope.issues)
        value = fold(self.value(position), self.scope.known)
        del self.scope.issues[mark:]
        return value

    def text(self, position: int) -> str:
        return self.scope.text(self.arguments[position])

    def opaque(self, reason: str, kind: Type | None = None) -> OpaqueExpression:
        return self.scope.opaque(self.node, reason, kind)


Lowered = Expression | tuple[Statement, ...] | None
"""A value, statements that take the place of the call, or `None`: it is not the library's."""

Handler = Callable[[Request], Lowered]

Parameters = tuple["Type | int | float | bool", ...]

TypeMaker = Callable[[Parameters], "Type | None"]


def thing(kind: Library, text: str, where: Where) -> Expression:
    """An object of a library as an expression.  It has no value: nothing evaluates it."""
    return OpaqueExpression(text, f"an object of {kind} is used as a value", kind, where)


def unclear(values: list[Expression]) -> Expression | None:
    """The first value whose type is not known: it has been reported already."""
    return next((value for value in values if isinstance(value.type, Unknown)), None)


def is_number(kind: Type) -> bool:
    """Whether values of a type are numbers, or short vectors of them."""
    return isinstance(kind, Scalar | Vector)
