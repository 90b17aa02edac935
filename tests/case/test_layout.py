"""Layouts: the NKI side's array from the logical one, and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.case.layout import LayoutError, apply, parse, shapes, undo

SIZES = {"R": 6, "C": 4}


def test_a_chain_is_applied_in_order():
    logical = np.arange(24).reshape(6, 4)
    steps = parse("transpose(1, 0) reshape(C // 2, 2, R) pad(C // 2, 2, 8)")
    assert shapes(steps, (6, 4), SIZES) == ((6, 4), (4, 6), (2, 2, 6), (2, 2, 8))
    laid = apply(steps, logical, SIZES)
    np.testing.assert_array_equal(laid[..., :6], logical.T.reshape(2, 2, 6))
    assert not laid[..., 6:].any()
    np.testing.assert_array_equal(undo(steps, laid, (6, 4), SIZES), logical)


def test_no_steps_are_no_change():
    assert parse("  ") == ()
    logical = np.arange(3)
    np.testing.assert_array_equal(apply((), logical, {}), logical)


@given(st.permutations(range(3)), st.tuples(*[st.integers(1, 4)] * 3), st.integers(0, 3))
def test_undo_undoes(axes, shape, more):
    logical = np.arange(np.prod(shape)).reshape(shape)
    padded = ", ".join(str(shape[axis] + more) for axis in axes)
    steps = parse(f"transpose({', '.join(map(str, axes))}) pad({padded}) reshape(N)")
    total = int(np.prod([extent + more for extent in shape]))
    laid = apply(steps, logical, {"N": total})
    assert laid.shape == (total,)
    np.testing.assert_array_equal(undo(steps, laid, shape, {"N": total}), logical)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flip(0)", "unknown step 'flip'"),
        ("transpose(0, 0)", "not a permutation"),
        ("transpose(R, 0)", "takes axis numbers"),
        ("transpose(0, 1, 2)", "does not fit 2 axes"),
        ("reshape(R)", "does not hold the elements"),
        ("reshape(-R, -C)", "must not be negative"),
        ("reshape(Q)", "unknown size 'Q'"),
        ("pad(R)", "does not fit"),
        ("pad(R - 1, C)", "does not fit"),
        ("reshape(R, C", "not closed"),
        ("transpose", "expected a step"),
        ("reshape(R, C)" * 17, "more than 16 steps"),
    ],
)
def test_what_does_not_fit(text, message):
    with pytest.raises(LayoutError) as raised:
        shapes(parse(text), (6, 4), SIZES)
    assert message in str(raised.value)


def test_undo_of_another_shape():
    with pytest.raises(LayoutError, match="is not the"):
        undo(parse("transpose(1, 0)"), np.ones((6, 4)), (6, 4), SIZES)
