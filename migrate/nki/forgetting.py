"""What an object may hold after a statement that was not understood."""

from __future__ import annotations

import ast

from migrate.nki.objects import Class, Cursor, Generator, Instance, Set
from migrate.nki.values import Function, Unknown

_REASON = "a statement not understood used its object"


def forget(value: Instance) -> None:
    """Make unknown what methods of the object's class may have changed half way.

    Those are the attributes that some method other than its constructors sets, and containers.
    """
    changing = _set_by_methods(value.cls)
    for name, held in value.names.items():
        if name in changing or isinstance(held, list | dict | Set | Cursor | Generator):
            value.names[name] = Unknown(name, _REASON, None)


def _set_by_methods(cls: Class) -> set[str]:
    found: set[str] = set()
    for holder in cls.mro:
        for name, method in holder.names.items():
            if name in ("__init__", "__post_init__") or not isinstance(method, Function):
                continue
            for node in ast.walk(method.node):
                if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                    found.add(node.attr)
    return found
