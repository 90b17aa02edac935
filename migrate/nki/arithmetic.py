"""What instructions compute with values, through a `Domain`: everything but memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np

from migrate.budget import Meter
from migrate.nki import collecting
from migrate.nki.semantics import Rearrangement
from migrate.nki.symbols import Number
from migrate.numerics.casts import Rule
from migrate.numerics.domain import Domain, OperatorError, Order
from migrate.numerics.dtypes import DType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

V = TypeVar("V")


class Arithmetic(Generic[V]):
    """The part of a `Machine` that needs no memory."""

    def __init__(self, domain: Domain[V], meter: Meter, order: Order) -> None:
        self.domain = domain
        self.meter = meter
        self.order: Order = order

    def dtype(self, value: V) -> DType:
        return self.domain.dtype(value)

    def convert(self, value: V, dtype: DType) -> V:
        held = self.domain.dtype(value)
        # Packed numbers are held as unsigned integers.
        if held is dtype or (dtype.is_packed and held.numpy == dtype.numpy):
            return value
        return self.domain.cast(value, dtype, Rule.NKI)

    def number(self, value: Number | float, dtype: DType) -> V:
        plain = value.value if isinstance(value, Number) else value
        if not dtype.is_float and isinstance(plain, float):
            return self.convert(self.domain.constant(plain, DType.FLOAT32), dtype)
        # What Python computes (`1.0 / cols`) is rounded to the format only here.
        return self.domain.constant(plain, dtype, computed=True)

    def apply(
        self,
        operator: str,
        args: Sequence[V],
        dtype: DType,
        error: OperatorError | None = None,
        mapping: str = "",
    ) -> V:
        return self.domain.apply(operator, args, dtype, error=error)

    def select(self, condition: V, then: V, otherwise: V) -> V:
        return self.domain.select(condition, then, otherwise)

    def where_index(
        self,
        comparison: str,
        shape: Sequence[Number],
        offset: Number,
        steps: Sequence[Number],
        then: V,
        otherwise: V,
    ) -> V:
        truth = COMPARISONS[comparison](self._positions(shape, offset, steps), 0)
        return self.domain.select(truth, then, otherwise)

    def reduce(self, operator: str, value: V, axes: Sequence[int], dtype: DType) -> V:
        kept = tuple(1 if k in axes else n for k, n in enumerate(self.domain.shape(value)))
        total = self.domain.reduce(operator, value, tuple(axes), dtype, self.order)
        return self.domain.reshape(total, kept)

    def scan(
        self,
        step: Callable[[V, V, V], V],
        initial: V,
        left: V,
        right: V,
        shape: tuple[Number, Number],
    ) -> V:
        rows, length = (int(n.value) for n in shape)
        states = self.domain.constant(0.0, DType.FLOAT32, (rows * length,))
        state = self.domain.broadcast(initial, (rows, 1))
        column = length * np.arange(rows)[:, None]
        for k in range(length):
            self.meter.step((1 + rows // 1024) * self.domain.effort)
            here = column + k
            state = step(state, self.domain.take(left, here), self.domain.take(right, here))
            self.domain.put(states, here, state)
        return self.domain.reshape(states, (rows, length))

    def contract(self, stationary: V, moving: V) -> V:
        left, right = (
            self.domain.reshape(self.convert(side, DType.FLOAT32), (self.domain.shape(side)[0], -1))
            for side in (stationary, moving)
        )
        rows, contracted = self.domain.shape(left)[1], self.domain.shape(left)[0]
        columns = self.domain.shape(right)[1]
        self.meter.take(4 * rows * columns)
        self.meter.give(4 * rows * columns)
        products = rows * contracted * columns
        self.meter.step((1 + products // 65536) * self.domain.effort)
        return self.domain.matmul(
            self.domain.transpose(left, (1, 0)), right, DType.FLOAT32, self.order
        )

    def transpose(self, value: V, order: Sequence[int]) -> V:
        return self.domain.transpose(value, order)

    def reshape(self, value: V, shape: Sequence[Number]) -> V:
        return self.domain.reshape(value, tuple(int(n.value) for n in shape))

    def position(self, shape: Sequence[Number], offset: Number, steps: Sequence[Number]) -> V:
        found = self._positions(shape, offset, steps)
        return self.domain.from_array(found.astype(np.int32), DType.INT32)

    def _positions(self, shape: Sequence[Number], offset: Number, steps: Sequence[Number]) -> Array:
        """offset + sum of step * index at every point of a shape."""
        sizes = tuple(int(n.value) for n in shape)
        size = 8 * math.prod(sizes)
        self.meter.take(size)
        self.meter.give(size)
        total = np.full(sizes, int(offset.value), np.int64)
        for axis, step in enumerate(steps):
            line = np.arange(sizes[axis], dtype=np.int64) * int(step.value)
            total = total + line.reshape([-1 if k == axis else 1 for k in range(len(sizes))])
        return total

    def keep(self, value: V, shape: Sequence[Number]) -> V:
        return value

    def rearrange(self, value: V, shape: Sequence[Number], where: Rearrangement) -> V:
        sizes = tuple(int(n.value) for n in shape)
        count = math.prod(sizes)
        self.meter.step((1 + count // 1024) * self.domain.effort)
        self.meter.take(16 * count)
        self.meter.give(16 * count)
        return collecting.rearranged(self.domain, value, sizes, where)

    def bits(self, value: V, dtype: DType) -> V:
        return self.domain.bitcast(value, dtype)

    def quantize(self, value: V, dtype: DType) -> tuple[V, Sequence[V]]:
        from migrate.nki.microscaling import quantized

        self._spend(8 * math.prod(self.domain.shape(value)))
        return quantized(self.domain, value, dtype)

    def dequantize(self, packed: V, dtype: DType, scales: Sequence[V]) -> V:
        from migrate.nki.microscaling import dequantized

        self._spend(32 * math.prod(self.domain.shape(packed)))
        return dequantized(self.domain, packed, dtype, scales)

    def _spend(self, size: int) -> None:
        """Account for work on so many bytes."""
        self.meter.step((1 + size // 4096) * self.domain.effort)
        self.meter.take(size)
        self.meter.give(size)

    def largest(self, value: V, shape: tuple[Number, Number], count: Number) -> tuple[V, V]:
        elements = math.prod(int(n.value) for n in shape)
        self.meter.step((1 + elements // 256) * self.domain.effort)
        self.meter.take(32 * elements)
        self.meter.give(32 * elements)
        return collecting.largest(self.domain, value, int(count.value))


COMPARISONS: dict[str, Any] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}
