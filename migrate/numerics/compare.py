"""Judging what a platform computed against the real values with their bounds.

Three zones an element: within the allowance (rounding explains it), within the
deterministic bound only (some order of roundings could explain it), and beyond, which no
order of roundings in the declared formats explains.  Integers, truth values and results
that involve no rounding must be equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.numerics.bounded import Bounded
from migrate.numerics.casts import Rule, round_float
from migrate.numerics.dtypes import DType
from migrate.numerics.errors import CONFIDENCE, EVALUATION, BoundedValue

Array: TypeAlias = NDArray[Any]
Status = Literal["pass", "investigate", "fail"]

# The bounds themselves are computed in float64.
_SLACK = 1.0 + 2.0**-40

# Elements that differ and are left out, as a share: a decision within the bound falls the other
# way now and then; where more than this differ, that no longer explains it.
_EXCUSED = 0.5

# Errors this many times the reference's bound are no matter of the order of roundings.
_FAR = 1024.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict on one array.

    `mismatched` counts the elements outside their allowance, or of another class (NaN,
    infinities) than the reference; `failed` those of them that nothing can explain.
    `ambiguous` counts elements that differ and are left out, because the reference depends
    there on a decision within its bound; too many of them call for an investigation.
    `worst_ratio` is the largest error in units of its allowance.  `max_ulp` is measured from
    the reference rounded to the format (0 for integers).
    The first mismatch is a failing element where there is one; `expected`, `actual` and
    `allowed` are of that element.
    """

    status: Status
    total: int
    mismatched: int
    failed: int
    ambiguous: int
    max_abs: float
    max_ulp: int
    worst_ratio: float
    first_mismatch: tuple[int, ...] | None = None
    expected: float | int | None = None
    actual: float | int | None = None
    allowed: float | None = None


def ulp_distance(a: Array, b: Array, dtype: DType) -> Array:
    """How many values of the format apart elements are, as uint64.

    The bits, read as sign and magnitude, count the values in order: both zeros are the
    same place, infinity follows the largest value.  NaN is at no distance from NaN and
    at the greatest (2^64 - 1) from everything else.
    """
    places: list[tuple[Array, Array]] = []
    for x in (a, b):
        bits = np.ascontiguousarray(x).view(f"u{dtype.numpy.itemsize}").reshape(np.shape(x))
        bits = bits.astype(np.uint64)
        if dtype is DType.TFLOAT32:
            bits = bits >> np.uint64(13)
        width = dtype.bits - (13 if dtype is DType.TFLOAT32 else 0)
        if not dtype.is_signed:
            places.append((bits, np.zeros(bits.shape, np.bool_)))
            continue
        sign = np.uint64(1) << np.uint64(width - 1)
        size = bits & (sign - np.uint64(1))
        places.append((size, ((bits & sign) != 0) & (size != 0)))
    (size_a, negative_a), (size_b, negative_b) = places
    apart = np.where(size_a > size_b, size_a - size_b, size_b - size_a)
    distance = np.where(negative_a == negative_b, apart, size_a + size_b)
    with np.errstate(all="ignore"):
        nan_a, nan_b = np.isnan(a.astype(np.float64)), np.isnan(b.astype(np.float64))
    distance = np.where(nan_a & nan_b, np.uint64(0), distance)
    return np.where(nan_a != nan_b, np.uint64(0xFFFFFFFFFFFFFFFF), distance)


def judge(
    values: Array,
    reference: BoundedValue,
    store: DType,
    *,
    own: BoundedValue | None = None,
    confidence: float = CONFIDENCE,
) -> Judgement:
    """Judge an array, in `store`'s storage, against real values of the same shape.

    The allowance is the reference's, or that of `own`: the judged side's own run in the
    `Bounded` domain, where its operations have errors of their own (table functions,
    another order, a narrower format).  Raises `ValueError` if the shapes differ.
    """
    if values.shape != reference.shape or (own is not None and own.shape != values.shape):
        raise ValueError(f"shape {values.shape} is compared with {reference.shape}")
    with np.errstate(all="ignore"):
        if not store.is_float:
            return _judge_exact(values, reference)
        if reference.dtype is not store:
            reference = Bounded().cast(reference, store, Rule.IEEE)
        if own is not None and own.dtype is not store:
            own = Bounded().cast(own, store, Rule.IEEE)
        return _judge_floats(values, reference, own or reference, store, confidence)


