"""Equality over finite fields: what it proves, and that it proves nothing false."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from migrate.budget import Meter
from migrate.ir.evaluate import evaluate
from migrate.ir.identity import proved_equal
from migrate.ir.nodes import AxisKind, Fold, Opaque, Reduce, State
from migrate.ir.normal import identity_tensors
from migrate.ir.reals import Reals
from migrate.ir.residues import PRIMES, ratio
from migrate.ir.validate import problems
from tests.ir import strategies as make
from tests.ir.build import K, apply, at, axis, buffer, fill, kernel, load, store, v, ver
from tests.ir.test_laws import DIFFERENT, SAME, cell


def side(tested):
    assert problems(tested) == ()
    return (tested, {}, identity_tensors(tested, {}))


def proved(one, other, size=1):
    elements = {"y": np.arange(size)}
    return proved_equal(side(one), side(other), elements, Meter())["y"]


# -- laws -----------------------------------------------------------------------------------

EQUAL = [
    (("multiply", "a", ("add", "b", "c")), ("add", ("multiply", "a", "b"), ("multiply", "c", "a"))),
    (
        ("multiply", ("add", "a", "b"), ("subtract", "a", "b")),
        ("subtract", ("square", "a"), ("square", "b")),
    ),
    (
        ("add", ("divide", "a", "b"), ("divide", "c", "d")),
        (
            "divide",
            ("add", ("multiply", "a", "d"), ("multiply", "c", "b")),
            ("multiply", "b", "d"),
        ),
    ),
    (("add", "a", "a"), ("multiply", "a", 2.0)),
    (("add", ("multiply", "a", 0.1), ("multiply", "a", 0.2)), ("multiply", "a", 0.3)),
    (("divide", "a", 700.0), ("multiply", "a", float(np.float32(1.0 / 700.0)))),
    (("multiply", ("exp", "a"), ("exp", "b")), ("exp", ("add", "a", "b"))),
    (("divide", ("exp", "a"), ("exp", "b")), ("exp", ("subtract", "a", "b"))),
    (("exp", ("add", "a", 1.0)), ("multiply", ("exp", "a"), ("exp", 1.0))),
    (("divide", 0.25, ("exp", 0.25)), ("multiply", 0.25, ("exp", -0.25))),
    (("exp2", ("multiply", "a", 1.44269504)), ("exp", "a")),
    (("exp2", "a"), ("exp", ("multiply", "a", 0.69314718))),
    (("expm1", "a"), ("subtract", ("exp", "a"), 1.0)),
    (("log1p", "a"), ("log", ("add", "a", 1.0))),
    (("log2", "a"), ("divide", ("log", "a"), 0.69314718)),
    (("softplus", "a"), ("log", ("add", 1.0, ("exp", "a")))),
    (
        ("tanh", "a"),
        ("subtract", ("multiply", 2.0, ("sigmoid", ("multiply", 2.0, "a"))), 1.0),
    ),
    (("sigmoid", "a"), ("divide", ("exp", "a"), ("add", ("exp", "a"), 1.0))),
    (
        ("exp", ("multiply", ("add", "a", "b"), ("subtract", "a", "b"))),
        ("divide", ("exp", ("square", "a")), ("exp", ("square", "b"))),
    ),
    (
        ("maximum", ("multiply", "a", ("add", "b", "c")), "d"),
        ("maximum", "d", ("add", ("multiply", "a", "b"), ("multiply", "a", "c"))),
    ),
    (("exp", ("subtract", -math.inf, "a")), 0.0),
    (("subtract", ("add", "a", "b"), "b"), "a"),
]

UNEQUAL = [
    (("exp", "a"), ("exp", "b")),
    (("exp", ("multiply", "a", "b")), ("multiply", ("exp", "a"), ("exp", "b"))),
    (("sqrt", ("square", "a")), "a"),
    (("abs", "a"), "a"),
    (("maximum", ("add", "a", "c"), ("add", "b", "c")), ("add", ("minimum", "a", "b"), "c")),
    (("maximum", "a", 0.0), "a"),
    (("maximum", "a", ("add", "a", 1.0)), ("maximum", "a", ("add", "a", 2.0))),
    (("multiply", "a", 0.1), ("multiply", "a", 0.1000001)),
    (("multiply", "a", 3.0), ("multiply", "a", 3.0 + PRIMES[0])),
    (("exp", ("multiply", "a", 1.0 + PRIMES[0])), ("exp", "a")),
    (("multiply", "a", math.inf), ("multiply", "b", math.inf)),
    (("multiply", ("multiply", "a", 1e200), 1e200), ("multiply", ("multiply", "a", 1e200), 1e250)),
    (("select", "a", "b", "c"), ("select", "a", "c", "b")),
    (("greater", "a", "b"), ("greater", "b", "a")),
]


@pytest.mark.parametrize(("one", "other"), [*EQUAL, *SAME], ids=str)
def test_what_follows_from_the_laws_of_fields_is_proved(one, other):
    assert proved(cell(one), cell(other))


@pytest.mark.parametrize(("one", "other"), UNEQUAL, ids=str)
def test_what_does_not_is_not(one, other):
    assert not proved(cell(one), cell(other))


def test_different_expressions_are_never_proved_equal():
    kernels = [cell(expr) for expr in DIFFERENT[::3]]
    for position, one in enumerate(kernels):
        for other in kernels[:position]:
            assert not proved(one, other)


def test_a_division_by_nothing_is_not_proved_to_be_anything():
    nothing = ("divide", "a", ("subtract", "b", "b"))
    assert not proved(cell(nothing), cell(("multiply", "c", nothing)))


# -- algorithms -----------------------------------------------------------------------------

N = 7


def over(operator, value, *body, extent=N):
    return Reduce(value, operator, (axis("k", extent),), tuple(body), body[-1].result, at())


def to_y(*ops, value, inputs=("x",)):
    buffers = [buffer(name, N) for name in inputs]
    return kernel(
        [*buffers, buffer("y", 1, role="out")], [*ops, store(1, "y", (0,), value)], ver("y", 1)
    )


def shifted(shift):
    """exp(x[2] - shift) / sum of exp(x[k] - shift)."""
    return to_y(
        *shift,
        over(
            "add",
            v("total"),
            load(v("x"), "x", K),
            apply(v("d"), "subtract", v("x"), v("shift")),
            apply(v("e"), "exp", v("d")),
        ),
        load(v("x2"), "x", 2),
        apply(v("d2"), "subtract", v("x2"), v("shift")),
        apply(v("e2"), "exp", v("d2")),
        apply(v("r"), "divide", v("e2"), v("total")),
        value=v("r"),
    )


MAXIMUM = (over("maximum", v("shift"), load(v("m"), "x", K)),)
SHIFTS = [
    MAXIMUM,
    (over("maximum", v("shift"), load(v("m"), "x", K), extent=N - 2),),
    (over("minimum", v("shift"), load(v("m"), "x", K)),),
    (load(v("shift"), "x", 0),),
    (fill(v("shift"), 0.0),),
    (fill(v("shift"), 2.5),),
]


def online(*, rescaled=True):
    """The same in one pass: a running maximum, and a running sum that follows it."""
    fold = Fold(
        (axis("k", N, AxisKind.SEQUENTIAL),),
        (
            State(v("m"), v("low"), v("m0"), v("m1")),
            State(v("s"), v("zero"), v("s0"), v("s1")),
        ),
        (
            load(v("x"), "x", K),
            apply(v("m1"), "maximum", v("m0"), v("x")),
            apply(v("d"), "subtract", v("m0"), v("m1")),
            apply(v("scale"), "exp", v("d")),
            apply(v("old"), "multiply", v("s0"), v("scale") if rescaled else v("one")),
            apply(v("t"), "subtract", v("x"), v("m1")),
            apply(v("e"), "exp", v("t")),
            apply(v("s1"), "add", v("old"), v("e")),
        ),
        at(),
    )
    return to_y(
        fill(v("low"), -math.inf),
        fill(v("zero"), 0.0),
        fill(v("one"), 1.0),
        fold,
        load(v("x2"), "x", 2),
        apply(v("d2"), "subtract", v("x2"), v("m")),
        apply(v("e2"), "exp", v("d2")),
        apply(v("r"), "divide", v("e2"), v("s")),
        value=v("r"),
    )


@pytest.mark.parametrize("shift", SHIFTS[1:], ids=["part", "minimum", "first", "zero", "number"])
def test_a_softmax_does_not_depend_on_its_shift(shift):
    assert proved(shifted(MAXIMUM), shifted(shift))


def test_online_softmax_is_softmax():
    assert proved(shifted(MAXIMUM), online())
    assert not proved(shifted(MAXIMUM), online(rescaled=False))


def mean(divisor):
    return (
        over("add", v("sum"), load(v("x"), "x", K)),
        fill(v("n"), divisor),
        apply(v("mean"), "divide", v("sum"), v("n")),
    )


def two_pass(divisor=float(N)):
    return to_y(
        *mean(float(N)),
        over(
            "add",
            v("squares"),
            load(v("z"), "x", K),
            apply(v("d"), "subtract", v("z"), v("mean")),
            apply(v("dd"), "square", v("d")),
        ),
        fill(v("c"), 1.0 / divisor),
        apply(v("r"), "multiply", v("squares"), v("c")),
        value=v("r"),
    )


def one_pass():
    return to_y(
        *mean(float(N)),
        over(
            "add",
            v("squares"),
            load(v("z"), "x", K),
            apply(v("xx"), "square", v("z")),
        ),
        apply(v("msq"), "divide", v("squares"), v("n")),
        apply(v("mm"), "square", v("mean")),
        apply(v("r"), "subtract", v("msq"), v("mm")),
        value=v("r"),
    )


def welford():
    fold = Fold(
        (axis("k", N, AxisKind.SEQUENTIAL),),
        (
            State(v("count"), v("zero"), v("c0"), v("c1")),
            State(v("mean"), v("zero"), v("m0"), v("m1")),
            State(v("rest"), v("zero"), v("r0"), v("r1")),
        ),
        (
            load(v("x"), "x", K),
            apply(v("c1"), "add", v("c0"), v("one")),
            apply(v("d"), "subtract", v("x"), v("m0")),
            apply(v("q"), "divide", v("d"), v("c1")),
            apply(v("m1"), "add", v("m0"), v("q")),
            apply(v("e"), "subtract", v("x"), v("m1")),
            apply(v("de"), "multiply", v("d"), v("e")),
            apply(v("r1"), "add", v("r0"), v("de")),
        ),
        at(),
    )
    return to_y(
        fill(v("zero"), 0.0),
        fill(v("one"), 1.0),
        fold,
        apply(v("r"), "divide", v("rest"), v("count")),
        value=v("r"),
    )


def test_variances_are_one():
    assert proved(two_pass(), one_pass())
    assert proved(two_pass(), welford())
    assert not proved(two_pass(N - 1.0), welford())


def test_only_the_elements_asked_for_count():
    def copies(second):
        return kernel(
            [buffer("x", 3), buffer("y", 2, role="out")],
            [
                load(v("a"), "x", 0),
                load(v("b"), "x", second),
                store(1, "y", (0,), v("a")),
                store(2, "y", (1,), v("b")),
            ],
            ver("y", 2),
        )

    one, other = side(copies(1)), side(copies(2))
    assert proved_equal(one, other, {"y": np.array([0])}, Meter()) == {"y": True}
    assert proved_equal(one, other, {"y": np.array([0, 1])}, Meter()) == {"y": False}
    assert proved_equal(one, other, {"y": np.array([], int)}, Meter()) == {}


def test_what_is_not_understood_equals_nothing():
    op = Opaque((v("o"),), (), "asm(...)", "inline assembly", at())
    assert not proved(to_y(op, value=v("o")), to_y(op, value=v("o")))
    unwritten = kernel([buffer("y", 1, role="out")], [], ver("y"))
    assert not proved(unwritten, unwritten)


def test_what_was_not_written_gives_nothing():
    def copied(*ops, value):
        return kernel(
            [buffer("s", 1, role="scratch"), buffer("y", 1, role="out")],
            [load(v("s"), "s", 0), *ops, store(1, "y", (0,), value)],
            ver("y", 1),
        )

    cancelled = copied(apply(v("r"), "subtract", v("s"), v("s")), value=v("r"))
    assert not proved(cancelled, cancelled)


def test_a_long_product_does_not_depend_on_its_order():
    whole = to_y(over("multiply", v("r"), load(v("x"), "x", K)), value=v("r"))
    reverse = to_y(over("multiply", v("r"), load(v("x"), "x", N - 1 - K)), value=v("r"))
    shorter = to_y(over("multiply", v("r"), load(v("x"), "x", K), extent=N - 1), value=v("r"))
    assert proved(whole, reverse)
    assert not proved(whole, shorter)


# -- numbers --------------------------------------------------------------------------------


@given(st.integers(1, 2000), st.integers(1, 2000))
def test_a_number_is_the_simple_fraction_it_was_rounded_from(numerator, denominator):
    number = float(np.float32(numerator / denominator))
    assert ratio(number) == Fraction(numerator, denominator)
    assert ratio(-number) == -ratio(number)


@pytest.mark.parametrize("decimal", ["0.99999", "0.9999", "0.999", "1.00001", "0.1", "0.00001"])
def test_a_decimal_is_taken_where_a_fraction_is_hardly_simpler(decimal):
    assert ratio(float(np.float32(decimal))) == Fraction(decimal)


@given(st.floats(width=32, min_value=2.0**-100, max_value=2.0**20))
def test_the_fraction_rounds_to_the_number(number):
    size, found = np.float32(number), ratio(number)
    for neighbour in (np.nextafter(size, np.float32(0)), np.nextafter(size, np.float32(np.inf))):
        distance = abs(found - Fraction(float(neighbour)))
        assert abs(found - Fraction(number)) < distance


# -- generated kernels ----------------------------------------------------------------------


def close(left, right):
    return np.allclose(left, right, rtol=1e-9, atol=1e-9, equal_nan=True)


@given(st.data(), make.specs(), make.schedules(), make.schedules(), st.integers(0, 9))
def test_nothing_that_evaluates_differently_is_proved_equal(data, spec, one, other, seed):
    changed = data.draw(make.mutations(spec))
    shapes = make.tensors(spec, changed)
    given_ = make.inputs(shapes, seed)
    first, second = make.lower(spec, one, shapes), make.lower(changed, other, shapes)
    try:
        make.values(spec, given_), make.values(changed, given_)
    except make.Wild:
        reject()
    left, right = (evaluate(k, {}, Reals(given_)).outputs["y"] for k in (first, second))
    assume(not close(left, right))
    assert not proved(first, second, math.prod(spec.shape))


@given(make.specs(), make.schedules(), make.schedules())
def test_the_way_a_kernel_is_realised_does_not_matter(spec, one, other):
    shapes = make.tensors(spec)
    assume(spec.written is None)
    first, second = make.lower(spec, one, shapes), make.lower(spec, other, shapes)
    assert proved(first, second, math.prod(spec.shape))
