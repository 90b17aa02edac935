"""Implicit conversions, made explicit."""

from __future__ import annotations

from functools import lru_cache
from typing import get_args

from migrate.cuda.ast import (
    Address,
    Binary,
    Builtin,
    Cast,
    Component,
    Conditional,
    Element,
    Expression,
    Intrinsic,
    Literal,
    Logical,
    MakeVector,
    Name,
    OpaqueExpression,
    Unary,
)
from migrate.cuda.types import (
    ADDRESS,
    BOOL,
    FLOAT,
    FLOAT_REGISTER,
    INT,
    Array,
    Pointer,
    Scalar,
    Type,
    Unknown,
    Vector,
    common,
)

_PARTS = get_args(Expression)


def convert(expression: Expression, to: Type, *, written: bool = False) -> Expression:
    """The expression as a value of another type.

    Unknown types pass through: whoever made them has said why.  Between arithmetic types
    and between pointer types there is always a conversion; anything else is opaque.
    """
    kind = expression.type
    if kind is to:
        return expression
    expression = decay(expression) if isinstance(to, Pointer) else expression
    kind = expression.type
    if kind == to or isinstance(kind, Unknown) or isinstance(to, Unknown):
        return expression
    match kind, to:
        case Scalar(), Scalar() if FLOAT_REGISTER in (kind, to) and _bits(kind, to, expression):
            return OpaqueExpression("", "the bits of a register", to, expression.where)
        case Scalar(), Scalar():
            if isinstance(expression, Literal) and not written:
                exact = _literal(expression, to)
                if exact is not None:
                    return exact
            return Cast(expression, to, expression.where, written)
        case Pointer(), Pointer():
            if kind.element == to.element:
                return expression
            return Cast(expression, to, expression.where, written)
        case (Pointer(), Scalar(is_integer=True)) if kind == ADDRESS and to.size >= 4:
            # An address in shared memory stays what it points to, whatever holds it.
            return expression
        case (Scalar(is_integer=True), Vector()) if _is_zero(expression) and to.size == 4:
            # A register of packed numbers is cleared.
            zero = Literal(0, to.element, expression.where)
            return MakeVector((zero,) * to.lanes, to, expression.where)
        case (Scalar(is_integer=True), Vector()) if packed(expression, to) is not expression:
            return packed(expression, to)
        case (Pointer(), Scalar(is_bool=True)):
            return Cast(expression, to, expression.where, written)
        case (Scalar(is_integer=True), Pointer()) if written or isinstance(expression, Literal):
            return Cast(expression, to, expression.where, written)
        case (Pointer(), Scalar(is_integer=True)) if written:
            return Cast(expression, to, expression.where, written)
        case Vector(), Vector() if kind.element == to.element and kind.lanes == to.lanes:
            return Cast(expression, to, expression.where, written)
        case _:
            return OpaqueExpression(
                "", f"a conversion from {kind} to {to} is not understood", to, expression.where
            )


def packed(place: Expression, kind: Type) -> Expression:
    """Memory that is named as a 32-bit integer, as the packed numbers that are moved there.

    The registers of matrix instructions are declared as integers (`library.registers`).
    """
    if not (isinstance(kind, Vector) and kind.size == 4 and isinstance(place, Element)):
        return place
    have = place.type
    if not (isinstance(have, Scalar) and have.is_integer and have.size == 4):
        return place
    base = Cast(decay(place.base), Pointer(kind), place.where, written=False)
    return Element(base, place.index, kind, place.where)


def _bits(kind: Scalar, to: Scalar, expression: Expression) -> bool:
    """Whether a conversion to or from a register is one of its bits."""
    return (kind.is_integer or to.is_integer) and not _is_zero(expression)


