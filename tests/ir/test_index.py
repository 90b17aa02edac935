"""Index expressions: arithmetic, canonical form, bounds, text."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.ir.index import Index, TooComplex, ceil_div, maximum, minimum

AXES = ("i", "j")
SIZES = ("n", "m")
X, Y, N, M = Index.axis("i"), Index.axis("j"), Index.size("n"), Index.size("m")


class Both:
    """An expression built twice: as an `Index`, and as a function of the symbols."""

    def __init__(self, index, function):
        self.index = index
        self.function = function


def _leaf(index, name):
    return Both(index, lambda values: values[name])


LEAVES = st.sampled_from(
    [_leaf(X, "i"), _leaf(Y, "j"), _leaf(N, "n"), _leaf(M, "m")]
) | st.integers(-9, 9).map(lambda c: Both(Index.of(c), lambda values: c))
NUMBERS = st.integers(-6, 6).filter(bool)


def _grow(inner):
    def pair(make_index, make_number):
        return st.tuples(inner, inner).map(
            lambda two: Both(
                make_index(two[0].index, two[1].index),
                lambda v: make_number(two[0].function(v), two[1].function(v)),
            )
        )

    def with_number(make_index, make_number):
        return st.tuples(inner, NUMBERS).map(
            lambda two: Both(
                make_index(two[0].index, two[1]),
                lambda v: make_number(two[0].function(v), two[1]),
            )
        )

    # Sizes are positive, so a size may be a divisor.
    by_size = st.tuples(inner, st.sampled_from(["n", "m"]), st.booleans()).map(
        lambda three: Both(
            three[0].index // Index.size(three[1])
            if three[2]
            else three[0].index % Index.size(three[1]),
            lambda v: (
                three[0].function(v) // v[three[1]]
                if three[2]
                else three[0].function(v) % v[three[1]]
            ),
        )
    )
    return (
        pair(lambda a, b: a + b, lambda a, b: a + b)
        | pair(lambda a, b: a - b, lambda a, b: a - b)
        | with_number(lambda a, b: a * b, lambda a, b: a * b)
        | with_number(lambda a, b: a // b, lambda a, b: a // b)
        | with_number(lambda a, b: a % b, lambda a, b: a % b)
        | with_number(lambda a, b: b - a, lambda a, b: b - a)
        | pair(minimum, min)
        | pair(maximum, max)
        | by_size
    )


EXPRESSIONS = st.recursive(LEAVES, _grow, max_leaves=6)
VALUES = st.fixed_dictionaries(
    {
        "i": st.integers(-12, 12),
        "j": st.integers(0, 12),
        "n": st.integers(1, 9),
        "m": st.integers(1, 9),
    }
)
RANGES = {"i": (-12, 12), "j": (0, 12), "n": (1, 9), "m": (1, 9)}


def build(make):
    try:
        return make()
    except TooComplex:
        return None


@given(EXPRESSIONS, VALUES)
def test_arithmetic_is_that_of_the_integers(both, values):
    assert both.index.evaluate(values) == both.function(values)


@given(EXPRESSIONS, st.lists(VALUES, min_size=1, max_size=4))
def test_arrays_give_what_single_numbers_give(both, several):
    arrays = {name: np.array([v[name] for v in several]) for name in RANGES}
    found = np.broadcast_to(both.index.evaluate(arrays), len(several))
    assert found.tolist() == [both.function(v) for v in several]


@given(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS)
def test_equal_polynomials_are_equal_objects(a, b, c):
    x, y, z = a.index, b.index, c.index
    for left, right in (
        (lambda: (x + y) + z, lambda: z + (y + x)),
        (lambda: x * (y + z), lambda: x * z + x * y),
        (lambda: (x + y) * (x - y), lambda: x * x - y * y),
        (lambda: x - x, lambda: Index.of(0)),
        (lambda: minimum(Y, N, Y + 3), lambda: minimum(N, Y)),
        (lambda: maximum(Y, N, Y + 3), lambda: maximum(N, Y + 3)),
        (lambda: 4 * (x // 4) + x % 4, lambda: x),
        (lambda: (6 * x + y) // 6, lambda: x + y // 6),
        (lambda: (Y // 3 + 4) // 5, lambda: (Y + 12) // 15),
        (lambda: (6 * x) // 4, lambda: (3 * x) // 2),
        (lambda: (N * x + y) // N, lambda: x + y // N),
    ):
        one, other = build(left), build(right)
        if one is not None and other is not None:
            assert one == other
            assert hash(one) == hash(other)


LINES = st.tuples(*[st.integers(-2, 2)] * 4).map(lambda c: c[0] * X + c[1] * Y + c[2] * N + c[3])


@given(st.lists(LINES, min_size=2, max_size=4), st.randoms(), st.sampled_from((0, 1)))
def test_extrema_are_flat_and_without_order(args, random, which):
    extremum = (minimum, maximum)[which]
    shuffled = [*args, args[0]]
    random.shuffle(shuffled)
    nested = extremum(args[0], extremum(*args[1:]))
    assert extremum(*args) == extremum(*shuffled) == nested


@given(EXPRESSIONS, EXPRESSIONS, VALUES)
def test_substitution_and_evaluation_commute(both, replacement, values):
    replaced = build(lambda: both.index.substitute({"i": replacement.index}))
    if replaced is not None:
        inner = {**values, "i": replacement.index.evaluate(values)}
        assert replaced.evaluate(values) == both.index.evaluate(inner)


@given(EXPRESSIONS, VALUES)
def test_bounds_enclose_every_value(both, values):
    low, high = both.index.bounds(RANGES)
    value = both.index.evaluate(values)
    assert low is None or low <= value
    assert high is None or value <= high


@given(EXPRESSIONS, VALUES)
def test_half_open_ranges_bound_what_they_can(both, values):
    ranges = {"i": (None, 12), "j": (0, None), "n": (1, None)}
    low, high = both.index.bounds(ranges)
    value = both.index.evaluate(values)
    assert low is None or low <= value
    assert high is None or value <= high


@given(EXPRESSIONS, VALUES)
def test_simplifying_keeps_values_within_the_ranges(both, values):
    simple = build(lambda: both.index.simplify(RANGES))
    if simple is not None:
        assert simple.evaluate(values) == both.function(values)


@given(EXPRESSIONS, VALUES)
def test_the_text_means_the_expression(both, values):
    text = str(both.index)
    assert re.fullmatch(r"[\w\s()+*/%,-]+", text)
    # The text was made here, from the strategies above.
    assert eval(text, {"min": min, "max": max}, dict(values)) == both.function(values)  # noqa: S307


@given(EXPRESSIONS)
def test_coefficients_rebuild_an_affine_expression(both):
    found = both.index.coefficients()
    if found is not None:
        linear, constant = found
        symbols = {s.name: s for s in both.index.symbols()}
        total = Index.of(constant)
        for name, coefficient in linear.items():
            total = total + Index.of(symbols[name]) * coefficient
        assert total == both.index
    else:
        assert any(len(m) != 1 or str(m[0]) not in RANGES for m, _ in both.index.terms if m)


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (X % 4, "i % 4"),
        (2 * (X % 4) + 1, "2*(i % 4) + 1"),
        (X - 4 * (X // 4) - X, "-4*(i // 4)"),
        (-(X % 4), "-(i % 4)"),
        ((X + 1) // N, "(i + 1) // n"),
        (minimum(128, N - 128 * X), "min(-128*i + n, 128)"),
        (Index.of(0), "0"),
        (X * Y - 3, "i*j - 3"),
        (ceil_div(N, 128), "(n + 127) // 128"),
    ],
)
def test_text(index, text):
    assert str(index) == text


def test_ranges_decide_quotients_and_extrema():
    assert (X // 16).simplify({"i": (0, 15)}) == Index.of(0)
    assert (X % 16).simplify({"i": (0, 15)}) == X
    assert minimum(16, N - X).simplify({"i": (0, 3), "n": (19, None)}) == Index.of(16)
    assert maximum(X, Y).simplify({"i": (0, 3), "j": (3, 9)}) == Y


def test_kinds_of_symbols():
    index = X * N + (Y + M) // 2
    assert index.axes() == {"i", "j"}
    assert {s.name for s in index.symbols() if s.kind == "size"} == {"n", "m"}


def test_division_by_zero_is_refused():
    with pytest.raises(ZeroDivisionError):
        X // 0
    with pytest.raises(ZeroDivisionError):
        (X // N).evaluate({"i": 1, "n": 0})
    with pytest.raises(ZeroDivisionError):
        (X // N).evaluate({"i": np.array([1, 2]), "n": np.array([1, 0])})


def test_a_symbol_without_a_value_is_named():
    with pytest.raises(KeyError, match="n"):
        (X + N).evaluate({"i": 1})


def squared_over_and_over():
    index = X
    for step in range(64):
        index = (index * index + Index.size(f"s{step}")) // (step + 2)
    return index


def nested_extrema():
    index = X
    for step in range(64):
        index = minimum(index, Index.size(f"s{step}")) * Y
    return index


def a_wide_sum():
    total = Index.of(0)
    for step in range(200):
        total = total + Index.size(f"s{step}")
    return total


@pytest.mark.parametrize(
    "make",
    [
        squared_over_and_over,
        nested_extrema,
        a_wide_sum,
        lambda: Index.of(1 << 40) * (1 << 40) * X,
        lambda: X * X * X * X * X * X * X * X * X,
    ],
)
def test_what_outgrows_reasoning_is_refused(make):
    with pytest.raises(TooComplex):
        make()
