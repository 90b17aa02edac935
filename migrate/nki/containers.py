"""Methods of lists, dictionaries, strings, tuples and sets, by Python's rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from typing import TypeAlias

from migrate.nki import formatting, sets
from migrate.nki.calls import call
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.objects import Set
from migrate.nki.operations import compare, equal, from_key, integer, items_of, key_of, truth
from migrate.nki.symbols import Number, Origin, constant
from migrate.nki.values import MAX_ITEMS, Builtin, describe

Args: TypeAlias = tuple[object, ...]
Words: TypeAlias = dict[str, object]


def method(value: object, name: str) -> Builtin | None:
    """A method of a container or string; `None` where it is not read."""
    found: Callable[[Frame, Args, Words, Origin], object] | None = None
    match value:
        case list():
            found = _list(value, name)
        case dict():
            found = _dict(value, name)
        case str():
            found = _string(value, name)
        case tuple():
            found = _tuple(value, name)
        case Set():
            found = _set(value, name)
    return Builtin(name, found) if found is not None else None


def _counted(name: str, args: Args, words: Words, origin: Origin, *counts: int) -> None:
    if words or len(args) not in counts:
        raise KernelFault("type", f"{name} is called with the wrong arguments", origin)


def ordered(items: list[object], words: Words, frame: Frame, origin: Origin) -> list[object]:
    """`sorted(items, key=..., reverse=...)`."""
    if words.keys() - {"key", "reverse"}:
        raise KernelFault("type", "sorted is called with the wrong arguments", origin)
    key = words.get("key")
    keyed = [
        (call(key, (item,), {}, frame, origin) if key is not None else item, item) for item in items
    ]
    frame.run.step(len(items) * max(len(items).bit_length(), 1) // 4)

    def order(left: tuple[object, object], right: tuple[object, object]) -> int:
        if compare("<", left[0], right[0], origin):
            return -1
        return 1 if compare("<", right[0], left[0], origin) else 0

    keyed.sort(key=cmp_to_key(order), reverse=truth(words.get("reverse", False), origin))
    return [item for _, item in keyed]


def _position(items: list[object] | tuple[object, ...], args: Args, origin: Origin) -> Number:
    for position, item in enumerate(items):
        if equal(item, args[0], origin):
            return constant(position, origin)
    raise KernelFault("value", f"{describe(args[0])} is not in {describe(items)}", origin)


def _count(items: list[object] | tuple[object, ...], args: Args, origin: Origin) -> Number:
    return constant(sum(equal(item, args[0], origin) for item in items), origin)


def _tuple(
    items: tuple[object, ...], name: str
) -> Callable[[Frame, Args, Words, Origin], object] | None:
    def found(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 1)
        return _position(items, args, origin) if name == "index" else _count(items, args, origin)

    return found if name in ("index", "count") else None


def _list(items: list[object], name: str) -> Callable[[Frame, Args, Words, Origin], object] | None:
    def grown(count: int) -> None:
        if len(items) + count > MAX_ITEMS:
            raise Unsupported("a very long list")

    def append(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 1)
        grown(1)
        items.append(args[0])
        return None

    def extend(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 1)
        added = items_of(args[0], origin)
        grown(len(added))
        items.extend(added)
        return None

    def insert(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 2)
        grown(1)
        items.insert(int(integer(args[0], origin).value), args[1])
        return None

    def pop(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 0, 1)
        position = int(integer(args[0], origin).value) if args else -1
        if not -len(items) <= position < len(items):
            raise KernelFault("index", f"pop({position}) of {describe(items)}", origin)
        return items.pop(position)

    def remove(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 1)
        del items[int(_position(items, args, origin).value)]
        return None

    def sort(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, {}, origin, 0)
        items[:] = ordered(list(items), words, frame, origin)
        return None

    def plain(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 0)
        match name:
            case "copy":
                return list(items)
            case "clear":
                items.clear()
            case _:
                items.reverse()
        return None

    def search(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 1)
        return _position(items, args, origin) if name == "index" else _count(items, args, origin)

    return {
        "append": append,
        "extend": extend,
        "insert": insert,
        "pop": pop,
        "remove": remove,
        "sort": sort,
        "copy": plain,
        "clear": plain,
        "reverse": plain,
        "index": search,
        "count": search,
    }.get(name)


def _dict(
    items: dict[object, object], name: str
) -> Callable[[Frame, Args, Words, Origin], object] | None:
    def grown(count: int) -> None:
        if len(items) + count > MAX_ITEMS:
            raise Unsupported("a very large dictionary")

    def get(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 1, 2)
        return items.get(key_of(args[0], origin), args[1] if len(args) == 2 else None)

    def setdefault(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 1, 2)
        grown(1)
        return items.setdefault(key_of(args[0], origin), args[1] if len(args) == 2 else None)

    def pop(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 1, 2)
        key = key_of(args[0], origin)
        if key in items:
            return items.pop(key)
        if len(args) == 2:
            return args[1]
        raise KernelFault("key", f"pop of {describe(args[0])}, which is no key", origin)

    def update(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, {}, origin, 0, 1)
        for argument in args:
            added = argument if isinstance(argument, dict) else pairs(argument, origin)
            grown(len(added))
            items.update(added)
        items.update(words)
        return None

    def plain(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 0)
        match name:
            case "keys":
                return tuple(from_key(key, origin) for key in items)
            case "values":
                return tuple(items.values())
            case "items":
                return tuple((from_key(key, origin), value) for key, value in items.items())
            case "copy":
                return dict(items)
            case "popitem":
                if not items:
                    raise KernelFault("key", "popitem of an empty dictionary", origin)
                key, value = items.popitem()
                return (from_key(key, origin), value)
        items.clear()
        return None

    found = {"get": get, "setdefault": setdefault, "pop": pop, "update": update}
    if name in ("keys", "values", "items", "copy", "clear", "popitem"):
        return plain
    return found.get(name)


def pairs(value: object, origin: Origin) -> dict[object, object]:
    """A dictionary of pairs of key and value."""
    found: dict[object, object] = {}
    for pair in items_of(value, origin):
        entry = items_of(pair, origin)
        if len(entry) != 2:
            raise KernelFault("value", "a dictionary of something else than pairs", origin)
        found[key_of(entry[0], origin)] = entry[1]
    return found


def set_of(items: list[object], origin: Origin, frozen: bool = False) -> Set:
    """A set of values."""
    entries: dict[object, object] = {}
    for item in items:
        entries.setdefault(key_of(item, origin), item)
    return Set(entries, frozen)


_SIGNS = {
    "union": "|",
    "intersection": "&",
    "difference": "-",
    "symmetric_difference": "^",
    "issubset": "<=",
    "issuperset": ">=",
}


def _set(items: Set, name: str) -> Callable[[Frame, Args, Words, Origin], object] | None:
    def algebra(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        if words:
            raise KernelFault("type", f"{name} is called with the wrong arguments", origin)
        found = Set(dict(items.entries), items.frozen)
        for argument in args:
            other = set_of(items_of(argument, origin), origin)
            if name.startswith("is"):
                return sets.included(_SIGNS[name], found, other)
            found = sets.combined(_SIGNS[name], found, other)
        return found

    def change(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 1)
        if len(items.entries) >= MAX_ITEMS:
            raise Unsupported("a very large set", origin)
        key = key_of(args[0], origin)
        match name:
            case "add":
                items.entries.setdefault(key, args[0])
            case "discard":
                items.entries.pop(key, None)
            case _:
                if key not in items.entries:
                    raise KernelFault("key", f"{describe(args[0])} is not in the set", origin)
                del items.entries[key]
        return None

    def update(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        for argument in args:
            for item in items_of(argument, origin):
                items.entries.setdefault(key_of(item, origin), item)
        if len(items.entries) > MAX_ITEMS:
            raise Unsupported("a very large set", origin)
        return None

    def plain(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 0)
        if name == "copy":
            return Set(dict(items.entries), items.frozen)
        items.entries.clear()
        return None

    if name in _SIGNS:
        return algebra
    if name == "copy":
        return plain
    if items.frozen:
        return None
    found = {"add": change, "discard": change, "remove": change, "update": update, "clear": plain}
    return found.get(name)


_PLAIN: dict[str, Callable[[str], object]] = {
    "isdigit": str.isdigit,
    "isdecimal": str.isdecimal,
    "isalpha": str.isalpha,
    "isalnum": str.isalnum,
    "isidentifier": str.isidentifier,
    "isupper": str.isupper,
    "islower": str.islower,
    "isspace": str.isspace,
    "upper": str.upper,
    "lower": str.lower,
    "title": str.title,
    "capitalize": str.capitalize,
    "swapcase": str.swapcase,
    "splitlines": lambda text: list(text.splitlines()),
}


def _string(text: str, name: str) -> Callable[[Frame, Args, Words, Origin], object] | None:
    def long(count: int, origin: Origin) -> None:
        if count > MAX_ITEMS:
            raise Unsupported("a very long string", origin)

    def word(value: object, origin: Origin) -> str:
        if not isinstance(value, str):
            raise KernelFault("type", f"{name} of {describe(value)}", origin)
        return value

    def join(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 1)
        parts = [word(item, origin) for item in items_of(args[0], origin)]
        long(sum(map(len, parts)) + len(text) * len(parts), origin)
        return text.join(parts)

    def plain(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 0)
        return _PLAIN[name](text)

    def trimmed(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 0, 1)
        cut = word(args[0], origin) if args and args[0] is not None else None
        match name:
            case "strip":
                return text.strip(cut)
            case "lstrip":
                return text.lstrip(cut)
        return text.rstrip(cut)

    def edges(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 1)
        options = args[0] if isinstance(args[0], tuple) else (args[0],)
        wanted = tuple(word(option, origin) for option in options)
        match name:
            case "startswith":
                return text.startswith(wanted)
            case "endswith":
                return text.endswith(wanted)
            case "removeprefix":
                return text.removeprefix(wanted[0])
        return text.removesuffix(wanted[0])

    def find(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 1)
        wanted = word(args[0], origin)
        match name:
            case "count":
                return constant(text.count(wanted), origin)
            case "rfind":
                return constant(text.rfind(wanted), origin)
            case "find":
                return constant(text.find(wanted), origin)
        if wanted not in text:
            raise KernelFault("value", "the text is not in the string", origin)
        return constant(text.index(wanted), origin)

    def replace(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 2)
        old, new = word(args[0], origin), word(args[1], origin)
        long(len(text) + (text.count(old) if old else len(text) + 1) * len(new), origin)
        return text.replace(old, new)

    def split(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        given = dict(zip(("sep", "maxsplit"), args, strict=False)) | words
        if len(args) > 2 or not given.keys() <= {"sep", "maxsplit"}:
            raise KernelFault("type", f"{name} is called with the wrong arguments", origin)
        separator = given.get("sep")
        mark = word(separator, origin) if separator is not None else None
        if mark == "":
            raise KernelFault("value", "split at nothing", origin)
        most = int(integer(given.get("maxsplit", constant(-1)), origin).value)
        parts = text.split(mark, most) if name == "split" else text.rsplit(mark, most)
        long(len(parts), origin)
        return list(parts)

    def partition(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 1)
        mark = word(args[0], origin)
        if not mark:
            raise KernelFault("value", "partition at nothing", origin)
        return text.partition(mark) if name == "partition" else text.rpartition(mark)

    def padded(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        _counted(name, args, words, origin, 1, 2)
        width = int(integer(args[0], origin).value)
        long(width, origin)
        fill = word(args[1], origin) if len(args) == 2 else " "
        if len(fill) != 1:
            raise KernelFault("type", f"{name} fills with one character", origin)
        match name:
            case "zfill":
                return text.zfill(width)
            case "ljust":
                return text.ljust(width, fill)
            case "rjust":
                return text.rjust(width, fill)
        return text.center(width, fill)

    def fill(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        return formatting.filled(text, args, words, origin)

    if name in _PLAIN:
        return plain
    if name in ("ljust", "rjust", "center", "zfill"):
        return padded
    if name in ("strip", "lstrip", "rstrip"):
        return trimmed
    if name in ("startswith", "endswith", "removeprefix", "removesuffix"):
        return edges
    if name in ("find", "rfind", "count", "index"):
        return find
    if name in ("split", "rsplit"):
        return split
    if name in ("partition", "rpartition"):
        return partition
    return {"join": join, "replace": replace, "format": fill}.get(name)
