"""Error bounds of sums and matrix products, and of in-place combination.

Deterministic part: |error| <= gamma_h(u) * sum |terms| for any order with at most h
roundings on a path (Higham, section 4.2).  Statistical part: the running form where
the order is known, the permutation variance where it is not, with the correction for
data of few distinct magnitudes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.numerics.domain import Order
from migrate.numerics.dtypes import DType
from migrate.numerics.errors import (
    EVALUATION,
    KAPPA,
    BoundedValue,
    compact,
    row_magnitudes,
)
from migrate.numerics.propagate import Errors, errors_of, finished
from migrate.numerics.rounded import chosen, combining, turns

if TYPE_CHECKING:
    from migrate.numerics.bounded import Bounded

Array: TypeAlias = NDArray[Any]


def gamma(count: float, unit: float) -> float:
    """n u / (1 - n u): what n roundings can do, relatively; infinite where nothing is left."""
    product = count * unit
    return product / (1.0 - product) if product < 1.0 else math.inf


def total(rows: BoundedValue, dtype: DType, order: Order) -> BoundedValue:
    """The sum over the last axis, of at least one element, accumulated in `dtype`."""
    x, n = rows.value, rows.shape[-1]
    y = np.sum(x, axis=-1)
    sizes = np.abs(x)
    size = np.sum(sizes, axis=-1)
    parts = [np.sum(e, axis=-1) for e in errors_of(rows)]
    unit = dtype.unit_roundoff
    roundings = math.ceil(math.log2(n)) if order == "pairwise" else n - 1
    own_worst = gamma(roundings, unit) * (size + parts[3])
    evaluation = EVALUATION * n * size
    distinct = np.minimum(row_magnitudes(x), n)
    known, known_size = _partials(x, pairwise=order == "pairwise")
    # In units of the roundings' variance: each partial result errs by its own size.
    variance = known + known_size * known_size / distinct
    if order == "blas":
        # Also an order unrelated to the values (exchangeable terms).
        squares = np.sum(x * x, axis=-1)
        unknown = n * (y * y / 3.0 + squares / 6.0) + (n * y) ** 2 / (4.0 * distinct)
        variance = np.maximum(variance, unknown)
    own = np.minimum(KAPPA * unit * np.sqrt(variance), own_worst) if n > 1 else np.zeros(y.shape)
    whole = _certificate(None if rows.whole is None else np.sum(rows.whole, axis=-1), dtype)
    errors: Errors | None = (
        parts[0] + evaluation,
        np.hypot(parts[1], own),
        parts[2],
        parts[3] + own_worst + evaluation,
    )
    if n == 1 and rows.is_exact:
        errors = None
    errors = _certain(errors, whole)
    doubts = None if rows.ambiguous is None else np.asarray(rows.ambiguous.any(axis=-1))
    return finished(
        y, errors, dtype, distinct=rows.distinct, ambiguous=compact(doubts), whole=whole
    )


def _partials(x: Array, *, pairwise: bool) -> tuple[Array, Array]:
    """The sums of the squares and of the sizes of all partial results of a summation."""
    if not pairwise:
        partial = np.cumsum(x, axis=-1)[..., 1:]
        return np.sum(partial * partial, axis=-1), np.sum(np.abs(partial), axis=-1)
    squares, sizes = np.zeros(x.shape[:-1]), np.zeros(x.shape[:-1])
    while x.shape[-1] > 1:
        even = x.shape[-1] // 2 * 2
        paired = x[..., 0:even:2] + x[..., 1:even:2]
        squares = squares + np.sum(paired * paired, axis=-1)
        sizes = sizes + np.sum(np.abs(paired), axis=-1)
        x = np.concatenate([paired, x[..., even:]], axis=-1)
    return squares, sizes


def product(a: BoundedValue, b: BoundedValue, dtype: DType, *, flush: bool) -> BoundedValue:
    """`a[..., M, K] @ b[..., K, N]` accumulated in `dtype`, in any order."""
    n = a.shape[-1]
    unit = dtype.unit_roundoff
    y = np.matmul(a.value, b.value)
    sizes_a, sizes_b = np.abs(a.value), np.abs(b.value)
    size = np.matmul(sizes_a, sizes_b)
    squares = np.matmul(a.value * a.value, b.value * b.value)
    errors_a, errors_b = errors_of(a), errors_of(b)
    parts = [np.zeros(y.shape)] * 4
    if not (a.is_exact and b.is_exact):
        parts = [
            np.matmul(sizes_a, eb) + np.matmul(ea, sizes_b)
            for ea, eb in zip(errors_a, errors_b, strict=True)
        ]
        parts[0] = parts[0] + np.matmul(a.allowance(), b.allowance())
        parts[3] = parts[3] + np.matmul(errors_a[3], errors_b[3])
    distinct = min(max(a.distinct, b.distinct, 1.0), max(n, 1))
    variance = n * (y * y / 3.0 + squares / 6.0) + (n * y) ** 2 / (4.0 * distinct)
    # Products that do not fit are rounded before they are added.
    if a.dtype.precision + b.dtype.precision > dtype.precision:
        variance = variance + squares
    lost = n * (dtype.min_normal if flush else dtype.min_subnormal / 2.0)
    own_worst = gamma(n + 1, unit) * (size + parts[3]) + np.where(size > 0, lost, 0.0)
    own = np.minimum(KAPPA * unit * np.sqrt(variance), own_worst)
    evaluation = EVALUATION * n * size
    whole: Array | None = None
    if a.whole is not None and b.whole is not None:
        whole = _certificate(np.matmul(a.whole, b.whole), dtype)
    errors = _certain(
        (
            parts[0] + evaluation,
            np.hypot(parts[1], own),
            parts[2],
            parts[3] + own_worst + evaluation,
        ),
        whole,
    )
    doubts: Array | None = None
    if a.ambiguous is not None or b.ambiguous is not None:
        rows = np.asarray(a.doubts().any(axis=-1))[..., :, None]
        doubts = rows | np.asarray(b.doubts().any(axis=-2))[..., None, :]
    return finished(
        y,
        errors,
        dtype,
        distinct=max(a.distinct, b.distinct),
        ambiguous=compact(doubts),
        whole=whole,
    )


def _certificate(size: Array | None, dtype: DType) -> Array | None:
    if size is None:
        return None
    size = np.where((size <= 2.0**dtype.precision) & (size <= dtype.max), size, np.nan)
    return None if np.isnan(size).all() else size


def _certain(errors: Errors | None, whole: Array | None) -> Errors | None:
    """No error where a sum of integers is certified exact."""
    if errors is None or whole is None:
        return errors
    free = ~np.isnan(whole)
    if free.all():
        return None
    bound, deviation, coherent, worst = (np.where(free, 0.0, e) for e in errors)
    return bound, deviation, coherent, worst


def combine(
    domain: Bounded,
    operator: str,
    target: BoundedValue,
    flat_index: Array,
    v: BoundedValue,
    mask: Array | None,
) -> None:
    """Read-modify-write in place; sums of floats at once, whatever their order."""
    combining(operator)
    if v.dtype is not target.dtype:
        raise ValueError(f"a {v.dtype} does not combine into a buffer of {target.dtype}")
    positions = np.arange(np.asarray(flat_index).size).reshape(np.shape(flat_index))
    index, kept = chosen(target.value, flat_index, positions, mask)
    if index.size == 0:
        return
    source = domain.take(domain.broadcast(v, np.shape(flat_index)), kept)
    if not (target.dtype.is_float and operator in {"add", "subtract"}):
        for turn in turns(index):
            at = index[turn]
            new = domain.apply(
                operator, (domain.take(target, at), domain.take(source, turn)), target.dtype
            )
            domain.put(target, at, new)
        return
    if operator == "subtract":
        source = domain.apply("negate", (source,), source.dtype)
    _scatter_add(domain, target, index, source)


def _scatter_add(domain: Bounded, target: BoundedValue, index: Array, source: BoundedValue) -> None:
    """Sums into positions in an unknown order: the deterministic bound of each, and
    n u sum |terms| / 2 taken as coherent."""
    places, slot = np.unique(index, return_inverse=True)
    old = domain.take(target, places)

    def gathered(start: Array, parts: Array) -> Array:
        sums = np.array(start, np.float64)
        np.add.at(sums, slot, parts)
        return sums

    with np.errstate(all="ignore"):
        y = gathered(old.value, source.value)
        size = gathered(np.abs(old.value), np.abs(source.value))
        count = gathered(np.zeros(places.shape), np.ones(index.shape))
        parts = [gathered(x, e) for x, e in zip(errors_of(old), errors_of(source), strict=True)]
        unit = target.dtype.unit_roundoff
        share = count * unit
        growth = np.where(share < 1.0, share / (1.0 - share), np.inf)
        own_worst = growth * (size + parts[3])
        evaluation = EVALUATION * (count + 1) * size
        # The root mean square of a random order's partial sums, bounded by all of one sign.
        own = np.minimum(KAPPA * unit * np.sqrt(count) * size, own_worst)
        whole: Array | None = None
        if old.whole is not None and source.whole is not None:
            whole = _certificate(gathered(old.whole, source.whole), target.dtype)
        errors = _certain(
            (
                parts[0] + evaluation,
                np.hypot(parts[1], own),
                parts[2] + KAPPA * share * np.abs(y) / 2.0,
                parts[3] + own_worst + evaluation,
            ),
            whole,
        )
        doubts: Array | None = None
        if old.ambiguous is not None or source.ambiguous is not None:
            found = old.doubts().copy()
            np.logical_or.at(found, slot, source.doubts())
            doubts = compact(found)
        new = finished(
            y,
            errors,
            target.dtype,
            distinct=max(old.distinct, source.distinct),
            ambiguous=doubts,
            whole=whole,
        )
    domain.put(target, places, new)
