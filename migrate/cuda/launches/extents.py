"""The extents of a launch: `dim3` in all its spellings, and integers that convert to one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.cuda.launches.declare import Declared
from migrate.cuda.launches.host import NotRead, Operation, Symbol
from migrate.cuda.launches.terms import AXES, ONE, Triple, Unread, axes, whole
from migrate.cuda.launches.text import Words

if TYPE_CHECKING:
    from migrate.cuda.launches.reader import Reader


def dimensions(reader: Reader, start: int, end: int) -> Triple:
    """A `dim3`, or an integer that converts to one."""
    try:
        return _dimensions(reader, start, end)
    except Unread:
        unread = NotRead(reader.text.text(start, end))
        return unread, unread, unread


def listed(reader: Reader, start: int, end: int) -> Triple:
    """The arguments of a `dim3`'s constructor."""
    parts = [part for part in reader.text.split(start, end) if part[0] < part[1]]
    if len(parts) == 1:
        return dimensions(reader, *parts[0])
    x, y, z = ([reader.expression(*part) for part in parts] + [ONE, ONE, ONE])[:3]
    return x, y, z


def _dimensions(reader: Reader, start: int, end: int) -> Triple:
    text = reader.text
    inner = reader.inner()
    reader.step()
    if start >= end:
        raise Unread
    first, last = text.words[start], text.words[end - 1]
    if first in ("(", "{") and text.partner[start] == end - 1:
        if first == "(":
            return _dimensions(inner, start + 1, end - 1)
        return listed(inner, start + 1, end - 1)
    if first == "(" and text.words[start + 1 : start + 3] == ("dim3", ")"):
        return _dimensions(inner, start + 3, end)
    if first in ("dim3", "uint3") and start + 1 < end and text.partner[start + 1] == end - 1:
        return listed(inner, start + 2, end - 1)
    question = _question(text, start, end)
    if question is not None:
        middle, colon = question
        condition = inner.term(start, middle).value
        then = _dimensions(inner, middle + 1, colon)
        otherwise = _dimensions(inner, colon + 1, end)
        x, y, z = (
            a if a == b else Operation("?:", (condition, a, b))
            for a, b in zip(then, otherwise, strict=True)
        )
        return x, y, z
    if text.kinds[start] == "name":
        if end == start + 1:
            return _variable_extents(inner, first, start)
        if last == ")" and (made := _helper_extents(inner, start, end)) is not None:
            return made
    found = inner.term(start, end)
    match found.value:
        case Symbol(name=shown, of="result"):
            if (kind := _member_type(inner, shown)) and kind != "dim3":
                return found.value, ONE, ONE
            return axes(shown, "result")
    return whole(found), ONE, ONE


def _variable_extents(reader: Reader, name: str, at: int) -> Triple:
    declared = reader.names.lookup(name, at)
    if declared is None:
        if reader.outer is not None:
            return _variable_extents(reader.outside(reader.outer[0]), name, reader.outer[1])
        expanded = reader.text.expanded(at, at + 1)
        if expanded is not None:
            return dimensions(reader.within(expanded, at), 0, len(expanded.words))
        return reader.name(name, (), at).value, ONE, ONE
    if declared.at in reader.bound:
        return reader.bound[declared.at]
    kind = declared.type.replace("const", "").strip("& ")
    if kind == "dim3" or (kind == "auto" and _made_of_extents(reader, declared)):
        x, y, z = (reader.name(name, (axis,), at).value for axis in AXES)
        return x, y, z
    if kind == "auto" and declared.form == "opaque":
        return axes(name, "result")
    value = reader.name(name, (), at).value
    if kind == "auto" and isinstance(value, Symbol):
        return axes(value.name, "result")
    return value, ONE, ONE


def _made_of_extents(reader: Reader, declared: Declared) -> bool:
    """Whether a variable without a type of its own is made from a `dim3`."""
    start = declared.start
    words = reader.text.words[start : declared.end]
    if "dim3" in words:
        return True
    called = words[0] if words else ""
    return any(
        _returns(reader, opening) == "dim3" for opening, _ in reader.names.functions.get(called, ())
    )


def _returns(reader: Reader, opening: int) -> str:
    begin = reader.text.statement(opening)
    words = reader.text.words[begin:opening]
    return "dim3" if "dim3" in words[: words.index("(")] else ""


def _helper_extents(reader: Reader, start: int, end: int) -> Triple | None:
    """What a function of the file returns, if that is a `dim3`."""
    opening = start + 1
    if reader.text.words[opening] != "(" or reader.text.partner[opening] != end - 1:
        return None
    for brace, made in reader.names.functions.get(reader.text.words[start], ()):
        if _returns(reader, brace) != "dim3":
            continue
        entered = reader.enter(made.parameters, (opening + 1, end - 1), reader)
        place = reader.returned(brace)
        if entered is not None and place is not None:
            return _dimensions(entered, *place)
    return None


def _member_type(reader: Reader, shown: str) -> str:
    """The type of a member by its name, if every class of the file agrees on it."""
    member = shown.rsplit(".", 1)[-1]
    if "." not in shown or not member.isidentifier():
        return ""
    kinds = set()
    for at in reader.text.places(member):
        inside = reader.text.parent[at]
        if inside >= 0 and reader.text.words[inside] == "{":
            if reader.names.body(inside).kind == "record":
                begin = reader.text.statement(at)
                kinds.add(reader.text.text(begin, at).partition(",")[0].strip())
    return kinds.pop() if len(kinds) == 1 else ""


def _question(text: Words, start: int, end: int) -> tuple[int, int] | None:
    """Where the outermost `?` and its `:` stand."""
    at = start
    middle: int | None = None
    level = 0
    while at < end:
        word = text.words[at]
        if word in ("(", "[", "{"):
            at = text.closing(at, end)
        elif word == "?":
            middle = at if middle is None else middle
            level += 1
        elif word == ":" and middle is not None:
            level -= 1
            if level == 0:
                return middle, at
        at += 1
    return None
