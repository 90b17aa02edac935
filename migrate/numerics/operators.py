"""The elementwise operators, each defined once.

Both front ends translate their spellings to these names, the intermediate
representation carries them, and both domains compute by them.  Adding an operator is
one entry of `OPERATORS`.

`reals` is the operator on the real numbers, evaluated in float64 (NumPy arrays in, one
array out; comparisons and predicates give booleans).  `integers` is its meaning on
integer arrays of one type where that differs; operators without either meaning say so
by `None`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from migrate.numerics import functions, spread
from migrate.numerics import integers as whole
from migrate.numerics.erf import erf, erfc
from migrate.numerics.fma import fma_before_rounding
from migrate.numerics.spread import Array, Real, Spread

OperatorKind = Literal[
    "arithmetic",  # + - * / and what is composed of them
    "comparison",
    "predicate",  # of one operand: is_nan
    "logical",  # on truth values: zero or not
    "bitwise",  # on integers
    "special",  # transcendental and activation functions
    "rounding",  # to an integer
    "select",  # one of the operands
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One elementwise operator.

    `associative` and `commutative` hold over the reals.  `identity` is the neutral
    operand of a reduction.  `exact`: the result of operands of one format is a value of
    that format, so nothing is rounded.  `native`: NumPy's result in float32 and float64
    is correctly rounded.  `before_rounding` gives, for operands and a format, a
    float64 that rounds to the format rightly, where the plain evaluation would not.
    `spread` carries errors; `None` where the result is not a number with an error
    (booleans, integers).  `jump` is the least size of the operator's jumps for given
    operands, `None` where it is continuous.
    """

    name: str
    arity: int
    kind: OperatorKind
    reals: Real | None
    summary: str
    integers: Callable[..., Array] | None = None
    spread: Spread | None = None
    commutative: bool = False
    associative: bool = False
    identity: float | None = None
    exact: bool = False
    native: bool = False
    before_rounding: Real | None = None
    jump: Callable[[Sequence[Array]], Array] | None = None

    @property
    def is_truth(self) -> bool:
        """Whether the result is a truth value, 0 or 1."""
        return self.kind in {"comparison", "predicate", "logical"}


_TABLE: dict[str, Operator] = {}


def _define(
    name: str, arity: int, kind: OperatorKind, summary: str, reals: Real | None, **more: Any
) -> None:
    _TABLE[name] = Operator(name=name, arity=arity, kind=kind, summary=summary, reals=reals, **more)


def _arithmetic(
    name: str, arity: int, summary: str, reals: Real, carry: Spread, **more: Any
) -> None:
    _define(name, arity, "arithmetic", summary, reals, spread=carry, **more)


def _special(name: str, summary: str, reals: Real, carry: Spread) -> None:
    _define(name, 1, "special", summary, reals, spread=carry)


def _monotone(name: str, summary: str, reals: Real, **limits: float) -> None:
    """A function monotone over its domain; `slope` bounds the size of its slope."""
    _special(name, summary, reals, spread.monotone(reals, **limits))


def _extremum(name: str, summary: str, reals: Real, carry: Spread, identity: float) -> None:
    whole_number = np.maximum if identity < 0 else np.minimum
    properties = {"commutative": True, "associative": True, "exact": True, "native": True}
    more = {"integers": whole_number, "spread": carry, "identity": identity, **properties}
    _define(name, 2, "select", summary, reals, **more)


def _rounding(name: str, summary: str, reals: Real) -> None:
    more = {"integers": np.positive, "spread": spread.steps(reals), "jump": functions.one}
    _define(name, 1, "rounding", summary, reals, exact=True, native=True, **more)


def _truth(
    name: str, arity: int, kind: OperatorKind, summary: str, reals: Real, **more: Any
) -> None:
    more = {"integers": reals, **more}
    _define(name, arity, kind, summary, reals, exact=True, native=True, **more)


def _bits(name: str, arity: int, summary: str, integers: Real, **more: Any) -> None:
    _define(name, arity, "bitwise", summary, None, integers=integers, exact=True, **more)


_MONOID = {"commutative": True, "associative": True}

# Arithmetic

