"""Conversions: order, idempotence, exactness, ranges."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.numerics.casts import Rule, cast
from migrate.numerics.compare import ulp_distance
from migrate.numerics.dtypes import DType

NARROW = [
    DType.FLOAT32,
    DType.TFLOAT32,
    DType.BFLOAT16,
    DType.FLOAT16,
    DType.FLOAT8_E5M2,
    DType.FLOAT8_E4M3,
    DType.FLOAT8_E4M3FN,
    DType.FLOAT8_E3M4,
    DType.FLOAT4_E2M1FN,
]
ROUNDING = [Rule.IEEE, Rule.CUDA, Rule.NKI, Rule.TRUNCATE, Rule.NEAREST_AWAY]
finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(finite, min_size=2, max_size=20), st.sampled_from(NARROW))
def test_casts_are_monotone_and_idempotent(values: list[float], dtype: DType) -> None:
    x = np.sort(np.array(values))
    for rule in ROUNDING:
        once = cast(x, dtype, rule)
        wide = once.astype(np.float64)
        kept = wide[~np.isnan(wide)]
        assert (kept[:-1] <= kept[1:]).all()
        again = cast(wide, dtype, rule, source=DType.FLOAT64)
        # An infinity saturates by rule, so only finite results must stay.
        assert (
            np.array_equal(again.astype(np.float64), wide, equal_nan=True) or np.isinf(wide).any()
        )


@given(finite, st.sampled_from(NARROW))
def test_rounding_is_to_the_nearest_value_once(value: float, dtype: DType) -> None:
    found = cast(np.array([value]), dtype, Rule.IEEE)
    number = float(found.astype(np.float64)[0])
    if not np.isfinite(number) or abs(number) >= dtype.max:
        return
    error = abs(Fraction(number) - Fraction(value))
    for step in (-1, 1):
        size = abs(number)
        spacing = max(
            dtype.min_subnormal, 2.0 ** (int(np.frexp(size)[1]) - dtype.precision) if size else 0
        )
        # Just below a power of two the neighbour is only half as far.
        for fraction in (1, 2):
            neighbour = Fraction(number) + Fraction(step) * Fraction(spacing) / fraction
            as_float = np.array([float(neighbour)])
            if float(cast(as_float, dtype, Rule.IEEE).astype(np.float64)[0]) == float(neighbour):
                assert error <= abs(neighbour - Fraction(value))


@given(finite, st.sampled_from(NARROW[:-1]))
def test_truncation_never_grows(value: float, dtype: DType) -> None:
    found = float(cast(np.array([value]), dtype, Rule.TRUNCATE).astype(np.float64)[0])
    assert abs(found) <= abs(value)
    assert np.isfinite(found)


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from([DType.BFLOAT16, DType.FLOAT32]))
def test_integers_round_once(value: int, dtype: DType) -> None:
    found = int(float(cast(np.array([value]), dtype, Rule.CUDA).astype(np.float64)[0]))
    assert abs(found - value) <= abs(value) * dtype.unit_roundoff + 1e-30
    assert Fraction(abs(found - value)) <= Fraction(abs(value)) * Fraction(dtype.unit_roundoff)


@given(st.integers(-(2**40), 2**40), st.sampled_from([d for d in DType if d.is_integer]))
def test_integers_wrap_and_saturate(value: int, dtype: DType) -> None:
    source = np.array([value], np.int64)
    low, high = dtype.range
    assert (int(cast(source, dtype, Rule.CUDA)[0]) - value) % 2**dtype.bits == 0
    if dtype is not DType.INT64:
        through = int(np.float32(value))
        assert int(cast(source, dtype, Rule.NKI)[0]) == min(max(through, low), high)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule.CUDA, [1, -1, 2, -2]),
        (Rule.CUDA_NEAREST, [2, -2, 2, -2]),
        (Rule.CUDA_DOWN, [1, -2, 2, -3]),
        (Rule.CUDA_UP, [2, -1, 3, -2]),
        (Rule.NEAREST_AWAY, [2, -2, 3, -3]),
        (Rule.NKI, [2, -2, 2, -2]),
    ],
)
def test_rounding_of_halves_to_integers(rule: Rule, expected: list[int]) -> None:
    x = np.array([1.5, -1.5, 2.5, -2.5], np.float32)
    assert cast(x, DType.INT32, rule).tolist() == expected


def test_large_floats_saturate_64_bit_integers() -> None:
    x = np.array([2.0**63, 2.0**64, -(2.0**63), np.inf, -np.inf, np.nan, 2.0**62])
    assert cast(x, DType.INT64, Rule.CUDA).tolist() == [
        2**63 - 1, 2**63 - 1, -(2**63), 2**63 - 1, -(2**63), 0, 2**62
    ]  # fmt: skip
    assert cast(x, DType.UINT64, Rule.CUDA).tolist() == [
        2**63, 2**64 - 1, 0, 2**64 - 1, 0, 0, 2**62
    ]  # fmt: skip


def test_equal_formats_are_copied_bit_for_bit() -> None:
    signalling = np.array([0x7F800001, 0xFF812345], np.uint32).view(np.float32)
    copy = cast(signalling, DType.FLOAT32, Rule.NKI)
    assert copy.view(np.uint32).tolist() == [0x7F800001, 0xFF812345]
    assert copy is not signalling
    large = np.array([16777217, -123456789], np.int32)
    assert cast(large, DType.INT32, Rule.NKI).tolist() == large.tolist()


def test_scales_are_powers_of_two() -> None:
    x = np.array([1.0, 1.4, 1.6, 2.0**-200, 2.0**200, 0.0, -1.0, np.nan])
    found = cast(x, DType.FLOAT8_E8M0FNU, Rule.IEEE).astype(np.float64)
    expected = [1.0, 1.0, 2.0, 2.0**-127, 2.0**127, 2.0**-127, np.nan, np.nan]
    assert np.array_equal(found, expected, equal_nan=True)


def test_truth_of_numbers() -> None:
    x = np.array([0.0, -0.0, 0.25, np.nan], np.float32)
    assert cast(x, DType.BOOL, Rule.CUDA).tolist() == [False, False, True, True]
    assert cast(np.array([True, False]), DType.BFLOAT16, Rule.NKI).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("spelling", "dtype"),
    [
        ("bf16", DType.BFLOAT16),
        ("half", DType.FLOAT16),
        ("float", DType.FLOAT32),
        ("nl.bfloat16", DType.BFLOAT16),
        ("np.float32", DType.FLOAT32),
        ("float8_e4m3fn", DType.FLOAT8_E4M3FN),
        ("tf32", DType.TFLOAT32),
    ],
)
def test_spellings(spelling: str, dtype: DType) -> None:
    assert DType.named(spelling) is dtype


def test_unknown_spelling() -> None:
    with pytest.raises(KeyError):
        DType.named("float31")


@pytest.mark.parametrize("dtype", list(DType))
def test_storage_reads_back(dtype: DType) -> None:
    expected = DType.FLOAT32 if dtype is DType.TFLOAT32 else dtype
    if dtype.is_packed:
        expected = DType.named(f"uint{dtype.bits}")
    assert DType.of(dtype.numpy) is expected
    if dtype.is_float and dtype is not DType.FLOAT64:
        largest = cast(np.array([dtype.max]), dtype, Rule.IEEE)
        assert float(largest.astype(np.float64)[0]) == dtype.max


def test_formats_do_not_import_numpy() -> None:
    code = (
        "import sys, migrate.numerics.dtypes, migrate.numerics.casts; print('numpy' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


patterns = st.integers(0, 2**16 - 1)


@given(patterns, patterns, patterns, st.sampled_from([DType.BFLOAT16, DType.FLOAT16]))
def test_ulp_distance_is_a_metric(p: int, q: int, r: int, dtype: DType) -> None:
    x, y, z = (np.array([k], np.uint16).view(dtype.numpy) for k in (p, q, r))
    apart = int(ulp_distance(x, y, dtype)[0])
    assert apart == int(ulp_distance(y, x, dtype)[0])
    assert int(ulp_distance(x, x, dtype)[0]) == 0
    wide = [v.astype(np.float64)[0] for v in (x, y, z)]
    if not np.isnan(wide).any():
        assert (apart == 0) == (wide[0] == wide[1])
        legs = int(ulp_distance(x, z, dtype)[0]) + int(ulp_distance(z, y, dtype)[0])
        assert apart <= legs
        ordered = sorted(wide)
        if ordered[1] == wide[2]:
            assert apart == legs


def test_ulp_distance_of_neighbours() -> None:
    one = np.array([1.0, 0.0, -1.0, 3.4028235e38], np.float32)
    with np.errstate(over="ignore"):
        up = np.nextafter(one, np.float32(np.inf))
    assert ulp_distance(one, up, DType.FLOAT32).tolist() == [1, 1, 1, 1]
    extremes = np.array([-np.inf]), np.array([np.inf])
    assert int(ulp_distance(*extremes, DType.FLOAT64)[0]) == 2 * 0x7FF0000000000000
