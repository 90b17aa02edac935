"""The real numbers, as far as float64 goes: the algebra that gives values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from migrate.ir.evaluate import Array, Mask, Unevaluable
from migrate.ir.nodes import Buffer, Op, Rounding
from migrate.numerics.dtypes import DType
from migrate.numerics.operators import OPERATORS


def real(operator: str, *args: Any) -> Array:
    """An operator on float64 arrays.

    Raises `Unevaluable` for one that has no meaning on real numbers.
    """
    meaning = OPERATORS[operator].reals
    if meaning is None:
        raise Unevaluable(f"{operator} has no meaning on real numbers")
    return np.asarray(meaning(*args), np.float64)


class Reals:
    """Numbers as float64; casts between float formats change nothing.

    `inputs` maps buffer names to arrays of the buffer's size.  Buffers without an entry
    start as NaN, the mark of what nobody wrote.
    """

    missing = np.nan

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        self._inputs = inputs

    def constant(self, number: float, dtype: DType) -> Array:
        return np.asarray(float(number), np.float64)

    def position(self, numbers: Array, dtype: DType) -> Array:
        return numbers.astype(np.float64)

    def content(self, buffer: Buffer, size: int) -> Array:
        given = self._inputs.get(buffer.name)
        if given is None:
            return np.full(size, np.nan)
        flat = np.asarray(given).astype(np.float64).reshape(-1)
        if flat.size != size:
            raise ValueError(f"{buffer.name} has {size} elements, its input {flat.size}")
        return flat.copy()

    def loaded(self, buffer: Buffer, value: Array, op: Op) -> None:
        pass

    def apply(self, operator: str, args: Sequence[Array], op: Op) -> Array:
        return real(operator, *args)

    def cast(self, value: Array, source: DType, to: DType, rounding: Rounding, op: Op) -> Array:
        if to.kind == "bool":
            return np.asarray(value != 0, np.float64)
        if to.kind in {"int", "uint"} and source.kind == "float":
            whole = np.trunc(value) if rounding is Rounding.TOWARD_ZERO else np.rint(value)
            return np.asarray(whole)
        return value

    def reduce(self, operator: str, value: Array, active: Mask, dims: int, op: Op) -> Array:
        entry = OPERATORS[operator]
        axes = tuple(range(dims))
        if active is not True:
            identity = entry.identity
            shape = np.broadcast_shapes(np.shape(active), value.shape)
            value = np.broadcast_to(value, shape)
            if identity is not None:
                value = np.where(active, value, identity)
        match operator:
            case "add":
                return np.asarray(value.sum(axis=axes))
            case "multiply":
                return np.asarray(value.prod(axis=axes))
            case "maximum":
                return np.asarray(value.max(axis=axes, initial=-np.inf))
            case "minimum":
                return np.asarray(value.min(axis=axes, initial=np.inf))
            case _:
                flat = value.reshape((-1, *value.shape[dims:]))
                total = flat[0]
                for part in flat[1:]:
                    total = real(operator, total, part)
                return np.asarray(total)

    def scan(self, operator: str, value: Array, dim: int, inclusive: bool, op: Op) -> Array:
        entry = OPERATORS[operator]
        moved = np.moveaxis(value, dim, 0)
        out = np.empty_like(moved)
        identity = entry.identity if entry.identity is not None else np.nan
        running = np.full(moved.shape[1:], identity, np.float64)
        for position in range(moved.shape[0]):
            if not inclusive:
                out[position] = running
            first = position == 0 and entry.identity is None
            running = moved[position] if first else real(operator, running, moved[position])
            if inclusive:
                out[position] = running
        return np.moveaxis(out, 0, dim)

    def truth(self, value: Array) -> NDArray[np.bool_]:
        return np.asarray(value != 0)

    def whole(self, value: Array) -> NDArray[np.int64]:
        return np.nan_to_num(value, nan=-1.0).astype(np.int64)

    def unknown(self, op: Op, args: Sequence[Array], shape: tuple[int, ...]) -> Array:
        return np.full(shape, np.nan)
