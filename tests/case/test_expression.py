"""Size expressions: meaning, bounds and errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.case.expression import MAX_NESTING, ExpressionError, evaluate, parse

SIZES = {"N": 1000, "M": 7, "zero": 0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("N", 1000),
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("100 // 7 // 2", 7),
        ("-N + 1", -999),
        ("-7 // 2", -4),
        ("-(7 // 2)", -3),
        ("-7 % 3", 2),
        ("2 - -3", 5),
        ("ceil_div(N, 256)", 4),
        ("ceil_div(1024, 256)", 4),
        ("min(N, M, 12)", 7),
        ("max(N, 2 * N - 1)", 1999),
        ("min(5)", 5),
        ("  ceil_div( N ,\n256 ) * 256", 1024),
    ],
)
def test_value(text, value):
    assert parse(text).evaluate(SIZES) == value
    assert parse(text).index().evaluate(SIZES) == value


def test_literals_need_no_parsing():
    assert evaluate(12, {}) == 12


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("", "is empty", 0),
        ("N +", "ends too early", 3),
        ("N / 2", "division is '//'", 2),
        ("N ** 2", "unexpected '*'", 3),
        ("floor(N)", "unknown function 'floor'", 0),
        ("ceil_div(N)", "takes 2 arguments, not 1", 0),
        ("(N", "expected ')'", 2),
        ("N)", "unexpected ')'", 1),
        ("1 2", "unexpected '2'", 2),
        ("N.real", "unexpected '.'", 1),
        ("1_000", "unexpected '_000'", 1),
        ("9" * 30, "too large", 0),
        ("(" * 100 + "1" + ")" * 100, "nested more than", MAX_NESTING + 1),
        ("-" * 100 + "1", "nested more than", MAX_NESTING + 1),
        ("+".join(["1"] * 100), "in a row", 2 * MAX_NESTING + 1),
        ("1" * 1001, "longer than", 1000),
    ],
)
def test_what_cannot_be_parsed_says_where(text, message, position):
    with pytest.raises(ExpressionError) as raised:
        parse(text)
    assert message in raised.value.message
    assert raised.value.position == position


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 + Q", "unknown size 'Q' (known: M, N, zero)"),
        ("N // zero", "division by zero"),
        ("N % zero", "division by zero"),
        ("ceil_div(N, zero)", "division by zero"),
        ("N * N * N * N * N * N * N", "beyond 2^62"),
    ],
)
def test_what_has_no_value_says_why(text, message):
    with pytest.raises(ExpressionError) as raised:
        parse(text).evaluate(SIZES)
    assert message in raised.value.message


def test_names_are_the_sizes_mentioned():
    assert parse("ceil_div(N, 2) * -(M + 1) - min(K, N)").names() == {"N", "M", "K"}


numbers = st.integers(0, 50).map(str) | st.sampled_from(["N", "M"])


@st.composite
def joined(draw, inner):
    left, right = draw(inner), draw(inner)
    operator = draw(st.sampled_from(["+", "-", "*", "//", "%", "max", "min"]))
    if operator in ("max", "min"):
        return f"{operator}({left}, {right})"
    if operator in ("//", "%"):
        return f"({left}) {operator} {draw(st.integers(1, 9))}"
    return f"({left}) {operator} ({right})"


@given(st.recursive(numbers, joined, max_leaves=12))
def test_agrees_with_python(text):
    # The texts are this test's own, and arithmetic alone.
    expected = eval(text, {"__builtins__": {}}, {**SIZES, "min": min, "max": max})  # noqa: S307
    assert parse(text).evaluate(SIZES) == expected
    assert parse(text).index().evaluate(SIZES) == expected
