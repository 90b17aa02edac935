"""Operations on sets of interpreted values."""

from __future__ import annotations

from migrate.nki.objects import Set


def combined(sign: str, left: Set, right: Set) -> Set:
    """`left | right`, `&`, `-`, `^`, in the order in which the values came."""
    mine, theirs = left.entries, right.entries
    match sign:
        case "|":
            found = {**mine, **{key: value for key, value in theirs.items() if key not in mine}}
        case "&":
            found = {key: value for key, value in mine.items() if key in theirs}
        case "-":
            found = {key: value for key, value in mine.items() if key not in theirs}
        case _:
            found = {key: value for key, value in mine.items() if key not in theirs}
            found |= {key: value for key, value in theirs.items() if key not in mine}
    return Set(found, left.frozen)


def included(sign: str, left: Set, right: Set) -> bool:
    """`<`, `<=`, `>`, `>=`: whether one is a part of the other."""
    mine, theirs = left.entries.keys(), right.entries.keys()
    match sign:
        case "<":
            return mine < theirs
        case "<=":
            return mine <= theirs
        case ">":
            return mine > theirs
        case _:
            return mine >= theirs
