"""Tests of the index in loops of NKI 0.1, whose bodies are traced once.

An `if` on the index of `nl.affine_range` or `nl.sequential_range` was undefined
(nki/migration/index.rst).  So was a number that the body adds to once; but public kernels count
addresses of allocations so, and mean it.  `nl.static_range` is Python's.
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
                if not isinstance(node, ast.stmt):
                    continue
                message = _message(node, index, iterator)
                if message is None or id(node) in seen:
                    continue
                seen.add(id(node))
                place: ast.expr | ast.stmt = node.test if isinstance(node, ast.If) else node
                yield Problem("traced-once", message, span_of(text.module.source, place))


def _message(node: ast.AST, index: str, iterator: str) -> str | None:
    match node:
        case ast.If(test=ast.Compare() as test) if _reads(test, index):
            return (
                f"the test on {index} is decided once: NKI 0.1 traces the body of"
                f" nl.{iterator} once"
            )
    return None


def _reads(test: ast.expr, index: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == index for part in ast.walk(test))
