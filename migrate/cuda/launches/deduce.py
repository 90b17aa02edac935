"""Template arguments that a launch leaves to deduction (C++ [temp.deduct.call])."""

from __future__ import annotations

import re
from collections.abc import Mapping

from migrate.cuda.launches.find import Launch
from migrate.cuda.parse import Definition, Program
from migrate.cuda.types import named

_WORD = re.compile(r"[A-Za-z_]\w*")
_QUALIFIERS = re.compile(r"\b(?:const|volatile|__restrict__|restrict|struct|typename)\b")


def deduced(program: Program, definition: Definition, launch: Launch) -> Mapping[str, str]:
    """Types of the template parameters that the declared types of the arguments decide.

    Only parameters of the forms `T`, `T*` and `T&` are looked at, and only types that the
    language or CUDA defines are told.
    """
    wanted = {p.name for p in definition.template if p.kind == "type"}
    found: dict[str, str] = {}
    spoiled: set[str] = set()
    for position, written in enumerate(_parameters(program, definition)):
        if position >= len(launch.argument_types):
            break
        pattern, stars = _plain(written)
        given, given_stars = _plain(launch.argument_types[position])
        if pattern not in wanted or stars != given_stars or named(given) is None:
            continue
        if found.setdefault(pattern, given) != given:
            spoiled.add(pattern)
    return {name: kind for name, kind in found.items() if name not in spoiled}


def _plain(written: str) -> tuple[str, int]:
    """A type without qualifiers and references, and how many pointers it has."""
    bare = _QUALIFIERS.sub(" ", written)
    stars = bare.count("*") + bare.count("[")
    return " ".join(re.sub(r"[*&]|\[\w*\]", " ", bare).split()), stars


def _parameters(program: Program, definition: Definition) -> list[str]:
    """The types of a kernel's parameters as written, in order."""
    declarator = definition.node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    found: list[str] = []
    for parameter in listed.named_children if listed is not None else ():
        if "parameter" not in parameter.type:
            continue
        text = program.text(parameter).partition("=")[0].strip()
        names = list(_WORD.finditer(text))
        # What is declared comes last; a parameter without a name is its type alone.
        last = names[-1] if len(names) > 1 else None
        found.append(text[: last.start()] + text[last.end() :] if last is not None else text)
    return found
