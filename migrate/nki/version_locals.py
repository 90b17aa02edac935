"""What a function's local names hold, where one assignment says so."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

Holds: TypeAlias = Literal["tensor", "register", "other"]

_MAKERS: Final = frozenset(
    f"nki.language.{name}"
    for name in ("ndarray", "zeros", "ones", "full", "zeros_like", "empty_like")
)
_POSITIONS: Final[Mapping[str, tuple[int, int]]] = {
    "nki.language.ndarray": (1, 2),
    "nki.language.zeros": (1, 2),
    "nki.language.ones": (1, 2),
    "nki.language.full": (2, 3),
}
"""Where dtype and buffer stand among positional arguments."""


class Local(Struct, frozen=True):
    """A local name: what it holds; a tensor's buffer and dtype as written, resolved."""

    holds: Holds
    buffer: str | None = None
    dtype: str | None = None


OTHER: Final = Local("other")
Resolve: TypeAlias = Callable[[ast.expr], str | None]
"""An expression as the id of a name of NKI."""


def locals_of(nodes: Iterable[ast.AST], resolve: Resolve) -> dict[str, Local]:
    """The names that a function's nodes assign, `other` where assignments differ or are unclear."""
    found: dict[str, Local] = {}
    clear: set[int] = set()
    stored: list[ast.Name] = []
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name) as target], value=value):
                clear.add(id(target))
                held = _held(value, resolve)
                found[name] = held if found.get(name, held) == held else OTHER
            case ast.AugAssign(target=ast.Name() as target):
                clear.add(id(target))
            case ast.Name(ctx=ast.Store()):
                stored.append(node)
    found.update({node.id: OTHER for node in stored if id(node) not in clear})
    return found


def _held(value: ast.expr, resolve: Resolve) -> Local:
    if not isinstance(value, ast.Call):
        return OTHER
    id = resolve(value.func)  # noqa: A001
    if id == "nki.isa.register_alloc":
        return Local("register")
    if id not in _MAKERS or id is None:
        return OTHER
    given = {k.arg: k.value for k in value.keywords if k.arg is not None}
    dtype, buffer = given.get("dtype"), given.get("buffer")
    first, second = _POSITIONS.get(id, (99, 99))
    if dtype is None and len(value.args) > first:
        dtype = value.args[first]
    if buffer is None and len(value.args) > second:
        buffer = value.args[second]
    if any(k.arg is None for k in value.keywords):
        return Local("tensor")
    return Local(
        "tensor",
        None if buffer is None else resolve(buffer),
        None if dtype is None else resolve(dtype),
    )


def base_of(node: ast.expr) -> str | None:
    """The name that a slice or a view is of."""
    while True:
        match node:
            case ast.Name(id=name):
                return name
            case ast.Subscript(value=value):
                node = value
            case ast.Call(func=ast.Attribute(value=value, attr="ap" | "view" | "reshape")):
                node = value
            case _:
                return None
