"""Arithmetic as a platform does it: every result rounded to its format.

Values are plain arrays in the format's storage.  Correctly rounded float32 and float64
operations are NumPy's own; everything else is evaluated in float64 and rounded once,
which is correctly rounded for the basic operations (float64 has more than 2p + 2 bits
of every narrower p) and within half an ulp and a little for the special functions:
inside what any platform publishes.
"""

from __future__ import annotations

import math
import operator as arithmetic
from collections.abc import Callable, Iterator, Sequence
from functools import reduce as fold
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.numerics.casts import Rule, cast, round_float
from migrate.numerics.domain import OperatorError, Order, Window
from migrate.numerics.dtypes import DType
from migrate.numerics.fma import fma64
from migrate.numerics.operators import Operator, operator

Array: TypeAlias = NDArray[Any]

_NATIVE = {DType.FLOAT32, DType.FLOAT64}

# What may be combined in place, and the ufunc that does it for equal indices in turn.
COMBINING: dict[str, np.ufunc] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "maximum_number": np.fmax,
    "minimum_number": np.fmin,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}


class Rounded:
    """The domain of what a platform computes.  Stateless."""

    effort = 1
    reusable = True

    def constant(
        self,
        value: float | int | bool,
        dtype: DType,
        shape: Sequence[int] = (),
        *,
        computed: bool = False,
    ) -> Array:
        if value == 0 and math.copysign(1.0, value) > 0:
            # Memory that the system gives is zero: it is not touched before it is used.
            return np.zeros(tuple(shape), dtype.numpy)
        return np.full(tuple(shape), rounded_constant(value, dtype))

    def from_array(self, array: Array, dtype: DType) -> Array:
        return cast(array, dtype, Rule.IEEE)

    def borrowed(self, array: Array, dtype: DType) -> Array:
        if DType.of(array.dtype) is not dtype:
            return cast(array, dtype, Rule.IEEE)
        shared = array.view()
        shared.flags.writeable = False
        return shared

    def to_array(self, v: Array) -> Array:
        return v

    def dtype(self, v: Array) -> DType:
        return DType.of(v.dtype)

    def shape(self, v: Array) -> tuple[int, ...]:
        return v.shape

    def truth(self, v: Array) -> tuple[Array, Array | None]:
        return np.asarray(v != 0), None

    def apply(
        self,
        operator: str,
        args: Sequence[Array],
        dtype: DType,
        *,
        error: OperatorError | None = None,
    ) -> Array:
        return evaluate(operator, args, dtype)

    def cast(self, v: Array, to: DType, rule: Rule) -> Array:
        return cast(v, to, rule)

    def bitcast(self, v: Array, to: DType) -> Array:
        if v.dtype.itemsize != to.numpy.itemsize:
            raise ValueError(f"{v.dtype.name} and {to} have different widths")
        return np.ascontiguousarray(v).view(to.numpy).reshape(v.shape)

    def compare(self, operator: str, a: Array, b: Array) -> tuple[Array, Array | None]:
        return evaluate(operator, (a, b), DType.BOOL), None

    def select(self, mask: Array, a: Array, b: Array) -> Array:
        return np.where(mask if mask.dtype == np.bool_ else mask != 0, a, b)

    def mark(self, v: Array, where: Array) -> Array:
        return v

    def reshape(self, v: Array, shape: Sequence[int]) -> Array:
        return v.reshape(tuple(shape))

    def broadcast(self, v: Array, shape: Sequence[int]) -> Array:
        return v if v.shape == tuple(shape) else np.broadcast_to(v, tuple(shape))

    def transpose(self, v: Array, axes: Sequence[int]) -> Array:
        return v.transpose(tuple(axes))

    def take(self, v: Array, flat_index: Array) -> Array:
        return np.asarray(flat(v)[flat_index])

    def window(self, v: Array, place: Window) -> Array:
        return windowed(v, place)

    def put_window(self, target: Array, place: Window, v: Array) -> None:
        if v.dtype != target.dtype:
            raise ValueError(f"a {v.dtype.name} does not go into a buffer of {target.dtype.name}")
        windowed(target, place)[...] = v

    def add_window(self, target: Array, place: Window, v: Array) -> None:
        dtype, there = DType.of(target.dtype), windowed(target, place)
        if dtype in _NATIVE and v.dtype == target.dtype:
            np.add(there, v, out=there)
        else:
            there[...] = evaluate("add", (there, v), dtype)

    def put(self, target: Array, flat_index: Array, v: Array, mask: Array | None = None) -> None:
        if v.dtype != target.dtype:
            raise ValueError(f"a {v.dtype.name} does not go into a buffer of {target.dtype.name}")
        write(target, flat_index, v, mask)

    def combine(
        self,
        operator: str,
        target: Array,
        flat_index: Array,
        v: Array,
        mask: Array | None = None,
    ) -> None:
        ufunc = combining(operator)
        index, values = chosen(target, flat_index, v, mask)
        dtype = DType.of(target.dtype)
        with np.errstate(all="ignore"):
            if not dtype.is_float or dtype in _NATIVE:
                ufunc.at(flat(target), index, values)
                return
            # NumPy has no in-order `at` for the narrow formats: one round an occurrence.
            for turn in turns(index):
                at = index[turn]
                flat(target)[at] = evaluate(operator, (flat(target)[at], values[turn]), dtype)

    def copy(self, v: Array) -> Array:
        return np.array(v)

    def is_alone(self, v: Array) -> bool:
        return v.base is None and v.flags.c_contiguous and v.flags.writeable

    def reduce(
        self,
        operator: str,
        v: Array,
        axis: int | tuple[int, ...],
        dtype: DType,
        order: Order = "blas",
    ) -> Array:
        found = reducible(operator)
        rows = last_axis(v, axis)
        if rows.dtype != dtype.numpy:
            rows = cast(rows, dtype, Rule.IEEE)
        if rows.shape[-1] == 0:
            if found.identity is None:
                raise ValueError(f"{operator} of nothing has no value")
            return self.constant(found.identity, dtype, rows.shape[:-1])
        ufunc = COMBINING.get(operator)
        with np.errstate(all="ignore"):
            exact = not dtype.is_float or found.exact
            if ufunc is not None and (not dtype.is_float or dtype in _NATIVE):
                if exact or order == "blas":
                    return np.asarray(ufunc.reduce(rows, axis=-1, dtype=rows.dtype))
                if order == "sequential":
                    return np.asarray(ufunc.accumulate(rows, axis=-1)[..., -1])

        def step(a: Array, b: Array) -> Array:
            return evaluate(operator, (a, b), dtype)

        if order == "sequential" and not exact:
            columns: Iterator[Array] = (rows[..., k] for k in range(rows.shape[-1]))
            return fold(step, columns)
        return tree(step, rows)

    def matmul(self, a: Array, b: Array, dtype: DType, order: Order = "blas") -> Array:
        if order == "pairwise":
            raise ValueError("a matrix product has no pairwise order")
        with np.errstate(all="ignore"):
            if not dtype.is_float:
                return np.asarray(np.matmul(a.astype(dtype.numpy), b.astype(dtype.numpy)))
            if order == "blas" and dtype in _NATIVE:
                left, right = (side.astype(dtype.numpy, copy=False) for side in (a, b))
                return np.asarray(np.matmul(left, right))
        left, right = a[..., :, None, :], np.swapaxes(b, -1, -2)[..., None, :, :]
        shape = np.broadcast_shapes(left.shape[:-1], right.shape[:-1])
        total = self.constant(0.0, dtype, shape)
        for k in range(a.shape[-1]):
            total = evaluate("fma", (left[..., k], right[..., k], total), dtype)
        return total