_arithmetic(
    "add",
    2,
    "a + b",
    np.add,
    spread.additive,
    integers=np.add,
    identity=0.0,
    native=True,
    **_MONOID,
)
_arithmetic("subtract", 2, "a - b", np.subtract, spread.additive, integers=np.subtract, native=True)
_arithmetic(
    "multiply",
    2,
    "a * b",
    np.multiply,
    spread.product,
    integers=np.multiply,
    identity=1.0,
    native=True,
    **_MONOID,
)
_arithmetic(
    "divide",
    2,
    "a / b; integers truncate (C)",
    np.divide,
    spread.quotient,
    integers=whole.divide,
    native=True,
)
_arithmetic(
    "floor_divide",
    2,
    "the floor of a / b",
    np.floor_divide,
    spread.quotient_steps,
    integers=whole.floor_divide,
    jump=functions.one,
)
_arithmetic(
    "fma",
    3,
    "a * b + c with one rounding",
    functions.fma,
    spread.fused,
    integers=functions.fma,
    before_rounding=fma_before_rounding,
)
_arithmetic(
    "negate", 1, "-a", np.negative, spread.additive, integers=np.negative, exact=True, native=True
)
_arithmetic("reciprocal", 1, "1 / a", np.reciprocal, spread.reciprocal, native=True)
_arithmetic("abs", 1, "|a|", np.abs, spread.additive, integers=np.abs, exact=True, native=True)
_arithmetic(
    "sign",
    1,
    "-1, 0 or 1",
    np.sign,
    spread.steps(np.sign),
    integers=np.sign,
    exact=True,
    native=True,
    jump=functions.one,
)
_arithmetic("square", 1, "a * a", np.square, spread.square, integers=np.square, native=True)
_arithmetic("sqrt", 1, "the square root", np.sqrt, spread.monotone(np.sqrt, low=0.0), native=True)
_arithmetic(
    "copysign",
    2,
    "|a| with the sign of b",
    np.copysign,
    spread.sign_of_second,
    exact=True,
    native=True,
    jump=functions.twice,
)
_arithmetic("ldexp", 2, "a * 2^b, b integral", functions.ldexp, spread.scaled)
_arithmetic(
    "absolute_difference",
    2,
    "|a - b|",
    functions.absolute_difference,
    spread.additive,
    integers=whole.absolute_difference,
    commutative=True,
    native=True,
)
_arithmetic("hypot", 2, "sqrt(a^2 + b^2)", np.hypot, spread.additive, commutative=True)
_arithmetic(
    "fmod",
    2,
    "a - trunc(a / b) * b: the sign of a (C)",
    np.fmod,
    spread.remainder(np.fmod),
    integers=whole.remainder,
    exact=True,
    native=True,
    jump=functions.divisor,
)
_arithmetic(
    "mod",
    2,
    "a - floor(a / b) * b: the sign of b (Python)",
    np.mod,
    spread.remainder(np.mod),
    integers=whole.floor_remainder,
    jump=functions.divisor,
)
_arithmetic(
    "remainder",
    2,
    "a - n * b, n the integer nearest a / b (IEEE 754)",
    spread.ieee_remainder,
    spread.remainder(spread.ieee_remainder),
    exact=True,
    jump=functions.divisor,
)
_define(
    "multiply_high",
    2,
    "arithmetic",
    "the high half of the integer product",
    None,
    integers=whole.multiply_high,
    commutative=True,
)

# One of the operands.  NumPy's maximum gives NaN where either operand is; the `_number`
# flavours give the other operand, as IEEE 754-2008 maxNum and CUDA's fmaxf do.

_extremum("maximum", "the larger; NaN wins", np.maximum, spread.maximum, -math.inf)
_extremum("minimum", "the smaller; NaN wins", np.minimum, spread.minimum, math.inf)
_extremum("maximum_number", "the larger; NaN loses", np.fmax, spread.maximum, -math.inf)
_extremum("minimum_number", "the smaller; NaN loses", np.fmin, spread.minimum, math.inf)
_define(
    "select",
    3,
    "select",
    "b where a is not zero, else c",
    functions.select,
    integers=functions.select,
    exact=True,
)
_define(
    "relu",
    1,
    "select",
    "max(a, 0); NaN stays",
    functions.relu,
    integers=whole.relu,
    spread=spread.bounded_slope(1.0),
    exact=True,
    native=True,
)

# Transcendental functions.  The slopes given are upper bounds of |f'| over the reals.

