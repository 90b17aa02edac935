"""What an expression of host code is while it is read: its value, and whether C has it real."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from migrate.cuda.conversions import number
from migrate.cuda.launches.host import Constant, HostExpression, Operation, Symbol
from migrate.cuda.types import Scalar, named

MAX_SYMBOL = 120
"""Characters of an expression that is kept as a name."""

Triple = tuple[HostExpression, HostExpression, HostExpression]
ONE: Final = Constant(1)
AXES: Final = "xyz"
BUILT_IN: Final = frozenset({"unsigned", "signed", "long", "short", "int", "char"})

_EXTENT = re.compile(r"[A-Za-z_]\w*(\.size\(-?\d+\)|\.numel\(\)|\.sizes\(\)\[-?\d+\])")


class Unread(Exception):
    """Text that is no expression this module knows."""


@dataclass(frozen=True, slots=True)
class Term:
    """An expression, and whether C computes it in floating point."""

    value: HostExpression
    real: bool = False


def whole(term: Term) -> HostExpression:
    """As an integer."""
    if not term.real:
        return term.value
    match term.value:
        case Constant() | Operation(operator="ceil" | "floor" | "trunc"):
            return term.value
        case value:
            return Operation("trunc", (value,))


def binary(operator: str, left: Term, right: Term) -> Term:
    """An operation as C does it: a division of integers truncates."""
    real = left.real or right.real
    if real and operator == "/":
        return Term(Operation("f/", (left.value, right.value)), True)
    if real and operator in ("%", "<<", ">>", "&", "|", "^"):
        raise Unread
    compared = operator in ("<", ">", "<=", ">=", "==", "!=", "&&", "||")
    return Term(Operation(operator, (left.value, right.value)), real and not compared)


def is_extent(shown: str) -> bool:
    """Whether an expression is an extent of a tensor, which the caller decides."""
    return _EXTENT.fullmatch(shown) is not None


def axes(name: str, of: Literal["variable", "result"]) -> Triple:
    """The three extents of something that may be a `dim3`."""
    x, y, z = (Symbol(f"{name}.{axis}", of) for axis in AXES)
    return x, y, z


def of_triple(triple: Triple, fields: tuple[str, ...]) -> Term | None:
    """A field of a `dim3`; without fields, the integer that it was made from."""
    if not fields:
        return Term(triple[0])
    axis = AXES.find(fields[0]) if len(fields) == 1 and len(fields[0]) == 1 else -1
    return Term(triple[axis]) if axis >= 0 else None


def component(triple: Triple, fields: tuple[str, ...], shown: str) -> HostExpression:
    """As `of_triple`, with a name for what is no field of it."""
    found = of_triple(triple, fields)
    return found.value if found is not None else Symbol(shown, "result")


def number_type(words: tuple[str, ...]) -> Scalar | None:
    """The number type that words name."""
    plain = [word for word in words if word not in ("const", "volatile")]
    if not plain or "*" in plain or "&" in plain:
        return None
    if plain[:2] == ["std", "::"]:
        plain = plain[2:]
    found = named(" ".join(plain))
    return found if isinstance(found, Scalar) else None


def cast(kind: Scalar, term: Term) -> Term:
    """A value converted to a number type; integers are taken to fit."""
    return Term(term.value, True) if kind.is_float else Term(whole(term))


def literal(word: str) -> Term:
    """A number as written.  Raises `Unread`."""
    found = number(word)
    if found is None:
        raise Unread
    value = found[0]
    if isinstance(value, int):
        return Term(Constant(value))
    exact = Fraction(value).limit_denominator(10**6)
    if exact.denominator == 1:
        return Term(Constant(exact.numerator), True)
    parts = (Constant(exact.numerator), Constant(exact.denominator))
    return Term(Operation("f/", parts), True)
