"""What is read of Python's standard library, by module and name.

Only what kernels use to build their program: classes, enumerations, iteration, partial
functions.  Nothing here touches the outside.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TypeAlias

from migrate.nki import definitions, generators
from migrate.nki.calls import call
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.objects import (
    MISSING,
    Class,
    Cursor,
    Field,
    Generator,
    Inert,
    Instance,
    Managed,
    Partial,
    Property,
    Set,
    Without,
)
from migrate.nki.operations import arithmetic, integer, items_of, truth
from migrate.nki.symbols import Origin
from migrate.nki.values import MAX_ITEMS, Builtin, Function, View, describe

Args: TypeAlias = tuple[object, ...]
Words: TypeAlias = dict[str, object]
Host: TypeAlias = Callable[[Frame, Args, Words, Origin], object]

MAX_DEPTH = 32
"""Objects within objects that are copied or taken apart."""


def standard(path: str, name: str) -> object:
    """A name of a module of the standard library; `None` where it is not read."""
    if path == "os" and name == "environ":
        # A kernel is read as where no variable is set: nobody says which ones are.
        return {}
    found = _NAMES.get(path, {}).get(name)
    if found is None and path in _INERT:
        return Inert(f"{path}.{name}")
    return found


def _dataclass(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    if len(args) == 1 and isinstance(args[0], Class):
        return definitions.dataclass(args[0], words, origin)
    if args:
        raise KernelFault("type", f"dataclass of {describe(args[0])}", origin)

    def decorate(_: Frame, inner: Args, more: Words, place: Origin) -> object:
        if len(inner) != 1 or more or not isinstance(inner[0], Class):
            raise KernelFault("type", "dataclass of something that is no class", place)
        return definitions.dataclass(inner[0], words, place)

    return Builtin("dataclass", decorate)


def _field(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    known = {"default", "default_factory", "init", "repr", "compare", "hash", "metadata", "kw_only"}
    if args or not words.keys() <= known:
        raise KernelFault("type", "field is called with the wrong arguments", origin)

    def flag(name: str, otherwise: bool) -> bool:
        return truth(words.get(name, otherwise), origin)

    return Field(
        "",
        words.get("default", MISSING),
        words.get("default_factory", MISSING),
        init=flag("init", True),
        keyword_only=flag("kw_only", False),
        shown=flag("repr", True),
        compared=flag("compare", True),
    )


def _fielded(value: object, name: str, origin: Origin) -> tuple[Field, ...]:
    fields = value.cls.fields if isinstance(value, Instance) else None
    if isinstance(value, Class):
        fields = value.fields
    if fields is None:
        raise KernelFault("type", f"{name} of {describe(value)}", origin)
    return fields


def _replace(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
    from migrate.nki import classes

    if len(args) != 1 or not isinstance(args[0], Instance):
        raise KernelFault("type", "replace of something that is no dataclass", origin)
    value = args[0]
    fields = _fielded(value, "replace", origin)
    kept = {f.name: value.names[f.name] for f in fields if f.init and f.name in value.names}
    return classes.construct(value.cls, (), {**kept, **words}, frame, origin)


def _taken_apart(value: object, into: str, origin: Origin, depth: int = 0) -> object:
    if depth > MAX_DEPTH:
        raise Unsupported("objects that are nested deeply", origin)
    match value:
        case Instance() if value.cls.fields is not None and value.cls.kind == "plain":
            parts = {
                f.name: _taken_apart(value.names.get(f.name), into, origin, depth + 1)
                for f in value.cls.fields
            }
            return parts if into == "asdict" else tuple(parts.values())
        case list():
            return [_taken_apart(item, into, origin, depth + 1) for item in value]
        case tuple():
            return tuple(_taken_apart(item, into, origin, depth + 1) for item in value)
        case dict():
            return {k: _taken_apart(item, into, origin, depth + 1) for k, item in value.items()}
    return value


def _apart(into: str) -> Host:
    def compute(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        if len(args) != 1 or words:
            raise Unsupported(f"{into} with these arguments", origin)
        _fielded(args[0], into, origin)
        return _taken_apart(args[0], into, origin)

    return compute


def _fields(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    if len(args) != 1 or words:
        raise KernelFault("type", "fields is called with the wrong arguments", origin)
    return tuple(_named(field) for field in _fielded(args[0], "fields", origin))


_FIELD = definitions.base_class("Field")


def _named(field: Field) -> Instance:
    return Instance(_FIELD, {"name": field.name})


def _is_dataclass(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    if len(args) != 1 or words:
        raise KernelFault("type", "is_dataclass is called with the wrong arguments", origin)
    cls = args[0].cls if isinstance(args[0], Instance) else args[0]
    return isinstance(cls, Class) and cls.fields is not None and cls.kind == "plain"


def _auto(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    if args or words:
        raise KernelFault("type", "auto takes no arguments", origin)
    return definitions.AUTO


def _same(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    """A decorator that leaves what it decorates as it is, as far as a kernel can tell."""
    if len(args) == 1 and not words:
        return args[0]
    raise Unsupported("a decorator with these arguments", origin)


def _caching(name: str) -> Host:
    """`lru_cache`, with or without arguments: what is computed is the same."""

    def decorate(_: Frame, args: Args, words: Words, __: Origin) -> object:
        if len(args) == 1 and isinstance(args[0], Function) and not words:
            return args[0]
        return Builtin(name, _same)

    return decorate


def _wraps(_: Frame, __: Args, ___: Words, ____: Origin) -> object:
    return Builtin("wraps", _same)


def _partial(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    if not args:
        raise KernelFault("type", "partial of nothing", origin)
    return Partial(args[0], tuple(args[1:]), dict(words))


def _reduce(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
    if len(args) not in (2, 3) or words:
        raise KernelFault("type", "reduce is called with the wrong arguments", origin)
    items = items_of(args[1], origin)
    if len(args) == 3:
        items = [args[2], *items]
    if not items:
        raise KernelFault("type", "reduce of nothing", origin)
    total = items[0]
    for item in items[1:]:
        frame.run.step()
        total = call(args[0], (total, item), {}, frame, origin)
    return total


def _cached_property(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    if len(args) != 1 or words:
        raise KernelFault("type", "cached_property takes a method", origin)
    return Property(args[0], None, cached=True)


def _iterated(
    name: str, rows: Callable[[list[list[object]], Words, Origin], Iterator[object]]
) -> Host:
    """One of `itertools` over finite sources, with everything it gives at once."""

    def compute(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
        sources = [items_of(source, origin) for source in args]
        found: list[object] = []
        for item in rows(sources, words, origin):
            if len(found) >= MAX_ITEMS:
                raise Unsupported(f"a very long {name}", origin)
            frame.run.step()
            found.append(item)
        return Cursor(found)

    return compute


def _product(sources: list[list[object]], words: Words, origin: Origin) -> Iterator[object]:
    times = words.get("repeat")
    count = int(integer(times, origin).value) if times is not None else 1
    if count * len(sources) > 16:
        raise Unsupported("a product of very many things", origin)
    return itertools.product(*sources, repeat=count)


def _chained(sources: list[list[object]], _: Words, __: Origin) -> Iterator[object]:
    return itertools.chain(*sources)


def _longest(sources: list[list[object]], words: Words, _: Origin) -> Iterator[object]:
    return itertools.zip_longest(*sources, fillvalue=words.get("fillvalue"))


def _pairs(sources: list[list[object]], _: Words, __: Origin) -> Iterator[object]:
    return itertools.pairwise(sources[0])


def _chosen(which: str) -> Host:
    chooser = {"combinations": itertools.combinations, "permutations": itertools.permutations}[
        which
    ]

    def compute(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
        if len(args) != 2 or words:
            raise Unsupported(f"{which} with these arguments", origin)
        items, count = items_of(args[0], origin), int(integer(args[1], origin).value)
        if count < 0 or len(items) > 64:
            raise Unsupported(f"{which} of very many things", origin)
        found: list[object] = []
        for row in chooser(items, count):
            if len(found) >= MAX_ITEMS:
                raise Unsupported(f"very many {which}", origin)
            frame.run.step()
            found.append(row)
        return Cursor(found)

    return compute


def _islice(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    if not 2 <= len(args) <= 4 or words:
        raise KernelFault("type", "islice is called with the wrong arguments", origin)
    bounds = [None if v is None else int(integer(v, origin).value) for v in args[1:]]
    if any(bound is not None and bound < 0 for bound in bounds):
        raise KernelFault("value", "islice with a negative number", origin)
    source = args[0]
    if isinstance(source, Generator | Cursor):
        start, stop, step = (None, bounds[0], None) if len(bounds) == 1 else (*bounds, None)[:3]
        found: list[object] = []
        for position in itertools.count():
            if stop is not None and position >= stop:
                break
            item = generators.following(source, origin)
            if item is MISSING:
                break
            if position >= (start or 0) and (position - (start or 0)) % (step or 1) == 0:
                found.append(item)
        return Cursor(found)
    return Cursor(list(itertools.islice(items_of(source, origin), *bounds)))


def _accumulate(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
    if not 1 <= len(args) <= 2 or words.keys() - {"initial", "func"}:
        raise KernelFault("type", "accumulate is called with the wrong arguments", origin)
    function = args[1] if len(args) == 2 else words.get("func")
    items = items_of(args[0], origin)
    if words.get("initial") is not None:
        items = [words["initial"], *items]
    found: list[object] = []
    for item in items:
        frame.run.step()
        if found and function is not None:
            item = call(function, (found[-1], item), {}, frame, origin)
        elif found:
            item = arithmetic("+", found[-1], item, origin)
        found.append(item)
    return Cursor(found)


def _repeat(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    given = dict(zip(("object", "times"), args, strict=False)) | words
    if given.keys() != {"object", "times"}:
        raise Unsupported("repeat without an end", origin)
    count = int(integer(given["times"], origin).value)
    if count > MAX_ITEMS:
        raise Unsupported("a very long repeat", origin)
    return Cursor([given["object"]] * max(count, 0))


def _named_tuple(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
    given = dict(zip(("typename", "field_names"), args, strict=False)) | words
    name = given.get("typename")
    if not isinstance(name, str) or given.keys() - {"typename", "field_names", "defaults"}:
        raise KernelFault("type", "namedtuple is called with the wrong arguments", origin)
    return definitions.named_tuple(
        name, given.get("field_names"), given.get("defaults"), frame, origin
    )


def _ordered(frame: Frame, args: Args, words: Words, origin: Origin) -> object:
    from migrate.nki.object_builtins import BUILTINS

    plain = BUILTINS["dict"]
    return call(plain, args, words, frame, origin)


def _cast(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    if len(args) != 2 or words:
        raise KernelFault("type", "cast is called with the wrong arguments", origin)
    return args[1]


def _type_variable(_: Frame, args: Args, __: Words, origin: Origin) -> object:
    if not args or not isinstance(args[0], str):
        raise KernelFault("type", "a type variable without a name", origin)
    return Inert(f"typing.TypeVar {args[0]}")


def _copied(value: object, origin: Origin, deep: bool, depth: int = 0) -> object:
    if depth > MAX_DEPTH:
        raise Unsupported("objects that are nested deeply", origin)

    def inner(item: object) -> object:
        return _copied(item, origin, deep, depth + 1) if deep else item

    match value:
        case list():
            return [inner(item) for item in value]
        case tuple():
            return tuple(inner(item) for item in value)
        case dict():
            return {key: inner(item) for key, item in value.items()}
        case Set():
            return Set(dict(value.entries), value.frozen)
        case Instance(cls=Class(kind="enum")):
            return value
        case Instance():
            return Instance(value.cls, {name: inner(item) for name, item in value.names.items()})
        case View() if deep:
            raise Unsupported("a deep copy of a tensor", origin)
    return value


def _copy(deep: bool) -> Host:
    def compute(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        if len(args) != 1 or words:
            raise KernelFault("type", "copy is called with the wrong arguments", origin)
        return _copied(args[0], origin, deep)

    return compute


def _operator(sign: str) -> Host:
    def compute(_: Frame, args: Args, words: Words, origin: Origin) -> object:
        if len(args) != 2 or words:
            raise KernelFault("type", "an operator of two values", origin)
        return arithmetic(sign, args[0], args[1], origin)

    return compute


def _manager(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    """`contextmanager` on a generator function."""
    if len(args) != 1 or words:
        raise KernelFault("type", "contextmanager takes a function", origin)
    function = args[0]

    def make(frame: Frame, given: Args, keywords: Words, place: Origin) -> object:
        found = call(function, given, keywords, frame, place)
        if not isinstance(found, Generator):
            raise Unsupported("a context manager that is no generator", place)
        return Managed(found)

    return Builtin("contextmanager", make)


def _null_context(_: Frame, args: Args, words: Words, origin: Origin) -> object:
    if len(args) + len(words) > 1 or not words.keys() <= {"enter_result"}:
        raise KernelFault("type", "nullcontext is called with the wrong arguments", origin)
    return Without(next(iter((*args, *words.values())), None))


def _builtins(**hosts: Host) -> dict[str, object]:
    return {name: Builtin(name, host) for name, host in hosts.items()}


_GENERIC = {name: definitions.base_class(name) for name in ("Generic", "Protocol", "ABC")}

_NAMES: dict[str, dict[str, object]] = {
    "dataclasses": _builtins(
        dataclass=_dataclass,
        field=_field,
        replace=_replace,
        asdict=_apart("asdict"),
        astuple=_apart("astuple"),
        fields=_fields,
        is_dataclass=_is_dataclass,
    ),
    "enum": {
        "Enum": definitions.ENUM,
        "IntEnum": definitions.INT_ENUM,
        "StrEnum": definitions.STR_ENUM,
        "IntFlag": definitions.INT_FLAG,
        "Flag": definitions.FLAG,
        **_builtins(auto=_auto, unique=_same),
    },
    "functools": _builtins(
        partial=_partial,
        reduce=_reduce,
        cached_property=_cached_property,
        lru_cache=_caching("lru_cache"),
        cache=_same,
        wraps=_wraps,
        total_ordering=_same,
    ),
    "itertools": _builtins(
        product=_iterated("product", _product),
        chain=_iterated("chain", _chained),
        zip_longest=_iterated("zip_longest", _longest),
        pairwise=_iterated("pairwise", _pairs),
        combinations=_chosen("combinations"),
        permutations=_chosen("permutations"),
        islice=_islice,
        accumulate=_accumulate,
        repeat=_repeat,
    ),
    "operator": _builtins(
        add=_operator("+"),
        sub=_operator("-"),
        mul=_operator("*"),
        truediv=_operator("/"),
        floordiv=_operator("//"),
        mod=_operator("%"),
    ),
    "collections": _builtins(namedtuple=_named_tuple, OrderedDict=_ordered),
    "abc": {"ABC": _GENERIC["ABC"], **_builtins(abstractmethod=_same)},
    "typing": {
        "NamedTuple": definitions.NAMED_TUPLE,
        "Generic": _GENERIC["Generic"],
        "Protocol": _GENERIC["Protocol"],
        "TYPE_CHECKING": False,
        **_builtins(cast=_cast, final=_same, overload=_same, runtime_checkable=_same),
        **_builtins(TypeVar=_type_variable),
    },
    "contextlib": _builtins(contextmanager=_manager, nullcontext=_null_context),
    "copy": _builtins(copy=_copy(deep=False), deepcopy=_copy(deep=True)),
}
_NAMES["typing_extensions"] = _NAMES["typing"]

_INERT = frozenset({"logging", "warnings"})
"""Modules whose functions have no effect on a kernel."""
