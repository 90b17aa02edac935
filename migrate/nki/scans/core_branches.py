"""Barriers and exchanges that only some of the cores come to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from migrate.nki.scans import Text
from migrate.nki.values import Problem
from migrate.python_text import span_of

CODES = frozenset({"core-branch"})

_MEETING: Final = frozenset({
    "core_barrier", "sendrecv", "all_reduce", "all_gather", "reduce_scatter", "all_to_all",
    "all_to_all_v", "collective_permute", "dynamic_range", "fori_loop", "while_loop",
})  # fmt: skip
"""What all cores must come to: barriers, exchanges, and loops that the device counts."""


def scan(text: Text) -> Iterator[Problem]:
    """Code `core-branch`, at the call: under an `if` on `program_id`, or on a name that is one.

    With both branches alike all cores come to such a call; then nothing is said.
    """
    for function in text.functions:
        ids = _ids(function)
        for branch in ast.walk(function):
            if not isinstance(branch, ast.If) or not _on_core(branch.test, ids):
                continue
            here, there = _calls(branch.body), _calls(branch.orelse)
            if sorted(name for name, _ in here) == sorted(name for name, _ in there):
                continue
            for name, call in (*here, *there):
                yield Problem(
                    "core-branch",
                    f"{name} stands under a condition on the program's id: only some of the"
                    " cores come to it",
                    span_of(text.module.source, call),
                    sources=(span_of(text.module.source, branch.test),),
                )


def _ids(function: ast.FunctionDef) -> set[str]:
    """Names that are always the program's id."""
    found: set[str] = set()
    other: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    (found if _is_id(node.value) else other).add(target.id)
    return found - other


def _is_id(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="program_id") | ast.Name(id="program_id")):
            return True
    return False


def _on_core(test: ast.expr, ids: set[str]) -> bool:
    """`program_id(0) == 0` and the like, alone."""
    match test:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
            sides = (left, right)
            return any(
                _is_id(side) or (isinstance(side, ast.Name) and side.id in ids) for side in sides
            ) and any(isinstance(side, ast.Constant) for side in sides)
    return False


def _calls(body: list[ast.stmt]) -> list[tuple[str, ast.Call]]:
    found: list[tuple[str, ast.Call]] = []
    for statement in body:
        for node in ast.walk(statement):
            match node:
                case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if (
                    name in _MEETING
                ):
                    found.append((name, node))
    return found
