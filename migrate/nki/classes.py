"""What classes of reviewed code and their instances do: names, construction, operators.

The rules are Python's.  A class of NKI's own parser (`NKIObject`) also takes fields that are
plain assignments as keywords, and may be made with fields missing that are set later.
"""

from __future__ import annotations

from migrate.nki.calls import call
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame, Run
from migrate.nki.objects import (
    MISSING,
    Bound,
    Class,
    ClassMethod,
    Field,
    Instance,
    Property,
    Static,
    Super,
)
from migrate.nki.symbols import Number, Origin, constant
from migrate.nki.values import Builtin, Function, describe

_DUNDERS = {
    "+": ("__add__", "__radd__"),
    "-": ("__sub__", "__rsub__"),
    "*": ("__mul__", "__rmul__"),
    "/": ("__truediv__", "__rtruediv__"),
    "//": ("__floordiv__", "__rfloordiv__"),
    "%": ("__mod__", "__rmod__"),
    "**": ("__pow__", "__rpow__"),
    "<<": ("__lshift__", "__rlshift__"),
    ">>": ("__rshift__", "__rrshift__"),
    "&": ("__and__", "__rand__"),
    "|": ("__or__", "__ror__"),
    "^": ("__xor__", "__rxor__"),
    "@": ("__matmul__", "__rmatmul__"),
    "<": ("__lt__", "__gt__"),
    "<=": ("__le__", "__ge__"),
    ">": ("__gt__", "__lt__"),
    ">=": ("__ge__", "__le__"),
}
"""Methods that an operator means, of its left and of its right side."""


def attribute(value: Class | Instance | Super, name: str, frame: Frame, origin: Origin) -> object:
    """`value.name`."""
    match value:
        case Instance():
            return _of_instance(value, name, frame, origin)
        case Super():
            found = _class_of(value.receiver).find(name, value.after)
            if found is None:
                if name == "__init__":
                    return Builtin("__init__", lambda *_: None)
                raise _absent(value.after, name, origin)
            return _taken(found, value.receiver, frame, origin)
        case Class():
            return _of_class(value, name, frame, origin)


def _class_of(value: Instance | Class) -> Class:
    return value.cls if isinstance(value, Instance) else value


def _of_instance(value: Instance, name: str, frame: Frame, origin: Origin) -> object:
    found = value.cls.find(name)
    if found is not None and isinstance(found[0], Property):
        return _got(found[0], name, value, frame, origin)
    if name in value.names:
        return value.names[name]
    if found is not None:
        return _taken(found, value, frame, origin)
    if name == "__class__":
        return value.cls
    fallback = special(value, "__getattr__")
    if fallback is not None:
        return call(fallback, (name,), {}, frame, origin)
    raise _absent(value.cls, name, origin)


def _of_class(cls: Class, name: str, frame: Frame, origin: Origin) -> object:
    if name in cls.members:
        return cls.members[name]
    found = cls.find(name)
    if found is not None:
        return _taken(found, cls, frame, origin)
    if name in ("__name__", "__qualname__"):
        return cls.name
    if name == "__members__" and cls.kind == "enum":
        return dict(cls.members)
    raise _absent(cls, name, origin)


def _absent(cls: Class, name: str, origin: Origin) -> Exception:
    stranger = cls.stranger
    if stranger is not None:
        return Unsupported(f"{name} of a class from {stranger.text}: {stranger.reason}", origin)
    if name.startswith("__"):
        return Unsupported(f"the attribute {name} of an object", origin)
    return KernelFault("attribute", f"{cls.name} has no {name}", origin)


def _got(found: Property, name: str, value: Instance, frame: Frame, origin: Origin) -> object:
    if found.cached and name in value.names:
        return value.names[name]
    result = call(found.getter, (value,), {}, frame, origin)
    if found.cached:
        value.names[name] = result
    return result


