"""Attributes and methods of values, by type.

Only what is listed here exists; nothing is ever looked up on a Python object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from migrate.nki import indices, reshaping, views
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.operations import (
    equal,
    from_key,
    integer,
    items_of,
    key_of,
    text_of,
)
from migrate.nki.symbols import Number, Origin, constant
from migrate.nki.values import (
    MAX_ITEMS,
    Builtin,
    Member,
    Namespace,
    Slice,
    Unknown,
    View,
    describe,
)
from migrate.numerics.dtypes import DType

WHOLE = frozenset(
    {"endswith", "extend", "index", "insert", "items", "join", "keys", "lower", "pop"}
    | {"startswith", "strip", "update", "upper", "values"}
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
            found = _tensor_attribute(value, name)
            if found is None:
                raise Unsupported(f"the attribute {name} of a tensor", origin)
            return found
        case indices.Masked():
            if name not in ("shape", "dtype", "ndim", "buffer"):
                raise Unsupported(f"the attribute {name} of a tensor with a mask", origin)
            return attribute(value.view, name, origin)
        case indices.IndexTensor() | indices.IndexGrid():
            return indices.attribute(value, name, origin)
        case list():
            found = _list_method(value, name)
        case dict():
            found = _dict_method(value, name)
        case str():
            found = _string_method(value, name)
        case DType():
            found = str(value) if name in ("name", "__name__") else None
        case Member():
            found = value.name if name == "name" else None
        case Unknown():
            raise Unsupported(f"{value.text}: {value.reason}", origin)
        case Number() | bool() | None:
            raise KernelFault("type", f"the attribute {name} of {describe(value)}", origin)
    if found is None:
        raise Unsupported(f"the attribute {name} of {describe(value)}", origin)
    return found


def _tensor_attribute(view: View, name: str) -> object:
    match name:
        case "shape":
            return view.shape
        case "dtype":
            return view.dtype
        case "ndim":
            return constant(len(view.shape))
        case "size":
            return views.product(view.shape)
        case "buffer":
            return view.buffer.memory
        case "name":
            return view.buffer.name
        case "offset":
            return constant(view.offset)
        case "strides":
            return tuple(constant(stride) for stride in view.strides)
    method = _TENSOR_METHODS.get(name)
    if method is None:
        return None
    parameters, compute = method

    def call(
        _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
    ) -> object:
        given = dict(zip(parameters, args, strict=False)) | keywords
        if len(args) > len(parameters) or not given.keys() <= set(parameters):
            raise KernelFault("type", f"{name} is called with the wrong arguments", origin)
        return compute(view, given, origin)

    return Builtin(name, call)


def _shape(value: object, origin: Origin) -> list[Number]:
    items = items_of(value, origin) if isinstance(value, tuple | list) else [value]
    return [integer(item, origin) for item in items]


def _axis(given: dict[str, object], name: str, origin: Origin) -> int:
    if name not in given:
        raise KernelFault("type", f"{name} is not given", origin)
    return int(integer(given[name], origin).value)


def _reshape(view: View, given: dict[str, object], origin: Origin) -> object:
    return reshaping.reshape(view, _shape(given.get("shape"), origin), origin)


def _permute(view: View, given: dict[str, object], origin: Origin) -> object:
    order = [int(n.value) for n in _shape(given.get("dims"), origin)]
    return views.permute(view, order, origin)


def _expand(view: View, given: dict[str, object], origin: Origin) -> object:
    return views.expand_dim(view, _axis(given, "dim", origin), origin)


def _squeeze(view: View, given: dict[str, object], origin: Origin) -> object:
    return views.squeeze_dim(view, _axis(given, "dim", origin), origin)


def _broadcast(view: View, given: dict[str, object], origin: Origin) -> object:
    extent = integer(given.get("size"), origin)
    return views.broadcast(view, _axis(given, "dim", origin), extent, origin)


def _select(view: View, given: dict[str, object], origin: Origin) -> object:
    index = given.get("index")
    if isinstance(index, View):
        raise Unsupported("a selection by data", origin)
    return _along(view, _axis(given, "dim", origin), integer(index, origin), origin)


def _slice(view: View, given: dict[str, object], origin: Origin) -> object:
    parts = [
        integer(given[name], origin) if given.get(name) is not None else None
        for name in ("start", "end", "step")
    ]
    key = Slice(parts[0], parts[1], parts[2])
    return _along(view, _axis(given, "dim", origin), key, origin)


def _along(view: View, axis: int, key: object, origin: Origin) -> View:
    if not 0 <= axis < len(view.shape):
        raise KernelFault("index", f"axis {axis} of a tensor of rank {len(view.shape)}", origin)
    everything = Slice(None, None, None)
    keys: Sequence[object] = [key if a == axis else everything for a in range(len(view.shape))]
    return views.subscript(view, keys, origin)


def _reshape_dim(view: View, given: dict[str, object], origin: Origin) -> object:
    axis = _axis(given, "dim", origin)
    inner = _shape(given.get("shape"), origin)
    if not 0 <= axis < len(view.shape):
        raise KernelFault("index", f"axis {axis} of a tensor of rank {len(view.shape)}", origin)
    shape = [*view.shape[:axis], *inner, *view.shape[axis + 1 :]]
    return reshaping.reshape(view, shape, origin)


def _flatten(view: View, given: dict[str, object], origin: Origin) -> object:
    first, last = _axis(given, "start_dim", origin), _axis(given, "end_dim", origin)
    if not 0 <= first <= last < len(view.shape):
        raise KernelFault("index", f"axes {first} to {last} cannot be joined", origin)
    joined = views.product(view.shape[first : last + 1])
    return reshaping.reshape(view, [*view.shape[:first], joined, *view.shape[last + 1 :]], origin)


def _pattern(view: View, given: dict[str, object], origin: Origin) -> object:
    for name in ("scalar_offset", "vector_offset", "dtype"):
        if given.get(name) is not None:
            raise Unsupported(f"an access pattern with {name}", origin)
    pairs: list[tuple[Number, Number]] = []
    for pair in items_of(given.get("pattern"), origin):
        numbers = _shape(pair, origin)
        if len(numbers) != 2:
            raise KernelFault("type", "an access pattern takes pairs of step and count", origin)
        pairs.append((numbers[0], numbers[1]))
    offset = given.get("offset")
    start = None if offset is None else integer(offset, origin)
    return views.pattern(view, pairs, start, origin)


_Method = Callable[[View, dict[str, object], Origin], object]
_TENSOR_METHODS: dict[str, tuple[tuple[str, ...], _Method]] = {
    "reshape": (("shape",), _reshape),
    "permute": (("dims",), _permute),
    "expand_dim": (("dim",), _expand),
    "squeeze_dim": (("dim",), _squeeze),
    "broadcast": (("dim", "size"), _broadcast),
    "select": (("dim", "index"), _select),
    "slice": (("dim", "start", "end", "step"), _slice),
    "reshape_dim": (("dim", "shape"), _reshape_dim),
    "flatten_dims": (("start_dim", "end_dim"), _flatten),
    "ap": (
        ("pattern", "offset", "scalar_offset", "vector_offset", "indirect_dim", "dtype"),
        _pattern,
    ),
}


def _list_method(items: list[object], name: str) -> object:
    def append(_: Frame, args: tuple[object, ...], __: dict[str, object], origin: Origin) -> object:
        if len(args) != 1 or len(items) >= MAX_ITEMS:
            raise Unsupported("a very long list", origin)
        items.append(args[0])
        return None

    def extend(_: Frame, args: tuple[object, ...], __: dict[str, object], origin: Origin) -> object:
        added = items_of(args[0], origin) if len(args) == 1 else []
        if len(items) + len(added) > MAX_ITEMS:
            raise Unsupported("a very long list", origin)
        items.extend(added)
        return None

    def insert(_: Frame, args: tuple[object, ...], __: dict[str, object], origin: Origin) -> object:
        if len(args) != 2 or len(items) >= MAX_ITEMS:
            raise Unsupported("this use of insert", origin)
        items.insert(int(integer(args[0], origin).value), args[1])
        return None

    def pop(_: Frame, args: tuple[object, ...], __: dict[str, object], origin: Origin) -> object:
        position = int(integer(args[0], origin).value) if args else -1
        if not -len(items) <= position < len(items):
            raise KernelFault("index", f"pop({position}) of {describe(items)}", origin)
        return items.pop(position)

    def index(_: Frame, args: tuple[object, ...], __: dict[str, object], origin: Origin) -> object:
        for position, item in enumerate(items):
            if len(args) == 1 and equal(item, args[0], origin):
                return constant(position, origin)
        raise KernelFault("value", "the value is not in the list", origin)

    methods = {"append": append, "extend": extend, "insert": insert, "pop": pop, "index": index}
    found = methods.get(name)
    return Builtin(name, found) if found is not None else None


def _dict_method(items: dict[object, object], name: str) -> object:
    def get(_: Frame, args: tuple[object, ...], __: dict[str, object], origin: Origin) -> object:
        if not 1 <= len(args) <= 2:
            raise KernelFault("type", "get is called with the wrong arguments", origin)
        return items.get(key_of(args[0], origin), args[1] if len(args) == 2 else None)

    def keys(_: Frame, __: tuple[object, ...], ___: dict[str, object], origin: Origin) -> object:
        return tuple(from_key(key, origin) for key in items)

    def values(_: Frame, __: tuple[object, ...], ___: dict[str, object], ____: Origin) -> object:
        return tuple(items.values())

    def pairs(_: Frame, __: tuple[object, ...], ___: dict[str, object], origin: Origin) -> object:
        return tuple((from_key(key, origin), value) for key, value in items.items())

    def update(
        _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
    ) -> object:
        for argument in args:
            if not isinstance(argument, dict):
                raise Unsupported("update from something other than a dictionary", origin)
            items.update(argument)
        items.update(keywords)
        return None

    methods = {"get": get, "keys": keys, "values": values, "items": pairs, "update": update}
    found = methods.get(name)
    return Builtin(name, found) if found is not None else None


def _string_method(text: str, name: str) -> object:
    def join(_: Frame, args: tuple[object, ...], __: dict[str, object], origin: Origin) -> object:
        parts = [text_of(item) for item in items_of(args[0], origin)] if args else []
        if sum(map(len, parts)) + len(text) * len(parts) > MAX_ITEMS:
            raise Unsupported("a very long string", origin)
        return text.join(parts)

    def plain(compute: Callable[[], object]) -> Builtin:
        return Builtin(name, lambda *_: compute())

    def tested(compute: Callable[[str], bool]) -> Builtin:
        def call(
            _: Frame, args: tuple[object, ...], __: dict[str, object], origin: Origin
        ) -> object:
            if len(args) != 1 or not isinstance(args[0], str):
                raise KernelFault("type", f"{name} is called with the wrong arguments", origin)
            return compute(args[0])

        return Builtin(name, call)

    match name:
        case "join":
            return Builtin(name, join)
        case "upper":
            return plain(text.upper)
        case "lower":
            return plain(text.lower)
        case "strip":
            return plain(text.strip)
        case "startswith":
            return tested(text.startswith)
        case "endswith":
            return tested(text.endswith)
    return None
