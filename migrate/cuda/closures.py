"""Lambdas: a class with a call operator, as in C++, and where its captures are.

A lambda with a name is called with its captures as reference parameters of their own, so
that no address is taken; one that is passed on is a struct of its captures, pointers for
those by reference.
"""

from __future__ import annotations

from tree_sitter import Node

from migrate.cuda.ast import Address, Declare, Expression, MakeVector, Name, Variable
from migrate.cuda.classes import Class
from migrate.cuda.definitions import children_of
from migrate.cuda.parse import Definition
from migrate.cuda.scope import Capture, Closure, Scope
from migrate.cuda.syntax import identifiers
from migrate.cuda.types import Layout, Member, Pointer, Struct, Type

CALL = "operator()"
THIS = "this"


def closure(node: Node, scope: Scope) -> Closure:
    """The closure that a lambda expression makes, its copies taken before this statement."""
    specifier = node.child_by_field_name("captures")
    explicit: dict[str, bool] = {}
    default: bool | None = None
    for child in children_of(specifier):
        text = scope.text(child)
        if child.type == "lambda_default_capture":
            default = text == "&"
        elif child.type == "identifier":
            explicit[text] = False
        elif text.startswith("&"):
            explicit[text[1:].strip()] = True
        else:
            explicit[text.strip()] = True
    names = dict(explicit)
    if default is not None:
        body = node.child_by_field_name("body")
        for name in identifiers(body) if body is not None else ():
            names.setdefault(name, default)
    captures: list[Capture] = []
    for name, by_reference in names.items():
        found = scope.lookup(name)
        if not isinstance(found, Variable) or found.id < 0 or found.id in scope.known:
            continue
        variable = found
        if not by_reference:
            variable = Variable(scope.next_id, name, found.type, "local", scope.where(node))
            scope.next_id += 1
            initial = Name(found, found.type, scope.where(node))
            scope.pending.append(Declare(variable, initial, scope.where(node)))
        captures.append(Capture(name, by_reference, variable))
    return Closure(_kind(node, tuple(captures), scope), tuple(captures))


def _kind(node: Node, captures: tuple[Capture, ...], scope: Scope) -> Struct:
    members: list[Member] = []
    at = 0
    align = 1
    for capture in captures:
        kind = Pointer(capture.variable.type) if capture.by_reference else capture.variable.type
        start = -(-at // kind.align) * kind.align
        members.append(Member(capture.name, kind, start))
        at = start + kind.size
        align = max(align, kind.align)
    layout = Layout(tuple(members), max(-(-at // align) * align, 1), align)
    layout.parts = sum(_parts(member.type) for member in members)
    layout.depth = 1 + max((_depth(member.type) for member in members), default=0)
    span = scope.where(node).span
    title = f"lambda of line {span.start_line}"
    made = Class(
        Struct(title, scope.classes.unique(f"lambda:{node.start_byte}"), layout),
        node,
        dict(scope.types),
        {},
        around=scope.snapshot(),
        outer=scope.inside,
        captures={capture.name: capture.by_reference for capture in captures},
    )
    made.methods[CALL] = [Definition(CALL, "device", node, (), span)]
    scope.classes.register(made)
    return made.type


def _parts(kind: Type) -> int:
    return 1 + kind.layout.parts if isinstance(kind, Struct) else 1


def _depth(kind: Type) -> int:
    return kind.layout.depth if isinstance(kind, Struct) else 0


def value(found: Closure, node: Node, scope: Scope) -> Expression:
    """The closure as an object, to be passed on."""
    where = scope.where(node)
    parts: list[Expression] = []
    for capture in found.captures:
        held = Name(capture.variable, capture.variable.type, where)
        parts.append(Address(held, Pointer(held.type), where) if capture.by_reference else held)
    return MakeVector(tuple(parts), found.kind, where)
