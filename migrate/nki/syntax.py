"""Questions about syntax trees, and about what values hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from migrate.nki.objects import Instance, definition
from migrate.nki.operations import MAX_NESTING
from migrate.nki.values import View

MAX_VIEWS = 64
"""Views an opaque statement is taken to touch at most; past it, it touches everything."""


def own_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a body and its blocks, without those of inner functions."""
    pending = list(reversed(body))
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            continue
        for field in ("body", "orelse", "finalbody"):
            pending.extend(reversed(getattr(node, field, [])))
        for handler in getattr(node, "handlers", []):
            pending.extend(reversed(handler.body))
        for case in getattr(node, "cases", []):
            pending.extend(reversed(case.body))


def bound_names(node: ast.stmt) -> Iterator[str]:
    """Names that a statement itself binds (not those of the blocks in it)."""
    targets: list[ast.expr] = []
    match node:
        case ast.Assign():
            targets = node.targets
        case ast.AugAssign() | ast.AnnAssign() | ast.For():
            targets = [node.target]
        case ast.With():
            targets = [item.optional_vars for item in node.items if item.optional_vars]
        case ast.Delete():
            targets = node.targets
        case ast.Match():
            for pattern in (inner for case in node.cases for inner in ast.walk(case.pattern)):
                name = getattr(pattern, "name", None) or getattr(pattern, "rest", None)
                if isinstance(name, str):
                    yield name
        case ast.Try():
            for handler in node.handlers:
                if handler.name is not None:
                    yield handler.name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import() | ast.ImportFrom():
            for alias in node.names:
                if alias.name != "*":
                    yield alias.asname or alias.name.partition(".")[0]
    for target in targets:
        for inner in ast.walk(target):
            if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
                yield inner.id
    for field in ("value", "test", "iter", "exc", "msg", "subject"):
        part = getattr(node, field, None)
        if isinstance(part, ast.expr):
            for inner in ast.walk(part):
                if isinstance(inner, ast.NamedExpr):
                    yield inner.target.id


def views_in(
    value: object, found: list[View], depth: int = 0, seen: set[int] | None = None
) -> None:
    """The tensors in a value, at most `MAX_VIEWS` and some."""
    if depth > MAX_NESTING or len(found) > MAX_VIEWS:
        return
    seen = seen if seen is not None else set()
    match value:
        case View():
            found.append(value)
            return
        case tuple() | list():
            items = list(value[: MAX_VIEWS + 1])
        case dict():
            items = list(islice(value.values(), MAX_VIEWS + 1))
        case Instance():
            items = list(islice(value.names.values(), MAX_VIEWS + 1))
        case _:
            return
    if id(value) not in seen:
        seen.add(id(value))
        for item in items:
            views_in(item, found, depth + 1, seen)


def as_load(target: ast.expr) -> ast.expr:
    """The target of an augmented assignment as an expression to read."""
    match target:
        case ast.Name(id=name):
            node: ast.expr = ast.Name(id=name, ctx=ast.Load())
        case ast.Subscript(value=value, slice=key):
            node = ast.Subscript(value=value, slice=key, ctx=ast.Load())
        case ast.Attribute(value=value, attr=name):
            node = ast.Attribute(value=value, attr=name, ctx=ast.Load())
        case _:
            return target
    return ast.copy_location(node, target)


def yields(body: list[ast.stmt]) -> int:
    """How many `yield` a function with this body has of its own."""
    pending: list[ast.AST] = list(body)
    count = 0
    while pending:
        node = pending.pop()
        count += isinstance(node, ast.Yield | ast.YieldFrom)
        if not definition(node):
            pending.extend(ast.iter_child_nodes(node))
    return count


def depth_of(node: ast.AST) -> int:
    deepest = 0
    pending: list[tuple[ast.AST, int]] = [(node, 1)]
    while pending:
        inner, depth = pending.pop()
        deepest = max(deepest, depth)
        pending.extend((child, depth + 1) for child in ast.iter_child_nodes(inner))
    return deepest