def rounded_constant(value: float | int | bool, dtype: DType) -> Any:
    """A Python number as a scalar of a format, rounded to nearest; integers wrap."""
    if dtype.is_float:
        return round_float(np.asarray(float(value), np.float64), dtype)[()]
    if dtype is DType.BOOL:
        return np.bool_(value != 0)
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(f"{value} is not a value of {dtype}")
    low, high = dtype.range
    if isinstance(value, float) or low <= value <= high:
        return dtype.numpy.type(int(value))
    width = 1 << dtype.bits
    wrapped = int(value) % width
    return dtype.numpy.type(wrapped - width if wrapped > high else wrapped)


def evaluate(name: str, args: Sequence[Array], dtype: DType) -> Array:
    """An operator on arrays of one kind, its result rounded once to `dtype`."""
    found = operator(name)
    check_arity(found, args)
    operands = args[1:] if name == "select" else args
    floats = [is_float(x) for x in operands]
    if name == "ldexp":
        floats = floats[:1]
    if any(floats) != all(floats):
        raise ValueError(f"{name} of floats and integers needs a conversion first")
    with np.errstate(all="ignore"):
        if floats[0]:
            return _evaluate_reals(found, args, dtype)
        return _evaluate_integers(found, args, dtype)


def _evaluate_reals(found: Operator, args: Sequence[Array], dtype: DType) -> Array:
    if found.reals is None:
        raise ValueError(f"{found.name} is for integers")
    if found.is_truth:
        # Comparing in float64 is exact for every format.
        wide = [x if x.dtype == np.float32 else x.astype(np.float64) for x in args]
        return truth_value(found.reals(*wide), dtype)
    if not dtype.is_float:
        raise ValueError(f"{found.name} of floats gives a float, not {dtype}")
    if found.native and dtype in _NATIVE and all(x.dtype == dtype.numpy for x in args):
        return np.asarray(found.reals(*args))
    if isinstance(found.reals, np.ufunc) and dtype is DType.FLOAT32 and len(args) == 1:
        if args[0].dtype == np.float32:
            # As below, with NumPy's own buffers between the formats.
            result = np.empty(args[0].shape, np.float32)
            found.reals(args[0], out=result, dtype=np.float64, casting="unsafe")
            return result
    shape = np.broadcast_shapes(*(x.shape for x in args))
    blocks = math.prod(shape) // BLOCK
    if blocks > 1:
        return _in_blocks(found, args, dtype, shape, blocks)
    return _evaluate_wide(found, args, dtype)


