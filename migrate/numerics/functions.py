"""Real functions that NumPy does not have, and the jumps of the discontinuous ones.

In float64, in forms that keep its relative accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.numerics.erf import erfc

Array: TypeAlias = NDArray[Any]


def rsqrt(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


def exp10(x: Array) -> Array:
    return np.power(10.0, x)


def sigmoid(x: Array) -> Array:
    decay = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, decay) / (1.0 + decay)


def times_sigmoid(x: Array, scale: float) -> Array:
    """x * sigmoid(scale * x); 0 at minus infinity, the limit."""
    return np.where(x == -np.inf, -0.0, x * sigmoid(scale * x))


def silu(x: Array) -> Array:
    return times_sigmoid(x, 1.0)


# The coefficient of the published sigmoid approximation (Hendrycks and Gimpel,
# "Gaussian Error Linear Units", section 2).
def gelu_sigmoid(x: Array) -> Array:
    return times_sigmoid(x, 1.702)


def gelu(x: Array) -> Array:
    return np.where(x == -np.inf, -0.0, 0.5 * x * erfc(-x * math.sqrt(0.5)))


# 1 + tanh(t) = 2 sigmoid(2 t); the coefficients are those of the same paper.
def gelu_tanh(x: Array) -> Array:
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)
    return np.where(x == -np.inf, -0.0, x * sigmoid(2.0 * inner))


def softplus(x: Array) -> Array:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def mish(x: Array) -> Array:
    return np.where(x == -np.inf, -0.0, x * np.tanh(softplus(x)))


def relu(x: Array) -> Array:
    return np.maximum(x, 0.0)


def round_away(x: Array) -> Array:
    whole_part = np.trunc(x)
    return np.asarray(np.copysign(np.abs(whole_part) + (np.abs(x - whole_part) >= 0.5), x))


def fma(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


def select(condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition != 0, a, b)


def ldexp(x: Array, exponent: Array) -> Array:
    limited = np.clip(exponent, -10000, 10000)
    return np.ldexp(x, limited.astype(np.int32))


def absolute_difference(a: Array, b: Array) -> Array:
    return np.asarray(np.abs(a - b))


def one(x: Sequence[Array]) -> Array:
    return np.ones_like(x[0])


def divisor(x: Sequence[Array]) -> Array:
    return np.abs(x[1])


def turn(x: Sequence[Array]) -> Array:
    return np.full_like(x[0], 2.0 * math.pi)


def twice(x: Sequence[Array]) -> Array:
    return 2.0 * np.abs(x[0])
