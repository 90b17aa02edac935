"""Operators on typed expressions, with the conversions that the language makes."""

from __future__ import annotations

from typing import Literal as OneOf
from typing import cast as typed

from tree_sitter import Node

from migrate.cuda.ast import (
    Binary,
    Cast,
    Element,
    Expression,
    Literal,
    Logical,
)
from migrate.cuda.conversions import (
    balance,
    convert,
    decay,
)
from migrate.cuda.scope import Scope
from migrate.cuda.types import (
    ADDRESS,
    BOOL,
    INT,
    LONG,
    VOID,
    Array,
    Pointer,
    Scalar,
    Struct,
    Type,
    Unknown,
    Vector,
    promote,
)

ARITHMETIC = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "fmod"}


_COMPARISONS = {
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}


_BITWISE = {"&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor"}


_SHIFTS = {"<<": "left_shift", ">>": "right_shift"}


_OPERATORS = {**ARITHMETIC, **_COMPARISONS, **_BITWISE, **_SHIFTS}


def element(base: Expression, index: Expression, node: Node, scope: Scope) -> Expression:
    """`base[index]`."""
    match base.type:
        case Scalar() if isinstance(index.type, Pointer | Array):
            return element(index, base, node, scope)
        case Pointer(element=kind) | Array(element=kind):
            if isinstance(kind, Unknown):
                return scope.opaque(node, f"the type {kind} is not understood", kind)
            if isinstance(index.type, Struct):
                from migrate.cuda import objects

                index = objects.as_scalar(index, INT, node, scope)
            if not isinstance(index.type, Scalar) or not index.type.is_integer:
                if isinstance(index.type, Unknown):
                    return Element(base, index, kind, scope.where(node))
                return scope.opaque(node, f"an index of type {index.type} is not understood", kind)
            # Offsets are 64 bits on the device: the conversion changes no index that is valid.
            return Element(base, index, kind, scope.where(node))
        case Unknown():
            return scope.opaque(node, f"the type of {scope.text(node)[:40]} is not understood")
        case _:
            return scope.opaque(node, f"{base.type} cannot be subscripted")


def dereference(base: Expression, node: Node, scope: Scope) -> Expression:
    return element(base, Literal(0, INT, scope.where(node)), node, scope)


def binary(
    operator: str, left: Expression, right: Expression, node: Node, scope: Scope
) -> Expression:
    """`left operator right` after the conversions that the language makes."""
    if isinstance(left.type, Scalar) and isinstance(right.type, Scalar) and operator in _OPERATORS:
        return _arithmetic(operator, left, right, node, scope)
    if isinstance(left.type, Unknown) or isinstance(right.type, Unknown):
        # The operand has been reported; this keeps the whole of it from meaning anything.
        return left if isinstance(left.type, Unknown) else right
    from migrate.cuda import componentwise, objects

    where = scope.where(node)
    defined = objects.overloaded(operator, (left, right), node, scope)
    if defined is not None:
        return defined
    left, right = decay(left), decay(right)
    if operator in ("&&", "||"):
        from migrate.cuda.expressions import truth

        word: OneOf["and", "or"] = "and" if operator == "&&" else "or"
        first, second = truth(left, node, scope), truth(right, node, scope)
        return Logical(word, first, second, BOOL, where)
    left = objects.as_scalar(left, None, node, scope)
    right = objects.as_scalar(right, None, node, scope)
    if isinstance(left.type, Vector) or isinstance(right.type, Vector):
        return componentwise.binary(operator, left, right, node, scope)
    if isinstance(left.type, Pointer) or isinstance(right.type, Pointer):
        return _pointer_arithmetic(operator, left, right, node, scope)
    return _arithmetic(operator, left, right, node, scope)


def _arithmetic(
    operator: str, left: Expression, right: Expression, node: Node, scope: Scope
) -> Expression:
    where = scope.where(node)
    if operator in _SHIFTS:
        if not _integers(left.type, right.type):
            return scope.opaque(node, f"{left.type} {operator} {right.type} is not understood")
        kind = promote(typed("Scalar", left.type))
        amount = convert(right, promote(typed("Scalar", right.type)))
        return Binary(_SHIFTS[operator], convert(left, kind), amount, kind, where)
    balanced = balance(left, right)
    if balanced is None or operator not in _OPERATORS:
        return scope.opaque(node, f"{left.type} {operator} {right.type} is not understood")
    first, second, kind = balanced
    if operator in _COMPARISONS:
        return Binary(_COMPARISONS[operator], first, second, BOOL, where)
    if kind.is_float and (operator in _BITWISE or operator == "%"):
        return scope.opaque(node, f"{operator} of {kind} is not defined", kind)
    return Binary(_OPERATORS[operator], first, second, kind, where)


def _integers(*kinds: Type) -> bool:
    return all(isinstance(kind, Scalar) and kind.is_integer for kind in kinds)


def _pointer_arithmetic(
    operator: str, left: Expression, right: Expression, node: Node, scope: Scope
) -> Expression:
    where = scope.where(node)
    if operator in _COMPARISONS:
        if isinstance(left.type, Scalar):
            left = convert(left, right.type)
        elif isinstance(right.type, Scalar):
            right = convert(right, left.type)
        return Binary(_COMPARISONS[operator], left, right, BOOL, where)
    if operator == "+" and isinstance(right.type, Pointer) and _integers(left.type):
        left, right = right, left
    if operator in "+-" and isinstance(left.type, Pointer) and _integers(right.type):
        return Binary(ARITHMETIC[operator], left, right, left.type, where)
    if operator == "-" and isinstance(left.type, Pointer) and isinstance(right.type, Pointer):
        return Binary("subtract", left, right, LONG, where)
    return scope.opaque(node, f"{left.type} {operator} {right.type} is not understood")


def checked(value: Expression, node: Node, scope: Scope) -> Expression:
    """A conversion that failed, reported at the whole expression."""
    from migrate.cuda.ast import OpaqueExpression

    if isinstance(value, OpaqueExpression) and value not in scope.issues:
        return scope.opaque(node, value.reason, value.type)
    return value


def cast_to(to: Type, value: Expression, node: Node, scope: Scope) -> Expression:
    """A conversion that the program writes."""
    if isinstance(value.type, Unknown):
        return value
    if isinstance(to, Unknown):
        return scope.opaque(node, f"the type {to} is not understood", to)
    if to == VOID:
        return Cast(value, VOID, scope.where(node))
    if value.type == to:
        return value
    if value.type == ADDRESS and isinstance(to, Scalar) and to.size >= 4:
        return value
    if isinstance(to, Struct) or isinstance(value.type, Struct):
        from migrate.cuda import objects

        return objects.fitted(value, to, node, scope)
    converted = convert(value, to, written=True)
    if isinstance(converted, Cast):
        return Cast(converted.operand, to, scope.where(node))
    return checked(converted, node, scope)
