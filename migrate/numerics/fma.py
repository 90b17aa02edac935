"""Fused multiply-add with exactly one rounding.

A sum rounded *to odd* in float64 can be rounded again to any format of at most 51 bits
without a double-rounding error (Boldo and Melquiond, "Emulation of a FMA and
correctly rounded sums: proved algorithms using rounding to odd", IEEE TC 57, 2008).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from migrate.numerics.dtypes import DType

Array = NDArray[Any]


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    product = a * b
    split = 134217729.0  # 2^27 + 1 (Dekker)
    high_a = a * split - (a * split - a)
    high_b = b * split - (b * split - b)
    low_a, low_b = a - high_a, b - high_b
    error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    return product, error


def _add_odd(a: Array, b: Array) -> Array:
    """a + b rounded to odd: an inexact result gets a last bit of 1."""
    total, error = _two_sum(a, b)
    total = np.asarray(total)
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    # The neighbour on the error's side: away from zero where the signs agree.
    away = (error > 0) == (total > 0)
    return np.where(inexact, np.where(away, bits + 1, bits - 1), bits).view(np.float64)


def fma_before_rounding(a: Array, b: Array, c: Array, dtype: DType) -> Array:
    """a*b + c of operands of at most 24 bits, as float64 that rounds to `dtype` rightly.

    The product is exact in float64.  The sum, rounded to float64, lies on the same side
    of every value halfway between two of `dtype`, unless it fell on one; those elements
    (and the subnormal ones, whose halfway points lie elsewhere) are rounded to odd.
    """
    with np.errstate(all="ignore"):
        product = np.asarray(a * b, np.float64)
        total = np.asarray(product + c, np.float64)
        below = np.int64((1 << (53 - dtype.precision)) - 1)
        halfway = np.int64(1 << (52 - dtype.precision))
        unsafe = (total.view(np.int64) & below) == halfway
        unsafe |= np.abs(total) < 2.0 * dtype.min_normal
        if unsafe.any():
            addend = np.broadcast_to(c, total.shape)[unsafe].astype(np.float64)
            product = np.broadcast_to(product, total.shape)[unsafe]
            total[unsafe] = _add_odd(product, addend)
    return total


def fma64(a: Array, b: Array, c: Array) -> Array:
    """a*b + c of float64 operands, correctly rounded to float64."""
    a, b, c = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (a, b, c)))
    with np.errstate(all="ignore"):
        product, low = _two_product(a, b)
        high, rest = _two_sum(c, low)
        total, tail = _two_sum(product, high)
        result = np.asarray(total + _add_odd(tail, rest))
        plain = np.asarray(a * b + c)
        finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
        trivial = ~finite | (a == 0) | (b == 0)
        result = np.where(trivial, plain, result)
        # Where a splitting or a low part may leave float64's range the proof does not
        # hold; those few elements are computed in rationals.
        sizes = [np.abs(a), np.abs(b)]
        safe = trivial | (
            np.logical_and.reduce([(x > 2.0**-450) & (x < 2.0**450) for x in sizes])
            & ((c == 0) | ((np.abs(c) > 2.0**-900) & (np.abs(c) < 2.0**1000)))
            & (np.abs(result) > 2.0**-800)
            | (result == 0) & (c != 0) & (np.abs(c) > 2.0**-800)
        )
    if not safe.all():
        result = np.array(result)
        for where in zip(*np.nonzero(~safe), strict=True):
            exact = Fraction(float(a[where])) * Fraction(float(b[where])) + Fraction(
                float(c[where])
            )
            result[where] = _nearest(exact, float(plain[where]))
    return result


def _nearest(exact: Fraction, zero: float) -> float:
    """The float64 nearest to a rational; `zero` gives the sign of an exact zero."""
    if exact == 0:
        return 0.0 * zero if zero == 0 else 0.0
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")
