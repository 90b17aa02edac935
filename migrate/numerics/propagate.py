"""Error bounds through single operations and conversions.

Follows standard forward error analysis (N. J. Higham, "Accuracy and Stability of
Numerical Algorithms", chapters 2 and 3) with the operators' spreads for the operands'
errors and the format's unit roundoff for the operation's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.numerics.domain import OperatorError
from migrate.numerics.dtypes import DType
from migrate.numerics.errors import (
    CONFIDENCE,
    EVALUATION,
    KAPPA,
    BoundedValue,
    compact,
    either,
)
from migrate.numerics.operators import Operator
from migrate.numerics.spread import additive

Array: TypeAlias = NDArray[Any]
# bound, deviation, coherent, worst
Errors: TypeAlias = tuple[Array, Array, Array, Array]


def zeros(shape: tuple[int, ...]) -> Errors:
    return np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape)


def errors_of(v: BoundedValue) -> Errors:
    """The four error arrays, zeros where the value is exact."""
    if v.worst is None or v.bound is None or v.deviation is None or v.coherent is None:
        return zeros(v.shape)
    return v.bound, v.deviation, v.coherent, v.worst


def zeroed(errors: Errors, where: Array) -> Errors:
    """No errors where the mask holds."""
    bound, deviation, coherent, worst = (np.where(where, 0.0, e) for e in errors)
    return bound, deviation, coherent, worst


def _scaled(slope: Array, size: Array) -> Array:
    """slope * size, with 0 for an absent error under an infinite slope."""
    return np.where(size == 0, 0.0, slope * size)


def carried(
    found: Operator, args: Sequence[BoundedValue], shape: tuple[int, ...]
) -> tuple[Errors | None, Array | None]:
    """The operands' errors in the result, and where a jump lies within them.

    `None` errors: all operands are exact.  The slope for each operand is its spread over
    its allowance, divided by that: the largest slope in reach.
    """
    if all(x.is_exact for x in args):
        return None, None
    if found.spread is None:
        raise ValueError(f"{found.name} has no error propagation")
    values = [np.broadcast_to(x.value, shape) for x in args]
    parts = [[np.broadcast_to(e, shape) for e in errors_of(x)] for x in args]
    worst = found.spread(values, [p[3] for p in parts])
    if found.spread is additive:
        bound, deviation, coherent = (additive(values, [p[k] for p in parts]) for k in range(3))
        return (bound, deviation, coherent, worst), None
    allowed = [np.broadcast_to(x.allowance(), shape) for x in args]
    bound, deviation, coherent, _ = zeros(shape)
    alone = np.zeros(shape)
    nothing = np.zeros(shape)
    for k, x in enumerate(args):
        if x.is_exact:
            continue
        reach = found.spread(values, [allowed[k] if j == k else nothing for j in range(len(args))])
        slope = np.where(allowed[k] > 0, reach / allowed[k], 0.0)
        bound = bound + _scaled(slope, parts[k][0])
        deviation = deviation + _scaled(slope, parts[k][1])
        coherent = coherent + _scaled(slope, parts[k][2])
        alone = alone + reach
    joint = found.spread(values, allowed)
    # What the operands' errors do together beyond each alone (products of errors).
    together = joint - alone
    bound = bound + np.where(together > 0, together, 0.0)
    jumped = (joint >= found.jump(values)) & (joint > 0) if found.jump is not None else None
    return (bound, deviation, coherent, worst), compact(jumped)


def own_rounding(y: Array, before: Array, dtype: DType, flush: bool) -> Errors:
    """The errors of one rounding to nearest of results up to `before` away from y."""
    unit = dtype.unit_roundoff
    size = np.abs(y)
    evaluation = EVALUATION * size
    lost = dtype.min_normal if flush else dtype.min_subnormal / 2.0
    under = np.where((size - before < dtype.min_normal) & (size + before > 0), lost, 0.0)
    rounding = KAPPA * unit * size
    worst = unit * (size + before) + under + evaluation
    return under + evaluation, rounding, rounding, worst


def own_truncation(y: Array, before: Array, dtype: DType) -> Errors:
    """The errors of one rounding toward zero: up to an ulp, always the same way."""
    unit = 2.0 * dtype.unit_roundoff
    size = np.abs(y)
    near = (size - before < dtype.min_normal) & (size + before > 0)
    under = np.where(near, dtype.min_subnormal, 0.0)
    none = np.zeros_like(size)
    return unit * size + under, none, none, unit * (size + before) + under


def own_published(y: Array, before: Array, error: OperatorError, first: Array) -> Errors:
    """The errors a platform publishes for its function; their sign is not known."""
    relative = error.relative(first) if callable(error.relative) else error.relative
    size = np.abs(y)
    none = np.zeros_like(size)
    absolute = error.absolute + EVALUATION * size
    return relative * size + absolute, none, none, relative * (size + before) + absolute


def joined(before: Errors | None, own: Errors | None) -> Errors | None:
    """Carried errors and the operation's own, which is independent of them."""
    if before is None or own is None:
        return before if own is None else own
    bound, deviation, coherent, worst = before
    return (
        bound + own[0],
        np.hypot(deviation, own[1]),
        coherent + own[2],
        worst + own[3],
    )


