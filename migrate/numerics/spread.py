"""How far an operator carries an error in its operands.

A spread takes the operands x and non-negative errors e of the same shapes and gives a
bound on |f(x') - f(x)| over all |x' - x| <= e, in float64 (`inf` where there is none).
The bounds are rigorous up to float64 rounding; the caller widens by that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Real: TypeAlias = Callable[..., Array]
Spread: TypeAlias = Callable[[Sequence[Array], Sequence[Array]], Array]


def additive(x: Sequence[Array], e: Sequence[Array]) -> Array:
    """Sums and everything else whose slope is at most 1 in each operand."""
    total: Array = e[0]
    for error in e[1:]:
        total = total + error
    return total


def maximum(x: Sequence[Array], e: Sequence[Array]) -> Array:
    return _winner(x, e, x[0] >= x[1])


def minimum(x: Sequence[Array], e: Sequence[Array]) -> Array:
    return _winner(x, e, x[0] <= x[1])


def _winner(x: Sequence[Array], e: Sequence[Array], first: Array) -> Array:
    close = ~(np.abs(x[0] - x[1]) > e[0] + e[1])
    return np.where(close, np.maximum(e[0], e[1]), np.where(first, e[0], e[1]))


def product(x: Sequence[Array], e: Sequence[Array]) -> Array:
    (a, b), (ea, eb) = x, e
    return np.asarray(np.abs(a) * eb + np.abs(b) * ea + ea * eb)


def fused(x: Sequence[Array], e: Sequence[Array]) -> Array:
    carried: Array = product(x[:2], e[:2]) + e[2]
    return carried


def quotient(x: Sequence[Array], e: Sequence[Array]) -> Array:
    (a, b), (ea, eb) = x, e
    low = np.abs(b) - eb
    slope = np.where(eb == 0, 0.0, np.abs(a / b) * eb)
    carried = (ea + slope) / low
    return np.where(low > 0, carried, np.where((ea == 0) & (eb == 0), 0.0, np.inf))


def square(x: Sequence[Array], e: Sequence[Array]) -> Array:
    return (2.0 * np.abs(x[0]) + e[0]) * e[0]


def bounded_slope(slope: float) -> Spread:
    """A function of one operand whose slope nowhere exceeds `slope` in size."""

    def spread(x: Sequence[Array], e: Sequence[Array]) -> Array:
        return slope * e[0]

    return spread


def monotone(
    function: Real,
    low: float = -np.inf,
    high: float = np.inf,
    slope: float = np.inf,
) -> Spread:
    """A function monotone on [low, high]: its values at the ends of the interval.

    An interval that leaves the domain has no bound: the result may be NaN.
    """

    def spread(x: Sequence[Array], e: Sequence[Array]) -> Array:
        at = x[0]
        value = function(at)
        above = np.abs(function(at + e[0]) - value)
        below = np.abs(value - function(at - e[0]))
        found = np.maximum(above, below)
        if slope < np.inf:
            found = np.minimum(found, slope * e[0])
        leaves = (at - e[0] < low) | (at + e[0] > high)
        found = np.where(leaves | np.isnan(found), np.inf, found)
        return np.where(e[0] == 0, 0.0, found)

    return spread


def reciprocal(x: Sequence[Array], e: Sequence[Array]) -> Array:
    low = np.abs(x[0]) - e[0]
    carried = e[0] / (np.abs(x[0]) * low)
    return np.where(e[0] == 0, 0.0, np.where(low > 0, carried, np.inf))


def tangent(x: Sequence[Array], e: Sequence[Array]) -> Array:
    """tan: monotone between poles; the slope at x + e is at most 1 / cos^2 there."""
    margin = np.abs(np.cos(x[0])) - e[0]
    carried = e[0] / (margin * margin)
    return np.where(e[0] == 0, 0.0, np.where(margin > 0, carried, np.inf))


def power(x: Sequence[Array], e: Sequence[Array]) -> Array:
    """x^y: monotone in each operand for x > 0, so the corners bound it.

    For a base that may be negative the exponent must be exact, and an interval around
    zero adds the value there.
    """
    (a, b), (ea, eb) = x, e
    value = np.power(a, b)
    found = np.zeros(np.broadcast(a, b, ea, eb).shape)
    for base in (a - ea, a + ea):
        for exponent in (b - eb, b + eb):
            found = np.maximum(found, np.abs(np.power(base, exponent) - value))
    through_zero = np.abs(a) <= ea
    found = np.where(through_zero, np.maximum(found, np.abs(np.power(0.0, b) - value)), found)
    found = np.where((eb > 0) & (a - ea <= 0), np.inf, found)
    found = np.where(np.isnan(found), np.inf, found)
    return np.where((ea == 0) & (eb == 0), 0.0, found)


def angle(x: Sequence[Array], e: Sequence[Array]) -> Array:
    """atan2: at most a quarter turn unless the disc of errors reaches the origin or the cut."""
    (y, at), (ey, ex) = x, e
    radius = np.hypot(y, at)
    reach = np.hypot(ey, ex)
    carried = np.arcsin(np.minimum(reach / radius, 1.0))
    cut = (at - ex <= 0) & (np.abs(y) <= ey)
    found = np.where((reach >= radius) | cut, 2.0 * np.pi, carried)
    return np.where(reach == 0, 0.0, found)


def steps(function: Real) -> Spread:
    """A nondecreasing step function (floor, round, sign): the values at the ends."""

    def spread(x: Sequence[Array], e: Sequence[Array]) -> Array:
        value = function(x[0])
        found = np.maximum(function(x[0] + e[0]) - value, value - function(x[0] - e[0]))
        return np.where(e[0] == 0, 0.0, found)

    return spread


def even(function: Real) -> Spread:
    """An even function increasing away from zero: its value at the far end bounds the rest."""

    def spread(x: Sequence[Array], e: Sequence[Array]) -> Array:
        size = np.abs(x[0])
        value = function(size)
        below = value - function(np.maximum(size - e[0], 0.0))
        found = np.maximum(function(size + e[0]) - value, below)
        return np.where(e[0] == 0, 0.0, np.where(np.isnan(found), np.inf, found))

    return spread


def sign_of_second(x: Sequence[Array], e: Sequence[Array]) -> Array:
    """|a| with b's sign: b's error matters only where it leaves the sign open."""
    unsure = (np.abs(x[1]) <= e[1]) & (e[1] > 0)
    return np.where(unsure, 2.0 * np.abs(x[0]) + e[0], e[0])


def scaled(x: Sequence[Array], e: Sequence[Array]) -> Array:
    """a * 2^b: an error of a is scaled; b is an integer and has none."""
    carried = np.ldexp(e[0], np.clip(x[1], -10000, 10000).astype(np.int32))
    return np.where(e[1] > 0, np.inf, carried)


def quotient_steps(x: Sequence[Array], e: Sequence[Array]) -> Array:
    """floor(a / b): the quotient's error, stretched to the integers it can reach."""
    at = np.asarray(x[0] / x[1])
    found = steps(np.floor)([at], [quotient(x, e)])
    return np.where(np.isnan(found), np.inf, found)