def _taken(
    found: tuple[object, Class], receiver: Instance | Class, frame: Frame, origin: Origin
) -> object:
    """What a name of a class stands for, looked up on an object or on the class."""
    value, holder = found
    match value:
        case Static():
            return value.function
        case ClassMethod():
            return Bound(value.function, _class_of(receiver))
        case Property() if isinstance(receiver, Instance):
            return call(value.getter, (receiver,), {}, frame, origin)
        case Function() if isinstance(receiver, Instance):
            return Bound(value, receiver)
        case Builtin() if holder.run is None and isinstance(receiver, Instance):
            return Bound(value, receiver)
    return value


def special(value: object, name: str) -> Bound | None:
    """A method such as `__len__` that an object's class defines."""
    if not isinstance(value, Instance):
        return None
    found = value.cls.find(name)
    if found is None or not isinstance(found[0], Function):
        return None
    return Bound(found[0], value)


def run_of(value: Instance) -> Run | None:
    for holder in value.cls.mro:
        if holder.run is not None:
            return holder.run
    return None


def invoke(value: Instance, name: str, args: tuple[object, ...], origin: Origin) -> object:
    """Call a method such as `__len__` from where no frame is at hand; `MISSING` without one."""
    method, run = special(value, name), run_of(value)
    if method is None or run is None or run.frame is None:
        return MISSING
    return call(method, args, {}, run.frame, origin)


def assign(holder: object, name: str, value: object, frame: Frame, origin: Origin) -> None:
    """`holder.name = value`."""
    match holder:
        case Instance():
            found = holder.cls.find(name)
            if found is not None and isinstance(found[0], Property):
                if found[0].setter is None:
                    raise KernelFault("attribute", f"{name} cannot be set", origin)
                call(found[0].setter, (holder, value), {}, frame, origin)
                return
            if special(holder, "__setattr__") is not None:
                raise Unsupported("a class with __setattr__", origin)
            if holder.cls.frozen or holder.cls.kind in ("enum", "tuple"):
                raise KernelFault("attribute", f"{holder.cls.name} cannot be changed", origin)
            if len(holder.names) >= MAX_NAMES:
                raise Unsupported("an object with very many attributes", origin)
            holder.names[name] = value
        case Class() if holder.run is not None:
            if isinstance(value, Function):
                raise Unsupported("a method set on a class", origin)
            if len(holder.names) >= MAX_NAMES:
                raise Unsupported("a class with very many attributes", origin)
            holder.names[name] = value
        case _:
            raise Unsupported(f"setting the attribute {name} of {describe(holder)}", origin)


MAX_NAMES = 1000
"""Attributes of one object."""


def delete(holder: object, name: str, origin: Origin) -> None:
    """`del holder.name`."""
    if not isinstance(holder, Instance):
        raise Unsupported(f"deleting the attribute {name} of {describe(holder)}", origin)
    if holder.names.pop(name, MISSING) is MISSING:
        raise _absent(holder.cls, name, origin)


def construct(
    cls: Class, args: tuple[object, ...], keywords: dict[str, object], frame: Frame, origin: Origin
) -> object:
    """`cls(*args, **keywords)`."""
    if cls.kind == "enum":
        return _member(cls, args, keywords, origin)
    if cls.stranger is not None:
        raise _absent(cls, "an object", origin)
    if cls.find("__new__") is not None:
        raise Unsupported("a class with __new__", origin)
    frame.run.step(4)
    made = Instance(cls, {"args": args} if cls.kind == "exception" else {})
    fields = cls.fields
    for holder in cls.mro:
        if "__init__" in holder.names:
            call(Bound(holder.names["__init__"], made), args, keywords, frame, origin)
            return made
        if holder.own_fields:
            break
    if fields is None:
        if args or keywords:
            raise KernelFault("type", f"{cls.name} takes no arguments", origin)
        return made
    _fill(made, fields, args, keywords, frame, origin)
    after = special(made, "__post_init__")
    if after is not None:
        call(after, (), {}, frame, origin)
    return made


