"""Integer expressions of host code: what a launch's extents and arguments are made of.

Expressions stay symbolic over what the host code leaves open; `evaluate` gives their number,
`index` their index expression.  Arithmetic is exact: C's truncating division on integers,
rationals where the code divides as floating-point (`ceil(n / 256.0)`), no wrapping.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from migrate.ir.index import Index, TooComplex, ceil_div, maximum, minimum

MAX_DEPTH = 40
"""Operations within each other."""

MAX_BITS = 256
"""Of a number on the way to an extent: shifts of shifts do not end otherwise."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A number; `name` is the host variable it was read from, which equality ignores."""

    value: int
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name whose value reading does not decide.

    `of` says why: it is `given` by the caller of the host function (or by another file), a
    `variable` of the host code that cannot be followed, or the `result` of a call or member
    whose type is not known either.
    """

    name: str
    of: Literal["given", "variable", "result"] = field(default="given", compare=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """`+ - * / % << >> & | ^ ! ~ min max ?:` and comparisons; division truncates, as C's.

    `f/` is the quotient of floating-point numbers, taken exactly; `ceil`, `floor` and `trunc`
    make an integer of it.
    """

    operator: str
    args: tuple[HostExpression, ...]


@dataclass(frozen=True, slots=True)
class NotRead:
    """An expression that is not understood."""

    text: str


HostExpression = Constant | Symbol | Operation | NotRead


def evaluate(expression: HostExpression, values: Mapping[str, int]) -> int | None:
    """The expression's value; `None` where something in it has none, or it is no integer."""
    found = _value(expression, values, 0)
    return int(found) if found is not None and found.denominator == 1 else None


def readable(expression: HostExpression, depth: int = 0) -> bool:
    """Whether everything in an expression is understood."""
    match expression:
        case NotRead():
            return False
        case Operation(args=args):
            return depth <= MAX_DEPTH and all(readable(arg, depth + 1) for arg in args)
        case _:
            return True


def settled(expression: HostExpression, depth: int = 0) -> bool:
    """Whether everything in an expression is understood and hangs on no unknown call."""
    match expression:
        case NotRead() | Symbol(of="result"):
            return False
        case Operation(args=args):
            return depth <= MAX_DEPTH and all(settled(arg, depth + 1) for arg in args)
        case _:
            return True


def index(expression: HostExpression, symbols: Mapping[str, Index], depth: int = 0) -> Index | None:
    """The expression as an index expression; `None` where it is none.

    Sizes are taken to be non-negative, so that C's division is the floor division of indices
    where no subtraction is below it.
    """
    if depth > MAX_DEPTH:
        return None
    match expression:
        case Constant(value=value):
            return Index.of(value)
        case Symbol(name=name):
            return symbols.get(name)
        case Operation(
            operator=("ceil" | "floor" | "trunc") as rounding,
            args=(Operation(operator="f/", args=parts),),
        ):
            operator, args = ("ceil_div" if rounding == "ceil" else "/"), parts
        case Operation(operator=("ceil" | "floor" | "trunc"), args=(inner,)):
            return index(inner, symbols, depth + 1)
        case Operation(operator=operator, args=args):
            pass
        case NotRead():
            return None
    known = [part for arg in args if (part := index(arg, symbols, depth + 1)) is not None]
    if len(known) != len(args):
        return None
    try:
        return _indexed(operator, known)
    except (TooComplex, ZeroDivisionError):
        return None


def _value(
    expression: HostExpression, values: Mapping[str, int], depth: int
) -> Fraction | int | None:
    if depth > MAX_DEPTH:
        return None
    match expression:
        case Constant(value=value):
            return value
        case Symbol(name=name):
            return values.get(name)
        case Operation(operator="?:", args=(condition, then, otherwise)):
            truth = _value(condition, values, depth + 1)
            if truth is None:
                return None
            return _value(then if truth else otherwise, values, depth + 1)
        case Operation(operator=operator, args=args):
            known = [n for arg in args if (n := _value(arg, values, depth + 1)) is not None]
            if len(known) != len(args):
                return None
            result = _apply(operator, known)
            too_long = result is not None and int(result).bit_length() > MAX_BITS
            return None if too_long else result
        case NotRead():
            return None


def _apply(operator: str, args: list[Fraction | int]) -> Fraction | int | None:
    match operator, args:
        case "+", [a, b]:
            return a + b
        case "-", [a, b]:
            return a - b
        case "-", [a]:
            return -a
        case "*", [a, b]:
            return a * b
        case "f/", [a, b]:
            return Fraction(a) / b if b else None
        case "ceil", [a]:
            return math.ceil(a)
        case "floor", [a]:
            return math.floor(a)
        case "trunc", [a]:
            return math.trunc(a)
        case "min", [_, *_]:
            return min(args)
        case "max", [_, *_]:
            return max(args)
        case "<", [a, b]:
            return int(a < b)
        case ">", [a, b]:
            return int(a > b)
        case "<=", [a, b]:
            return int(a <= b)
        case ">=", [a, b]:
            return int(a >= b)
        case "==", [a, b]:
            return int(a == b)
        case "!=", [a, b]:
            return int(a != b)
        case "!", [a]:
            return int(not a)
        case "&&", [a, b]:
            return int(bool(a) and bool(b))
        case "||", [a, b]:
            return int(bool(a) or bool(b))
        case _:
            whole = [item for item in args if isinstance(item, int)]
            return _apply_whole(operator, whole) if len(whole) == len(args) else None


def _apply_whole(operator: str, args: list[int]) -> int | None:
    """Operators that C defines on integers alone."""
    match operator, args:
        case (("/" | "%"), [a, b]):
            if b == 0:
                return None
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return quotient if operator == "/" else a - quotient * b
        case "<<", [a, b] if 0 <= b < 63:
            return a << b
        case ">>", [a, b] if 0 <= b < 63:
            return a >> b
        case "&", [a, b]:
            return a & b
        case "|", [a, b]:
            return a | b
        case "^", [a, b]:
            return a ^ b
        case "~", [a]:
            return ~a
        case _:
            return None


def _indexed(operator: str, args: list[Index]) -> Index | None:
    match operator, args:
        case "+", [a, b]:
            return a + b
        case "-", [a, b]:
            return a - b
        case "*", [a, b]:
            return a * b
        case "/", [a, b]:
            return a // b
        case "ceil_div", [a, b]:
            return ceil_div(a, b)
        case "%", [a, b]:
            return a % b
        case "<<", [a, b] if (amount := b.constant) is not None and 0 <= amount < 63:
            return a * (1 << amount)
        case ">>", [a, b] if (amount := b.constant) is not None and 0 <= amount < 63:
            return a // (1 << amount)
        case "&", [a, b] if (
            (mask := b.constant) is not None and mask >= 0 and not mask & (mask + 1)
        ):
            return a % (mask + 1)
        case "min", [_, *_]:
            return minimum(*args)
        case "max", [_, *_]:
            return maximum(*args)
        case _:
            return None
