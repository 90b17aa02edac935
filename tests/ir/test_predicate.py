"""Predicates agree with truth tables."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from migrate.ir.index import Index
from migrate.ir.predicate import (
    FALSE,
    TRUE,
    All,
    AnyOf,
    at_least,
    both,
    either,
    equal,
    holds,
    indices,
    less,
    negate,
)

X, Y = Index.axis("i"), Index.axis("j")
LINES = st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.integers(-4, 4)).map(
    lambda t: X * t[0] + Y * t[1] + t[2]
)
LEAVES = st.one_of(
    LINES.map(at_least),
    st.tuples(LINES, LINES).map(lambda two: equal(*two)),
    st.tuples(LINES, LINES).map(lambda two: less(*two)),
    st.tuples(LINES, LINES).map(lambda two: negate(equal(*two))),
    st.sampled_from([TRUE, FALSE]),
)
PREDICATES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=2).map(lambda items: both(*items))
        | st.lists(inner, max_size=2).map(lambda items: either(*items))
        | inner.map(negate)
    ),
    max_leaves=4,
)
POINTS = [{"i": i, "j": j} for i in range(-2, 3) for j in range(-2, 3)]


def truths(predicate):
    return [bool(holds(predicate, point)) for point in POINTS]


@given(LINES, LINES)
def test_comparisons(a, b):
    left = [a.evaluate(p) for p in POINTS]
    right = [b.evaluate(p) for p in POINTS]
    pairs = list(zip(left, right, strict=True))
    assert truths(less(a, b)) == [x < y for x, y in pairs]
    assert truths(equal(a, b)) == [x == y for x, y in pairs]
    assert truths(at_least(a)) == [x >= 0 for x in left]


@given(PREDICATES)
def test_negation(predicate):
    assert truths(negate(predicate)) == [not truth for truth in truths(predicate)]
    assert truths(negate(negate(predicate))) == truths(predicate)


@given(st.lists(PREDICATES, max_size=3))
def test_conjunction_and_disjunction(items):
    tables = [truths(item) for item in items]
    columns = list(zip(*tables, strict=True)) or [()] * len(POINTS)
    assert truths(both(*items)) == [all(column) for column in columns]
    assert truths(either(*items)) == [any(column) for column in columns]


@given(st.lists(PREDICATES, max_size=3), st.randoms())
def test_order_repetition_and_nesting_leave_no_trace(items, random):
    shuffled = [*items, *items[:1]]
    random.shuffle(shuffled)
    assert both(*items) == both(*shuffled) == both(*items[:1], both(*items[1:]))
    assert either(*items) == either(*shuffled) == either(*items[:1], either(*items[1:]))


@given(PREDICATES)
def test_arrays_give_what_single_points_give(predicate):
    arrays = {name: np.array([point[name] for point in POINTS]) for name in ("i", "j")}
    found = np.broadcast_to(holds(predicate, arrays), len(POINTS))
    assert found.tolist() == truths(predicate)


@given(PREDICATES)
def test_what_names_no_axis_is_decided(predicate):
    if not any(index.symbols() for index in indices(predicate)):
        assert predicate in (TRUE, FALSE)


def test_constants():
    assert both() == TRUE == All(())
    assert either() == FALSE == AnyOf(())
    assert both(TRUE, FALSE) == FALSE
    assert either(TRUE, FALSE) == TRUE
    assert less(X, X) == FALSE
    assert equal(X, X) == TRUE
    assert equal(X, Y) == equal(Y, X)


def test_text():
    predicate = both(less(X, 4), either(equal(X, Y), at_least(Y - 2)))
    assert str(predicate) == "-i + 3 >= 0 and (-i + j == 0 or j - 2 >= 0)"
    assert str(negate(equal(X, 2))) == "-i + 2 != 0"
    assert str(TRUE) == "true"
    assert str(FALSE) == "false"
