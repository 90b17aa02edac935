"""Conversions of bounded values: what a rounding adds to the bounds, and what it decides."""

from __future__ import annotations

import numpy as np

from migrate.numerics.casts import Rule, cast
from migrate.numerics.dtypes import DType
from migrate.numerics.errors import BoundedValue, compact, distinct_magnitudes, either
from migrate.numerics.propagate import (
    Errors,
    errors_of,
    finished,
    joined,
    loosened,
    own_rounding,
    own_truncation,
    whole_sizes,
    zeroed,
)

# The most elements for which an integer array's distinct magnitudes are counted when it
# becomes a float one; beyond it the cautious answer, one, stands.
_COUNTED = 1 << 20


def holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of one float format is a value of another."""
    return (
        wide.precision >= narrow.precision
        and wide.max >= narrow.max
        and wide.min_subnormal <= narrow.min_subnormal
    )


def convert(v: BoundedValue, to: DType, rule: Rule, *, flush: bool) -> BoundedValue:
    """Convert to another number format (not to truth values)."""
    if v.dtype.is_float:
        return _round(v, to, rule, flush) if to.is_float else _to_integer(v, to, rule)
    if not to.is_float:
        return BoundedValue(to, cast(v.value, to, rule), ambiguous=v.ambiguous)
    y = v.value.astype(np.float64)
    exact = BoundedValue(
        DType.FLOAT64,
        y,
        whole=whole_sizes(y),
        ambiguous=v.ambiguous,
        distinct=distinct_magnitudes(y) if y.size <= _COUNTED else 1.0,
    )
    return exact if to is DType.FLOAT64 else _round(exact, to, rule, flush)


def _round(v: BoundedValue, to: DType, rule: Rule, flush: bool) -> BoundedValue:
    if rule is Rule.NKI and v.dtype is DType.FLOAT64 and to is not DType.FLOAT32:
        v = _round(v, DType.FLOAT32, rule, flush)
    before = None if v.is_exact else errors_of(v)
    whole = v.whole
    own: Errors | None = None
    if not holds(to, v.dtype):
        reach = before[3] if before is not None else np.zeros(v.shape)
        match rule:
            case Rule.TRUNCATE:
                own = own_truncation(v.value, reach, to)
            case _ if to is DType.FLOAT8_E8M0FNU:
                # The nearest power of two is at most a third of the value away.
                size, none = (np.abs(v.value) + reach) / 2.0, np.zeros(v.shape)
                own = (size, none, none, size)
            case _:
                own = own_rounding(v.value, reach, to, flush)
        if whole is not None and to is not DType.FLOAT8_E8M0FNU:
            fits = (whole <= np.ldexp(1.0, to.precision)) & (whole <= to.max)
            whole = np.where(fits, whole, np.nan)
            own = None if fits.all() else zeroed(own, fits)
        elif whole is not None:
            whole = None
    return finished(
        v.value,
        loosened(joined(before, own), (v,), v.shape),
        to,
        distinct=v.distinct,
        ambiguous=v.ambiguous,
        whole=whole,
        saturate=to.bits <= 8 and rule.saturates,
    )


def _to_integer(v: BoundedValue, to: DType, rule: Rule) -> BoundedValue:
    value = cast(v.value, to, rule, source=v.dtype)
    ambiguous = v.ambiguous
    if not v.is_exact:
        reach = v.allowance()
        low = cast(v.value - reach, to, rule, source=v.dtype)
        high = cast(v.value + reach, to, rule, source=v.dtype)
        ambiguous = either(ambiguous, compact(low != high))
    return BoundedValue(to, value, ambiguous=ambiguous)
