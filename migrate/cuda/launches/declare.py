"""Declarations, functions and control statements among the words of host code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from migrate.cuda.launches.text import CONTROLS, Words

_SPECIFIERS = frozenset(
    {
        "const", "constexpr", "static", "inline", "volatile", "extern", "register", "mutable",
        "thread_local", "constinit", "__constant__", "__device__", "__managed__", "typename",
        "struct", "class", "enum",
    }
)  # fmt: skip
_BUILT_IN = frozenset({"unsigned", "signed", "long", "short", "int", "char", "double", "float"})
_NO_TYPE = CONTROLS | {
    "return", "delete", "goto", "case", "default", "throw", "using", "typedef", "new", "operator",
    "namespace", "template", "sizeof", "public", "private", "protected", "break", "continue",
    "friend", "static_assert", "asm", "this",
}  # fmt: skip
_FUNCTION_TAIL = frozenset({"const", "noexcept", "override", "final", "mutable", "->", "&", "&&"})


@dataclass(frozen=True, slots=True)
class Declared:
    """A name's declaration.

    `start` to `end` is what it is made from, in the given `form`: `=`, the brackets of a
    constructor (`(`, `{`), none, a parameter (`start` to `end` is its default), a template
    parameter, an enumerator (its number is `start` to `end`, else `end - start` is 0), or one
    that is not followed: a structured binding, the variable of a range-for.
    """

    at: int
    type: str
    form: Literal["=", "(", "{", "none", "parameter", "template", "enumerator", "opaque"]
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Control:
    """`if (…)`, `for (…)`, … in front of a statement; `start` to `end` is inside the brackets."""

    word: str
    at: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Body:
    """What a brace opens; `parameters` are inside the brackets, in words."""

    kind: Literal["function", "lambda", "namespace", "record", "other"]
    name: str = ""
    parameters: tuple[int, int] = (0, 0)
    template: tuple[int, int] = (0, 0)


def controls(text: Words, start: int, end: int) -> tuple[list[Control], int]:
    """The control statements that a statement begins with, and where the rest begins."""
    found: list[Control] = []
    at = start
    while at < end:
        word = text.words[at]
        if word in ("case", "default") and not found:
            colon = at + 1
            while colon < end and text.words[colon] != ":":
                colon += 1
            at = colon + 1
            start = at
            continue
        if word not in CONTROLS:
            break
        head = at + 1
        if head < end and text.words[head] == "constexpr":
            head += 1
        if head < end and text.words[head] == "(":
            close = text.closing(head, len(text.words))
            found.append(Control(word, at, head + 1, close))
            if close >= end:
                return found, end
            at = close + 1
        else:
            found.append(Control(word, at, at + 1, at + 1))
            at += 1
    return found, at


def declarations(text: Words, start: int, end: int) -> list[Declared]:
    """What a statement declares, if it is a declaration; `end` bounds the look."""
    _, at = controls(text, start, end)
    while at < end and (text.words[at] in _SPECIFIERS or text.words[at] == "["):
        at = text.closing(at, end) + 1 if text.words[at] == "[" else at + 1
    after = _type(text, at, end)
    if after is None:
        return []
    kind = text.text(at, after)
    if after < end and text.words[after] == "[" and kind.startswith("auto"):
        close = text.closing(after, end)
        names = [i for i in range(after + 1, close) if text.kinds[i] == "name"]
        return [Declared(name, kind, "opaque") for name in names]
    return _declarators(text, kind, after, end)


def _type(text: Words, at: int, end: int) -> int | None:
    """The position after a type's name; `None` where there is none."""
    begin = at
    while at < end and text.words[at] in _BUILT_IN | {"const"}:
        at += 1
    if at == begin or not any(word in _BUILT_IN for word in text.words[begin:at]):
        at = begin
        if at < end and text.words[at] == "::":
            at += 1
        while True:
            if at >= end or text.kinds[at] != "name" or text.words[at] in _NO_TYPE:
                return None
            at += 1
            if at < end and text.words[at] == "<":
                closed = text.angle(at, end)
                if closed is None:
                    return None
                at = closed
            if at + 1 < end and text.words[at] == "::":
                at += 1
                continue
            break
    while at < end and text.words[at] in ("const", "volatile"):
        at += 1
    return at


