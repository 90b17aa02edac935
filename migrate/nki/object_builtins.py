"""Python's built-in functions for classes, objects and iterators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from migrate.nki import classes, containers, generators, members
from migrate.nki.builtins import BUILTINS as HOSTS
from migrate.nki.builtins import positional
from migrate.nki.calls import call
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.exceptions import EXCEPTIONS
from migrate.nki.formatting import formatted, represented
from migrate.nki.frames import Frame
from migrate.nki.objects import (
    MISSING,
    OBJECTS,
    Bound,
    Class,
    ClassMethod,
    Cursor,
    Generator,
    Instance,
    Partial,
    Property,
    Set,
    Static,
    Super,
)
from migrate.nki.operations import items_of, iteration, key_of, number, truth
from migrate.nki.symbols import Number, Origin, constant
from migrate.nki.values import (
    MAX_ITEMS,
    Builtin,
    Function,
    Instructive,
    Iteration,
    Range,
    Slice,
    View,
    describe,
)

Args: TypeAlias = tuple[object, ...]
Words: TypeAlias = dict[str, object]

_TYPES: dict[str, Callable[[object], bool]] = {
    "bool": lambda value: isinstance(value, bool),
    "dict": lambda value: isinstance(value, dict),
    "float": lambda value: isinstance(value, Number) and not value.integral,
    "frozenset": lambda value: isinstance(value, Set) and value.frozen,
    "int": lambda value: isinstance(value, bool) or (isinstance(value, Number) and value.integral),
    "list": lambda value: isinstance(value, list),
    "object": lambda _: True,
    "range": lambda value: isinstance(value, Range),
    "set": lambda value: isinstance(value, Set) and not value.frozen,
    "slice": lambda value: isinstance(value, Slice),
    "str": lambda value: isinstance(value, str),
    "tensor": lambda value: isinstance(value, View),
    "tuple": lambda value: isinstance(value, tuple),
    "type": lambda value: isinstance(value, Class),
}


def is_kind(value: object, kind: object, origin: Origin) -> bool:
    """`isinstance(value, kind)` for one kind.  Raises `Unsupported` for what is no type."""
    if isinstance(value, Instance):
        if isinstance(kind, Class):
            if value.cls.derives(kind):
                return True
            if value.cls.stranger is not None:
                raise Unsupported(f"isinstance of an object of {value.cls.name}", origin)
            return False
        mixed = classes.plain(value)
        if mixed is not value:
            return is_kind(mixed, kind, origin)
        if isinstance(kind, Builtin) and kind.name == "tuple":
            return value.cls.kind == "tuple"
    if isinstance(kind, Class):
        return False
    test = _TYPES.get(kind.name) if isinstance(kind, Builtin) else None
    if test is None:
        raise Unsupported(f"isinstance of {describe(kind)}", origin)
    return test(value)


def _kinds(kinds: object) -> list[object]:
    found: list[object] = []
    pending = [kinds]
    while pending:
        kind = pending.pop()
        if isinstance(kind, tuple):
            pending.extend(kind[:MAX_ITEMS])
        else:
            found.append(kind)
    return found[::-1]


def _isinstance(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    value, kinds = positional("isinstance", args, words, origin, 2)
    return any(is_kind(value, kind, origin) for kind in _kinds(kinds))


def _issubclass(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    cls, kinds = positional("issubclass", args, words, origin, 2)
    if not isinstance(cls, Class):
        raise Unsupported(f"issubclass of {describe(cls)}", origin)
    if cls.stranger is not None:
        raise Unsupported(f"issubclass of {cls.name}: {cls.stranger.reason}", origin)
    return any(isinstance(kind, Class) and cls.derives(kind) for kind in _kinds(kinds))


def _type(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    (value,) = positional("type", args, words, origin, 1)
    match value:
        case Instance():
            return value.cls
        case bool():
            return BUILTINS["bool"]
        case Number():
            return BUILTINS["int" if value.integral else "float"]
        case str() | list() | tuple() | dict():
            return BUILTINS[type(value).__name__]
        case Set():
            return BUILTINS["frozenset" if value.frozen else "set"]
    raise Unsupported(f"type of {describe(value)}", origin)


def attribute(value: object, name: str, frame: Frame, origin: Origin) -> object:
    """`value.name`, whatever the value is."""
    if isinstance(value, OBJECTS):
        return members.object_attribute(value, name, frame, origin)
    return members.attribute(value, name, origin)


def _word(value: object, origin: Origin) -> str:
    if not isinstance(value, str):
        raise KernelFault("type", f"{describe(value)} as the name of an attribute", origin)
    return value


def _getattr(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
    value, name, *otherwise = positional("getattr", args, words, origin, 2, 3)
    try:
        return attribute(value, _word(name, origin), frame, origin)
    except KernelFault as fault:
        if fault.kind != "attribute" or not otherwise:
            raise
        return otherwise[0]


def _hasattr(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
    value, name = positional("hasattr", args, words, origin, 2)
    try:
        attribute(value, _word(name, origin), frame, origin)
    except KernelFault as fault:
        if fault.kind != "attribute":
            raise
        return False
    return True


def _setattr(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
    holder, name, value = positional("setattr", args, words, origin, 3)
    classes.assign(holder, _word(name, origin), value, frame, origin)
    return None


def _callable(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    (value,) = positional("callable", args, words, origin, 1)
    if isinstance(value, Instance):
        return classes.special(value, "__call__") is not None
    return isinstance(value, Function | Builtin | Instructive | Class | Bound | Partial)


def _next(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    value, *otherwise = positional("next", args, words, origin, 1, 2)
    found = generators.following(value, origin)
    if found is not MISSING:
        return found
    if otherwise:
        return otherwise[0]
    fault = KernelFault("raise", "next at the end of an iterator", origin)
    fault.value = Instance(EXCEPTIONS["StopIteration"], {"args": ()})
    raise fault


def _iter(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    (value,) = positional("iter", args, words, origin, 1)
    if isinstance(value, Cursor | Generator):
        return value
    if isinstance(value, Instance) and classes.special(value, "__next__") is not None:
        return value
    return Cursor(items_of(value, origin))


def _map(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
    if words or len(args) < 2:
        raise KernelFault("type", "map is called with the wrong arguments", origin)
    function, *sources = args
    columns = [items_of(source, origin) for source in sources]
    return Cursor([call(function, row, {}, frame, origin) for row in zip(*columns, strict=False)])


def _filter(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
    function, source = positional("filter", args, words, origin, 2)
    found: list[object] = []
    for item in items_of(source, origin):
        kept = item if function is None else call(function, (item,), {}, frame, origin)
        if truth(kept, origin):
            found.append(item)
    return Cursor(found)


def made_set(values: object, origin: Origin, *, frozen: bool = False) -> Set:
    """A set of what a loop over `values` gives."""
    entries: dict[object, object] = {}
    for item in items_of(values, origin):
        entries.setdefault(key_of(item, origin), item)
    return Set(entries, frozen)


def _set(name: str) -> Callable[[Frame, Args, Words, Origin], object]:
    def make(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        values = positional(name, args, words, origin, 0, 1)
        return made_set(values[0] if values else (), origin, frozen=name == "frozenset")

    return make


def _property(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    getter, *setter = positional("property", args, words, origin, 1, 2)
    return Property(getter, setter[0] if setter else None)


def _static(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    (function,) = positional("staticmethod", args, words, origin, 1)
    return Static(function)


def _classmethod(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    (function,) = positional("classmethod", args, words, origin, 1)
    return ClassMethod(function)


def _super(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
    given = positional("super", args, words, origin, 0, 2)
    if given:
        after, receiver = given
    else:
        here = frame
        # A comprehension has a frame of its own.
        while "__class__" not in here.names and isinstance(here.outer, Frame):
            here = here.outer
        after = here.names.get("__class__")
        parameters = here.code.parameters if here.code is not None else None
        names = [*parameters.posonlyargs, *parameters.args] if parameters is not None else []
        receiver = here.names.get(names[0].arg) if names else None
    if not isinstance(after, Class) or not isinstance(receiver, Class | Instance):
        raise Unsupported("super() outside of a method", origin)
    return Super(after, receiver)


def _sorted(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
    (values,) = positional("sorted", args, {}, origin, 1)
    return containers.ordered(items_of(values, origin), words, frame, origin)


def _extremum(which: str) -> Callable[[Frame, Args, Words, Origin], object]:
    plain = HOSTS[which].call

    def find(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
        if not words:
            return plain(frame, args, words, origin)
        if not words.keys() <= {"key", "default"}:
            raise KernelFault("type", f"{which} is called with the wrong arguments", origin)
        values = items_of(args[0], origin) if len(args) == 1 else list(args)
        if not values and "default" in words:
            return words["default"]
        if words.get("key") is None:
            return plain(frame, (values,), {}, origin)
        options = {"key": words["key"], "reverse": which == "max"}
        found = containers.ordered(values, options, frame, origin)
        if not found:
            raise KernelFault("value", f"{which} of nothing", origin)
        return found[0]

    return find


def _length(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
    if len(args) == 1 and not words:
        match args[0]:
            case Set() as found:
                return constant(len(found.entries), origin)
            case Instance() as found:
                return classes.length(found, origin)
            case Class(kind="enum") as found:
                return constant(len(set(map(id, found.members.values()))), origin)
            case Iteration() as found:
                return found.trips
    return HOSTS["len"].call(frame, args, words, origin)


def _repr(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    (value,) = positional("repr", args, words, origin, 1)
    return represented(value)


def _format(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    value, *spec = positional("format", args, words, origin, 1, 2)
    text = spec[0] if spec else ""
    if not isinstance(text, str):
        raise KernelFault("type", "format with something else than a specification", origin)
    return formatted(value, -1, text, origin)


def _digits(name: str) -> Callable[[Frame, Args, Words, Origin], object]:
    shown = {"bin": bin, "hex": hex, "oct": oct}[name]

    def compute(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        (value,) = positional(name, args, words, origin, 1)
        operand = number(value, origin)
        if not operand.integral:
            raise KernelFault("type", f"{name} of {describe(value)}", origin)
        return shown(int(operand.value))

    return compute


def _chr(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    (value,) = positional("chr", args, words, origin, 1)
    point = number(value, origin)
    if not point.integral or not 0 <= point.value < 0x110000:
        raise KernelFault("value", f"chr of {describe(value)}", origin)
    return chr(int(point.value))


def _ord(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    (value,) = positional("ord", args, words, origin, 1)
    if not isinstance(value, str) or len(value) != 1:
        raise KernelFault("type", f"ord of {describe(value)}", origin)
    return constant(ord(value), origin)


def _id(_: Frame, __: Args, ___: Words, origin: Origin) -> object:
    raise Unsupported("id, which is another in every run", origin)


def _object(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    positional("object", args, words, origin, 0)
    plain = Class("object", (), {})
    plain.mro = (plain,)
    return Instance(plain, {})


def _iterated(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
    """`enumerate` of what can be gone through only once or emits what it runs over."""
    if args and isinstance(args[0], Generator):
        args = (tuple(items_of(args[0], origin)), *args[1:])
    return HOSTS["enumerate"].call(frame, args, words, origin)


def _zipped(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
    firsts = tuple(
        tuple(items_of(each, origin)) if isinstance(each, Generator | Cursor) else each
        for each in args
    )
    if not args:
        return ()
    if truth(words.get("strict", False), origin):
        counts = {int(iteration(each, origin).trips.value) for each in firsts}
        if len(counts) > 1:
            raise KernelFault("value", "zip of different lengths", origin)
    return HOSTS["zip"].call(frame, firsts, words, origin)


_OBJECT_HOSTS: dict[str, Callable[[Frame, Args, Words, Origin], object]] = {
    "bin": _digits("bin"),
    "callable": _callable,
    "chr": _chr,
    "classmethod": _classmethod,
    "enumerate": _iterated,
    "filter": _filter,
    "format": _format,
    "frozenset": _set("frozenset"),
    "getattr": _getattr,
    "hasattr": _hasattr,
    "hex": _digits("hex"),
    "id": _id,
    "isinstance": _isinstance,
    "issubclass": _issubclass,
    "iter": _iter,
    "len": _length,
    "map": _map,
    "max": _extremum("max"),
    "min": _extremum("min"),
    "next": _next,
    "object": _object,
    "oct": _digits("oct"),
    "ord": _ord,
    "property": _property,
    "repr": _repr,
    "set": _set("set"),
    "setattr": _setattr,
    "sorted": _sorted,
    "staticmethod": _static,
    "super": _super,
    "type": _type,
    "zip": _zipped,
}

BUILTINS: dict[str, object] = {
    **HOSTS,
    **{name: Builtin(name, host) for name, host in _OBJECT_HOSTS.items()},
    **EXCEPTIONS,
    "NotImplemented": NotImplemented,
    "__debug__": True,
    "Ellipsis": ...,
}
"""Every name of Python's own that is read."""
