"""Verdicts on arrays."""

from __future__ import annotations

import numpy as np
import pytest

from migrate.numerics.bounded import Bounded
from migrate.numerics.casts import Rule, cast
from migrate.numerics.compare import judge
from migrate.numerics.domain import OperatorError
from migrate.numerics.dtypes import DType
from migrate.numerics.rounded import Rounded

BOUNDED = Bounded()
ROUNDED = Rounded()


def test_copies_must_be_equal() -> None:
    x = np.array([[1.0, 0.3], [-2.5, 1e-40]], np.float32)
    reference = BOUNDED.from_array(x, DType.FLOAT32)
    assert judge(x, reference, DType.FLOAT32).status == "pass"
    off = x.copy()
    off[1, 0] = np.nextafter(off[1, 0], np.float32(0))
    found = judge(off, reference, DType.FLOAT32)
    assert found.status == "fail"
    assert found.first_mismatch == (1, 0)
    assert (found.mismatched, found.failed, found.max_ulp) == (1, 1, 1)
    assert found.allowed == 0.0
    assert found.expected == -2.5
    assert found.worst_ratio == np.inf


def test_zeros_of_both_signs_are_equal() -> None:
    reference = BOUNDED.from_array(np.array([0.0, -0.0]), DType.FLOAT32)
    assert judge(np.array([-0.0, 0.0], np.float32), reference, DType.FLOAT32).status == "pass"


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_classes_must_agree(value: float) -> None:
    reference = BOUNDED.from_array(np.array([value, 1.0]), DType.FLOAT32)
    same = np.array([value, 1.0], np.float32)
    assert judge(same, reference, DType.FLOAT32).status == "pass"
    for other in (np.inf, -np.inf, np.nan, 3.4e38):
        if str(other) == str(value):
            continue
        found = judge(np.array([other, 1.0], np.float32), reference, DType.FLOAT32)
        assert found.status == "fail"
        assert found.first_mismatch == (0,)


def test_between_the_allowance_and_the_worst_case_is_investigated() -> None:
    x = np.random.default_rng(1).standard_normal((1, 2000)).astype(np.float32)
    reference = BOUNDED.reduce("add", BOUNDED.from_array(x, DType.FLOAT32), 1, DType.FLOAT32)
    assert reference.allowance()[0] < reference.limit()[0]
    between = (reference.allowance() + reference.limit()) / 2 + reference.value
    assert judge(between.astype(np.float32), reference, DType.FLOAT32).status == "investigate"
    beyond = (reference.value + 1.5 * reference.limit()).astype(np.float32)
    assert judge(beyond, reference, DType.FLOAT32).status == "fail"


def test_a_narrower_store_is_part_of_the_allowance() -> None:
    x = np.random.default_rng(2).standard_normal(500).astype(np.float32)
    reference = BOUNDED.from_array(x, DType.FLOAT32)
    stored = cast(x, DType.BFLOAT16, Rule.NKI)
    assert judge(stored, reference, DType.BFLOAT16).status == "pass"
    # One percent is more than half an ulp of bfloat16 for every value.
    scaled = cast(x * np.float32(1.01), DType.BFLOAT16, Rule.NKI)
    assert judge(scaled, reference, DType.BFLOAT16).status == "fail"


def test_a_side_is_judged_by_its_own_errors() -> None:
    x = np.linspace(-3, 3, 50).astype(np.float32)
    reference = BOUNDED.apply("exp", (BOUNDED.from_array(x, DType.FLOAT32),), DType.FLOAT32)
    table = BOUNDED.apply(
        "exp", (BOUNDED.from_array(x, DType.FLOAT32),), DType.FLOAT32, error=OperatorError(4e-6)
    )
    actual = (reference.value * (1 + 3e-6)).astype(np.float32)
    assert judge(actual, reference, DType.FLOAT32).status == "fail"
    assert judge(actual, reference, DType.FLOAT32, own=table).status == "pass"
    wrong = (reference.value * (1 + 6e-6)).astype(np.float32)
    assert judge(wrong, reference, DType.FLOAT32, own=table).status == "fail"


def test_integers_are_compared_exactly() -> None:
    x = np.array([[1, 2], [3, 2**31 - 1]], np.int32)
    reference = BOUNDED.from_array(x, DType.INT32)
    assert judge(x, reference, DType.INT32).status == "pass"
    found = judge(x + np.array([[0, 0], [1, 0]], np.int32), reference, DType.INT32)
    assert (found.status, found.first_mismatch, found.actual) == ("fail", (1, 0), 4)


