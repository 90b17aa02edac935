"""Loops of NKI 0.1 whose bodies are traced once, with Python that counts on each iteration.

In NKI 0.1 the body of `nl.affine_range` and `nl.sequential_range` was traced once: a number that
the body adds to was added to once, and an `if` on the index was decided once
(nki/migration/index.rst).  `range` and `nl.static_range` are Python's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from migrate.nki.scans import Text
from migrate.nki.values import Problem
from migrate.python_text import span_of

CODES = frozenset({"traced-once"})

_TRACED: Final = frozenset({"affine_range", "sequential_range"})


def scan(text: Text) -> Iterator[Problem]:
    """Code `traced-once`, at the `if` or the assignment."""
    if text.module.generation != "0.1":
        return
    for function in text.functions:
        numbers = _numbers(function)
        seen: set[int] = set()
        for loop in ast.walk(function):
            match loop:
                case ast.For(
                    target=ast.Name(id=index),
                    iter=ast.Call(func=ast.Attribute(attr=iterator) | ast.Name(id=iterator)),
                ) if iterator in _TRACED:
                    pass
                case _:
                    continue
            for node in ast.walk(loop):
                message = _message(node, index, iterator, numbers)
                if message is None or id(node) in seen:
                    continue
                seen.add(id(node))
                place = node.test if isinstance(node, ast.If) else node
                yield Problem("traced-once", message, span_of(text.module.source, place))


def _message(node: ast.AST, index: str, iterator: str, numbers: set[str]) -> str | None:
    match node:
        case ast.If(test=ast.Compare() as test) if _reads(test, index):
            return (
                f"the test on {index} is decided once: NKI 0.1 traces the body of"
                f" nl.{iterator} once"
            )
        case ast.AugAssign(target=ast.Name(id=name)) if name in numbers:
            return f"{name} is added to once: NKI 0.1 traces the body of nl.{iterator} once"
    return None


def _reads(test: ast.expr, index: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == index for part in ast.walk(test))


def _numbers(function: ast.FunctionDef) -> set[str]:
    """Names that begin as a number, and are assigned nothing else."""
    found: set[str] = set()
    other: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    constant = isinstance(node.value, ast.Constant)
                    (found if constant else other).add(target.id)
    return found - other
