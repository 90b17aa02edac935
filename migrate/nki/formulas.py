"""Operators that are composed of others.

`abs_max` and `abs_min` compare by magnitude and keep the sign (NKI API reference, nki.language);
the derivatives of activation functions are those of calculus.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from migrate.nki.errors import Unsupported
from migrate.nki.operators import NkiOperator
from migrate.numerics.domain import OperatorError
from migrate.numerics.dtypes import DType

if TYPE_CHECKING:
    from migrate.nki.semantics import Machine

V = TypeVar("V")
F32 = DType.FLOAT32

Formula: TypeAlias = Callable[["Machine[Any]", Sequence[Any], OperatorError | None], Any]


def composed(
    m: Machine[V], operator: NkiOperator, args: Sequence[V], error: OperatorError | None = None
) -> V:
    """An operator of `nki.language` that is composed.  Raises `Unsupported` for any other."""
    found = FORMULAS.get(operator.name)
    if found is None:
        raise Unsupported(f"the operator nl.{operator.name}")
    count, formula = found
    if len(args) != count:
        raise Unsupported(f"nl.{operator.name} on {len(args)} operand{'s' * (len(args) != 1)}")
    made: V = formula(m, args, error)
    return made


def _by_magnitude(comparison: str) -> Formula:
    def formula(m: Machine[V], args: Sequence[V], _: OperatorError | None) -> V:
        left, right = args
        sizes = [m.apply("abs", (arg,), F32) for arg in args]
        return m.select(m.apply(comparison, sizes, F32), left, right)

    return formula


def _prelu(m: Machine[V], args: Sequence[V], error: OperatorError | None) -> V:
    """The second operand is the slope of what is negative."""
    value, slope = args
    zero = m.number(0.0, F32)
    below = m.apply("multiply", (value, slope), F32, error)
    return m.select(m.apply("less", (value, zero), F32), below, value)


def _erf_dx(m: Machine[V], args: Sequence[V], error: OperatorError | None) -> V:
    square = m.apply("square", args, F32)
    power = m.apply("exp", (m.apply("negate", (square,), F32),), F32)
    return m.apply("multiply", (power, m.number(2 / math.sqrt(math.pi), F32)), F32, error)


def _gelu_dx(m: Machine[V], args: Sequence[V], error: OperatorError | None) -> V:
    """Phi(x) + x phi(x)."""
    (value,) = args
    scaled = m.apply("multiply", (value, m.number(math.sqrt(0.5), F32)), F32)
    tail = m.apply("add", (m.apply("erf", (scaled,), F32), m.number(1.0, F32)), F32)
    cumulative = m.apply("multiply", (tail, m.number(0.5, F32)), F32)
    half = m.apply("multiply", (m.apply("square", (value,), F32), m.number(-0.5, F32)), F32)
    density = m.apply(
        "multiply", (m.apply("exp", (half,), F32), m.number(1 / math.sqrt(2 * math.pi), F32)), F32
    )
    slope = m.apply("multiply", (value, density), F32)
    return m.apply("add", (cumulative, slope), F32, error)


def _sigmoid_product_dx(factor: float) -> Formula:
    """The derivative of x sigmoid(a x): s + a x s (1 - s)."""

    def formula(m: Machine[V], args: Sequence[V], error: OperatorError | None) -> V:
        (value,) = args
        scaled = value
        if factor != 1.0:
            scaled = m.apply("multiply", (value, m.number(factor, F32)), F32)
        s = m.apply("sigmoid", (scaled,), F32)
        rest = m.apply("subtract", (m.number(1.0, F32), s), F32)
        slope = m.apply("multiply", (m.apply("multiply", (scaled, s), F32), rest), F32)
        return m.apply("add", (s, slope), F32, error)

    return formula


FORMULAS: dict[str, tuple[int, Formula]] = {
    "abs_max": (2, _by_magnitude("greater")),
    "abs_min": (2, _by_magnitude("less")),
    "prelu": (2, _prelu),
    "erf_dx": (1, _erf_dx),
    "gelu_dx": (1, _gelu_dx),
    "silu_dx": (1, _sigmoid_product_dx(1.0)),
    "gelu_apprx_sigmoid_dx": (1, _sigmoid_product_dx(1.702)),
}
"""For each: how many operands it takes, and what it makes of them."""