def _is_zero(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value == 0


def _literal(literal: Literal, to: Scalar) -> Literal | None:
    value = literal.value
    if to.is_bool:
        return Literal(bool(value), to, literal.where)
    if to.is_integer and not isinstance(value, float):
        bits = to.dtype.bits - (0 if to.is_unsigned else 1)
        low = 0 if to.is_unsigned else -(1 << bits)
        return Literal(int(value), to, literal.where) if low <= value < 1 << bits else None
    # Every float type of C++ here holds integers up to 2^8 exactly.
    if to.is_float and not isinstance(value, float) and abs(value) <= 256:
        return Literal(float(value), to, literal.where)
    return None


def decay(expression: Expression) -> Expression:
    """An array as a pointer to its first element."""
    if isinstance(expression.type, Array):
        return Cast(expression, Pointer(expression.type.element), expression.where, written=False)
    return expression


def condition(expression: Expression) -> Expression:
    """The expression as a truth value."""
    return convert(decay(expression), BOOL)


def balance(left: Expression, right: Expression) -> tuple[Expression, Expression, Scalar] | None:
    """Both operands in their common arithmetic type; `None` where they have none."""
    if not isinstance(left.type, Scalar) or not isinstance(right.type, Scalar):
        return None
    if left.type is right.type and (left.type.is_float or left.type.rank >= INT.rank):
        return left, right, left.type
    kind = common(left.type, right.type)
    if kind is None:
        return None
    return convert(left, kind), convert(right, kind), kind


def is_place(expression: Expression) -> bool:
    """Whether the expression can be assigned to or have its address taken."""
    match expression:
        case Name() | Element():
            return True
        case Component(base=base):
            return is_place(base)
        case _:
            return False


def pure(expression: Expression, depth: int = 0) -> bool:
    """Whether evaluating the expression does nothing else, so that it may be done twice."""
    if depth > 60:
        return False
    match expression:
        case Literal() | Name() | Builtin():
            return True
        case Unary(operand=inner) | Cast(operand=inner):
            return pure(inner, depth + 1)
        case Address(place=inner) | Component(base=inner):
            return pure(inner, depth + 1)
        case Binary(left=left, right=right) | Logical(left=left, right=right):
            return pure(left, depth + 1) and pure(right, depth + 1)
        case Element(base=left, index=right):
            return pure(left, depth + 1) and pure(right, depth + 1)
        case Conditional(condition=condition_, then=then, otherwise=otherwise):
            return all(pure(part, depth + 1) for part in (condition_, then, otherwise))
        case MakeVector(parts=parts) | Intrinsic(arguments=parts):
            return all(pure(part, depth + 1) for part in parts)
        case _:
            return False


def small(expression: Expression, limit: int = 64) -> bool:
    """Whether the expression has few parts, so that it may stand in several places."""
    pending = [expression]
    while pending:
        limit -= 1
        if limit < 0:
            return False
        here = pending.pop()
        for name in here.__struct_fields__:
            held = getattr(here, name)
            for part in held if isinstance(held, tuple) else (held,):
                if isinstance(part, _PARTS):
                    pending.append(part)
    return True


def address(place: Expression) -> Expression | None:
    """`&place`; of `p[i]` it is `p + i`, of a variable its address; `None` for a value."""
    if not is_place(place):
        return None
    return Address(place, Pointer(place.type), place.where)


@lru_cache(maxsize=4096)
def number(text: str) -> tuple[int | float, Scalar] | None:
    """The value and type of a numeric literal (C++ [lex.icon], [lex.fcon])."""
    from migrate.cuda.types import (
        DOUBLE,
        LONG,
        LONG_LONG,
        UNSIGNED,
        UNSIGNED_LONG,
        UNSIGNED_LONG_LONG,
    )

    plain = text.replace("'", "").lower()
    if plain.startswith("-"):
        # The parser takes the sign of some hexadecimal floats into the literal.
        found = number(plain[1:])
        return None if found is None else (-found[0], found[1])
    hexadecimal = plain.startswith("0x")
    if ("p" in plain) if hexadecimal else ("." in plain or "e" in plain):
        is_single = plain.endswith("f") and not (hexadecimal and "p" not in plain)
        digits = plain.rstrip("fl")
        try:
            value = float.fromhex(digits) if hexadecimal else float(digits)
        except (ValueError, OverflowError):
            return None
        return value, FLOAT if is_single else DOUBLE
    digits = plain.rstrip("ulz")
    suffix = plain[len(digits) :]
    try:
        if hexadecimal or digits.startswith("0b"):
            whole = int(digits, 0)
        elif len(digits) > 1 and digits.startswith("0"):
            whole = int(digits, 8)
        else:
            whole = int(digits)
    except ValueError:
        return None
    decimal = not digits.startswith("0") or digits == "0"
    unsigned = "u" in suffix
    longs = suffix.count("l") + suffix.count("z")
    choices = {
        0: (INT, UNSIGNED, LONG, UNSIGNED_LONG),
        1: (LONG, UNSIGNED_LONG),
        2: (LONG_LONG, UNSIGNED_LONG_LONG),
    }[min(longs, 2)]
    for kind in choices:
        if kind.is_unsigned and not unsigned and decimal:
            continue
        if unsigned and not kind.is_unsigned:
            continue
        if whole < 1 << (kind.dtype.bits - (0 if kind.is_unsigned else 1)):
            return whole, kind
    return None
