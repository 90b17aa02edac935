"""Operators of `nki.language` called as functions (NKI 0.3): a new tile and an instruction."""

from __future__ import annotations

from migrate.nki.allocation import new_tile
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.operations import number
from migrate.nki.operators import OPERATORS
from migrate.nki.symbols import Origin
from migrate.nki.values import OperatorName, View


def call_operator(
    name: OperatorName,
    args: tuple[object, ...],
    keywords: dict[str, object],
    frame: Frame,
    origin: Origin,
) -> object:
    """`nl.add(x, y, dtype=None)`, `nl.exp(x, dtype=None)` and their like."""
    from migrate.nki.issue import issue

    operator = OPERATORS[name.name]
    given = dict(keywords)
    dtype = given.pop("dtype", None)
    operands = [*args, *(given.pop(key) for key in ("x", "y") if key in given)]
    if given:
        raise KernelFault("type", f"nl.{name.name} has no parameter {next(iter(given))}", origin)
    tiles = [operand for operand in operands if isinstance(operand, View)]
    if not tiles or len(operands) > 2:
        raise Unsupported(f"nl.{name.name} without a tensor", origin)
    dst = new_tile(frame, tiles[0], dtype or tiles[0].dtype, origin)
    if len(operands) == 1:
        if operator.name == "copy":
            issue("tensor_copy", (dst, operands[0]), {}, frame, origin)
        elif operator.name == "reciprocal":
            issue("reciprocal", (dst, operands[0]), {}, frame, origin)
        elif "activation" in operator.uses:
            issue("activation", (dst, name, operands[0]), {}, frame, origin)
        else:
            raise Unsupported(f"nl.{name.name} called as a function", origin)
        return dst
    left, right = operands
    if isinstance(left, View) and isinstance(right, View):
        issue("tensor_tensor", (dst, left, right, name), {}, frame, origin)
    elif isinstance(left, View):
        issue("tensor_scalar", (dst, left, name, number(right, origin)), {}, frame, origin)
    else:
        issue(
            "tensor_scalar",
            (dst, right, name, number(left, origin)),
            {"reverse0": True},
            frame,
            origin,
        )
    return dst
