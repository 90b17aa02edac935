"""What a piece of a typed tree assigns, and how it can end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, TypeVar

import msgspec

from migrate.cuda import ast
from migrate.cuda.origins import Place
from migrate.cuda.types import Array, Plain, Pointer, Scalar, scalar_of
from migrate.source import Span

_LEAVES = (Place, Span, ast.Variable, ast.Function, Plain)

_NO_NODES = frozenset({"where", "top", "type", "compute"})
"""Fields of nodes that hold no nodes."""


@cache
def _inner(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields of a kind of node that may hold others, the last one first."""
    return tuple(name for name in reversed(kind.__struct_fields__) if name not in _NO_NODES)


Answer = TypeVar("Answer")


class Scans:
    """Answers about the nodes of one tree, each found once: a loop's rounds ask again."""

    def __init__(self) -> None:
        self._found: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    def once(self, ask: Callable[..., Answer], node: Any, *more: Any) -> Answer:
        """What `ask` says of a node, not to be changed."""
        key = (ask, id(node), *more)
        found = self._found.get(key)
        if found is None:
            # The node is kept with the answer, so that its identity stays its own.
            found = self._found[key] = (node, ask(node, *more))
        answer: Answer = found[1]
        return answer


def nodes(*roots: Any) -> Iterator[Any]:
    """Every node of the trees, outer before inner; callees are not entered."""
    pending = list(reversed(roots))
    while pending:
        node = pending.pop()
        if isinstance(node, tuple):
            pending.extend(reversed(node))
            continue
        if not isinstance(node, msgspec.Struct) or isinstance(node, _LEAVES):
            continue
        yield node
        pending += [getattr(node, name) for name in _inner(type(node))]


def assigned(*roots: Any) -> Counter[int]:
    """Ids of the variables that are assigned, and how often in the text."""
    found: Counter[int] = Counter()
    for node in nodes(*roots):
        match node:
            case ast.Assign(target=target) | ast.Step(target=target):
                _count(target, found)
            case ast.Declare(variable=variable):
                found[variable.id] += 1
            case ast.Address(place=place):
                _count(place, found, 2)
            case ast.WarpContract(d=places):
                for place in places:
                    _count(place, found, 2)
            case ast.Opaque(changed=changed) | ast.OpaqueExpression(changed=changed):
                for identity in changed:
                    found[identity] += 2
            case ast.Call(function=function, arguments=arguments):
                for parameter, argument in zip(function.parameters, arguments, strict=False):
                    if parameter.storage == "reference" and not parameter.const:
                        _count(argument, found, 2)
    return found


def _count(place: Any, found: Counter[int], times: int = 1) -> None:
    while isinstance(place, ast.Component):
        place = place.base
    if isinstance(place, ast.Name):
        found[place.variable.id] += times


def addressed(*roots: Any) -> frozenset[int]:
    """Ids of the variables whose address is taken."""
    found: set[int] = set()
    for node in nodes(*roots):
        if isinstance(node, ast.Address):
            place: Any = node.place
            while isinstance(place, ast.Component):
                place = place.base
            if isinstance(place, ast.Name):
                found.add(place.variable.id)
    return frozenset(found)


def views(*roots: Any) -> set[Scalar]:
    """The types of scalars that pointers to bytes are converted to pointers to."""
    found: dict[Any, Scalar] = {}
    for node in nodes(*roots):
        match node:
            case ast.Cast(type=Pointer(element=to), operand=operand):
                held = operand.type.element if isinstance(operand.type, Pointer | Array) else None
                scalar = scalar_of(to)
                if isinstance(held, Scalar) and held.size == 1 and scalar is not None:
                    if scalar.size > 1:
                        found.setdefault(scalar.dtype, scalar)
    return set(found.values())


def names(*roots: Any) -> set[int]:
    """Ids of the variables that are named."""
    return {node.variable.id for node in nodes(*roots) if isinstance(node, ast.Name)}


def stores(*roots: Any) -> bool:
    """Whether memory may be written: a store, an atomic, or a call."""
    for node in nodes(*roots):
        match node:
            case ast.Assign(target=target) | ast.Step(target=target):
                while isinstance(target, ast.Component):
                    target = target.base
                if not isinstance(target, ast.Name) or target.variable.storage == "reference":
                    return True
            case ast.Atomic() | ast.Call() | ast.Opaque() | ast.OpaqueExpression():
                return True
            case ast.WarpContract():
                return True
    return False


def leaves(statement: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a statement holds a `return`, or a `break` or `continue` of its own loop."""
    # What a `break` or a `continue` met below would belong to.
    pending: list[tuple[Any, tuple[type, ...]]] = [(statement, (ast.Break, ast.Continue))]
    while pending:
        node, own = pending.pop()
        if isinstance(node, ast.Return) and ast.Return in kinds:
            return True
        if isinstance(node, own) and type(node) in kinds:
            return True
        match node:
            case ast.Block(body=body):
                pending += [(item, own) for item in body]
            case ast.If(then=then, otherwise=otherwise):
                pending.append((then, own))
                if otherwise is not None:
                    pending.append((otherwise, own))
            case ast.Loop(body=body):
                pending.append((body, ()))
            case ast.Switch(cases=cases):
                inside = tuple(kind for kind in own if kind is not ast.Break)
                pending += [(item, inside) for case in cases for item in case.body]
    return False


def statements(*roots: Iterable[Any] | Any) -> Iterator[Any]:
    """Every statement that does something, blocks left out."""
    kinds = (
        ast.Declare,
        ast.Evaluate,
        ast.If,
        ast.Loop,
        ast.Switch,
        ast.Break,
        ast.Continue,
        ast.Return,
        ast.Barrier,
        ast.WarpContract,
        ast.AsyncCopy,
        ast.AsyncGroup,
        ast.Opaque,
    )
    for node in nodes(*roots):
        if isinstance(node, kinds):
            yield node


def places(statement: Any) -> frozenset[Span]:
    """Where the statements are that a statement holds, its own place among them."""
    return frozenset(inner.span for inner in statements(statement))


def flattened(expression: Any) -> Iterator[Any]:
    """The parts of a comma expression in order."""
    pending = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Comma):
            pending += [node.second, node.first]
        elif node is not None:
            yield node