def loosened(
    errors: Errors | None, args: Sequence[BoundedValue], shape: tuple[int, ...]
) -> Errors | None:
    """No bound where an operand is infinite or NaN but might be something else."""
    loose = either(
        *(compact(x.ambiguous & ~np.isfinite(x.value)) for x in args if x.ambiguous is not None)
    )
    if loose is None:
        return errors
    bound, deviation, coherent, worst = zeros(shape) if errors is None else errors
    return np.where(loose, np.inf, bound), deviation, coherent, np.where(loose, np.inf, worst)


def overflow_threshold(dtype: DType) -> float:
    """The size from which rounding to nearest leaves the format's finite range."""
    largest = dtype.max
    exponent = int(np.frexp(largest)[1])
    half_ulp = float(np.ldexp(1.0, exponent - dtype.precision - 1))
    return largest + half_ulp if dtype is not DType.FLOAT64 else np.inf


def finished(
    y: Array,
    errors: Errors | None,
    dtype: DType,
    *,
    distinct: float,
    ambiguous: Array | None = None,
    whole: Array | None = None,
    saturate: bool = False,
    confidence: float = CONFIDENCE,
) -> BoundedValue:
    """A result with its range settled: overflow happens as in the format.

    An element whose overflow the bound leaves open, or that has no bound, is ambiguous.
    """
    y = np.asarray(y, np.float64)
    result = BoundedValue(dtype, y, distinct=distinct, whole=whole, ambiguous=ambiguous)
    if errors is not None:
        result.bound, result.deviation, result.coherent, result.worst = (
            e if e.shape == y.shape else np.broadcast_to(e, y.shape) for e in errors
        )
    size = np.abs(y)
    if saturate or dtype.overflow == "saturate":
        result.value = np.where(size > dtype.max, np.copysign(dtype.max, y), y)
    else:
        _overflow(result, size, confidence)
    if result.worst is not None:
        _settle(result)
    return result


def _overflow(result: BoundedValue, size: Array, confidence: float) -> None:
    dtype, threshold = result.dtype, overflow_threshold(result.dtype)
    if not np.isfinite(threshold) or not (size + result.limit() >= threshold).any():
        return
    reach = result.allowance(confidence)
    open_ended = (np.abs(size - threshold) <= reach) & (reach > 0)
    result.ambiguous = either(result.ambiguous, compact(open_ended))
    beyond: Any = np.nan if dtype.overflow == "nan" else np.copysign(np.inf, result.value)
    result.value = np.where(size >= threshold, beyond, result.value)


def _settle(result: BoundedValue) -> None:
    """Infinities and NaN carry no error; an element without a bound is ambiguous."""
    assert result.worst is not None
    special = ~np.isfinite(result.value)
    unbounded = ~np.isfinite(result.worst)
    if not special.any() and not unbounded.any():
        return
    if unbounded.any():
        result.ambiguous = either(result.ambiguous, unbounded)
    for name in ("bound", "deviation", "coherent", "worst"):
        part = np.array(getattr(result, name))
        part[np.isnan(part)] = np.inf
        part[special] = 0.0
        setattr(result, name, part)


def certified(found: Operator, args: Sequence[BoundedValue], dtype: DType) -> Array | None:
    """Where sums and products of exact integers are exact in any order: their size.

    All terms are integers and the sum of their sizes stays within 2^precision, so every
    partial result is an integer the format holds.  NaN elsewhere.
    """
    if found.name not in _CERTIFIED:
        return None
    sizes = [x.whole for x in args]
    if any(size is None for size in sizes):
        return None
    a, b, c = (*sizes, None, None)[:3]
    assert a is not None
    match found.name:
        case "add" | "subtract" if b is not None:
            size = a + b
        case "multiply" if b is not None:
            size = a * b
        case "square":
            size = a * a
        case "fma" if b is not None and c is not None:
            size = a * b + c
        case _:
            size = a if b is None else np.maximum(a, b)
    limit = float(np.ldexp(1.0, dtype.precision))
    size = np.where((size <= limit) & (size <= dtype.max), size, np.nan)
    return None if np.isnan(size).all() else size


_CERTIFIED = {
    "add",
    "subtract",
    "multiply",
    "square",
    "fma",
    "negate",
    "abs",
    "relu",
    "maximum",
    "minimum",
    "maximum_number",
    "minimum_number",
}


def whole_sizes(values: Array) -> Array | None:
    """The certificate of data: the sizes, where they are integers."""
    size = np.abs(values)
    with np.errstate(all="ignore"):
        size = np.where(values == np.rint(values), size, np.nan)
    size = np.where(np.isfinite(size), size, np.nan)
    return None if np.isnan(size).all() else size
