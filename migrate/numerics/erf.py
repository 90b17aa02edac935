"""The error function in float64, vectorised.

W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23
(1969): three intervals, relative error below 1e-16 before rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_NEAR = 0.46875
_FAR = 4.0
# erfc(x) is below the smallest float64 subnormal from here on.
_VANISHES = 27.3
_ONE_OVER_SQRT_PI = 5.6418958354775628695e-1

_A = (
    1.85777706184603153e-1,
    3.16112374387056560e0,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
_B = (
    1.0,
    2.36012909523441209e1,
    2.44024637934444173e2,
    1.28261652607737228e3,
    2.84423683343917062e3,
)
_C = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
_D = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)
_P = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
_Q = (
    1.0,
    2.56852019228982242e0,
    1.87295284992346725e0,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


def _near(x: Array) -> Array:
    square = x * x
    return x * _polynomial(_A, square) / _polynomial(_B, square)


def _complement(x: Array) -> Array:
    """erfc for x >= 0.46875."""
    x = np.minimum(x, _VANISHES)
    middle = _polynomial(_C, x) / _polynomial(_D, x)
    inverse = 1.0 / (x * x)
    tail = inverse * _polynomial(_P, inverse) / _polynomial(_Q, inverse)
    far = (_ONE_OVER_SQRT_PI - tail) / x
    # exp(-x^2) with x split, so that the rounding of x^2 is not magnified.
    head = np.trunc(x * 16.0) / 16.0
    rest = (x - head) * (x + head)
    return np.exp(-head * head) * np.exp(-rest) * np.where(x <= _FAR, middle, far)


def erf(x: Array) -> Array:
    """The error function of each element."""
    x = np.asarray(x, dtype=np.float64)
    size = np.abs(x)
    outer = np.copysign(1.0 - _complement(np.maximum(size, _NEAR)), x)
    return np.where(size <= _NEAR, _near(np.clip(x, -_NEAR, _NEAR)), outer)


def erfc(x: Array) -> Array:
    """1 - erf of each element, without the cancellation."""
    x = np.asarray(x, dtype=np.float64)
    size = np.abs(x)
    outer = _complement(np.maximum(size, _NEAR))
    outer = np.where(x < 0, 2.0 - outer, outer)
    return np.where(size <= _NEAR, 1.0 - _near(np.clip(x, -_NEAR, _NEAR)), outer)
