"""Integer operators with a meaning of their own: C's division, shifts, high products.

Operands are arrays of one integer type (or bool); results wrap in that type.  Division
by zero, undefined in C++, gives 0 here and is the caller's to report.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def divide(a: Array, b: Array) -> Array:
    """The quotient truncated toward zero; the least integer over -1 wraps to itself."""
    quotient = np.floor_divide(a, b)
    if np.issubdtype(quotient.dtype, np.unsignedinteger):
        return quotient
    one = quotient.dtype.type(1)
    uneven = (b != 0) & (a - quotient * b != 0) & ((a < 0) != (b < 0))
    return np.where(uneven, quotient + one, quotient)


def remainder(a: Array, b: Array) -> Array:
    """What `divide` leaves: the sign of the dividend."""
    return np.where(b != 0, np.fmod(a, np.where(b != 0, b, b.dtype.type(1))), a.dtype.type(0))


def floor_divide(a: Array, b: Array) -> Array:
    """The quotient toward minus infinity."""
    return np.floor_divide(a, b)


def floor_remainder(a: Array, b: Array) -> Array:
    """What `floor_divide` leaves: the sign of the divisor."""
    return np.mod(a, b)


def absolute_difference(a: Array, b: Array) -> Array:
    return np.where(a > b, a - b, b - a)


def power(a: Array, b: Array) -> Array:
    """a^b for b >= 0; a negative exponent leaves only powers of 1 and -1, else 0."""
    one, zero = a.dtype.type(1), a.dtype.type(0)
    if np.issubdtype(a.dtype, np.unsignedinteger):
        return np.power(a, b)
    negative = b < 0
    result = np.power(a, np.where(negative, zero, b))
    odd = (b & one) == one
    inverse = np.where(a == one, one, np.where(a == -one, np.where(odd, -one, one), zero))
    return np.where(negative, inverse, result)


def multiply_high(a: Array, b: Array) -> Array:
    """The high half of the double-width product."""
    kind = np.result_type(a, b)
    bits = kind.itemsize * 8
    if bits <= 32:
        wide = np.int64 if kind.kind == "i" else np.uint64
        product = a.astype(wide) * b.astype(wide)
        return (product >> wide(bits)).astype(kind)
    # 64 bits: schoolbook on halves of the unsigned patterns, then the signs' correction.
    ua, ub = a.astype(np.uint64), b.astype(np.uint64)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a1, a0, b1, b0 = ua >> half, ua & low, ub >> half, ub & low
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & low)
    high = a1 * b1 + (middle >> half) + (other >> half)
    if kind.kind == "i":
        zero = np.uint64(0)
        high = high - np.where(a < 0, ub, zero) - np.where(b < 0, ua, zero)
    return np.asarray(high.astype(kind))


def _unsigned(a: Array) -> Array:
    return np.ascontiguousarray(a).view(f"u{a.dtype.itemsize}").reshape(a.shape)


def _counts(a: Array, b: Array) -> tuple[Array, Array]:
    """The shift counts below the width, and where a count is not."""
    width = a.dtype.itemsize * 8
    beyond = (b < 0) | (b >= width)
    return np.where(beyond, b.dtype.type(0), b), beyond


def left_shift(a: Array, b: Array) -> Array:
    counts, beyond = _counts(a, b)
    return np.where(beyond, a.dtype.type(0), np.left_shift(a, counts))


def right_shift(a: Array, b: Array) -> Array:
    counts, beyond = _counts(a, b)
    last = a.dtype.type(a.dtype.itemsize * 8 - 1)
    return (
        np.right_shift(a, np.where(beyond, last, counts))
        if a.dtype.kind == "i"
        else np.where(beyond, a.dtype.type(0), np.right_shift(a, counts))
    )


def right_shift_logical(a: Array, b: Array) -> Array:
    counts, beyond = _counts(a, b)
    pattern = _unsigned(a)
    shifted = np.right_shift(pattern, counts.astype(pattern.dtype)).astype(a.dtype)
    return np.asarray(np.where(beyond, a.dtype.type(0), shifted))


def population_count(a: Array) -> Array:
    return np.bitwise_count(_unsigned(a)).astype(a.dtype)


def leading_zeros(a: Array) -> Array:
    pattern = _unsigned(a)
    width = a.dtype.itemsize * 8
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < width:
            pattern = pattern | (pattern >> pattern.dtype.type(shift))
    return (width - np.bitwise_count(pattern).astype(np.int64)).astype(a.dtype)


def relu(a: Array) -> Array:
    return np.asarray(np.maximum(a, a.dtype.type(0)))


def negative(a: Array) -> Array:
    return np.asarray(a < 0)
