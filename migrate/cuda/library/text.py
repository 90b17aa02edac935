"""Library functions written in CUDA, read by the front end itself.

A call becomes a call of a device function whose every part stands at the place of the call: the
text is ours, and nobody who reads a report has it before him.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec

from migrate.cuda.ast import Call, Expression, Function, Name, OpaqueExpression, Storage, Variable
from migrate.cuda.conversions import convert, is_place
from migrate.cuda.origins import Place, Where
from migrate.cuda.parse import Program, parse
from migrate.cuda.types import Plain, Type
from migrate.source import Source, Span

Binding = Type | int | float | bool


@dataclass(frozen=True, slots=True)
class Combine:
    """What a text's `combine(a, b)` or `prefix(a)` is; `functor` is the object it belongs to.

    `apply` gets the values, and the object as it is called where they are.  One that `changes`
    is passed on by reference.
    """

    apply: Callable[[Sequence[Expression], Expression | None], Expression]
    functor: Expression | None = None
    changes: bool = False


_OPERATORS = """
template <typename T> __device__ T combine(T a, T b) { return a; }
template <typename T> __device__ T prefix(T a) { return a; }
"""


FUNCTOR = 1_000_000
"""The id of the parameter through which a function object reaches the functions of a text."""


def inlined(
    text: str,
    function: str,
    bindings: Mapping[str, Binding],
    arguments: Sequence[Expression],
    where: Where,
    name: str,
    combine: Combine | None = None,
    prefix: Combine | None = None,
) -> Expression | str:
    """A call of a function of a text with its template parameters bound; why not, as text.

    `name` is what the report calls it.  Where the text says `combine(a, b)`, the tree gets
    what `combine` makes of the two; so it does for `prefix(a)`.
    """
    made = _instance(_OPERATORS + text, function, tuple(sorted(bindings.items())))
    if isinstance(made, str):
        return f"{name}: {made}"
    if made.issues:
        return f"{name}: {made.issues[0].reason}"
    if len(made.parameters) != len(arguments):
        return f"{name} does not take {len(arguments)} arguments of this kind"
    values: list[Expression] = []
    for parameter, value in zip(made.parameters, arguments, strict=True):
        if parameter.storage == "reference":
            if not is_place(value) or value.type != parameter.type:
                return f"{name} needs a variable of {parameter.type}"
            values.append(value)
            continue
        converted = convert(value, parameter.type)
        if isinstance(converted, OpaqueExpression):
            return f"{name}: {converted.reason}"
        values.append(converted)
    placing = _Placing(where, {"combine": combine, "prefix": prefix})
    placed: Function = msgspec.structs.replace(placing.tree(made), name=name)
    if placing.reason is not None:
        return f"{name}: {placing.reason}"
    return Call(placed, (*values, *placing.functors), placed.result, where)


@functools.lru_cache(maxsize=64)
def _program(text: str) -> Program:
    return parse(Source.of(text, "<library>"))


@functools.lru_cache(maxsize=256)
def _instance(
    text: str, function: str, bindings: tuple[tuple[str, Binding], ...]
) -> Function | str:
    from migrate.cuda.check import instantiate

    return instantiate(_program(text), function, dict(bindings))


class _Placing:
    """Copies a tree to a place, its operators put in.

    A function object of the program is one more parameter of each function; `functors` are
    those objects.  `reason` says why an operator could not be put in.
    """

    def __init__(self, where: Where, operators: Mapping[str, Combine | None]) -> None:
        self._span = where
        self._operators = {name: one for name, one in operators.items() if one is not None}
        self._parameters: dict[str, Variable] = {}
        self.functors: list[Expression] = []
        self.reason: str | None = None
        for name, operator in self._operators.items():
            functor = operator.functor
            if functor is None:
                continue
            storage: Storage = "reference" if operator.changes else "parameter"
            number = FUNCTOR + len(self.functors)
            self._parameters[name] = Variable(number, name, functor.type, storage, where)
            self.functors.append(functor)

    def tree(self, node: Any) -> Any:
        if isinstance(node, tuple):
            return tuple([self.tree(part) for part in node])
        if not isinstance(node, msgspec.Struct) or isinstance(node, Plain):
            return node
        match node:
            case Call() if node.function.name in self._operators:
                values = [self.tree(value) for value in node.arguments]
                return self._applied(node.function.name, values)
            case Call() if self._parameters:
                made = self._copy(node)
                passed = tuple(Name(v, v.type, self._span) for v in self._parameters.values())
                return msgspec.structs.replace(made, arguments=(*made.arguments, *passed))
            case Function() if self._parameters:
                made = self._copy(node)
                parameters = (*made.parameters, *self._parameters.values())
                return msgspec.structs.replace(made, parameters=parameters)
            case _:
                return self._copy(node)

    def _applied(self, name: str, values: list[Expression]) -> Expression:
        functor = self._parameters.get(name)
        held = Name(functor, functor.type, self._span) if functor is not None else None
        made = self._operators[name].apply(values, held)
        converted = convert(made, values[0].type)
        if isinstance(converted, OpaqueExpression):
            self.reason = converted.reason
        return converted

    def _copy(self, node: Any) -> Any:
        kind: type[msgspec.Struct] = type(node)
        return kind(
            *[
                self._span if isinstance(held, Place | Span) else self.tree(held)
                for held in _parts(kind)(node)
            ]
        )


@functools.cache
def _parts(kind: type[msgspec.Struct]) -> Callable[[Any], tuple[Any, ...]]:
    names = kind.__struct_fields__
    if len(names) == 1:
        return lambda node: (getattr(node, names[0]),)
    return attrgetter(*names)
