"""The operators that collectives combine with: those the libraries name, and the program's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from migrate.cuda.ast import Expression, Intrinsic
from migrate.cuda.conversions import is_place
from migrate.cuda.intrinsics import ELEMENTWISE
from migrate.cuda.library.build import arithmetic, by_component
from migrate.cuda.library.request import Handler, Request, TypeMaker
from migrate.cuda.library.text import Combine
from migrate.cuda.scope import Callee
from migrate.cuda.types import Library, Routine, Scalar, Struct, Unknown, Vector

# cooperative groups (lower case) and cub (capitals); `cuda::std` and `thrust` share these names.
_NAMES: Mapping[str, str] = {
    "plus": "add",
    "less": "minimum_number",
    "greater": "maximum_number",
    "bit_and": "bitwise_and",
    "bit_or": "bitwise_or",
    "bit_xor": "bitwise_xor",
    "multiplies": "multiply",
    "maximum": "maximum_number",
    "minimum": "minimum_number",
    "Sum": "add",
    "Max": "maximum_number",
    "Min": "minimum_number",
}

_EXTREMA = {"maximum_number": ELEMENTWISE["max"], "minimum_number": ELEMENTWISE["min"]}


def combiner(operator: str | Expression, request: Request | None = None) -> Combine | str:
    """How two values are combined: by name, or by a function object; why not, as text."""
    if isinstance(operator, str):
        return _named(operator)
    kind = operator.type
    if isinstance(kind, Library) and kind.name in _NAMES:
        return _named(_NAMES[kind.name])
    if isinstance(kind, Struct) and request is not None:
        return _own(operator, kind, request)
    if isinstance(kind, Routine) and request is not None:
        return _function(kind, request)
    if isinstance(kind, Unknown):
        return "the operator is not understood"
    return f"{kind} as an operator is not understood"


def _named(name: str) -> Combine:
    return Combine(lambda values, _functor: _combined(name, *values))


def _own(
    operator: Expression, kind: Struct, request: Request, *, changes: bool = False
) -> Combine | str:
    """A function object of the program: a class with a call operator, or a lambda."""
    scope = request.scope
    owner = scope.classes.of(kind)
    if owner is None:
        return f"{kind} as an operator is not understood"

    def apply(values: Sequence[Expression], functor: Expression | None) -> Expression:
        callee = Callee("operator()", owner=owner, this=functor)
        return scope.resolver.invoke(callee, list(values), request.node, scope)

    return Combine(apply, operator, changes)


def prefixing(operator: Expression, request: Request) -> Combine | str:
    """A function object that gives what stands before a block's values, and may change."""
    if not isinstance(operator.type, Struct) or not is_place(operator):
        return f"{operator.type} as a prefix is not understood"
    return _own(operator, operator.type, request, changes=True)


def _function(kind: Routine, request: Request) -> Combine:
    """A device function of the program by name."""

    def apply(values: Sequence[Expression], _functor: Expression | None) -> Expression:
        callee = Callee(kind.name)
        return request.scope.resolver.invoke(callee, list(values), request.node, request.scope)

    return Combine(apply)


def _combined(operator: str, left: Expression, right: Expression) -> Expression:
    match left.type:
        case Vector() as kind:
            return by_component(
                operator,
                [left, right],
                lambda pair: _combined(operator, pair[0], pair[1]),
                kind,
                left.where,
            )
        case Scalar() as scalar if operator in _EXTREMA:
            return Intrinsic(_EXTREMA[operator], (left, right), scalar, left.where)
        case _:
            return arithmetic(operator, left, right)


def _maker(name: str) -> TypeMaker:
    return lambda _parameters: Library(name)


FUNCTIONS: Mapping[str, Handler] = {}

MEMBERS: Mapping[str, Handler] = {}

TYPES: Mapping[str, TypeMaker] = {name: _maker(name) for name in _NAMES}
