"""Types and constants given as text, read with the names of a program.

`Pair<int, 4>` in a case names a type of the file.  Only what template arguments look like is
read: names with arguments, pointers, numbers.
"""

from __future__ import annotations

import re

from migrate.cuda.conversions import number
from migrate.cuda.scope import Binding, Scope
from migrate.cuda.types import Pointer, Routine, Unknown, named

_NAME = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?:\s+[A-Za-z_]\w*)*")
_NUMBER = re.compile(r"-?[0-9][\w.]*")
MAX_LENGTH = 2000
MAX_DEPTH = 16


def binding(text: str, scope: Scope) -> Binding | None:
    """What a template argument as text means; `None` for what is not understood."""
    if len(text) > MAX_LENGTH:
        return None
    found, rest = _one(text.strip(), scope, 0)
    return found if not rest.strip() else None


def _one(text: str, scope: Scope, depth: int) -> tuple[Binding | None, str]:
    text = text.lstrip()
    if depth > MAX_DEPTH:
        return None, text
    digits = _NUMBER.match(text)
    if digits is not None:
        plain = digits[0].lstrip("-")
        read = number(plain)
        if read is None:
            return None, text
        return (-read[0] if digits[0].startswith("-") else read[0]), text[digits.end() :]
    match = _NAME.match(text)
    if match is None:
        return None, text
    words = [word for word in match[0].split() if word not in ("const", "typename", "struct")]
    const = "const" in match[0].split()
    name, rest = " ".join(words), text[match.end() :]
    found: Binding | None
    if rest.lstrip().startswith("<"):
        arguments: list[Binding] = []
        rest = rest.lstrip()[1:]
        while not rest.lstrip().startswith(">"):
            value, rest = _one(rest, scope, depth + 1)
            if value is None:
                return None, rest
            arguments.append(value)
            rest = rest.lstrip()
            if rest.startswith(","):
                rest = rest[1:]
            elif not rest.startswith(">"):
                return None, rest
        rest = rest.lstrip()[1:]
        found = scope.classes.named(name.rsplit("::", 1)[-1], arguments, scope)
    else:
        found = _plain(name, scope)
    while rest.lstrip().startswith(("*", "const")):
        rest = rest.lstrip()
        if rest.startswith("*"):
            if found is None or isinstance(found, bool | int | float):
                return None, rest
            found, rest = Pointer(found, const=const), rest[1:]
            const = False
        else:
            const, rest = True, rest[5:]
    return (None if isinstance(found, Unknown) else found), rest


def _plain(name: str, scope: Scope) -> Binding | None:
    from migrate.cuda.declarators import type_of
    from migrate.cuda.expressions import extent

    if name in ("true", "false"):
        return name == "true"
    plain = name.rsplit("::", 1)[-1]
    alias = scope.program.aliases.get(plain)
    if alias is not None and not alias.template:
        return type_of(alias.type, scope, extent)
    if scope.classes.known(plain):
        return scope.classes.named(plain, (), scope)
    known = named(name)
    if known is not None:
        return known
    if plain in scope.program.functions:
        return Routine(plain)
    if plain in scope.program.enumerators:
        base, offset = scope.program.enumerators[plain]
        value = 0 if base is None else extent(base, scope)
        return None if value is None else value + offset
    return None
