"""Values in braces, which mean what the type that they initialise makes of them."""

from __future__ import annotations

from tree_sitter import Node

from migrate.cuda.ast import (
    Expression,
    Literal,
    MakeVector,
    OpaqueExpression,
)
from migrate.cuda.definitions import children_of
from migrate.cuda.library.request import thing
from migrate.cuda.objects import (
    MAX_ELEMENTS,
    aggregate,
    construct,
    constructors,
    default_part,
    fitted,
    zero,
)
from migrate.cuda.scope import Scope
from migrate.cuda.types import (
    Array,
    Library,
    Pointer,
    Scalar,
    Struct,
    Type,
    Unknown,
    Vector,
)


def braced(node: Node, kind: Type, scope: Scope) -> Expression:
    """`{a, b}` as a value of a known type."""
    from migrate.cuda.expressions import expression

    if isinstance(kind, Struct):
        return braced_struct(node, kind, scope)
    children = children_of(node)
    where = scope.where(node)
    if isinstance(kind, Library):
        return thing(kind, scope.text(node), where)
    if isinstance(kind, Array) and kind.length is not None and len(children) <= kind.length:
        return _braced_array(children, kind, node, scope)
    values = [
        fitted(expression(child, scope), kind, child, scope)
        if isinstance(kind, Scalar | Pointer)
        else expression(child, scope)
        for child in children
        if child.type != "initializer_list" or not isinstance(kind, Scalar | Vector)
    ]
    if len(values) != len(children):
        return scope.opaque(node, f"braces for {kind} are not understood", kind)
    match kind:
        case Vector(element=element_type, lanes=lanes) if len(values) <= lanes:
            if len(values) == 1 and isinstance(values[0].type, Vector):
                return fitted(values[0], kind, node, scope)
            filler = Literal(1 if kind.name == "dim3" else 0, element_type, where)
            parts = [fitted(value, element_type, node, scope) for value in values]
            parts += [filler] * (lanes - len(parts))
            return MakeVector(tuple(parts), kind, where)
        case Scalar() | Pointer() if len(values) == 1:
            return values[0]
        case Scalar() | Pointer() if not values:
            return zero(kind, where) or scope.opaque(node, "these braces", kind)
        case Unknown():
            return scope.opaque(node, f"the type {kind} is not understood", kind)
        case _:
            return scope.opaque(node, f"braces for {kind} are not understood", kind)


def _braced_array(children: list[Node], kind: Array, node: Node, scope: Scope) -> Expression:
    from migrate.cuda.expressions import expression

    parts = [
        braced(child, kind.element, scope)
        if child.type == "initializer_list"
        else fitted(expression(child, scope), kind.element, child, scope)
        for child in children
    ]
    filler = zero(kind.element, scope.where(node))
    missing = (kind.length or 0) - len(parts)
    if missing and (filler is None or missing > MAX_ELEMENTS):
        return scope.opaque(node, f"braces for {kind} are not understood", kind)
    unclear = next((part for part in parts if isinstance(part, OpaqueExpression)), None)
    if unclear is not None:
        return unclear
    if filler is not None:
        parts += [filler] * missing
    return MakeVector(tuple(parts), kind, scope.where(node))


def braced_struct(node: Node, kind: Struct, scope: Scope) -> Expression:
    """`{a, {b, c}}` as a value of a struct type."""
    from migrate.cuda.expressions import expression

    owner = scope.classes.of(kind)
    children = children_of(node)
    if owner is not None and constructors(owner, scope):
        return construct(kind, [expression(child, scope) for child in children], node, scope)
    if len(children) == 1 and children[0].type != "initializer_list":
        value = expression(children[0], scope)
        if value.type == kind or isinstance(value.type, Unknown):
            return value
        return aggregate(kind, _filled([value], kind, node, scope), node, scope)
    if kind.layout.overlaid:
        return aggregate(kind, [expression(child, scope) for child in children], node, scope)
    if any(child.type == "initializer_pair" for child in children):
        return _designated(children, node, kind, scope)
    rest = list(children)
    parts = [_take(rest, held.type, node, scope) for held in kind.members if rest]
    if rest:
        return scope.opaque(node, f"{kind} has {len(kind.members)} members", kind)
    return aggregate(kind, parts, node, scope)


def _filled(values: list[Expression], kind: Struct, node: Node, scope: Scope) -> list[Expression]:
    """The first member of an aggregate may itself be one: `{0}`."""
    first = kind.members[0].type if kind.members else None
    if isinstance(first, Array | Struct) and values[0].type != first:
        if isinstance(values[0], Literal) and not values[0].value:
            made = zero(first, scope.where(node))
            return [made] if made is not None else values
    return values


def _designated(children: list[Node], node: Node, kind: Struct, scope: Scope) -> Expression:
    from migrate.cuda.expressions import expression

    values: dict[int, Expression] = {}
    for child in children:
        named_node = next((c for c in child.children if c.type == "field_designator"), None)
        value = child.child_by_field_name("value")
        position = kind.index(scope.text(named_node).lstrip(".").strip()) if named_node else None
        if position is None or value is None:
            return scope.opaque(node, f"braces for {kind} are not understood", kind)
        held = kind.members[position].type
        values[position] = (
            braced(value, held, scope)
            if value.type == "initializer_list"
            else fitted(expression(value, scope), held, value, scope)
        )
    parts = [
        values[index] if index in values else default_part(kind, index, node, scope)
        for index in range(len(kind.members))
    ]
    return MakeVector(tuple(parts), kind, scope.where(node))


def _take(rest: list[Node], kind: Type, node: Node, scope: Scope) -> Expression:
    """The value of the next member, which may take several values where braces are left out."""
    from migrate.cuda.expressions import expression

    child = rest[0]
    if child.type == "initializer_list":
        rest.pop(0)
        return braced(child, kind, scope)
    if isinstance(kind, Array) and kind.length is not None and kind.length <= MAX_ELEMENTS:
        filler = zero(kind.element, scope.where(node))
        parts: list[Expression] = []
        for _ in range(kind.length):
            if rest:
                parts.append(_take(rest, kind.element, node, scope))
            elif filler is not None:
                parts.append(filler)
        return MakeVector(tuple(parts), kind, scope.where(node))
    value = expression(child, scope)
    if isinstance(kind, Struct | Vector) and value.type != kind and isinstance(value.type, Scalar):
        if isinstance(kind, Struct):
            parts = [_take(rest, held.type, node, scope) for held in kind.members if rest]
            return aggregate(kind, parts, node, scope)
        taken = [_take(rest, kind.element, node, scope) for _ in range(kind.lanes) if rest]
        taken += [Literal(0, kind.element, scope.where(node))] * (kind.lanes - len(taken))
        return MakeVector(tuple(taken), kind, scope.where(node))
    rest.pop(0)
    return fitted(value, kind, child, scope)


def from_braces(value: MakeVector, to: Type, node: Node, scope: Scope) -> Expression:
    parts = value.parts
    unclear = next((part for part in parts if isinstance(part.type, Unknown)), None)
    match to:
        case Struct():
            return construct(to, parts, node, scope)
        case _ if unclear is not None:
            return unclear
        case Scalar() | Pointer() if len(parts) == 1:
            return fitted(parts[0], to, node, scope)
        case Vector(element=element, lanes=lanes) if len(parts) <= lanes:
            made = [fitted(part, element, node, scope) for part in parts]
            made += [Literal(0, element, value.where)] * (lanes - len(made))
            return MakeVector(tuple(made), to, value.where)
        case _:
            return scope.opaque(node, f"braces for {to} are not understood", to)
