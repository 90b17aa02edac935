"""Constant folding: the value of an expression that needs no thread to be known."""

from __future__ import annotations

from collections.abc import Mapping

from migrate.cuda.ast import (
    Binary,
    Call,
    Cast,
    Component,
    Conditional,
    Expression,
    Intrinsic,
    Literal,
    Logical,
    MakeVector,
    Name,
    Unary,
)
from migrate.cuda.types import Scalar

Value = int | float | bool


def fold(expression: Expression, known: Mapping[int, Value], depth: int = 0) -> Value | None:
    """The value, with `known` for variables by id; `None` where it is not constant.

    Integers wrap to their type as the device's would.
    """
    if depth > 200:
        return None
    match expression:
        case Literal(value=value):
            return value
        case Name(variable=variable):
            return known.get(variable.id)
        case Cast(operand=operand, type=Scalar() as kind):
            inner = fold(operand, known, depth + 1)
            return None if inner is None else converted(inner, kind)
        case Unary(operator=operator, operand=operand, type=kind):
            inner = fold(operand, known, depth + 1)
            return None if inner is None else _unary(operator, inner, kind)
        case Binary(operator=operator, left=left, right=right, type=Scalar() as kind):
            a, b = fold(left, known, depth + 1), fold(right, known, depth + 1)
            if a is None or b is None:
                return None
            made = _binary(operator, a, b)
            return None if made is None else converted(made, kind)
        case Logical(operator=operator, left=left, right=right):
            a = fold(left, known, depth + 1)
            if a is None:
                return None
            if bool(a) == (operator == "or"):
                return bool(a)
            b = fold(right, known, depth + 1)
            return None if b is None else bool(b)
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            chosen = fold(condition, known, depth + 1)
            if chosen is None:
                return None
            return fold(then if chosen else otherwise, known, depth + 1)
        case Intrinsic(entry=entry, arguments=arguments, type=kind):
            values = [fold(argument, known, depth + 1) for argument in arguments]
            numbers = [value for value in values if value is not None]
            if len(numbers) != len(values) or not kind.is_integer:
                return None
            match entry.operator:
                case "maximum_number":
                    return max(numbers)
                case "minimum_number":
                    return min(numbers)
                case "abs":
                    return abs(numbers[0])
                case _:
                    return None
        case Call():
            from migrate.cuda.constexpr import call

            return call(expression, known, depth)
        case Component(base=MakeVector(parts=parts), index=index) if index < len(parts):
            return fold(parts[index], known, depth + 1)
        case _:
            return None


def converted(value: Value, kind: Scalar) -> Value | None:
    """A value as one of another type; `None` where C++ leaves it undefined."""
    if kind.is_bool:
        return bool(value)
    if kind.is_float:
        return float(value)
    if isinstance(value, float):
        if value != value or abs(value) >= 2.0**63:
            return None
        value = int(value)
    bits = kind.dtype.bits
    wrapped = int(value) & ((1 << bits) - 1)
    if not kind.is_unsigned and wrapped >= 1 << (bits - 1):
        wrapped -= 1 << bits
    return wrapped


def _unary(operator: str, value: Value, kind: Scalar) -> Value | None:
    match operator:
        case "negate":
            return converted(-value, kind)
        case "logical_not":
            return not value
        case "bitwise_not":
            return converted(~int(value), kind)
        case _:
            return None


def _binary(operator: str, a: Value, b: Value) -> Value | None:
    match operator:
        case "add":
            return a + b
        case "subtract":
            return a - b
        case "multiply":
            return a * b
        case "divide" | "fmod":
            return _divide(operator, a, b)
        case "equal":
            return a == b
        case "not_equal":
            return a != b
        case "less":
            return a < b
        case "less_equal":
            return a <= b
        case "greater":
            return a > b
        case "greater_equal":
            return a >= b
        case _:
            return _bits(operator, a, b)


def _divide(operator: str, a: Value, b: Value) -> Value | None:
    if b == 0:
        return None
    if isinstance(a, float) or isinstance(b, float):
        return a / b if operator == "divide" else None
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient if operator == "divide" else a - quotient * b


def _bits(operator: str, a: Value, b: Value) -> Value | None:
    if isinstance(a, float) or isinstance(b, float):
        return None
    match operator:
        case "bitwise_and":
            return a & b
        case "bitwise_or":
            return a | b
        case "bitwise_xor":
            return a ^ b
        case "left_shift":
            return a << b if 0 <= b < 64 else None
        case "right_shift":
            return a >> b if 0 <= b < 64 else None
        case _:
            return None
