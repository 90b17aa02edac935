"""Labelled faults: small edits of a sample's NKI kernel that make it wrong in a known way.

`faults.toml` lists them as `[[fault]]` tables.  An edit replaces one piece of the text
(`find` occurs exactly once, unless `all` is set), and must leave valid Python.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from migrate.results import Effect, Family
from migrate.source import Source, SourceError, read


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One labelled fault.  `family` and `effect` are those a finding should have."""

    id: str
    what: str
    find: str
    replace: str
    family: Family
    effect: Effect
    all: bool = False


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fault: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class Faulty:
    """A kernel with a fault in it; `lines` are the edited ones, counted from 1."""

    fault: Fault
    text: str
    lines: tuple[int, ...]


def load(path: str | Path) -> tuple[Fault, ...]:
    """Read a `faults.toml`; raises `SourceError`."""
    source = read(path)
    try:
        return msgspec.convert(tomllib.loads(source.text), _File).fault
    except tomllib.TOMLDecodeError as error:
        raise SourceError(f"is not TOML: {error}", file=source.name) from None
    except msgspec.ValidationError as error:
        raise SourceError(str(error), file=source.name) from None


def apply(fault: Fault, kernel: Source) -> Faulty:
    """The kernel with the fault; raises `SourceError` where the edit does not fit."""
    import libcst

    count = kernel.text.count(fault.find)
    if count == 0 or (count > 1 and not fault.all):
        raise SourceError(
            f"fault {fault.id}: {fault.find!r} occurs {count} times", file=kernel.name
        )
    pieces = kernel.text.split(fault.find)
    lines: list[int] = []
    text = pieces[0]
    for piece in pieces[1:]:
        first = text.count("\n") + 1
        text += fault.replace
        lines += range(first, text.count("\n") + 2)
        text += piece
    try:
        libcst.parse_module(text)
    except libcst.ParserSyntaxError as error:
        raise SourceError(
            f"fault {fault.id} leaves text that is not Python: {error.message}", file=kernel.name
        ) from None
    return Faulty(fault, text, tuple(dict.fromkeys(lines)))