def _declarators(text: Words, kind: str, at: int, end: int) -> list[Declared]:
    found: list[Declared] = []
    while at < end:
        pointer = ""
        while at < end and text.words[at] in (
            "*", "&", "&&", "const", "__restrict__", "volatile", "__restrict",
        ):  # fmt: skip
            pointer += text.words[at] if text.words[at] in "*&&" else ""
            at += 1
        if at >= end or text.kinds[at] != "name" or text.words[at] in _NO_TYPE:
            return found
        name = at
        at += 1
        extent = ""
        while at < end and text.words[at] == "[":
            at = text.closing(at, end) + 1
            extent = "[]"
        word = text.words[at] if at < end else ";"
        full = kind + pointer + extent
        if word == "=":
            stop = _initialiser_end(text, at + 1, end)
            found.append(Declared(name, full, "=", at + 1, stop))
            at = stop
        elif word in ("(", "{"):
            close = text.closing(at, end)
            following = text.words[close + 1] if close + 1 < end else ";"
            if following not in (",", ";", ")"):
                return found
            if word == "(" and kind != "dim3" and _prototype(text, at + 1, close):
                return found
            form: Literal["(", "{"] = "(" if word == "(" else "{"
            found.append(Declared(name, full, form, at + 1, close))
            at = close + 1
        elif word == ":":
            found.append(Declared(name, full, "opaque"))
            return found
        elif word in (";", ",", ")"):
            found.append(Declared(name, full, "none"))
        else:
            return found
        if at >= end or text.words[at] != ",":
            return found
        at += 1
    return found


def _initialiser_end(text: Words, at: int, end: int) -> int:
    while at < end and text.words[at] not in (";", ",", ")", "}", "]"):
        if text.words[at] in ("(", "[", "{"):
            at = text.closing(at, end)
        elif text.words[at] == "<" and text.kinds[at - 1] == "name":
            at = (text.angle(at, end) or at + 1) - 1
        at += 1
    return min(at, end)


def _prototype(text: Words, start: int, end: int) -> bool:
    """Whether brackets hold parameters with their types rather than arguments."""
    if start == end:
        return True
    for begin, stop in text.split(start, end):
        after = _type(text, begin + (text.words[begin] == "const"), stop)
        if after is not None and after < stop:
            while after < stop and text.words[after] in ("*", "&", "&&"):
                after += 1
            if after == stop or (text.kinds[after] == "name" and after + 1 == stop):
                return True
    return False


def parameters(text: Words, start: int, end: int, template: bool = False) -> list[Declared]:
    """The parameters of a function, lambda or template."""
    found: list[Declared] = []
    for begin, stop in text.split(start, end):
        equals = next(
            (at for at in range(begin, stop) if text.words[at] == "="), stop
        )  # a default's own brackets come after its sign
        last = equals - 1
        while last > begin and text.words[last] in ("]", "["):
            last = text.partner[last] - 1 if text.words[last] == "]" else last - 1
        if last < begin or text.kinds[last] != "name":
            continue
        kind = text.text(begin, last)
        form: Literal["parameter", "template"] = "template" if template else "parameter"
        found.append(Declared(last, kind, form, min(equals + 1, stop), stop))
    return found


MAX_HEAD: Final = 2000
"""Words before a brace that are looked through: each brace of a broken text may have all of them
before it."""


def body(text: Words, opening: int) -> Body:
    """What the brace at `opening` begins."""
    begin = text.statement(opening)
    if opening - begin > MAX_HEAD:
        return Body("other")
    template = (0, 0)
    found, rest = controls(text, begin, opening)
    if found:
        begin = rest
    while begin + 1 < opening and text.words[begin : begin + 2] == ("template", "<"):
        close = text.angles(begin + 1, opening)
        template = (begin + 2, close - 1)
        begin = close
    head = text.words[begin:opening]
    if not head:
        return Body("other")
    if "namespace" in head[:2] or (head[0] == "extern" and text.kinds[opening - 1] == "string"):
        return Body("namespace")
    made = _lambda(text, begin, opening)
    if made is not None:
        return made
    for at in range(begin, opening):
        if text.words[at] in ("struct", "class", "union", "enum") and "(" not in head:
            name = next((w for w in text.words[at + 1 : opening] if w not in _SPECIFIERS), "")
            return Body("record", name, template=template)
        if text.words[at] == "=":
            return Body("other")
        if text.words[at] == "(" and text.parent[at] == text.parent[opening]:
            close = text.closing(at, opening)
            before = text.words[at - 1] if at > begin else ""
            if close == opening or before in CONTROLS:
                return Body("other")
            if before.startswith("__") and before.endswith("__"):
                continue  # __launch_bounds__(…) and its like
            tail = text.words[close + 1 : opening]
            if tail and tail[0] not in _FUNCTION_TAIL and tail[0] != ":":
                continue
            if text.kinds[at - 1] != "name" or before in _NO_TYPE:
                return Body("other")
            return Body("function", before, (at + 1, close), template)
    return Body("other")


def _lambda(text: Words, begin: int, opening: int) -> Body | None:
    at = opening - 1
    while at > begin and text.words[at] in ("mutable", "noexcept", "__device__", "__host__"):
        at -= 1
    arrow = next((i for i in range(at, begin, -1) if text.words[i] == "->"), None)
    if arrow is not None:
        at = arrow - 1
    span = (0, 0)
    if text.words[at] == ")" and text.partner[at] > begin:
        span = (text.partner[at] + 1, at)
        at = text.partner[at] - 1
    if text.words[at] != "]":
        return None
    captured = text.partner[at]
    before = text.words[captured - 1] if captured > 0 else ""
    if captured < begin or (text.kinds[max(captured - 1, 0)] == "name" and before != "return"):
        return None
    return Body("lambda", parameters=span)
