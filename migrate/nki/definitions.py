"""Making classes: from a `class` statement, as dataclass, enum or named tuple."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrate.nki.calls import call
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.objects import (
    MISSING,
    Class,
    ClassMethod,
    Field,
    Instance,
    Property,
    Static,
    linearised,
)
from migrate.nki.operations import equal, items_of, truth
from migrate.nki.symbols import Number, Origin, constant
from migrate.nki.values import Builtin, Function, Namespace, Unknown, describe


class Auto:
    """`enum.auto()`."""

    described = "auto()"
    __slots__ = ()


AUTO = Auto()

MAX_MEMBERS = 1000
"""Fields of a dataclass, members of an enum."""


def base_class(name: str, *, mixin: str = "", **options: object) -> Class:
    """A class of the standard library that reviewed ones derive from."""
    made = Class(name, (), {}, mixin=mixin)
    made.mro = (made,)
    for option, value in options.items():
        setattr(made, option, value)
    return made


OBJECT = base_class("NKIObject", lenient=True)
"""`nki.language.NKIObject`, the base of the classes that NKI's parser takes."""
ENUM = base_class("Enum", kind="enum")
INT_ENUM = base_class("IntEnum", kind="enum", mixin="int")
STR_ENUM = base_class("StrEnum", kind="enum", mixin="str")
INT_FLAG = base_class("IntFlag", kind="enum", mixin="int")
FLAG = base_class("Flag", kind="enum", unknown=Unknown("enum.Flag", "flags are not read", None))
NAMED_TUPLE = base_class("NamedTuple", kind="tuple")


def define(
    node: ast.ClassDef, bases: list[object], names: dict[str, object], frame: Frame, origin: Origin
) -> Class:
    """The class of a `class` statement, whose body has bound `names`."""
    stated = [base for base in bases if isinstance(base, Class)]
    cls = Class(node.name, tuple(stated), names, run=frame.run)
    for base in bases:
        match base:
            case Class() | Builtin(name="object"):
                pass
            case Builtin(name="int" | "str" | "float") if any(b.kind == "enum" for b in stated):
                cls.mixin = base.name
            case Unknown():
                cls.unknown = base
            case _:
                cls.unknown = Unknown(describe(base), "no class that is read", None)
    order = linearised(cls)
    if order is None:
        raise KernelFault("type", f"the bases of {node.name} have no order", origin)
    cls.mro = order
    for base in order[1:]:
        cls.kind = base.kind if cls.kind == "plain" else cls.kind
        cls.mixin = cls.mixin or base.mixin
        cls.lenient = cls.lenient or base.lenient
        cls.frozen = cls.frozen or base.frozen
        cls.ordered = cls.ordered or base.ordered
    for name, value in names.items():
        names[name] = _owned(value, cls)
    match cls.kind:
        case "enum":
            _enumerate(cls, frame, origin)
        case "tuple" if NAMED_TUPLE in cls.bases:
            cls.fields, cls.own_fields = tuple(_fields(cls, node, origin)), True
        case _:
            inherited = next((base.fields for base in order[1:] if base.fields is not None), None)
            cls.fields = inherited
            if cls.lenient and cls.find("__init__") is None:
                cls.fields, cls.own_fields = tuple(_fields(cls, node, origin)), True
    cls.node = node
    return cls


def _owned(value: object, cls: Class) -> object:
    """A method that knows its class, for `super()`."""
    match value:
        case Function() if value.owner is None:
            return replace(value, owner=cls)
        case Static() | ClassMethod():
            return replace(value, function=_owned(value.function, cls))
        case Property():
            return replace(
                value, getter=_owned(value.getter, cls), setter=_owned(value.setter, cls)
            )
    return value


def _fields(cls: Class, node: ast.ClassDef, origin: Origin) -> Iterator[Field]:
    """The fields of a class and its bases in order."""
    found: dict[str, Field] = {}
    for base in reversed(cls.mro[1:]):
        found.update({each.name: each for each in base.fields or ()})
    only = False
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                kind = _annotation(annotation)
                if kind == "KW_ONLY":
                    only = True
                elif kind == "InitVar":
                    raise Unsupported("a dataclass with InitVar", origin)
                elif kind != "ClassVar":
                    found[name] = _field(cls, name, only)
            case ast.Assign(targets=targets) if cls.lenient:
                for target in targets:
                    if isinstance(target, ast.Name) and _is_value(cls.names.get(target.id)):
                        found[target.id] = replace(
                            _field(cls, target.id, True), annotated=target.id in found
                        )
    if len(found) > MAX_MEMBERS:
        raise Unsupported("a class with very many fields", origin)
    yield from found.values()


