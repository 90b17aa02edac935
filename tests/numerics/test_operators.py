"""The operator table: every entry evaluates, carries errors soundly, and says what it is."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from migrate.numerics.casts import Rule, cast
from migrate.numerics.dtypes import DType
from migrate.numerics.erf import erf, erfc
from migrate.numerics.fma import fma64
from migrate.numerics.operators import OPERATORS, Operator, operator
from migrate.numerics.rounded import Rounded

ROUNDED = Rounded()
CARRYING = [op for op in OPERATORS.values() if op.spread is not None]


def test_error_function() -> None:
    x = np.concatenate([np.linspace(-7, 7, 20001), 10.0 ** np.arange(-300, 2.0)])
    exact = np.array([math.erf(v) for v in x])
    assert np.max(np.abs(erf(x) - exact) / np.maximum(np.abs(exact), 1e-300)) < 1e-15
    x = np.linspace(-7, 26.5, 20001)
    exact = np.array([math.erfc(v) for v in x])
    assert np.max(np.abs(erfc(x) - exact) / exact) < 2e-15
    ends = np.array([np.inf, -np.inf, np.nan, 40.0])
    assert np.array_equal(erf(ends), [1.0, -1.0, np.nan, 1.0], equal_nan=True)
    assert np.array_equal(erfc(ends), [0.0, 2.0, np.nan, 0.0], equal_nan=True)


doubles = st.floats(allow_nan=False, allow_infinity=False)


@given(doubles, doubles, doubles)
@example(5e-324, 0.5, 5e-324)
@example(1.0 + 2.0**-52, 1.0 - 2.0**-53, -1.0)
@example(1e308, 10.0, -1e308)
@example(2.0**-600, 2.0**-500, 0.0)
@example(0.0, 1.0, -0.0)
def test_fma64_is_correctly_rounded(a: float, b: float, c: float) -> None:
    found = float(fma64(np.array([a]), np.array([b]), np.array([c]))[0])
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        expected = float(exact)
    except OverflowError:
        expected = math.inf if exact > 0 else -math.inf
    assert found == expected


singles = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(singles, singles, singles, st.sampled_from([DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16]))
def test_fma_rounds_once(a: float, b: float, c: float, dtype: DType) -> None:
    x = [cast(np.array([v]), dtype, Rule.IEEE) for v in (a, b, c)]
    numbers = [float(v.astype(np.float64)[0]) for v in x]
    if not all(map(math.isfinite, numbers)):
        return
    found = float(ROUNDED.apply("fma", x, dtype).astype(np.float64)[0])
    exact = Fraction(numbers[0]) * Fraction(numbers[1]) + Fraction(numbers[2])
    if not math.isfinite(found):
        assert abs(exact) > Fraction(dtype.max)
        return
    spacing = max(dtype.min_subnormal, 2.0 ** (math.frexp(found)[1] - dtype.precision))
    assert abs(Fraction(found) - exact) <= Fraction(spacing) / 2


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "sqrt"])
@given(singles, singles)
def test_float32_arithmetic_matches_a_single_rounding(name: str, a: float, b: float) -> None:
    args = [np.array([v], np.float32) for v in (a, b)][: operator(name).arity]
    wide = [x.astype(np.float64) for x in args]
    reals = operator(name).reals
    assert reals is not None
    with np.errstate(all="ignore"):
        expected = reals(*wide).astype(np.float32)
    found = ROUNDED.apply(name, args, DType.FLOAT32)
    assert found.view(np.uint32)[0] == expected.view(np.uint32)[0] or np.isnan(found[0])


moderate = st.floats(-30.0, 30.0).filter(lambda v: v == 0 or abs(v) > 1e-30)
errors = st.one_of(st.just(0.0), st.floats(2.0**-40, 2.0))


@pytest.mark.parametrize("op", CARRYING, ids=lambda op: op.name)
@given(st.data())
def test_spread_encloses_what_it_claims(op: Operator, data: st.DataObject) -> None:
    points = [data.draw(moderate) for _ in range(op.arity)]
    reach = [data.draw(errors) for _ in range(op.arity)]
    if op.name == "ldexp":
        points[1], reach[1] = float(round(points[1])), 0.0
    shifts = [data.draw(st.floats(-1.0, 1.0)) for _ in range(op.arity)]
    x = [np.array([v]) for v in points]
    moved = [
        np.array([v + s * e if e else v]) for v, s, e in zip(points, shifts, reach, strict=True)
    ]
    assert op.reals is not None
    assert op.spread is not None
    with np.errstate(all="ignore"):
        before, after = op.reals(*x)[0], op.reals(*moved)[0]
        claimed = op.spread(x, [np.array([e]) for e in reach])[0]
    assert not np.isnan(claimed)
    if not (np.isfinite(before) and np.isfinite(after) and np.isfinite(claimed)):
        return
    slack = 1e-9 * (1.0 + abs(before) + abs(after) + claimed)
    assert abs(after - before) <= claimed + slack


@pytest.mark.parametrize(
    "op", [op for op in OPERATORS.values() if op.integers is not None], ids=lambda op: op.name
)
def test_integers_keep_their_width(op: Operator) -> None:
    for dtype in (DType.INT32, DType.UINT8, DType.INT64):
        rows = np.arange(1, 7).astype(dtype.numpy)
        found = ROUNDED.apply(op.name, [rows] * op.arity, DType.BOOL if op.is_truth else dtype)
        assert found.dtype == (np.bool_ if op.is_truth else dtype.numpy)


def pair(dtype: DType, a: int, b: int) -> list[np.ndarray]:
    return [np.array([v], dtype.numpy) for v in (a, b)]


@pytest.mark.parametrize(
    ("name", "dtype", "a", "b", "expected"),
    [
        ("divide", DType.INT32, -7, 2, -3),
        ("divide", DType.INT32, 7, -2, -3),
        ("divide", DType.INT32, -8, 2, -4),
        ("divide", DType.INT32, -(2**31), -1, -(2**31)),
        ("divide", DType.UINT32, 2**32 - 1, 2, 2**31 - 1),
        ("divide", DType.INT32, 5, 0, 0),
        ("fmod", DType.INT32, -7, 2, -1),
        ("fmod", DType.INT32, 7, -2, 1),
        ("mod", DType.INT32, -7, 2, 1),
        ("floor_divide", DType.INT32, -7, 2, -4),
        ("add", DType.INT32, 2**31 - 1, 1, -(2**31)),
        ("multiply", DType.UINT32, 65537, 65537, 131073),
        ("left_shift", DType.INT32, 1, 31, -(2**31)),
        ("left_shift", DType.INT32, 1, 32, 0),
        ("right_shift", DType.INT32, -8, 1, -4),
        ("right_shift", DType.INT32, -8, 40, -1),
        ("right_shift", DType.UINT32, 2**31, 31, 1),
        ("right_shift_logical", DType.INT32, -8, 1, 0x7FFFFFFC),
        ("right_shift_logical", DType.INT32, -8, 32, 0),
        ("multiply_high", DType.UINT32, 0xD2511F53, 0xFFFFFFFF, 0xD2511F52),
        ("multiply_high", DType.INT32, -2, 3, -1),
        ("multiply_high", DType.INT64, -(2**62), 8, -2),
        ("multiply_high", DType.UINT64, 2**64 - 1, 2**64 - 1, 2**64 - 2),
        ("power", DType.INT32, -3, 3, -27),
        ("power", DType.INT32, 2, -1, 0),
        ("power", DType.INT32, -1, -3, -1),
        ("absolute_difference", DType.UINT8, 3, 250, 247),
        ("logical_xor", DType.INT32, 5, 0, 1),
    ],
)
def test_integer_meaning(name: str, dtype: DType, a: int, b: int, expected: int) -> None:
    assert int(ROUNDED.apply(name, pair(dtype, a, b), dtype)[0]) == expected


def test_bit_counts() -> None:
    x = np.array([0, 1, -1, 0x00F0], np.int32)
    assert ROUNDED.apply("population_count", (x,), DType.INT32).tolist() == [0, 1, 32, 4]
    assert ROUNDED.apply("leading_zeros", (x,), DType.INT32).tolist() == [32, 31, 0, 24]


def test_maxima_and_nan() -> None:
    nan, one = np.array([np.nan, 1.0], np.float32), np.array([1.0, np.nan], np.float32)
    assert np.isnan(ROUNDED.apply("maximum", (nan, one), DType.FLOAT32)).all()
    assert ROUNDED.apply("maximum_number", (nan, one), DType.FLOAT32).tolist() == [1.0, 1.0]
    assert ROUNDED.apply("minimum_number", (nan, one), DType.FLOAT32).tolist() == [1.0, 1.0]


def test_rounding_operators_on_halves() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997], np.float32)

    def found(name: str) -> list[float]:
        return ROUNDED.apply(name, (x,), DType.FLOAT32).tolist()

    assert found("round_even") == [0, 2, 2, 0, -2, -2, 0]
    assert found("round_away") == [1, 2, 3, -1, -2, -3, 0]
    assert found("floor") == [0, 1, 2, -1, -2, -3, 0]
    assert found("ceil") == [1, 2, 3, 0, -1, -2, 1]
    assert found("trunc") == [0, 1, 2, 0, -1, -2, 0]


@given(st.floats(-1e6, 1e6), st.floats(-1e3, 1e3).filter(lambda v: v != 0))
def test_remainder_is_ieee(a: float, b: float) -> None:
    found = float(ROUNDED.apply("remainder", (np.array([a]), np.array([b])), DType.FLOAT64)[0])
    assert found == math.remainder(a, b)


@pytest.mark.parametrize("name", ["sigmoid", "silu", "gelu", "gelu_tanh", "softplus", "mish"])
def test_activations_keep_relative_accuracy_far_out(name: str) -> None:
    definitions = {
        "sigmoid": lambda v: 1.0 / (1.0 + math.exp(-v)),
        "silu": lambda v: v / (1.0 + math.exp(-v)),
        "gelu": lambda v: v * math.erfc(-v / math.sqrt(2.0)) / 2.0,
        "gelu_tanh": lambda v: (
            v / (1.0 + math.exp(-2.0 * math.sqrt(2.0 / math.pi) * (v + 0.044715 * v**3)))
        ),
        "softplus": lambda v: math.log1p(math.exp(v)),
        "mish": lambda v: v * math.tanh(math.log1p(math.exp(v))),
    }
    x = np.array([-20.0, -5.0, -0.3, -1e-8, 0.0, 1e-8, 0.7, 4.0, 20.0])
    expected = [definitions[name](v) for v in x]
    found = ROUNDED.apply(name, (x,), DType.FLOAT64)
    assert found == pytest.approx(expected, rel=1e-13, abs=0)


def test_misuse_is_reported() -> None:
    one, count = np.array([1.0], np.float32), np.array([1], np.int32)
    for name, args, dtype in (
        ("no_such_operator", [one], DType.FLOAT32),
        ("add", [one], DType.FLOAT32),
        ("add", [one, count], DType.FLOAT32),
        ("bitwise_and", [one, one], DType.INT32),
        ("exp", [count], DType.INT32),
        ("add", [one, one], DType.INT32),
        ("add", [count, count], DType.FLOAT32),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            ROUNDED.apply(name, args, dtype)