def _judge_exact(values: Array, reference: BoundedValue) -> Judgement:
    differs = values != reference.value
    doubts = reference.doubts() & differs
    wrong = differs & ~doubts
    # Differences of 64-bit integers are exact in Python's integers only; as floats they
    # are near enough to report.
    gap = np.where(differs, np.abs(values.astype(np.float64) - _float(reference.value)), 0.0)
    count = int(wrong.sum())
    return Judgement(
        status="fail" if count else "investigate" if _mostly(doubts) else "pass",
        total=values.size,
        mismatched=count,
        failed=count,
        ambiguous=int(doubts.sum()),
        max_abs=float(gap[~doubts].max(initial=0.0)),
        max_ulp=0,
        worst_ratio=float("inf") if count else 0.0,
        **_first(wrong, wrong, values, reference.value, np.zeros(values.shape)),
    )


def _judge_floats(
    values: Array,
    reference: BoundedValue,
    bounds: BoundedValue,
    store: DType,
    confidence: float,
) -> Judgement:
    actual = values.astype(np.float64)
    expected = reference.value
    allowed = bounds.allowance(confidence) * _SLACK + _evaluation_error(reference)
    limit = np.maximum(bounds.limit() * _SLACK, allowed)
    same_class = (np.isnan(actual) & np.isnan(expected)) | (actual == expected)
    comparable = np.isfinite(actual) & np.isfinite(expected)
    gap = np.where(same_class, 0.0, np.abs(actual - expected))
    doubts = reference.doubts() | bounds.doubts()
    misclassed = ~comparable & ~same_class
    outside = misclassed | (comparable & (gap > allowed))
    failed = (misclassed & ~doubts) | (comparable & (gap > limit))
    ambiguous = doubts & (outside | np.isinf(allowed)) & ~failed
    # An allowance without measure excuses nothing: it is the judged side that is unstable.
    adrift = _adrift(gap, misclassed, expected, reference) & ~failed
    ambiguous = ambiguous & ~adrift
    mismatched = (outside & ~ambiguous) | adrift
    counted = comparable & ~ambiguous
    ratio = np.where(gap == 0, 0.0, gap / allowed)[counted]
    distance = ulp_distance(values, round_float(expected, store), store)[counted]
    worst = float(ratio.max(initial=0.0))
    if (misclassed & ~doubts).any():
        worst = float("inf")
    status: Status = "pass"
    if failed.any():
        status = "fail"
    elif mismatched.any() or _mostly(ambiguous & _differs(gap, misclassed, reference)):
        status = "investigate"
    return Judgement(
        status=status,
        total=values.size,
        mismatched=int(mismatched.sum()),
        failed=int(failed.sum()),
        ambiguous=int(ambiguous.sum()),
        max_abs=float(gap[counted].max(initial=0.0)),
        max_ulp=int(distance.max(initial=0)),
        worst_ratio=worst,
        **_first(failed, mismatched, actual, expected, allowed),
    )


def _differs(gap: Array, misclassed: Array, reference: BoundedValue) -> Array:
    """Where values are apart by more than rounding, in size: no bound is needed to see it."""
    coarse = _FAR * reference.dtype.unit_roundoff * np.abs(reference.value)
    return np.asarray(misclassed | (gap > np.where(np.isfinite(coarse), coarse, 0.0)))


def _mostly(excused: Array) -> bool:
    return int(excused.sum()) > _EXCUSED * excused.size


def _adrift(gap: Array, misclassed: Array, expected: Array, reference: BoundedValue) -> Array:
    """Where the reference is settled, and the error is larger than all there is in it."""
    finite = np.isfinite(expected)
    largest = np.abs(expected[finite]).max(initial=0.0)
    limit = reference.limit()
    settled = finite & np.isfinite(limit) & ~reference.doubts()
    return np.asarray(settled & (misclassed | (gap > np.maximum(largest, _FAR * limit))))


def _evaluation_error(reference: BoundedValue) -> Array:
    """How far the reference's float64 evaluation may be from the reals.

    Errors of float64 spread as those of the format do, only smaller.  They matter where the
    judged side has none of its own: a sum that is exactly 0 there, and 1e-17 here.
    """
    widest = min(reference.dtype.unit_roundoff, DType.FLOAT32.unit_roundoff)
    limit = reference.limit()
    return np.where(np.isfinite(limit), limit, 0.0) * min(EVALUATION / widest, 1.0)


def _float(values: Array) -> Array:
    return values.astype(np.float64)


def _first(
    failed: Array, mismatched: Array, actual: Array, expected: Array, allowed: Array
) -> dict[str, Any]:
    """The fields of the first failing element, else of the first mismatch."""
    where = np.flatnonzero(failed if failed.any() else mismatched)
    if where.size == 0:
        return {}
    index = tuple(int(k) for k in np.unravel_index(int(where[0]), actual.shape))
    return {
        "first_mismatch": index,
        "expected": expected[index].item(),
        "actual": actual[index].item(),
        "allowed": float(allowed[index]),
    }
