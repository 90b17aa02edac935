"""Arithmetic on real values with running error bounds.

Floats are evaluated in float64 as the operators define them, without rounding to their
format, and carry bounds on what a computation that rounds may give instead (see
`errors`).  Integers are computed exactly, in their format, as the platform does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.numerics import contract, operators
from migrate.numerics.casts import Rule, cast, round_float
from migrate.numerics.convert import convert, holds
from migrate.numerics.domain import OperatorError, Order, Window
from migrate.numerics.dtypes import DType
from migrate.numerics.errors import (
    COMPONENTS,
    EVALUATION,
    BoundedValue,
    compact,
    distinct_magnitudes,
    either,
)
from migrate.numerics.operators import Operator
from migrate.numerics.parts import appended, chosen_value, mapped
from migrate.numerics.propagate import (
    Errors,
    carried,
    certified,
    errors_of,
    finished,
    joined,
    loosened,
    own_published,
    own_rounding,
    whole_sizes,
    zeroed,
)
from migrate.numerics.rounded import (
    check_arity,
    evaluate,
    flat,
    last_axis,
    reducible,
    rounded_constant,
    truth_value,
    windowed,
    write,
)

Array: TypeAlias = NDArray[Any]


class Bounded:
    """The domain of real values with error bounds.  Stateless but for its settings.

    `flush`: subnormal results may be flushed to zero, where a platform leaves that open.
    """

    effort = 4
    reusable = False

    def __init__(self, *, flush: bool = False) -> None:
        self.flush = flush

    # Making values

    def constant(
        self,
        value: float | int | bool,
        dtype: DType,
        shape: Sequence[int] = (),
        *,
        computed: bool = False,
    ) -> BoundedValue:
        scalar = rounded_constant(value, dtype)
        if not dtype.is_float:
            return BoundedValue(dtype, np.full(tuple(shape), scalar))
        filled = np.full(tuple(shape), np.float64(scalar))
        lost = abs(float(value) - float(scalar)) if computed else 0.0
        if not 0.0 < lost < np.inf:
            return BoundedValue(dtype, filled, whole=whole_sizes(filled))
        # The real value, as everywhere in this domain; that the format is off is the error.
        filled = np.full(tuple(shape), np.float64(value))
        reach = np.full(filled.shape, lost)
        none = np.zeros(filled.shape)
        return BoundedValue(
            dtype, filled, bound=reach, deviation=none, coherent=none.copy(), worst=reach.copy()
        )

    def from_array(self, array: Array, dtype: DType) -> BoundedValue:
        values = cast(array, dtype, Rule.IEEE)
        if not dtype.is_float:
            return BoundedValue(dtype, values)
        wide = values.astype(np.float64)
        return BoundedValue(
            dtype, wide, whole=whole_sizes(wide), distinct=distinct_magnitudes(wide)
        )

    def borrowed(self, array: Array, dtype: DType) -> BoundedValue:
        return self.from_array(array, dtype)

    # Looking at values

    def to_array(self, v: BoundedValue) -> Array:
        return v.value

    def dtype(self, v: BoundedValue) -> DType:
        return v.dtype

    def shape(self, v: BoundedValue) -> tuple[int, ...]:
        return v.shape

    def truth(self, v: BoundedValue) -> tuple[Array, Array | None]:
        holds = np.asarray(v.value != 0)
        if v.is_exact:
            return holds, compact(v.ambiguous)
        reach = v.allowance()
        return holds, compact(either(v.ambiguous, (np.abs(v.value) <= reach) & (reach > 0)))

    # Elementwise

    def apply(
        self,
        operator: str,
        args: Sequence[BoundedValue],
        dtype: DType,
        *,
        error: OperatorError | None = None,
    ) -> BoundedValue:
        found = operators.operator(operator)
        check_arity(found, args)
        if found.name == "select":
            return self._select(args[0], *self._same(args[1:], dtype))
        with np.errstate(all="ignore"):
            if found.is_truth:
                return self._decide(found, args, dtype)
            if not any(x.dtype.is_float for x in args):
                value = evaluate(found.name, [x.value for x in args], dtype)
                return BoundedValue(dtype, value, ambiguous=_doubts(args, value.shape))
            return self._reals(found, args, dtype, error)

    def _reals(
        self,
        found: Operator,
        args: Sequence[BoundedValue],
        dtype: DType,
        error: OperatorError | None,
    ) -> BoundedValue:
        mixed = found.name != "ldexp" and not all(x.dtype.is_float for x in args)
        if found.reals is None or mixed or not dtype.is_float:
            raise ValueError(f"{found.name} to {dtype} of {', '.join(str(x.dtype) for x in args)}")
        y = np.asarray(found.reals(*(x.value for x in args)), np.float64)
        before, jumped = carried(found, args, y.shape)
        reach = before[3] if before is not None else np.zeros(y.shape)
        ambiguous = either(_doubts(args, y.shape), jumped)
        widens = any(x.dtype.is_float and not holds(dtype, x.dtype) for x in args)
        own: Errors | None = None
        whole: Array | None = None
        if error is not None:
            own = own_published(y, reach, error, args[0].value)
            ambiguous = either(ambiguous, _outside(args[0], error, y.shape))
        elif not found.exact or widens:
            own = own_rounding(y, reach, dtype, self.flush)
            if found.before_rounding is not None:
                # The product of values wider than the format is itself rounded here.
                product = EVALUATION * np.abs(args[0].value * args[1].value)
                own = (own[0] + product, own[1], own[2], own[3] + product)
        if error is None:
            whole = certified(found, args, dtype)
            if own is not None and whole is not None:
                free = ~np.isnan(whole)
                own = None if free.all() else zeroed(own, free)
        return finished(
            y,
            loosened(joined(before, own), args, y.shape),
            dtype,
            distinct=max(x.distinct for x in args),
            ambiguous=ambiguous,
            whole=whole,
        )

    def _decide(self, found: Operator, args: Sequence[BoundedValue], dtype: DType) -> BoundedValue:
        value = evaluate(found.name, [x.value for x in args], DType.BOOL)
        doubts = _doubts(args, value.shape)
        if found.kind == "comparison":
            reach = args[0].allowance() + args[1].allowance()
            if not all(x.is_exact for x in args):
                gap = np.abs(args[0].value - args[1].value)
                doubts = either(doubts, (gap <= reach) & (reach > 0))
        elif found.kind == "logical":
            doubts = self._logical_doubts(found, args, value)
        return BoundedValue(dtype, truth_value(value, dtype), ambiguous=compact(doubts))

    def _logical_doubts(
        self, found: Operator, args: Sequence[BoundedValue], value: Array
    ) -> Array | None:
        """Where flipping operands in doubt changes the result."""
        truths = [self.truth(x) for x in args]
        if all(open_ended is None for _, open_ended in truths):
            return None
        choices = [
            [truth] if open_ended is None else [truth, truth ^ open_ended]
            for truth, open_ended in truths
        ]
        changed = np.zeros(value.shape, np.bool_)
        combinations: list[list[Array]] = [[]]
        for choice in choices:
            combinations = [[*before, one] for before in combinations for one in choice]
        for combination in combinations:
            changed |= evaluate(found.name, combination, DType.BOOL) != value
        return changed

    def cast(self, v: BoundedValue, to: DType, rule: Rule) -> BoundedValue:
        if v.dtype is to:
            return self.copy(v)
        with np.errstate(all="ignore"):
            if to is DType.BOOL:
                truths, open_ended = self.truth(v)
                return BoundedValue(to, truths, ambiguous=open_ended)
            return convert(v, to, rule, flush=self.flush)

    def bitcast(self, v: BoundedValue, to: DType) -> BoundedValue:
        if v.dtype.numpy.itemsize != to.numpy.itemsize:
            raise ValueError(f"{v.dtype} and {to} have different widths")
        stored = round_float(v.value, v.dtype) if v.dtype.is_float else v.value
        read = np.ascontiguousarray(stored).view(to.numpy).reshape(v.shape)
        # Bits of an uncertain value are uncertain altogether.
        doubts = v.ambiguous if v.is_exact else either(v.ambiguous, compact(v.limit() > 0))
        if not to.is_float:
            return BoundedValue(to, read, ambiguous=doubts)
        result = self.from_array(read, to)
        return result if doubts is None else self.mark(result, doubts)

    def compare(
        self, operator: str, a: BoundedValue, b: BoundedValue
    ) -> tuple[Array, Array | None]:
        return self.truth(self.apply(operator, (a, b), DType.BOOL))

    def select(self, mask: BoundedValue | Array, a: BoundedValue, b: BoundedValue) -> BoundedValue:
        condition = mask if isinstance(mask, BoundedValue) else BoundedValue(DType.BOOL, mask)
        return self._select(condition, a, b)

    def _select(self, mask: BoundedValue, a: BoundedValue, b: BoundedValue) -> BoundedValue:
        """The chosen value; where the choice is open, its bound reaches the other one too."""
        if a.dtype is not b.dtype:
            raise ValueError(f"select between {a.dtype} and {b.dtype}")
        holds, open_ended = self.truth(mask)
        shape = np.broadcast_shapes(holds.shape, a.shape, b.shape)
        result = chosen_value(holds, a, b, shape)
        if open_ended is None:
            return result
        open_ended = np.broadcast_to(open_ended, shape)
        if not a.dtype.is_float:
            differ = open_ended & (a.value != b.value)
            result.ambiguous = compact(either(result.ambiguous, differ))
            return result
        with np.errstate(all="ignore"):
            gap = np.where(a.value == b.value, 0.0, np.abs(a.value - b.value))
        other = [
            np.broadcast_to(np.where(holds, y, x), shape)
            for x, y in zip(errors_of(a), errors_of(b), strict=True)
        ]
        mine = [np.array(np.broadcast_to(e, shape)) for e in errors_of(result)]
        for k, part in enumerate(mine):
            reach = other[k] + (gap if k in {0, 3} else 0.0)
            mine[k] = np.where(open_ended, np.maximum(part, reach), part)
        result.bound, result.deviation, result.coherent, result.worst = mine
        if result.whole is not None:
            result.whole = np.where(open_ended, np.nan, result.whole)
        unsure = open_ended & ~np.isfinite(gap)
        either_way = np.broadcast_to(a.doubts() | b.doubts(), shape) & open_ended
        result.ambiguous = compact(either(result.ambiguous, unsure, either_way))
        return result

    def mark(self, v: BoundedValue, where: Array) -> BoundedValue:
        if not where.any():
            return v
        result = self.copy(v)
        where = np.broadcast_to(where, v.shape)
        result.ambiguous = v.doubts() | where
        if v.dtype.is_float:
            bound, deviation, coherent, worst = (np.array(e) for e in errors_of(v))
            bound[where] = worst[where] = np.inf
            result.bound, result.deviation = bound, deviation
            result.coherent, result.worst = coherent, worst
            if result.whole is not None:
                result.whole = np.where(where, np.nan, result.whole)
        return result

    # Structure

    def reshape(self, v: BoundedValue, shape: Sequence[int]) -> BoundedValue:
        return mapped(v, lambda x: x.reshape(tuple(shape)))

    def broadcast(self, v: BoundedValue, shape: Sequence[int]) -> BoundedValue:
        return mapped(v, lambda x: np.broadcast_to(x, tuple(shape)))

    def transpose(self, v: BoundedValue, axes: Sequence[int]) -> BoundedValue:
        return mapped(v, lambda x: x.transpose(tuple(axes)))

    def take(self, v: BoundedValue, flat_index: Array) -> BoundedValue:
        return mapped(v, lambda x: np.asarray(flat(x)[flat_index]))

    def copy(self, v: BoundedValue) -> BoundedValue:
        return mapped(v, np.array)

    def is_alone(self, v: BoundedValue) -> bool:
        return False

    def window(self, v: BoundedValue, place: Window) -> BoundedValue:
        return mapped(v, lambda x: windowed(x, place))

    def add_window(self, target: BoundedValue, place: Window, v: BoundedValue) -> None:
        old = self.copy(self.window(target, place))
        self.put_window(target, place, self.apply("add", (old, v), target.dtype))

    def put_window(self, target: BoundedValue, place: Window, v: BoundedValue) -> None:
        def write(old: Array, new: Array) -> None:
            windowed(old, place)[...] = new

        self._put(target, v, write)

    def put(
        self,
        target: BoundedValue,
        flat_index: Array,
        v: BoundedValue,
        mask: Array | None = None,
    ) -> None:
        self._put(target, v, lambda old, new: write(old, flat_index, new, mask))

    def _put(
        self, target: BoundedValue, v: BoundedValue, write: Callable[[Array, Array], None]
    ) -> None:
        if v.dtype is not target.dtype:
            raise ValueError(f"a {v.dtype} does not go into a buffer of {target.dtype}")
        write(target.value, v.value)
        for name, absent in COMPONENTS.items():
            new: Array | None = getattr(v, name)
            old: Array | None = getattr(target, name)
            if new is None and old is None:
                continue
            if old is None:
                old = np.full(target.shape, absent)
                setattr(target, name, old)
            write(old, new if new is not None else np.asarray(absent))
        target.distinct = max(target.distinct, v.distinct)

    def combine(
        self,
        operator: str,
        target: BoundedValue,
        flat_index: Array,
        v: BoundedValue,
        mask: Array | None = None,
    ) -> None:
        contract.combine(self, operator, target, flat_index, v, mask)

    # Contractions

    def reduce(
        self,
        operator: str,
        v: BoundedValue,
        axis: int | tuple[int, ...],
        dtype: DType,
        order: Order = "blas",
    ) -> BoundedValue:
        found = reducible(operator)
        rows = mapped(v, lambda x: last_axis(x, axis))
        if rows.dtype is not dtype:
            rows = self.cast(rows, dtype, Rule.IEEE)
        if rows.shape[-1] == 0:
            if found.identity is None:
                raise ValueError(f"{operator} of nothing has no value")
            return self.constant(found.identity, dtype, rows.shape[:-1])
        with np.errstate(all="ignore"):
            if found.name == "add" and dtype.is_float:
                return contract.total(rows, dtype, order)
        while rows.shape[-1] > 1:
            rows = self._halved(operator, rows, dtype)
        return mapped(rows, lambda x: x[..., 0])

    def _halved(self, operator: str, rows: BoundedValue, dtype: DType) -> BoundedValue:
        """Neighbours combined; an odd one out is kept."""
        even = rows.shape[-1] // 2 * 2
        first = mapped(rows, lambda x: x[..., 0:even:2])
        second = mapped(rows, lambda x: x[..., 1:even:2])
        paired = self.apply(operator, (first, second), dtype)
        if even == rows.shape[-1]:
            return paired
        return appended(paired, mapped(rows, lambda x: x[..., even:]))

    def matmul(
        self, a: BoundedValue, b: BoundedValue, dtype: DType, order: Order = "blas"
    ) -> BoundedValue:
        if order == "pairwise":
            raise ValueError("a matrix product has no pairwise order")
        with np.errstate(all="ignore"):
            if not dtype.is_float:
                product = np.matmul(a.value.astype(dtype.numpy), b.value.astype(dtype.numpy))
                doubtful = np.matmul(a.doubts()[..., :, :], np.ones(b.shape, np.bool_)) | np.matmul(
                    np.ones(a.shape, np.bool_), b.doubts()
                )
                return BoundedValue(dtype, product, ambiguous=compact(doubtful))
            return contract.product(a, b, dtype, flush=self.flush)

    def _same(self, args: Sequence[BoundedValue], dtype: DType) -> list[BoundedValue]:
        for x in args:
            if x.dtype is not dtype:
                raise ValueError(f"select of {x.dtype} to {dtype}")
        return list(args)


def _doubts(args: Sequence[BoundedValue], shape: tuple[int, ...]) -> Array | None:
    found = either(*(x.ambiguous for x in args))
    return None if found is None else np.broadcast_to(found, shape)


def _outside(first: BoundedValue, error: OperatorError, shape: tuple[int, ...]) -> Array | None:
    """Where the operand may leave the range in which the error is published."""
    if error.valid_range is None:
        return None
    low, high = error.valid_range
    reach = first.allowance()
    outside = ~((first.value - reach >= low) & (first.value + reach <= high))
    return compact(np.broadcast_to(outside, shape))
