"""Which of the two styles of NKI a kernel is written in.

In NKI 0.1 (`neuronxcc.nki`) instructions return tiles; later (`nki`) they fill the destination
they are given.  A file may have both, with one namespace as a fallback for the other.
"""

from __future__ import annotations

import ast
from weakref import WeakKeyDictionary

from migrate.nki.parse import Kernel, Module

_LEGACY_ONLY = frozenset({"arange", "mgrid", "par_dim", "loop_reduce", "static_cast"})
"""Functions of `nki.language` that later versions do not have."""


def returns_tiles(module: Module, kernel: Kernel) -> bool:
    """Whether the instructions of a kernel return tiles."""
    if module.generation == "0.1":
        return True
    found = _STYLES.get(kernel.node)
    if found is None:
        if module.generation is None:
            found = _used_as_values(kernel.node)
        else:
            found = _only_legacy_names(module.tree, kernel.node)
        _STYLES[kernel.node] = found
    return found


_STYLES: WeakKeyDictionary[ast.FunctionDef, bool] = WeakKeyDictionary()


def _used_as_values(node: ast.FunctionDef) -> bool:
    """By how `nisa` is called: for a value, or for its effect with a destination."""
    values = effects = 0
    for part in ast.walk(node):
        match part:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="nisa")))):
                effects += 2
            case ast.Call(func=ast.Attribute(value=ast.Name(id="nisa")), keywords=keywords):
                values += not any(word.arg == "dst" for word in keywords)
            case ast.Attribute(value=ast.Name(id="nl"), attr=name) if name in _LEGACY_ONLY:
                values += 1
    # An instruction that stands alone is counted as a call too.
    return values > effects


def _only_legacy_names(tree: ast.Module, node: ast.FunctionDef) -> bool:
    """Whether every namespace that the kernel uses is one of NKI 0.1."""
    found = _NAMESPACES.get(tree)
    if found is None:
        found = _NAMESPACES[tree] = _namespaces(tree)
    old, new = found
    used = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return bool(used & old) and not used & new


_NAMESPACES: WeakKeyDictionary[ast.Module, tuple[frozenset[str], frozenset[str]]] = (
    WeakKeyDictionary()
)


def _namespaces(tree: ast.Module) -> tuple[frozenset[str], frozenset[str]]:
    """The names of a file that are of NKI 0.1, and those of later versions."""
    old: set[str] = set()
    new: set[str] = set()
    for part in ast.walk(tree):
        match part:
            case ast.Import(names=names):
                for alias in names:
                    _sort(alias.name, alias.asname or alias.name.partition(".")[0], old, new)
            case ast.ImportFrom(module=str(path), names=names, level=0):
                for alias in names:
                    _sort(f"{path}.{alias.name}", alias.asname or alias.name, old, new)
    return frozenset(old), frozenset(new)


def _sort(path: str, name: str, old: set[str], new: set[str]) -> None:
    if path.startswith("neuronxcc.nki"):
        old.add(name)
    elif path == "nki" or path.startswith("nki."):
        new.add(name)