def _is_value(value: object) -> bool:
    return not isinstance(value, Function | Property | Static | ClassMethod | Class)


def _annotation(node: ast.expr) -> str:
    """The outermost name of an annotation."""
    match node:
        case ast.Subscript(value=value):
            return _annotation(value)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case ast.Constant(value=str(text)):
            return text.partition("[")[0].rpartition(".")[2]
    return ""


def _field(cls: Class, name: str, keyword_only: bool) -> Field:
    value = cls.names.get(name, MISSING)
    if isinstance(value, Field):
        made = replace(value, name=name, keyword_only=value.keyword_only or keyword_only)
        if made.default is MISSING:
            cls.names.pop(name)
        else:
            cls.names[name] = made.default
        return made
    return Field(name, value, keyword_only=keyword_only)


def _enumerate(cls: Class, frame: Frame, origin: Origin) -> None:
    """The members of an enum: what its body assigns."""
    for base in cls.mro[1:]:
        if base.members:
            raise KernelFault("type", f"{cls.name} extends an enum with members", origin)
    count = 0
    for name, value in list(cls.names.items()):
        # A descriptor or a private name is no member.
        if name.startswith("_") or not _is_value(value) or isinstance(value, Namespace):
            continue
        if isinstance(value, Auto):
            value = _automatic(cls, name, origin)
        same = next(
            (m for m in cls.members.values() if equal(m.names["value"], value, origin)), None
        )
        frame.run.step(1 + len(cls.members) // 4)
        count += 1
        if count > MAX_MEMBERS:
            raise Unsupported("an enum with very many members", origin)
        if same is None:
            same = Instance(cls, {"name": name, "value": value, "_name_": name, "_value_": value})
            start = cls.find("__init__")
            if start is not None:
                args = tuple(value) if isinstance(value, tuple) else (value,)
                call(start[0], (same, *args), {}, frame, origin)
        cls.members[name] = same
        del cls.names[name]


def _automatic(cls: Class, name: str, origin: Origin) -> object:
    if STR_ENUM in cls.mro:
        return name.lower()
    numbers = [m.names["value"] for m in cls.members.values()]
    values = [n.value for n in numbers if isinstance(n, Number)]
    if FLAG in cls.mro or INT_FLAG in cls.mro:
        return constant(1 << len(values), origin)
    return constant(max(values, default=0) + 1, origin)


def dataclass(cls: Class, keywords: dict[str, object], origin: Origin) -> Class:
    """`@dataclass` on a class."""
    node = cls.node
    if node is None:
        raise Unsupported(f"{cls.name} as a dataclass", origin)

    def flag(name: str, otherwise: bool) -> bool:
        return truth(keywords.get(name, otherwise), origin)

    if not flag("init", True):
        raise Unsupported("a dataclass without __init__", origin)
    fields = _fields(cls, node, origin)
    if flag("kw_only", False):
        fields = (replace(each, keyword_only=True) for each in fields)
    cls.fields, cls.own_fields = tuple(fields), True
    cls.frozen = flag("frozen", False)
    cls.ordered = flag("order", False)
    cls.compared = flag("eq", True)
    return cls


def named_tuple(name: str, fields: object, defaults: object, frame: Frame, origin: Origin) -> Class:
    """`collections.namedtuple(name, fields)`."""
    words: list[object] = []
    if isinstance(fields, str):
        words.extend(fields.replace(",", " ").split())
    else:
        words = items_of(fields, origin)
    if not all(isinstance(word, str) for word in words) or len(words) > MAX_MEMBERS:
        raise KernelFault("type", "namedtuple needs names of fields", origin)
    values = items_of(defaults, origin) if defaults is not None else []
    plain = len(words) - len(values)
    cls = Class(name, (NAMED_TUPLE,), {}, "tuple", frame.run, own_fields=True)
    cls.mro = (cls, NAMED_TUPLE)
    cls.fields = tuple(
        Field(str(word), values[k - plain] if k >= plain else MISSING)
        for k, word in enumerate(words)
    )
    return cls
