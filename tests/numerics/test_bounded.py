"""The bounded domain: its bounds enclose what rounding computes, and are not idle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.numerics.bounded import Bounded
from migrate.numerics.casts import Rule
from migrate.numerics.compare import judge
from migrate.numerics.domain import Domain, OperatorError, Order, ulps
from migrate.numerics.dtypes import DType
from migrate.numerics.errors import BoundedValue
from migrate.numerics.operators import operator
from migrate.numerics.rounded import Rounded

ROUNDED = Rounded()
BOUNDED = Bounded()
SIZE = 24

STEPS = [
    "add", "subtract", "multiply", "divide", "fma", "negate", "abs", "square", "sqrt", "rsqrt",
    "reciprocal", "maximum", "minimum", "exp", "log", "tanh", "sigmoid", "gelu", "silu", "sin",
    "relu", "select", "floor", "power", "softplus", "fmod", "atan2", "copysign",
]  # fmt: skip


def run(domain: Domain[Any], plan: list[Any], inputs: list[np.ndarray], dtype: DType) -> Any:
    """A random chain: each step takes earlier values and adds one."""
    values = [domain.from_array(x, dtype) for x in inputs]
    for name, picks, narrow in plan:
        args = [values[k % len(values)] for k in picks]
        if name == "select":
            holds = domain.apply("less", args[:2], DType.BOOL)
            values.append(domain.select(holds, args[1], args[2]))
        else:
            values.append(domain.apply(name, args[: operator(name).arity], dtype))
        if narrow:
            stored = domain.cast(values[-1], DType.BFLOAT16, Rule.IEEE)
            values[-1] = domain.cast(stored, dtype, Rule.IEEE)
    return values[-1]


plans = st.lists(
    st.tuples(
        st.sampled_from(STEPS),
        st.tuples(*[st.integers(0, 50)] * 3),
        st.sampled_from([False, False, False, True]),
    ),
    min_size=1,
    max_size=8,
)
kinds = st.sampled_from(["normal", "wide", "integers", "positive", "special"])


def draw_inputs(kind: str, seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    normal = random.standard_normal((3, SIZE))
    match kind:
        case "normal":
            found = normal
        case "wide":
            found = normal * 2.0 ** random.integers(-40, 40, (3, SIZE))
        case "integers":
            found = random.integers(-3, 4, (3, SIZE)).astype(np.float64)
        case "positive":
            found = np.abs(normal)
        case _:
            found = normal
            found[:, ::5] = random.choice([np.inf, -np.inf, np.nan, 0.0, 1e38, 1e-42], (3, 5))
    return list(found.astype(np.float32))


@given(plans, kinds, st.integers(0, 2**32), st.sampled_from([DType.FLOAT32, DType.BFLOAT16]))
def test_bounds_enclose_roundings(plan: list[Any], kind: str, seed: int, dtype: DType) -> None:
    inputs = draw_inputs(kind, seed)
    actual = run(ROUNDED, plan, inputs, dtype)
    reference = run(BOUNDED, plan, inputs, dtype)
    wide = actual.astype(np.float64)
    clear = ~reference.doubts()
    settled = clear & np.isfinite(reference.value)
    gap = np.abs(wide[settled] - reference.value[settled])
    assert (gap <= reference.limit()[settled] * (1 + 1e-9)).all()
    others = clear & ~settled
    assert np.array_equal(wide[others], reference.value[others], equal_nan=True)
    # Chains this short stay within the statistical allowance too.
    assert judge(actual, reference, dtype).status == "pass"


@given(
    st.integers(0, 2**32), st.integers(1, 300), st.sampled_from(["blas", "sequential", "pairwise"])
)
def test_sums_stay_within_bounds(seed: int, length: int, order: Order) -> None:
    random = np.random.default_rng(seed)
    rows = random.standard_normal((4, length)).astype(np.float32)
    rows[1] = np.float32(0.1)
    rows[2] = np.sort(rows[2])
    rows[3] = random.choice([1e8, 1.0, -1e8], length)
    actual = ROUNDED.reduce("add", rows, 1, DType.FLOAT32, order)
    reference = BOUNDED.reduce(
        "add", BOUNDED.from_array(rows, DType.FLOAT32), 1, DType.FLOAT32, order
    )
    assert judge(actual, reference, DType.FLOAT32).status == "pass"


@pytest.mark.parametrize("fill", ["constant", "normal", "sorted", "few"])
def test_long_running_sums_stay_within_bounds(fill: str) -> None:
    random = np.random.default_rng(7)
    length = 4096
    data = random.standard_normal((length, 8)).astype(np.float32)
    if fill == "constant":
        data[:] = np.float32(0.1)
    if fill == "sorted":
        data = np.sort(data, axis=0)
    if fill == "few":
        data = random.choice(np.array([0.1, 0.3], np.float32), data.shape)

    def chain(domain: Domain[Any]) -> Any:
        total = domain.constant(0.0, DType.FLOAT32, (8,))
        flat = domain.from_array(data.T.copy(), DType.FLOAT32)
        column = np.arange(8) * length
        for k in range(length):
            total = domain.apply("add", (total, domain.take(flat, column + k)), DType.FLOAT32)
        return total

    reference = chain(BOUNDED)
    assert judge(chain(ROUNDED), reference, DType.FLOAT32).status == "pass"
    other = ROUNDED.reduce("add", data, 0, DType.FLOAT32, "pairwise")
    assert judge(other, reference, DType.FLOAT32).status == "pass"
    if fill == "normal":
        # Independent roundings are worth far more than the worst case.
        assert (reference.allowance() < 0.2 * reference.limit()).all()
        dropped = other - data[17]
        assert judge(dropped, reference, DType.FLOAT32).status == "fail"


@given(st.integers(0, 2**32), st.integers(1, 80))
def test_matrix_products_stay_within_bounds(seed: int, depth: int) -> None:
    random = np.random.default_rng(seed)
    a = random.standard_normal((5, depth)).astype(np.float32)
    b = random.standard_normal((depth, 3)).astype(np.float32)
    reference = BOUNDED.matmul(
        BOUNDED.from_array(a, DType.FLOAT32), BOUNDED.from_array(b, DType.FLOAT32), DType.FLOAT32
    )
    for order in ("blas", "sequential"):
        actual = ROUNDED.matmul(a, b, DType.FLOAT32, order)
        assert judge(actual, reference, DType.FLOAT32).status == "pass"
    assert judge(a @ b + 1e-3, reference, DType.FLOAT32).status == "fail"


def test_integer_data_allows_no_error() -> None:
    random = np.random.default_rng(3)
    a, b = (random.integers(-2, 3, shape).astype(np.float32) for shape in ((6, 40), (40, 5)))
    x, y = (BOUNDED.from_array(v, DType.FLOAT32) for v in (a, b))
    for reference in (BOUNDED.matmul(x, y, DType.FLOAT32), _chained_product(x, y)):
        assert reference.is_exact
        assert judge(a @ b, reference, DType.FLOAT32).status == "pass"
        nearly = np.nextafter(a @ b, np.float32(np.inf))
        assert judge(nearly, reference, DType.FLOAT32).status == "fail"


def _chained_product(x: BoundedValue, y: BoundedValue) -> BoundedValue:
    total = BOUNDED.constant(0.0, DType.FLOAT32, (6, 5))
    for k in range(40):
        left = BOUNDED.take(x, np.arange(6)[:, None] * 40 + k)
        right = BOUNDED.take(y, np.arange(5)[None, :] + 5 * k)
        total = BOUNDED.apply("fma", (left, right, total), DType.FLOAT32)
    return total


def test_integers_beyond_the_precision_are_not_certified() -> None:
    x = BOUNDED.from_array(np.array([2.0**24, 1.0, 1.0]), DType.FLOAT32)
    assert not BOUNDED.reduce("add", x, 0, DType.FLOAT32).is_exact
    narrow = BOUNDED.cast(x, DType.BFLOAT16, Rule.IEEE).limit()
    assert narrow[0] > 0
    assert narrow[1:].tolist() == [0, 0]


def uncertain(value: float, dtype: DType = DType.FLOAT32) -> BoundedValue:
    """A value with an error of about 1e-6, relatively."""
    exact = BOUNDED.from_array(np.array([value]), dtype)
    one = BOUNDED.constant(1.0, dtype, (1,))
    return BOUNDED.apply("multiply", (exact, one), dtype, error=OperatorError(1e-6))


def test_comparisons_within_the_bound_are_ambiguous() -> None:
    near, far = uncertain(1.0), uncertain(1.1)
    exact = BOUNDED.from_array(np.array([1.0000001]), DType.FLOAT32)
    assert BOUNDED.compare("less", near, exact)[1] is not None
    assert BOUNDED.compare("less", far, exact) == (np.array([False]), None)
    same = BOUNDED.compare("equal", exact, exact)
    assert same[0].all()
    assert same[1] is None


def test_an_open_choice_reaches_both_outcomes() -> None:
    near = uncertain(1.0)
    threshold = BOUNDED.constant(1.0, DType.FLOAT32, (1,))
    holds = BOUNDED.apply("greater", (near, threshold), DType.BOOL)
    low, high = (BOUNDED.constant(v, DType.FLOAT32, (1,)) for v in (3.0, 4.0))
    chosen = BOUNDED.select(holds, high, low)
    assert chosen.value[0] in {3.0, 4.0}
    for outcome in (3.0, 4.0):
        assert abs(outcome - chosen.value[0]) <= chosen.limit()[0]
    infinite = BOUNDED.select(holds, BOUNDED.constant(np.inf, DType.FLOAT32, (1,)), low)
    assert infinite.doubts().all()
    counts = BOUNDED.select(
        holds, BOUNDED.constant(1, DType.INT32, (1,)), BOUNDED.constant(2, DType.INT32, (1,))
    )
    assert counts.doubts().all()


def test_logic_in_doubt() -> None:
    near, threshold = uncertain(1.0), BOUNDED.constant(1.0, DType.FLOAT32, (1,))
    open_ended = BOUNDED.apply("greater", (near, threshold), DType.BOOL)
    no, yes = (BOUNDED.constant(v, DType.BOOL, (1,)) for v in (False, True))
    assert BOUNDED.apply("logical_and", (open_ended, no), DType.BOOL).ambiguous is None
    assert BOUNDED.apply("logical_and", (open_ended, yes), DType.BOOL).doubts().all()
    assert BOUNDED.apply("logical_or", (open_ended, yes), DType.BOOL).ambiguous is None


def test_steps_within_the_bound_are_ambiguous() -> None:
    near, far = uncertain(2.0), uncertain(2.5)
    assert BOUNDED.apply("floor", (near,), DType.FLOAT32).doubts().all()
    assert not BOUNDED.apply("floor", (far,), DType.FLOAT32).doubts().any()
    assert BOUNDED.cast(near, DType.INT32, Rule.CUDA).doubts().all()
    assert not BOUNDED.cast(near, DType.INT32, Rule.NKI).doubts().any()
    assert BOUNDED.cast(far, DType.INT32, Rule.NKI).doubts().all()


def test_overflow_happens_as_in_the_format() -> None:
    x = BOUNDED.from_array(np.array([3e38, 1e30]), DType.FLOAT32)
    doubled = BOUNDED.apply("add", (x, x), DType.FLOAT32)
    assert doubled.value.tolist() == [np.inf, np.float32(1e30) * 2.0]
    eight = BOUNDED.from_array(np.array([300.0, 100.0]), DType.FLOAT32)
    assert np.isinf(BOUNDED.cast(eight, DType.FLOAT8_E4M3, Rule.NKI).value[0])
    clipped = BOUNDED.cast(
        BOUNDED.from_array(np.array([1e4]), DType.FLOAT32), DType.FLOAT8_E4M3FN, Rule.CUDA
    )
    assert clipped.value[0] == 448.0


def test_what_follows_an_uncertain_overflow_has_no_bound() -> None:
    edge = uncertain(3.4028e38)
    edge = BOUNDED.apply(
        "multiply", (edge, BOUNDED.constant(1.00001, DType.FLOAT32, (1,))), DType.FLOAT32,
        error=OperatorError(1e-4),
    )  # fmt: skip
    assert edge.doubts().all()
    inverse = BOUNDED.apply("reciprocal", (edge,), DType.FLOAT32)
    found = judge(np.array([2.9387e-39], np.float32), inverse, DType.FLOAT32)
    assert (found.status, found.ambiguous) == ("investigate", 1)


def test_published_errors() -> None:
    x = BOUNDED.from_array(np.array([-10.0, 0.5, 100.0]), DType.FLOAT32)
    plain = BOUNDED.apply("exp", (x,), DType.FLOAT32)
    two = BOUNDED.apply("exp", (x,), DType.FLOAT32, error=ulps(2))
    assert two.limit()[0] == pytest.approx(5 * 2.0**-24 * np.exp(-10.0))
    assert (two.limit()[:2] > plain.limit()[:2]).all()
    fast = OperatorError(lambda v: (2 * (2 + np.floor(1.173 * np.abs(v))) + 1) * 2.0**-24)
    assert BOUNDED.apply("exp", (x,), DType.FLOAT32, error=fast).limit()[0] > two.limit()[0]
    ranged = OperatorError(1e-6, valid_range=(-1.0, 1.0))
    assert BOUNDED.apply("sin", (x,), DType.FLOAT32, error=ranged).doubts().tolist() == [
        True,
        False,
        True,
    ]


def test_flushed_subnormals_are_allowed_where_declared() -> None:
    x = np.array([2.0**-100], np.float32)
    y = np.array([2.0**-40], np.float32)
    flushed = np.zeros(1, np.float32)
    for domain, status in ((Bounded(), "fail"), (Bounded(flush=True), "pass")):
        args = [domain.from_array(v, DType.FLOAT32) for v in (x, y)]
        reference = domain.apply("multiply", args, DType.FLOAT32)
        assert judge(flushed, reference, DType.FLOAT32).status == status


def test_marked_elements_have_no_bound() -> None:
    x = BOUNDED.from_array(np.array([1.0, 2.0]), DType.FLOAT32)
    marked = BOUNDED.mark(x, np.array([True, False]))
    judged = judge(np.array([9.0, 2.0], np.float32), marked, DType.FLOAT32)
    assert (judged.status, judged.ambiguous) == ("pass", 1)
    assert judge(np.array([9.0, 3.0], np.float32), marked, DType.FLOAT32).status == "fail"
    assert x.ambiguous is None


def test_leaving_the_domain_of_a_function_is_ambiguous() -> None:
    exact = BOUNDED.constant(1.0, DType.FLOAT32, (1,))
    nothing = BOUNDED.apply("subtract", (uncertain(1.0), exact), DType.FLOAT32)
    for name in ("sqrt", "rsqrt", "log"):
        assert BOUNDED.apply(name, (nothing,), DType.FLOAT32).doubts().all()
    assert BOUNDED.apply("asin", (uncertain(1.0),), DType.FLOAT32).doubts().all()
    assert not BOUNDED.apply("sqrt", (uncertain(1e-30),), DType.FLOAT32).doubts().any()


def test_bits_of_an_uncertain_value_are_uncertain() -> None:
    exact = BOUNDED.from_array(np.array([1.5]), DType.FLOAT32)
    read = BOUNDED.bitcast(exact, DType.INT32)
    assert read.value.tolist() == [0x3FC00000]
    assert read.ambiguous is None
    assert BOUNDED.bitcast(uncertain(1.5), DType.INT32).doubts().all()
    back = BOUNDED.bitcast(read, DType.FLOAT32)
    assert back.value.tolist() == [1.5]
