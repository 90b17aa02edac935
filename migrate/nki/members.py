"""Attributes and methods of values, by type.

Only what is listed here exists; nothing is ever looked up on a Python object.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from migrate.nki import classes, containers, indices, tensor_methods
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.modules import ProjectModule
from migrate.nki.objects import (
    Bound,
    Class,
    Inert,
    Instance,
    Partial,
    Property,
    Set,
    Super,
)
from migrate.nki.operations import items_of
from migrate.nki.symbols import Number, Origin, constant
from migrate.nki.values import (
    Builtin,
    Function,
    Member,
    Namespace,
    Unknown,
    View,
    describe,
)
from migrate.numerics.dtypes import DType

Host: TypeAlias = Callable[[Frame, tuple[object, ...], dict[str, object], Origin], object]

WHOLE = frozenset(
    {"capitalize", "copy", "count", "endswith", "extend", "find", "format", "index", "insert"}
    | {"items", "join", "keys", "lower", "pop", "remove", "replace", "reverse", "rfind", "rsplit"}
    | {"sort", "split", "splitlines", "startswith", "strip", "title", "update", "upper", "values"}
)
"""Methods that may go through all of what they are called on."""


def attribute(value: object, name: str, origin: Origin) -> object:
    """`value.name`."""
    found: object = None
    match value:
        case Namespace():
            from migrate.nki.library import resolve

            found = resolve(value.path, name)
            if isinstance(found, Unknown):
                raise Unsupported(f"{found.text} is {found.reason}", origin)
            return found
        case View():
            found = tensor_methods.attribute(value, name)
            if found is None:
                raise Unsupported(f"the attribute {name} of a tensor", origin)
            return found
        case indices.Masked():
            if name not in ("shape", "dtype", "ndim", "buffer"):
                raise Unsupported(f"the attribute {name} of a tensor with a mask", origin)
            return attribute(value.view, name, origin)
        case indices.IndexTensor() | indices.IndexGrid():
            return indices.attribute(value, name, origin)
        case list() | dict() | str() | tuple():
            found = containers.method(value, name)
        case Function():
            found = value.code.name if name in ("__name__", "__qualname__") else None
            if name == "func":
                found = value
        case Builtin():
            found = value.name if name in ("__name__", "__qualname__") else None
        case ProjectModule():
            return value.member(name, origin)
        case DType():
            found = str(value) if name in ("name", "__name__") else None
            if name == "type":
                found = value
            if name == "itemsize":
                found = constant(value.bytes, origin)
        case Member():
            found = value.name if name == "name" else None
        case Unknown():
            raise Unsupported(f"{value.text}: {value.reason}", origin)
        case Number() | bool() | None:
            raise KernelFault("type", f"the attribute {name} of {describe(value)}", origin)
    if found is None:
        raise Unsupported(f"the attribute {name} of {describe(value)}", origin)
    return found


def object_attribute(value: object, name: str, frame: Frame, origin: Origin) -> object:
    """`value.name` of a class, an object or what is made of them."""
    found: object = None
    match value:
        case Instance() if (
            (plain := classes.plain(value)) is not value
            and value.cls.find(name) is None
            and name not in value.names
        ):
            # A member of an enum that is also a number or a string.
            return attribute(plain, name, origin)
        case Instance() if value.cls.kind == "tuple" and name in _TUPLE_METHODS:
            return Builtin(name, lambda _, args, words, place: _TUPLE_METHODS[name](
                value, args, words, place
            ))  # fmt: skip
        case Class() if value.kind == "tuple" and name in ("_fields", "_make"):
            fields = value.fields or ()
            if name == "_fields":
                return tuple(field.name for field in fields)
            return Builtin(
                name,
                lambda frame, args, words, place: classes.construct(
                    value, tuple(items_of(args[0], place)) if args else (), words, frame, place
                ),
            )
        case Class() | Instance() | Super():
            return classes.attribute(value, name, frame, origin)
        case Bound():
            if name == "__self__":
                return value.receiver
            if name == "__func__":
                return value.function
            return attribute(value.function, name, origin)
        case Property() if name in ("setter", "getter", "deleter"):
            return Builtin(name, _accessor(value, name))
        case Set():
            found = containers.method(value, name)
        case Inert():
            return Inert(f"{value.name}.{name}")
        case Partial():
            found = {"func": value.function, "args": value.args, "keywords": value.keywords}.get(
                name
            )
    if found is None:
        raise Unsupported(f"the attribute {name} of {describe(value)}", origin)
    return found


def _accessor(value: Property, name: str) -> Host:
    """`@x.setter`, `@x.getter`, `@x.deleter`."""

    def make(
        _: Frame, args: tuple[object, ...], words: dict[str, object], origin: Origin
    ) -> object:
        if len(args) != 1 or words:
            raise KernelFault("type", f"{name} is called with the wrong arguments", origin)
        match name:
            case "setter":
                return replace(value, setter=args[0])
            case "getter":
                return replace(value, getter=args[0])
        return value

    return make


def _replaced(
    value: Instance, args: tuple[object, ...], words: dict[str, object], origin: Origin
) -> object:
    unknown = words.keys() - value.names.keys()
    if args or unknown:
        raise KernelFault(
            "value", f"{value.cls.name} has no field {min(unknown, default='')}", origin
        )
    return Instance(value.cls, {**value.names, **words})


def _as_dictionary(
    value: Instance, args: tuple[object, ...], words: dict[str, object], origin: Origin
) -> object:
    if args or words:
        raise KernelFault("type", "_asdict takes no arguments", origin)
    return dict(value.names)


_TUPLE_METHODS: dict[
    str, Callable[[Instance, tuple[object, ...], dict[str, object], Origin], object]
] = {"_replace": _replaced, "_asdict": _as_dictionary}
