"""Calls whose only effect is their result, as statements of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from migrate.facts.nki import briefs
from migrate.nki.operators import OPERATORS
from migrate.nki.scans import Text
from migrate.nki.values import Problem
from migrate.python_text import span_of

CODES = frozenset({"result-dropped"})

_LANGUAGE: Final = "nki.language"

_PURE: Final = frozenset({
    "load", "load_transpose2d", "transpose", "matmul", "softmax", "rms_norm", "sum", "max", "min",
    "mean", "var", "prod", "where", "copy", "zeros", "ones", "full", "zeros_like", "expand_dims",
    "broadcast_to", "all", "arange",
})  # fmt: skip
"""Functions of `nki.language`, operators apart, that give a tile and change nothing."""


def scan(text: Text) -> Iterator[Problem]:
    """Code `result-dropped`: `nl.add(a, b)` as a statement."""
    aliases = _aliases(text.module.tree)
    for function in text.functions:
        for node in ast.walk(function):
            match node:
                case ast.Expr(
                    value=ast.Call(
                        func=ast.Attribute(value=ast.Name(id=alias), attr=name), keywords=given
                    ) as call
                ) if alias in aliases and (name in OPERATORS or name in _PURE):
                    if any(keyword.arg in (None, "dst", "out") for keyword in given):
                        continue
                    if f"{_LANGUAGE}.{name}" not in briefs():
                        continue
                    yield Problem(
                        "result-dropped",
                        f"the result of {alias}.{name} is dropped: nothing changes by this call",
                        span_of(text.module.source, call),
                    )


def _aliases(tree: ast.Module) -> set[str]:
    """Names that stand for `nki.language`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found.update(
                    name.asname
                    for name in names
                    if name.asname and name.name.removeprefix("neuronxcc.") == _LANGUAGE
                )
            case ast.ImportFrom(module=str(module), names=names) if (
                module.removeprefix("neuronxcc.") == "nki"
            ):
                found.update(name.asname or name.name for name in names if name.name == "language")
    return found
