"""Tiles of NKI 0.1 that are used outside of the loop or branch that made them.

NKI 0.1 refused a local outside of the `for` or `if` that it was assigned in
(general/nki/api/nki.errors.rst, 2.26).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.nki.scans import Text
from migrate.nki.values import Problem
from migrate.python_text import span_of

CODES = frozenset({"out-of-scope"})


def scan(text: Text) -> Iterator[Problem]:
    """Code `out-of-scope`, at the first use after the loop or branch.

    Only names whose every assignment is a call of NKI in one loop or branch are looked at.
    """
    if text.module.generation != "0.1":
        return
    for function in text.functions:
        yield from _block(text, function, function.body)


def _block(text: Text, function: ast.FunctionDef, body: list[ast.stmt]) -> Iterator[Problem]:
    for position, statement in enumerate(body):
        if not isinstance(statement, ast.For | ast.If):
            continue
        inside = {id(node) for node in ast.walk(statement)}
        made = {
            name
            for name, nodes in _tiles(statement).items()
            if nodes and not _outside(function, name, inside)
        }
        for later in body[position + 1 :]:
            for node in ast.walk(later):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    if node.id in made:
                        made.discard(node.id)
                        yield Problem(
                            "out-of-scope",
                            f"{node.id} is a tile of the loop or branch before: NKI 0.1 has no"
                            " such name here",
                            span_of(text.module.source, node),
                            sources=(span_of(text.module.source, _tiles(statement)[node.id][0]),),
                        )
        for nested in (statement.body, statement.orelse):
            yield from _block(text, function, nested)


def _tiles(statement: ast.stmt) -> dict[str, list[ast.expr]]:
    """Names that calls of `nl` and `nisa` are assigned to."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(statement):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name) as target],
                value=ast.Call(func=ast.Attribute(value=ast.Name(id="nl" | "nisa"))),
            ):
                found.setdefault(name, []).append(target)
    return found


def _outside(function: ast.FunctionDef, name: str, inside: set[int]) -> bool:
    """Whether the name is assigned elsewhere too, or is a parameter."""
    for node in ast.walk(function):
        if isinstance(node, ast.arg) and node.arg == name:
            return True
        if isinstance(node, ast.Name) and node.id == name and id(node) not in inside:
            if not isinstance(node.ctx, ast.Load):
                return True
    return False