def test_elements_in_doubt_are_counted_and_left_out() -> None:
    near = BOUNDED.apply(
        "multiply",
        [BOUNDED.from_array(np.array(v), DType.FLOAT32) for v in ([2.0, 2.5], [1.0, 1.0])],
        DType.FLOAT32,
        error=OperatorError(1e-6),
    )
    reference = BOUNDED.cast(near, DType.INT32, Rule.CUDA)
    found = judge(np.array([1, 2], np.int32), reference, DType.INT32)
    assert (found.status, found.ambiguous) == ("pass", 1)
    assert judge(np.array([2, 3], np.int32), reference, DType.INT32).status == "fail"


def test_results_that_are_left_out_are_no_agreement() -> None:
    x = BOUNDED.from_array(np.arange(8.0), DType.FLOAT32)
    half = BOUNDED.mark(x, np.arange(8) < 4)
    more = BOUNDED.mark(x, np.arange(8) < 5)
    values = np.where(np.arange(8) < 5, 99.0, np.arange(8.0)).astype(np.float32)
    assert judge(values, half, DType.FLOAT32).status == "fail"
    assert judge(values, more, DType.FLOAT32).status == "investigate"
    values[4] = 4.0
    assert judge(values, half, DType.FLOAT32).status == "pass"


def test_shapes_must_agree() -> None:
    reference = BOUNDED.constant(0.0, DType.FLOAT32, (2, 3))
    with pytest.raises(ValueError, match="shape"):
        judge(np.zeros((3, 2), np.float32), reference, DType.FLOAT32)


def test_a_reference_that_float64_cannot_hold_has_some_slack() -> None:
    """A mean of thirds leaves 1e-17 in float64 where another order gives exactly 0."""
    x = BOUNDED.from_array(np.array([1.0, 3.0, 2.0], np.float32), DType.FLOAT32)
    three = BOUNDED.constant(3.0, DType.FLOAT32)
    thirds = BOUNDED.apply("divide", (x, three), DType.FLOAT32)
    total = BOUNDED.reduce("add", thirds, 0, DType.FLOAT32)
    left = BOUNDED.apply(
        "subtract",
        (
            BOUNDED.apply("multiply", (total, three), DType.FLOAT32),
            BOUNDED.constant(6.0, total.dtype),
        ),
        DType.FLOAT32,
    )
    left.value = left.value + 1e-17
    exact = BOUNDED.from_array(np.zeros((), np.float32), DType.FLOAT32)
    assert judge(np.zeros((), np.float32), left, DType.FLOAT32, own=exact).status == "pass"
    off = np.full((), 1e-9, np.float32)
    assert judge(off, left, DType.FLOAT32, own=exact).status == "fail"


def test_a_computed_constant_is_rounded_once_more() -> None:
    x = np.arange(1, 200, dtype=np.float32)
    real = BOUNDED.from_array(x, DType.FLOAT32)
    quotient = BOUNDED.apply("divide", (real, BOUNDED.constant(49.0, DType.FLOAT32)), DType.FLOAT32)
    values = x * np.float32(1.0 / 49.0)
    statuses = []
    for computed in (True, False):
        factor = BOUNDED.constant(1.0 / 49.0, DType.FLOAT32, computed=computed)
        own = BOUNDED.apply("multiply", (real, factor), DType.FLOAT32)
        statuses.append(judge(values, quotient, DType.FLOAT32, own=own).status)
    assert statuses == ["pass", "fail"]


def test_an_unstable_side_is_not_excused_by_its_own_bound() -> None:
    x = np.array([1.0, 2.0, 3.0], np.float32)
    reference = BOUNDED.apply("sqrt", (BOUNDED.from_array(x, DType.FLOAT32),), DType.FLOAT32)
    own = BOUNDED.mark(reference, np.ones(3, np.bool_))
    far = np.array([1.0, 4000.0, np.nan], np.float32)
    found = judge(far, reference, DType.FLOAT32, own=own)
    assert (found.status, found.mismatched, found.failed) == ("investigate", 2, 0)
    assert judge(np.sqrt(x), reference, DType.FLOAT32, own=own).status == "pass"
