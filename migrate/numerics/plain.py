"""Arithmetic in float32, whatever the formats: what a kernel computes without its casts.

A value keeps the name of its format and holds float32 (float64 where that is the format):
nothing is lost in narrow ones.  Integers, truth values and scales (E8M0), whose format is their
meaning, are as the platform has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.numerics.casts import Rule, cast, round_float
from migrate.numerics.domain import OperatorError, Order, Window
from migrate.numerics.dtypes import DType
from migrate.numerics.rounded import Rounded, evaluate, rounded_constant

Array: TypeAlias = NDArray[Any]

_ROUNDED = Rounded()


@dataclass(frozen=True, slots=True)
class PlainValue:
    """Elements of a format, floats in float32."""

    dtype: DType
    value: Array


def held(dtype: DType) -> DType:
    """The format in which elements of a format are held."""
    return DType.FLOAT32 if dtype.is_float and dtype is not DType.FLOAT64 else dtype


class Plain:
    """The domain of float32 without narrow formats.  Stateless."""

    effort = 1
    reusable = True

    # Making values

    def constant(
        self,
        value: float | int | bool,
        dtype: DType,
        shape: Sequence[int] = (),
        *,
        computed: bool = False,
    ) -> PlainValue:
        if not dtype.is_float:
            return PlainValue(dtype, _ROUNDED.constant(value, dtype, shape))
        if dtype is DType.FLOAT8_E8M0FNU:
            value = float(rounded_constant(value, dtype))
        return PlainValue(dtype, _ROUNDED.constant(value, held(dtype), shape))

    def from_array(self, array: Array, dtype: DType) -> PlainValue:
        return PlainValue(dtype, _wide(cast(array, dtype, Rule.IEEE), dtype))

    def borrowed(self, array: Array, dtype: DType) -> PlainValue:
        if dtype is held(dtype):
            return PlainValue(dtype, _ROUNDED.borrowed(array, dtype))
        return self.from_array(array, dtype)

    # Looking at values

    def to_array(self, v: PlainValue) -> Array:
        return v.value

    def dtype(self, v: PlainValue) -> DType:
        return v.dtype

    def shape(self, v: PlainValue) -> tuple[int, ...]:
        return v.value.shape

    def truth(self, v: PlainValue) -> tuple[Array, Array | None]:
        return _ROUNDED.truth(v.value)

    # Elementwise

    def apply(
        self,
        operator: str,
        args: Sequence[PlainValue],
        dtype: DType,
        *,
        error: OperatorError | None = None,
    ) -> PlainValue:
        return PlainValue(dtype, evaluate(operator, [x.value for x in args], held(dtype)))

    def cast(self, v: PlainValue, to: DType, rule: Rule) -> PlainValue:
        if v.dtype is to:
            return self.copy(v)
        if to is DType.FLOAT8_E8M0FNU:
            return PlainValue(to, _wide(cast(v.value, to, rule), to))
        if v.dtype.is_float and to.is_float:
            return PlainValue(to, np.array(v.value, held(to).numpy))
        return PlainValue(to, cast(v.value, held(to), rule))

    def bitcast(self, v: PlainValue, to: DType) -> PlainValue:
        stored = round_float(v.value, v.dtype) if v.dtype.is_float else v.value
        return PlainValue(to, _wide(_ROUNDED.bitcast(stored, to), to))

    def compare(self, operator: str, a: PlainValue, b: PlainValue) -> tuple[Array, Array | None]:
        return _ROUNDED.compare(operator, a.value, b.value)

    def select(self, mask: PlainValue | Array, a: PlainValue, b: PlainValue) -> PlainValue:
        chosen = mask.value if isinstance(mask, PlainValue) else mask
        return PlainValue(a.dtype, _ROUNDED.select(chosen, a.value, b.value))

    def mark(self, v: PlainValue, where: Array) -> PlainValue:
        return v

    # Structure

    def reshape(self, v: PlainValue, shape: Sequence[int]) -> PlainValue:
        return PlainValue(v.dtype, _ROUNDED.reshape(v.value, shape))

    def broadcast(self, v: PlainValue, shape: Sequence[int]) -> PlainValue:
        return PlainValue(v.dtype, _ROUNDED.broadcast(v.value, shape))

    def transpose(self, v: PlainValue, axes: Sequence[int]) -> PlainValue:
        return PlainValue(v.dtype, _ROUNDED.transpose(v.value, axes))

    def take(self, v: PlainValue, flat_index: Array) -> PlainValue:
        return PlainValue(v.dtype, _ROUNDED.take(v.value, flat_index))

    def window(self, v: PlainValue, place: Window) -> PlainValue:
        return PlainValue(v.dtype, _ROUNDED.window(v.value, place))

    def put_window(self, target: PlainValue, place: Window, v: PlainValue) -> None:
        _same(target, v)
        _ROUNDED.put_window(target.value, place, v.value)

    def add_window(self, target: PlainValue, place: Window, v: PlainValue) -> None:
        _ROUNDED.add_window(target.value, place, v.value)

    def put(
        self, target: PlainValue, flat_index: Array, v: PlainValue, mask: Array | None = None
    ) -> None:
        _same(target, v)
        _ROUNDED.put(target.value, flat_index, v.value, mask)

    def combine(
        self,
        operator: str,
        target: PlainValue,
        flat_index: Array,
        v: PlainValue,
        mask: Array | None = None,
    ) -> None:
        _ROUNDED.combine(operator, target.value, flat_index, v.value, mask)

    def copy(self, v: PlainValue) -> PlainValue:
        return PlainValue(v.dtype, _ROUNDED.copy(v.value))

    def is_alone(self, v: PlainValue) -> bool:
        return _ROUNDED.is_alone(v.value)

    # Contractions

    def reduce(
        self,
        operator: str,
        v: PlainValue,
        axis: int | tuple[int, ...],
        dtype: DType,
        order: Order = "blas",
    ) -> PlainValue:
        total = _ROUNDED.reduce(operator, v.value, axis, held(dtype), order)
        return PlainValue(dtype, total)

    def matmul(
        self, a: PlainValue, b: PlainValue, dtype: DType, order: Order = "blas"
    ) -> PlainValue:
        return PlainValue(dtype, _ROUNDED.matmul(a.value, b.value, held(dtype), order))


def _wide(array: Array, dtype: DType) -> Array:
    return array.astype(held(dtype).numpy, copy=False)


def _same(target: PlainValue, v: PlainValue) -> None:
    if v.dtype is not target.dtype:
        raise ValueError(f"a {v.dtype} does not go into a buffer of {target.dtype}")