_monotone("exp", "e^a", np.exp)
_monotone("exp2", "2^a", np.exp2)
_monotone("exp10", "10^a", functions.exp10)
_monotone("expm1", "e^a - 1", np.expm1)
_monotone("log", "the natural logarithm", np.log, low=0.0)
_monotone("log2", "the logarithm to base 2", np.log2, low=0.0)
_monotone("log10", "the logarithm to base 10", np.log10, low=0.0)
_monotone("log1p", "log(1 + a)", np.log1p, low=-1.0)
_monotone("rsqrt", "1 / sqrt(a)", functions.rsqrt, low=0.0)
_monotone("cbrt", "the cube root", np.cbrt)
_define("power", 2, "special", "a^b", np.power, integers=whole.power, spread=spread.power)
_special("sin", "sine of radians", np.sin, spread.bounded_slope(1.0))
_special("cos", "cosine of radians", np.cos, spread.bounded_slope(1.0))
_special("tan", "tangent of radians", np.tan, spread.tangent)
_monotone("asin", "arc sine", np.arcsin, low=-1.0, high=1.0)
_monotone("acos", "arc cosine", np.arccos, low=-1.0, high=1.0)
_monotone("atan", "arc tangent", np.arctan, slope=1.0)
_define(
    "atan2",
    2,
    "special",
    "the angle of the point (b, a)",
    np.arctan2,
    spread=spread.angle,
    jump=functions.turn,
)
_monotone("sinh", "hyperbolic sine", np.sinh)
_special("cosh", "hyperbolic cosine", np.cosh, spread.even(np.cosh))
_monotone("tanh", "hyperbolic tangent", np.tanh, slope=1.0)
_monotone("asinh", "inverse hyperbolic sine", np.arcsinh, slope=1.0)
_monotone("acosh", "inverse hyperbolic cosine", np.arccosh, low=1.0)
_monotone("atanh", "inverse hyperbolic tangent", np.arctanh, low=-1.0, high=1.0)
_monotone("erf", "the error function", erf, slope=1.1284)
_monotone("erfc", "1 - erf(a)", erfc, slope=1.1284)
_monotone("sigmoid", "1 / (1 + e^-a)", functions.sigmoid, slope=0.25)
_special("silu", "a * sigmoid(a)", functions.silu, spread.bounded_slope(1.1))
_special(
    "gelu",
    "a * Phi(a), Phi the normal distribution function",
    functions.gelu,
    spread.bounded_slope(1.13),
)
_special(
    "gelu_tanh",
    "a/2 * (1 + tanh(sqrt(2/pi) * (a + 0.044715 a^3)))",
    functions.gelu_tanh,
    spread.bounded_slope(1.13),
)
_special("gelu_sigmoid", "a * sigmoid(1.702 a)", functions.gelu_sigmoid, spread.bounded_slope(1.1))
_monotone("softplus", "log(1 + e^a)", functions.softplus, slope=1.0)
_special("mish", "a * tanh(softplus(a))", functions.mish, spread.bounded_slope(1.1))

# To an integer

_rounding("floor", "toward minus infinity", np.floor)
_rounding("ceil", "toward infinity", np.ceil)
_rounding("trunc", "toward zero", np.trunc)
_rounding("round_even", "to nearest, ties to even", np.rint)
_rounding("round_away", "to nearest, ties away from zero", functions.round_away)

# Truth values

_truth("equal", 2, "comparison", "a == b", np.equal, commutative=True)
_truth("not_equal", 2, "comparison", "a != b", np.not_equal, commutative=True)
_truth("less", 2, "comparison", "a < b", np.less)
_truth("less_equal", 2, "comparison", "a <= b", np.less_equal)
_truth("greater", 2, "comparison", "a > b", np.greater)
_truth("greater_equal", 2, "comparison", "a >= b", np.greater_equal)
_truth("logical_and", 2, "logical", "both not zero", np.logical_and, identity=1.0, **_MONOID)
_truth("logical_or", 2, "logical", "one not zero", np.logical_or, identity=0.0, **_MONOID)
_truth("logical_xor", 2, "logical", "exactly one not zero", np.logical_xor, identity=0.0, **_MONOID)
_truth("logical_not", 1, "logical", "zero", np.logical_not)
_truth("is_nan", 1, "predicate", "not a number", np.isnan)
_truth("is_inf", 1, "predicate", "plus or minus infinity", np.isinf)
_truth("is_finite", 1, "predicate", "neither infinite nor NaN", np.isfinite)
_truth("sign_bit", 1, "predicate", "the sign bit, of -0 too", np.signbit, integers=whole.negative)

# Bits of integers.  A shift by the width or more gives what shifting bit by bit would
# (PTX clamps; C++ leaves it undefined).

_bits("bitwise_and", 2, "a & b", np.bitwise_and, identity=-1.0, **_MONOID)
_bits("bitwise_or", 2, "a | b", np.bitwise_or, identity=0.0, **_MONOID)
_bits("bitwise_xor", 2, "a ^ b", np.bitwise_xor, identity=0.0, **_MONOID)
_bits("bitwise_not", 1, "~a", np.invert)
_bits("left_shift", 2, "a << b", whole.left_shift)
_bits("right_shift", 2, "a >> b, the sign filled in (arithmetic)", whole.right_shift)
_bits("right_shift_logical", 2, "a >> b, zeros filled in", whole.right_shift_logical)
_bits("population_count", 1, "the number of one bits", whole.population_count)
_bits("leading_zeros", 1, "zero bits above the highest one", whole.leading_zeros)

OPERATORS: dict[str, Operator] = dict(_TABLE)


def operator(name: str) -> Operator:
    """The operator of a name.  Raises `ValueError` for an unknown one."""
    found = OPERATORS.get(name)
    if found is None:
        raise ValueError(f"no operator is named {name!r}")
    return found