def _fill(
    made: Instance,
    fields: tuple[Field, ...],
    args: tuple[object, ...],
    keywords: dict[str, object],
    frame: Frame,
    origin: Origin,
) -> None:
    cls = made.cls
    positional = [f for f in fields if f.init and not f.keyword_only and f.annotated]
    if len(args) > len(positional):
        raise KernelFault(
            "type", f"{cls.name} takes {len(positional)} values, {len(args)} given", origin
        )
    given: dict[str, object] = {f.name: v for f, v in zip(positional, args, strict=False)}
    known = {f.name for f in fields if f.init}
    for name, value in keywords.items():
        if name not in known:
            raise KernelFault("type", f"{cls.name} has no field {name}", origin)
        if name in given:
            raise KernelFault("type", f"{cls.name} is given {name} twice", origin)
        given[name] = value
    for each in fields:
        if each.name in given:
            made.names[each.name] = given[each.name]
        elif each.factory is not MISSING:
            made.names[each.name] = call(each.factory, (), {}, frame, origin)
        elif each.default is not MISSING:
            if each.annotated or cls.kind == "tuple":
                made.names[each.name] = each.default
        elif each.init and not cls.lenient:
            raise KernelFault("type", f"{cls.name} is not given {each.name}", origin)


def _member(
    cls: Class, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    from migrate.nki.operations import equal

    if len(args) != 1 or keywords:
        raise Unsupported("making an enum", origin)
    for member in cls.members.values():
        if args[0] is member or equal(member.names["value"], args[0], origin):
            return member
    raise KernelFault("value", f"{describe(args[0])} is no {cls.name}", origin)


def operate(sign: str, left: object, right: object, frame: Frame, origin: Origin) -> object:
    """`left sign right` where a side is an object; `MISSING` where its class says nothing."""
    own, turned = _DUNDERS[sign]
    for method, other in ((special(left, own), right), (special(right, turned), left)):
        if method is not None:
            result = call(method, (other,), {}, frame, origin)
            if result is not NotImplemented:
                return result
    return MISSING


def plain(value: Instance) -> object:
    """The number or string that a member of an `IntEnum` or `str` enum also is."""
    return value.names["value"] if value.cls.mixin else value


def items(value: Instance) -> tuple[object, ...] | None:
    """The fields of a named tuple."""
    if value.cls.kind != "tuple" or value.cls.fields is None:
        return None
    return tuple(value.names[each.name] for each in value.cls.fields)


def compared(value: Instance) -> tuple[object, ...] | None:
    """What decides whether dataclass instances are equal."""
    if value.cls.fields is None or not value.cls.compared or value.cls.kind == "tuple":
        return None
    return tuple(value.names.get(each.name) for each in value.cls.fields if each.compared)


def length(value: Instance, origin: Origin) -> Number:
    """`len` of an object."""
    found = items(value)
    if found is not None:
        return constant(len(found), origin)
    counted = invoke(value, "__len__", (), origin)
    if isinstance(counted, Number):
        return counted
    raise KernelFault("type", f"len of {value.cls.name}", origin)


def shown(value: Instance, depth: int, represented: bool) -> str:
    """What `str` or `repr` gives."""
    from migrate.nki.operations import MAX_NESTING, MAX_SHOWN, text_of

    names = ("__repr__",) if represented or depth else ("__str__", "__repr__")
    for name in names:
        run = run_of(value)
        if run is not None and run.frame is not None and depth < MAX_NESTING:
            method = special(value, name)
            if method is not None and run.frame.stack is not None:
                found = call(method, (), {}, run.frame, run.frame.stack.origin)
                return found if isinstance(found, str) else f"<{value.cls.name}>"
    if value.cls.kind == "enum":
        if value.cls.mixin and not represented:
            return text_of(value.names["value"])
        label = f"{value.cls.name}.{text_of(value.names['name'])}"
        return f"<{label}: {text_of(value.names['value'], 1)}>" if represented else label
    if value.cls.kind == "exception":
        args = value.names.get("args", ())
        if isinstance(args, tuple):
            return text_of(args[0]) if len(args) == 1 else text_of(args) if args else ""
    if value.cls.fields is not None and depth < MAX_NESTING:
        parts = [
            f"{each.name}={text_of(value.names.get(each.name), depth + 1)}"
            for each in value.cls.fields[:MAX_SHOWN]
            if each.shown
        ]
        return f"{value.cls.name}({', '.join(parts)})"
    return f"<{value.cls.name} object>"
