"""Text made of values: `format`, `%`, f-strings and what dictionaries look like."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import Formatter

from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.objects import Instance
from migrate.nki.symbols import Number, Origin
from migrate.nki.values import MAX_ITEMS

_PERCENT = re.compile(
    r"%(?:\((?P<name>\w+)\))?(?P<spec>[-+ #0]*\d*(?:\.\d+)?)(?P<kind>.)", re.DOTALL
)
_LARGE = re.compile(r"\d{4}")


def formatted(value: object, conversion: int, spec: str, origin: Origin) -> str:
    """One replacement field: a value, a conversion as `ast` has it (-1 for none), a format."""
    from migrate.nki import classes
    from migrate.nki.operations import text_of

    if _LARGE.search(spec):
        raise Unsupported("a format specification with a width over 999", origin)
    if isinstance(value, Instance):
        plain = classes.plain(value)
        value = plain if plain is not value and conversion == -1 else value
    try:
        if conversion == -1 and spec and isinstance(value, Number):
            return format(value.value, spec)
        if conversion == -1 and spec and isinstance(value, bool):
            return format(value, spec)
        whole = conversion in (ord("r"), ord("a"))
        return format(represented(value) if whole else text_of(value), spec)
    except (ValueError, OverflowError) as error:
        raise KernelFault("value", str(error), origin) from None


def represented(value: object) -> str:
    """What `repr` gives."""
    from migrate.nki import classes
    from migrate.nki.operations import text_of

    if isinstance(value, str):
        return repr(value)
    if isinstance(value, Instance):
        return classes.shown(value, 0, True)
    return text_of(value)


def entries(value: Mapping[object, object], depth: int, seen: list[None]) -> str:
    """A dictionary as text."""
    from migrate.nki.operations import text_of

    shown = [
        f"{_key(key, depth)}: {text_of(item, depth + 1, seen)}"
        for key, item in list(value.items())[:64]
    ]
    return f"{{{', '.join(shown)}}}"


def _key(key: object, depth: int) -> str:
    from migrate.nki.objects import Keyed
    from migrate.nki.operations import text_of

    if isinstance(key, int | float):
        return str(key)
    return text_of(key.value if isinstance(key, Keyed) else key, depth + 1)


def percent(text: str, value: object, origin: Origin) -> str:
    """`text % value`."""
    args = list(value) if isinstance(value, tuple) else [value]
    found: list[str] = []
    at = used = 0
    for field in _PERCENT.finditer(text):
        found.append(text[at : field.start()])
        at = field.end()
        kind, spec = field["kind"], field["spec"]
        if kind == "%":
            found.append("%")
            continue
        if field["name"] is not None:
            if not isinstance(value, dict) or field["name"] not in value:
                raise KernelFault("key", f"no {field['name']} to format", origin)
            item = value[field["name"]]
        else:
            if used >= len(args):
                raise KernelFault("type", "not enough values to format", origin)
            item = args[used]
            used += 1
        found.append(_percent(kind, spec, item, origin))
        _bounded(found, origin)
    if used < len(args) and not isinstance(value, dict):
        raise KernelFault("type", "not all values are formatted", origin)
    return "".join((*found, text[at:]))


def _percent(kind: str, spec: str, item: object, origin: Origin) -> str:
    from migrate.nki.operations import number, text_of

    if _LARGE.search(spec):
        raise Unsupported("a format specification with a width over 999", origin)
    try:
        if kind in "sra":
            shown = text_of(item) if kind == "s" else represented(item)
            return f"%{spec}s" % shown
        if kind in "dixXo":
            return f"%{spec}{kind}" % int(number(item, origin).value)
        if kind in "feEgGF":
            return f"%{spec}{kind}" % float(number(item, origin).value)
    except (ValueError, OverflowError, TypeError) as error:
        raise KernelFault("value", str(error), origin) from None
    raise Unsupported(f"the format %{kind}", origin)


def filled(
    text: str, args: Sequence[object], keywords: Mapping[str, object], origin: Origin
) -> str:
    """`text.format(*args, **keywords)`; fields are numbers and names, nothing behind them."""
    found: list[str] = []
    automatic = 0
    try:
        parts = list(Formatter().parse(text))
    except ValueError as error:
        raise KernelFault("value", str(error), origin) from None
    for literal, name, spec, conversion in parts:
        found.append(literal)
        if name is None:
            continue
        if name == "":
            name, automatic = str(automatic), automatic + 1
        if "{" in (spec or ""):
            raise Unsupported("a format specification with fields of its own", origin)
        if name.isdecimal() and len(name) < 6:
            if int(name) >= len(args):
                raise KernelFault("index", f"no value {name} to format", origin)
            value = args[int(name)]
        elif name.isidentifier():
            if name not in keywords:
                raise KernelFault("key", f"no {name} to format", origin)
            value = keywords[name]
        else:
            raise Unsupported(f"the format field {name}", origin)
        code = ord(conversion) if conversion else -1
        found.append(formatted(value, code, spec or "", origin))
        _bounded(found, origin)
    return "".join(found)


def _bounded(parts: Sequence[str], origin: Origin) -> None:
    if len(parts) > MAX_ITEMS // 8 or sum(map(len, parts[-2:])) > MAX_ITEMS:
        raise Unsupported("a very long string", origin)
