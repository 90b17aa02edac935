"""Imports of reviewed code: library modules become tables of names, others unknown.

Nothing is ever imported for real.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from migrate.nki.values import Namespace, Unknown

KNOWN_MODULES = frozenset(
    {
        "nki",
        "nki.isa",
        "nki.language",
        "nki.typing",
        "numpy",
        "math",
        "ml_dtypes",
    }
)
LEGACY = "neuronxcc"
LEGACY_REASON = "the value-returning style of NKI 0.1 (neuronxcc.nki) is not read yet"

_NOT_VALUES = frozenset({"typing", "__future__", "dataclasses", "abc", "collections.abc"})


@dataclass(frozen=True, slots=True)
class Annotation:
    """A context manager that only advises the scheduler (`nl.no_reorder()`)."""

    name: str


def bindings(node: ast.Import | ast.ImportFrom) -> list[tuple[str, object]]:
    """The names an import statement binds and what they stand for."""
    found: list[tuple[str, object]] = []
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname is not None:
                found.append((alias.asname, module(alias.name)))
            else:
                top = alias.name.partition(".")[0]
                found.append((top, module(top)))
        return found
    path = "." * node.level + (node.module or "")
    for alias in node.names:
        found.append((alias.asname or alias.name, _member(path, alias.name)))
    return found


def module(path: str) -> object:
    """What the module `path` stands for."""
    if path in KNOWN_MODULES:
        return Namespace(path)
    if path.partition(".")[0] == LEGACY:
        return Unknown(path, LEGACY_REASON, None)
    return Unknown(path, "a module outside the reviewed file", None)


def _member(path: str, name: str) -> object:
    inner = f"{path}.{name}"
    if inner in KNOWN_MODULES:
        return Namespace(inner)
    if path in KNOWN_MODULES:
        from migrate.nki.library import resolve

        return resolve(path, name)
    if path.partition(".")[0] == LEGACY:
        return Unknown(inner, LEGACY_REASON, None)
    reason = "used for types only" if path in _NOT_VALUES else "a module outside the reviewed file"
    return Unknown(inner, reason, None)