BLOCK = 16384
"""Elements evaluated in float64 at once: what is made on the way stays near the processor."""


def _in_blocks(
    found: Operator, args: Sequence[Array], dtype: DType, shape: tuple[int, ...], blocks: int
) -> Array:
    """`_evaluate_wide`, a slice of the first axis that is long enough at a time."""
    along = next((k for k, n in enumerate(shape) if n >= blocks), int(np.argmax(shape)))
    step = -(-shape[along] // blocks)
    result = np.empty(shape, dtype.numpy)
    full = [np.moveaxis(x, along, 0) for x in np.broadcast_arrays(*args)]
    there = np.moveaxis(result, along, 0)
    for start in range(0, shape[along], step):
        part = slice(start, start + step)
        there[part] = _evaluate_wide(found, [x[part] for x in full], dtype)
    return result


def _evaluate_wide(found: Operator, args: Sequence[Array], dtype: DType) -> Array:
    """Evaluated in float64 and rounded once."""
    assert found.reals is not None
    wide = [x.astype(np.float64) if is_float(x) else x for x in args]
    if found.before_rounding is not None:
        if dtype is DType.FLOAT64 or any(x.dtype == np.float64 for x in args):
            return round_float(fma64(*wide), dtype)
        return round_float(found.before_rounding(*wide, dtype), dtype)
    return round_float(np.asarray(found.reals(*wide)), dtype)


def _evaluate_integers(found: Operator, args: Sequence[Array], dtype: DType) -> Array:
    if found.integers is None:
        raise ValueError(f"{found.name} is for floats")
    if found.is_truth:
        return truth_value(found.integers(*args), dtype)
    if dtype.is_float:
        raise ValueError(f"{found.name} of integers gives an integer, not {dtype}")
    if dtype is DType.BOOL and found.kind != "bitwise" and found.kind != "select":
        raise ValueError(f"{found.name} is not for truth values")
    same = [x if x.dtype == dtype.numpy else x.astype(dtype.numpy) for x in args]
    if found.name == "select":
        same[0] = args[0]
    return np.asarray(found.integers(*same)).astype(dtype.numpy, copy=False)


def truth_value(holds: Array, dtype: DType) -> Array:
    """Booleans as 0 and 1 of a format."""
    holds = np.asarray(holds)
    return holds if dtype is DType.BOOL else holds.astype(dtype.numpy)


def is_float(array: Array) -> bool:
    """Whether an array holds floats, the narrow formats of `ml_dtypes` among them."""
    return DType.of(array.dtype).is_float


def check_arity(found: Operator, args: Sequence[object]) -> None:
    if len(args) != found.arity:
        raise ValueError(f"{found.name} takes {found.arity} operands, not {len(args)}")


def combining(name: str) -> np.ufunc:
    """The ufunc of an operator that may be combined in place.  Raises `ValueError`."""
    found = COMBINING.get(name)
    if found is None:
        raise ValueError(f"{name} does not combine in place")
    return found


def reducible(name: str) -> Operator:
    """The operator, if a reduction by it means anything.  Raises `ValueError`."""
    found = operator(name)
    if not found.associative:
        raise ValueError(f"{name} is not associative: nothing is reduced by it")
    return found


def flat(v: Array) -> Array:
    """A one-dimensional view of contiguous elements; of others, a copy."""
    return v.reshape(-1)


def windowed(v: Array, place: Window) -> Array:
    """A view of elements of a contiguous array; raises `ValueError` where it would leave it."""
    if place.sizes == v.shape and place.strides == (1,) and not place.offset:
        return v
    if not v.flags.c_contiguous:
        raise ValueError("a window on a view")
    if 0 in place.sizes:
        return np.asarray(v[:0].reshape(place.sizes))
    size = v.itemsize
    # The formats of ml_dtypes are no buffers: the bytes are taken as integers.
    there: Array = np.ndarray(
        place.sizes,
        v.dtype,
        v.view(_UNSIGNED[size]),
        place.offset * size,
        [stride * size for stride in place.strides],
    )
    return there


_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def chosen(target: Array, flat_index: Array, v: Array, mask: Array | None) -> tuple[Array, Array]:
    """Flat positions and the elements for them, of those the mask lets through."""
    if not target.flags.c_contiguous or not target.flags.writeable:
        raise ValueError("the target of a write is a view")
    index = np.asarray(flat_index)
    values = np.broadcast_to(v, index.shape)
    if mask is None:
        return index.reshape(-1), values.reshape(-1)
    keep = np.broadcast_to(mask, index.shape)
    return index[keep], values[keep]


def write(target: Array, flat_index: Array, v: Array, mask: Array | None) -> None:
    """Assign in place; of equal positions the last one stays."""
    index, values = chosen(target, flat_index, v, mask)
    flat(target)[index] = values


def turns(index: Array) -> list[Array]:
    """Positions grouped so that no group has two equal indices, first occurrences first."""
    if index.size == 0:
        return []
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    rank = np.arange(index.size) - np.repeat(starts, np.diff(np.r_[starts, index.size]))
    by_rank = order[np.argsort(rank, kind="stable")]
    return np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])


def last_axis(v: Array, axis: int | tuple[int, ...]) -> Array:
    """The axes moved to the end and made one, the last given fastest."""
    axes = tuple(k % v.ndim for k in ((axis,) if isinstance(axis, int) else axis))
    kept = [k for k in range(v.ndim) if k not in axes]
    extent = fold(arithmetic.mul, (v.shape[k] for k in axes), 1)
    return v.transpose(*kept, *axes).reshape(*(v.shape[k] for k in kept), extent)


def tree(step: Callable[[Array, Array], Array], rows: Array) -> Array:
    """Combine the last axis as a balanced tree of neighbours."""
    while rows.shape[-1] > 1:
        even = rows.shape[-1] // 2 * 2
        paired = step(rows[..., 0:even:2], rows[..., 1:even:2])
        rows = np.concatenate([paired, rows[..., even:]], axis=-1)
    return np.asarray(rows[..., 0])