def remainder(function: Real) -> Spread:
    """x - n*y with integer n: slopes 1 and |n| while n stays, else anything below |y|."""

    def spread(x: Sequence[Array], e: Sequence[Array]) -> Array:
        (a, b), (ea, eb) = x, e
        value = function(a, b)
        count = np.abs((a - value) / b)
        carried = ea + count * eb
        gap = np.abs(b) + eb
        # The count is the same all over when the value stays clear of both its limits.
        inside = (np.abs(value) - carried > 0) & (np.abs(value) + carried < np.abs(b) - eb)
        if function is ieee_remainder:
            inside = np.abs(value) + carried < (np.abs(b) - eb) / 2
        found = np.where(inside, carried, gap + carried)
        found = np.where(np.isnan(found), np.inf, found)
        return np.where((ea == 0) & (eb == 0), 0.0, found)

    return spread


def ieee_remainder(a: Array, b: Array) -> Array:
    """IEEE 754 remainder: a - n*b with n the integer nearest a/b, ties to even; exact."""
    size = np.abs(np.asarray(b, np.float64))
    rest = np.abs(np.asarray(a, np.float64))
    rest = np.where(size <= 2.0**1022, np.fmod(rest, 2.0 * size), rest)
    # Compared as differences: half of a subnormal divisor would lose its last bit.
    over = rest > size - rest
    rest = np.where(over, rest - size, rest)
    rest = np.where(over & (rest >= size - rest), rest - size, rest)
    return np.where(np.signbit(a), -rest, rest)
