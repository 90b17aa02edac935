"""Operators on CUDA's packed floats: `__half2` and `__nv_bfloat162`, component by component.

cuda_fp16.hpp and cuda_bf16.hpp define `+ - * /`, their assigning forms and unary minus for
them; comparisons there give one truth value for both and are not read.  Other short vectors
have no operators.
"""

from __future__ import annotations

from tree_sitter import Node

from migrate.cuda.ast import Assign, Binary, Comma, Component, Expression, MakeVector, Unary
from migrate.cuda.conversions import is_place, pure
from migrate.cuda.objects import part
from migrate.cuda.scope import Scope
from migrate.cuda.types import Vector

_ARITHMETIC = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}


def packed(kind: Vector) -> bool:
    """Whether the headers define arithmetic for it."""
    return kind.lanes == 2 and kind.element.is_float and kind.element.size == 2


def binary(
    operator: str, left: Expression, right: Expression, node: Node, scope: Scope
) -> Expression:
    """An arithmetic operator on two packed values."""
    kind = left.type
    name = _ARITHMETIC.get(operator)
    if not isinstance(kind, Vector) or right.type != kind or not packed(kind) or name is None:
        return scope.opaque(node, f"{left.type} {operator} {right.type} is not understood")
    where = scope.where(node)
    first, left = _once(left, scope)
    second, right = _once(right, scope)
    parts = tuple(
        Binary(
            name,
            part(left, index, kind.element, where),
            part(right, index, kind.element, where),
            kind.element,
            where,
        )
        for index in range(kind.lanes)
    )
    made: Expression = MakeVector(parts, kind, where)
    for setting in (second, first):
        if setting is not None:
            made = Comma(setting, made, kind, where)
    return made


def unary(operator: str, operand: Expression, node: Node, scope: Scope) -> Expression:
    """Unary minus of a packed value."""
    kind = operand.type
    if not isinstance(kind, Vector) or not packed(kind) or operator not in "+-":
        return scope.opaque(node, f"unary {operator} of {operand.type} is not understood")
    if operator == "+":
        return operand
    where = scope.where(node)
    setting, operand = _once(operand, scope)
    parts = tuple(
        Unary("negate", part(operand, index, kind.element, where), kind.element, where)
        for index in range(kind.lanes)
    )
    made: Expression = MakeVector(parts, kind, where)
    return made if setting is None else Comma(setting, made, kind, where)


def _once(value: Expression, scope: Scope) -> tuple[Expression | None, Expression]:
    """The value in a form that may be named several times, and what must come before."""
    if pure(value) and (is_place(value) or isinstance(value, MakeVector | Component)):
        return None, value
    place = scope.temporary(value.type, value.where)
    return Assign(place, None, value, value.type, value.type, value.where), place
