"""Imports of reviewed code: library modules become tables of names, others unknown.

Nothing is ever imported for real.
"""

from __future__ import annotations

from dataclasses import dataclass

from migrate.nki.values import Namespace, Unknown

STDLIB = frozenset(
    {
        "abc",
        "collections",
        "collections.abc",
        "contextlib",
        "copy",
        "dataclasses",
        "enum",
        "functools",
        "itertools",
        "logging",
        "numbers",
        "operator",
        "os",
        "typing",
        "typing_extensions",
        "warnings",
    }
)
"""Modules of Python's own library of which names are read."""

LEGACY = "neuronxcc"
"""The package that `nki` was a part of in NKI 0.1."""

KNOWN_MODULES = frozenset(
    {
        LEGACY,
        "nki",
        "nki.collectives",
        "nki.compiler",
        "nki.isa",
        "nki.language",
        "nki.typing",
        "numpy",
        "math",
        "ml_dtypes",
        *STDLIB,
    }
)
CONVENTIONAL = (
    ("nki", "nki"),
    ("nl", "nki.language"),
    ("nisa", "nki.isa"),
    ("np", "numpy"),
    ("math", "math"),
)
"""What names mean in a text without imports of NKI."""


_NOT_VALUES = frozenset({"typing", "typing_extensions", "__future__", "collections.abc"})


@dataclass(frozen=True, slots=True)
class Annotation:
    """A context manager that only advises the scheduler (`nl.no_reorder()`)."""

    name: str


def module(path: str) -> object:
    """What the module `path` stands for."""
    path = current(path)
    if path in KNOWN_MODULES:
        return Namespace(path)
    return Unknown(path, "a module outside the reviewed file", None)


def current(path: str) -> str:
    """The path of a module of NKI 0.1 as it is now."""
    if path.startswith(f"{LEGACY}.nki"):
        path = path.removeprefix(f"{LEGACY}.")
    # Kernels name enums as `nki.isa.constants.oob_mode`, too, which no documentation does.
    path = path.replace("nki.isa.constants", "nki.isa", 1)
    return path.replace("nki.language.constants", "nki.language", 1)


def member(path: str, name: str) -> object:
    """What `from path import name` binds."""
    path = current(path)
    inner = current(f"{path}.{name}")
    if inner in KNOWN_MODULES:
        return Namespace(inner)
    if path in KNOWN_MODULES:
        from migrate.nki.library import resolve

        return resolve(path, name)
    reason = "used for types only" if path in _NOT_VALUES else "a module outside the reviewed file"
    return Unknown(inner, reason, None)
