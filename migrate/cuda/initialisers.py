"""What a constructor does before its body: its bases and members in their order."""

from __future__ import annotations

from tree_sitter import Node

from migrate.cuda import objects
from migrate.cuda.ast import (
    Assign,
    Component,
    Evaluate,
    Expression,
    Literal,
    Statement,
)
from migrate.cuda.classes import Class
from migrate.cuda.conversions import address
from migrate.cuda.definitions import (
    children_of,
    method_name,
)
from migrate.cuda.expressions import expression
from migrate.cuda.scope import Callee, Scope
from migrate.cuda.types import (
    INT,
    Pointer,
    Struct,
    Unknown,
)


def initialisers(node: Node, owner: Class | None, scope: Scope) -> list[Statement]:
    """What a constructor does before its body: members from its list, then by default."""
    if owner is None or scope.this is None:
        return []
    name, _ = method_name(node, scope.text)
    kind = scope.this.type
    if name != owner.constructor or not isinstance(kind, Struct):
        return []
    made: list[Expression] = []
    given: set[str] = set()
    listed = next((c for c in node.children if c.type == "field_initializer_list"), None)
    for child in children_of(listed):
        made.append(_initializer(child, kind, given, owner, scope))
    if kind.name not in given:
        rest = objects.member_defaults(scope.this, kind, node, scope, frozenset(given))
        made = rest + made
    waiting, scope.pending = scope.pending, []
    where = scope.where(node)
    return [*waiting, *(Evaluate(value, where) for value in made)]


def _initializer(
    node: Node, kind: Struct, given: set[str], owner: Class, scope: Scope
) -> Expression:
    assert scope.this is not None
    parts = children_of(node)
    if len(parts) != 2:
        return scope.opaque(node, "this initialiser is not understood")
    where = scope.where(node)
    name = scope.text(parts[0])
    values = parts[-1]
    position = kind.index(name)
    if position is None:
        return _base(parts[0], values, given, owner, kind, node, scope)
    given.add(name)
    held = kind.members[position]
    target = Component(scope.this, position, held.type, where)
    if isinstance(held.type, Unknown):
        return scope.opaque(node, f"the type {held.type} of {name} is not understood")
    if isinstance(held.type, Pointer) and scope.classes.is_reference(kind, name):
        listed = children_of(values)
        place = expression(listed[0], scope) if len(listed) == 1 else None
        found = address(place) if place is not None else None
        if found is None:
            return scope.opaque(node, f"what {name} refers to is not understood")
        return Assign(target, None, found, held.type, held.type, where)
    if isinstance(held.type, Struct) and values.type == "argument_list":
        arguments = [expression(child, scope) for child in children_of(values)]
        value = objects.construct(held.type, arguments, node, scope)
    else:
        listed = children_of(values)
        if values.type == "argument_list" and len(listed) == 1:
            value = objects.fitted(expression(listed[0], scope), held.type, node, scope)
        elif values.type == "initializer_list":
            value = objects.initialised(values, held.type, scope, scope)
        else:
            made = objects.zero(held.type, where)
            value = made or scope.opaque(node, f"an empty {held.type} is not understood")
    if isinstance(value.type, Unknown):
        return value
    return Assign(target, None, value, held.type, held.type, where)


def _base(
    named: Node,
    values: Node,
    given: set[str],
    owner: Class,
    kind: Struct,
    node: Node,
    scope: Scope,
) -> Expression:
    """The constructor of a base, on the same object, or another of the same class."""
    name = scope.text(named.child_by_field_name("name") or named)
    arguments = [expression(child, scope) for child in children_of(values)]
    if name == owner.constructor:
        given.add(kind.name)
        callee = Callee(owner.constructor, owner=owner, this=scope.this)
        return scope.resolver.invoke(callee, arguments, node, scope)
    base = next((b for b in owner.bases if name in (b.constructor, b.type.name)), None)
    if base is None:
        return scope.opaque(node, f"{kind} has no member {name}")
    if not objects.constructors(base, scope):
        if not arguments:
            return Literal(0, INT, scope.where(node))
        return scope.opaque(node, f"the construction of {base.type} is not understood")
    given |= {member.name for member in base.type.members}
    return scope.resolver.invoke(
        Callee(base.constructor, owner=base, this=scope.this), arguments, node, scope
    )
