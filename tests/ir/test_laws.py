"""Which expressions are one expression, and which must never be taken for one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from migrate.budget import Budget, Exhausted, Meter
from migrate.ir import forms
from migrate.ir.evaluate import Unevaluable, evaluate
from migrate.ir.forms import Hashed, Missing, Number, Unknown, walk
from migrate.ir.index import Index
from migrate.ir.nodes import (
    AxisKind,
    Cast,
    Fold,
    Guard,
    Merge,
    Opaque,
    Position,
    Random,
    Reduce,
    Rounding,
    Scan,
    Scatter,
    Select,
    State,
)
from migrate.ir.normal import Tensor, meaning, normalise
from migrate.ir.predicate import less
from migrate.ir.reals import Reals
from migrate.ir.validate import problems
from tests.ir.build import (
    BOOL,
    F32,
    I32,
    U8,
    U32,
    I,
    J,
    K,
    apply,
    at,
    axis,
    buffer,
    each,
    fill,
    kernel,
    load,
    place,
    pointwise,
    store,
    v,
    ver,
)

TRUTHS = ("less", "greater", "equal", "less_equal", "not_equal")


def cell(expr, *, dtype=F32):
    """A kernel `y[0] = expr`: a number, the name of an input, or (operator, expr, ...)."""
    body, names = [], set()

    def emit(part):
        if isinstance(part, int | float):
            result = v(f"v{len(body)}", dtype)
            body.append(fill(result, part))
            return result
        if isinstance(part, str):
            result = v(f"v{len(body)}", dtype)
            names.add(part)
            body.append(load(result, part, 0))
            return result
        operator, *inner = part
        made = [emit(i) for i in inner]
        result = v(f"v{len(body)}", BOOL if operator in TRUTHS else dtype)
        body.append(apply(result, operator, *made))
        return result

    value = emit(expr)
    body.append(store(1, "y", (0,), value))
    buffers = [buffer(name, 1, dtype=dtype) for name in sorted(names)]
    return kernel([*buffers, buffer("y", 1, role="out", dtype=dtype)], body, ver("y", 1))


def term(tested):
    assert problems(tested) == ()
    return meaning(tested, {}).terms["y"].tolist()


def output(tested):
    form, _ = normalise(tested, {})
    found = form.output("y")
    assert found is not None
    return found


def text(tested):
    return str(output(tested))


SAME = [
    (("add", ("add", "a", "b"), "c"), ("add", ("add", "c", "b"), "a")),
    (("subtract", "a", ("subtract", "b", "c")), ("add", ("subtract", "c", "b"), "a")),
    (("divide", "a", ("divide", "b", "c")), ("divide", ("multiply", "a", "c"), "b")),
    (("subtract", ("add", "a", "b"), "b"), "a"),
    (("negate", ("negate", "a")), "a"),
    (("multiply", "a", -1.0), ("negate", "a")),
    (("multiply", ("negate", "a"), "b"), ("negate", ("multiply", "b", "a"))),
    (("multiply", ("negate", "a"), ("negate", "b")), ("multiply", "a", "b")),
    (("multiply", ("multiply", "a", -1.0), "b"), ("multiply", "a", ("negate", "b"))),
    (("multiply", ("multiply", "a", 2.0), 3.0), ("multiply", 6.0, "a")),
    (("multiply", ("multiply", "a", 2.0), ("multiply", "b", 0.5)), ("multiply", "a", "b")),
    (("multiply", -2.0, "a"), ("negate", ("multiply", "a", 2.0))),
    (
        ("divide", ("multiply", "a", 6.0), ("multiply", "b", -3.0)),
        ("multiply", ("divide", "a", "b"), -2.0),
    ),
    (("divide", ("multiply", "a", 2.0), "a"), 2.0),
    (("divide", ("multiply", 0.25, ("negate", "a")), "a"), -0.25),
    (("divide", "a", ("negate", "a")), -1.0),
    (("reciprocal", ("negate", "a")), ("negate", ("reciprocal", "a"))),
    (("square", ("subtract", "a", "b")), ("square", ("subtract", "b", "a"))),
    (
        ("multiply", ("subtract", "a", "b"), "c"),
        ("negate", ("multiply", "c", ("subtract", "b", "a"))),
    ),
    (
        ("exp", ("multiply", ("multiply", ("negate", "a"), "a"), 0.5)),
        ("exp", ("multiply", ("square", "a"), -0.5)),
    ),
    (
        ("subtract", "c", ("multiply", ("negate", "a"), "b")),
        ("add", "c", ("multiply", "a", "b")),
    ),
    (
        ("add", ("multiply", ("negate", "a"), "b"), ("multiply", "a", "b")),
        0.0,
    ),
    (("add", ("add", "a", 1.0), 2.0), ("add", 3.0, "a")),
    (("add", ("add", "a", 0.1), 0.2), ("add", ("add", 0.1, 0.2), "a")),
    (("subtract", ("add", "a", 0.1), 0.1), "a"),
    (("multiply", "a", 0.0), 0.0),
    (("exp", ("subtract", -math.inf, "a")), 0.0),
    (("maximum", "a", -math.inf), "a"),
    (("maximum", "a", math.inf), math.inf),
    (("divide", "a", 3.0), ("multiply", "a", 1.0 / 3.0)),
    (("divide", 1.0, 0.0), math.inf),
    (("negate", math.inf), -math.inf),
    (("equal", "a", "b"), ("equal", "b", "a")),
    (("less_equal", "a", "b"), ("greater_equal", "b", "a")),
    (("select", ("less", 1.0, 2.0), "a", "b"), "a"),
    (("select", ("less", "a", "b"), "c", "c"), "c"),
    (("square", "a"), ("multiply", "a", "a")),
    (("fma", "a", "b", "c"), ("add", "c", ("multiply", "b", "a"))),
    (("rsqrt", "a"), ("divide", 1.0, ("sqrt", "a"))),
    (("maximum_number", "a", "b"), ("maximum", "b", "a")),
    (("select", ("greater", "a", "b"), "a", "b"), ("maximum", "a", "b")),
    (("select", ("less_equal", "a", "b"), "b", "a"), ("maximum", "a", "b")),
    (("select", ("less", "a", "b"), "a", "b"), ("minimum", "a", "b")),
    (
        ("gelu", "a"),
        ("multiply", ("multiply", "a", 0.5), ("add", ("erf", ("multiply", "a", 0.70710678)), 1.0)),
    ),
    (
        ("gelu_sigmoid", "a"),
        ("divide", "a", ("add", 1.0, ("exp", ("multiply", "a", -1.702)))),
    ),
    (("softplus", "a"), ("log1p", ("exp", "a"))),
    (0.0, -0.0),
    (0.1, float(np.float32(0.1))),
    (math.nan, ("subtract", math.inf, math.inf)),
    (("add", "a", math.nan), math.nan),
]

DIFFERENT = [
    0.0,
    1.0,
    -1.0,
    2.0,
    math.inf,
    -math.inf,
    math.nan,
    1e-60,
    2.0**24 + 1,
    2.0**24,
    0.1,
    "a",
    "b",
    ("negate", "a"),
    ("reciprocal", "a"),
    ("add", "a", "b"),
    ("subtract", "a", "b"),
    ("subtract", "b", "a"),
    ("multiply", "a", "b"),
    ("divide", "a", "b"),
    ("divide", "b", "a"),
    ("maximum", "a", "b"),
    ("minimum", "a", "b"),
    ("maximum", "a", 0.0),
    ("maximum", "a", 1.0),
    ("minimum", "a", 0.0),
    ("minimum", "a", 1.0),
    ("add", "a", 1.0),
    ("add", "a", 2.0),
    ("add", "a", "a"),
    ("multiply", "a", "a"),
    ("multiply", ("multiply", "a", "a"), "a"),
    ("reciprocal", ("multiply", "a", "a")),
    ("multiply", "a", -2.0),
    ("multiply", "a", 2.0),
    ("multiply", "a", 0.5),
    ("reciprocal", ("multiply", "a", 2.0)),
    ("negate", ("reciprocal", ("multiply", "a", 2.0))),
    ("negate", ("multiply", "a", "a")),
    ("negate", ("multiply", "a", "b")),
    ("multiply", ("subtract", "a", "b"), "b"),
    ("multiply", ("subtract", "b", "a"), "b"),
    ("exp", ("multiply", ("multiply", "a", "a"), 0.5)),
    ("exp", ("multiply", ("multiply", "a", "a"), -0.5)),
    ("multiply", ("add", "a", "b"), "b"),
    ("add", ("multiply", "a", "b"), "b"),
    ("less", "a", "b"),
    ("less_equal", "a", "b"),
    ("less", "b", "a"),
    ("less_equal", "b", "a"),
    ("equal", "a", "b"),
    ("not_equal", "a", "b"),
    ("power", "a", "b"),
    ("power", "b", "a"),
    ("select", "a", "b", 0.0),
    ("select", ("greater", "a", "b"), "b", 1.0),
    ("select", ("greater", "a", 1.0), "b", 1.0),
    ("gelu", "a"),
    ("gelu_tanh", "a"),
    ("gelu_sigmoid", "a"),
    ("mish", "a"),
    ("select", "a", 0.0, "b"),
    ("exp", "a"),
    ("exp2", "a"),
    ("floor", "a"),
    ("trunc", "a"),
    ("fmod", "a", "b"),
    ("mod", "a", "b"),
    ("abs", "a"),
    ("sqrt", ("multiply", "a", "a")),
]


@pytest.mark.parametrize(("one", "other"), SAME, ids=str)
def test_one_expression(one, other):
    assert term(cell(one)) == term(cell(other))
    assert output(cell(one)) == output(cell(other))


def test_different_expressions_have_different_terms_and_forms():
    kernels = [cell(expr) for expr in DIFFERENT]
    terms = [term(tested)[0] for tested in kernels]
    assert len(set(terms)) == len(DIFFERENT)
    texts = [text(tested) for tested in kernels]
    assert len(set(texts)) == len(DIFFERENT)


def test_numbers_whose_product_is_too_large_are_not_taken_for_one():
    products = [(1e200, 1e200), (1e200, 1e250), (1e-200, 1e-200), (1e-200, 1e-250)]
    kernels = [cell(("multiply", ("multiply", "a", one), other)) for one, other in products]
    assert len({term(tested)[0] for tested in kernels}) == len(products)


INTEGERS = [
    (I32, ("multiply", ("divide", "a", 4), 4)),
    (I32, "a"),
    (I32, ("divide", "a", "b")),
    (F32, ("divide", "a", "b")),
    (U32, ("divide", "a", "b")),
    (I32, ("subtract", "a", "b")),
    (U32, ("subtract", "a", "b")),
    (U8, ("subtract", "a", "b")),
    (I32, ("bitwise_not", "a")),
    (U8, ("bitwise_not", "a")),
    (I32, ("right_shift", "a", "b")),
    (I32, ("right_shift_logical", "a", "b")),
    (I32, ("left_shift", "a", "b")),
    (U8, ("left_shift", "a", "b")),
    (I32, ("bitwise_and", "a", "b")),
    (I32, ("bitwise_or", "a", "b")),
    (I32, ("bitwise_xor", "a", "b")),
]


def test_integer_operators_that_differ_have_different_terms():
    assert len({term(cell(expr, dtype=dtype))[0] for dtype, expr in INTEGERS}) == len(INTEGERS)


@pytest.mark.parametrize(("dtype", "expr"), INTEGERS, ids=str)
def test_integer_operators_keep_their_values(dtype, expr):
    tested = cell(expr, dtype=dtype)
    for a, b in ((200, 3), (7, 2), (3, 7)):
        given = {"a": np.array([a]), "b": np.array([b])}
        found = evaluate(tested, {}, Reals(given)).outputs["y"]
        assert forms.value(output(tested), given) == pytest.approx(found, rel=1e-15)
        assert np.isfinite(found).all()


def test_numbers_under_integer_operators_are_computed():
    assert text(cell(("bitwise_and", 12, 10), dtype=I32)) == "y[i0] = 8 for 0 <= i0 < 1"
    assert text(cell(("divide", -7, 2), dtype=I32)) == "y[i0] = -3 for 0 <= i0 < 1"
    assert text(cell(("subtract", 0, 1), dtype=U8)) == "y[i0] = 255 for 0 <= i0 < 1"
    assert text(cell(("bitwise_not", 0), dtype=U8)) == "y[i0] = 255 for 0 <= i0 < 1"


def cast(source, to, rounding=Rounding.NEAREST_EVEN):
    return kernel(
        [buffer("x", 4, dtype=source), buffer("y", 4, role="out", dtype=to)],
        [
            each(
                axis("i", 4),
                body=[
                    load(v("x", source), "x", I),
                    Cast(v("c", to), v("x", source), at(), rounding),
                    store(1, "y", (I,), v("c", to)),
                ],
            )
        ],
        ver("y", 1),
    )


def test_casts_change_a_number_or_nothing():
    from migrate.numerics.dtypes import DType

    plain = cast(F32, F32)
    assert term(plain) == term(cast(F32, DType.BFLOAT16)) == term(cast(I32, F32))
    assert term(plain) == term(cast(U8, I32)) == term(cast(DType.INT64, I32))
    others = [
        cast(F32, I32),
        cast(F32, I32, Rounding.TOWARD_ZERO),
        cast(F32, I32, Rounding.AWAY),
        cast(F32, BOOL),
        cast(I32, U8),
        cast(I32, DType.INT8),
        cast(I32, U32),
    ]
    assert len({tuple(term(k)) for k in (plain, *others)}) == 8


def copy_of(name, index, extent=6):
    return kernel(
        [buffer(name, extent), buffer("y", 3, role="out")],
        [each(axis("i", 3), body=[load(v("x"), name, index), store(1, "y", (I,), v("x"))])],
        ver("y", 1),
    )


def test_elements_differ_by_tensor_and_place():
    kernels = [copy_of(n, i) for n in "ab" for i in (I, I + 1, 2 * I, 2 - I, 0 * I)]
    assert len({tuple(term(k)) for k in kernels}) == len(kernels)


def test_a_logical_tensor_is_not_its_layout():
    """The transposed content of a buffer is the same tensor at other cells."""
    plain = kernel(
        [buffer("a", 2, 3), buffer("y", 2, 3, role="out")],
        [
            each(
                axis("i", 2),
                axis("j", 3),
                body=[load(v("x"), "a", I, J), store(1, "y", (I, J), v("x"))],
            )
        ],
        ver("y", 1),
    )
    turned = kernel(
        [buffer("b", 3, 2), buffer("z", 3, 2, role="out")],
        [
            each(
                axis("i", 2),
                axis("j", 3),
                body=[load(v("x"), "b", J, I), store(1, "z", (J, I), v("x"))],
            )
        ],
        ver("z", 1),
    )
    elements = np.arange(6).reshape(2, 3).T.reshape(-1)
    tensors = {"b": Tensor("a", (2, 3), elements), "z": Tensor("y", (2, 3), elements)}
    assert normalise(turned, {}, tensors)[0] == normalise(plain, {})[0]
    wrong = {**tensors, "b": Tensor("a", (3, 2))}
    assert normalise(turned, {}, wrong)[0] != normalise(plain, {})[0]


def test_logical_operators_compare_with_zero_first():
    numbers = pointwise("logical_and", dtypes=(F32, F32), result=BOOL)
    truths = pointwise("logical_and", dtypes=(BOOL, BOOL), result=BOOL)
    assert term(numbers) != term(truths)
    given = {"x0": np.array([5.0, 1, 0, 2]), "x1": np.array([1.0, 3, 4, 0])}
    assert forms.value(output(numbers), given).tolist() == [1, 1, 0, 0]


# -- reductions and scans ---------------------------------------------------------------


def reduced(operator, extent=4, *, where=None, initial=None, body=None, arg=None):
    ops = body or [load(v("x"), "x", K)]
    more = {} if where is None else {"where": where}
    start = [] if initial is None else [fill(v("start"), initial)]
    reduce = Reduce(
        v("r"),
        operator,
        (axis("k", extent),),
        tuple(ops),
        arg or v("x"),
        at(),
        initial=None if initial is None else v("start"),
        **more,
    )
    return kernel(
        [buffer("x", 8), buffer("y", 1, role="out")],
        [*start, reduce, store(1, "y", (0,), v("r"))],
        ver("y", 1),
    )


def test_reductions_differ_by_operator_extent_mask_and_start():
    kernels = [
        *(reduced(o) for o in ("add", "multiply", "maximum", "minimum")),
        reduced("add", 5),
        reduced("add", 8, where=less(K, 6)),
        reduced("add", initial=1.0),
        reduced("maximum", initial=0.0),
        reduced("maximum", initial=1.0),
    ]
    assert len({term(k)[0] for k in kernels}) == len(kernels)
    assert term(reduced("add", 4)) == term(reduced("add", 8, where=less(K, 4)))
    assert term(reduced("maximum")) == term(reduced("maximum_number"))
    assert term(reduced("maximum")) == term(reduced("maximum", initial=-math.inf))
    assert term(reduced("multiply")) == term(reduced("multiply", initial=1.0))


@pytest.mark.parametrize(
    ("operator", "wanted"), [("add", 0.0), ("multiply", 1.0), ("maximum", -math.inf)]
)
def test_a_reduction_of_nothing(operator, wanted):
    assert term(reduced(operator, 0)) == term(cell(wanted))


def padded(operator, pad):
    """A reduction over tiles that reach past the end, where `pad` stands in."""
    body = [
        load(v("x"), "x", K, where=less(K, 6)),
        fill(v("p"), pad),
        Select(v("z"), less(K, 6), v("x"), v("p"), at()),
    ]
    return reduced(operator, 8, body=body, arg=v("z"))


def test_padding_with_the_neutral_number_leaves_no_trace():
    for operator, neutral in (("add", 0.0), ("multiply", 1.0), ("maximum", -math.inf)):
        assert term(padded(operator, neutral)) == term(reduced(operator, 6))
    assert term(padded("add", 1.0)) != term(reduced("add", 6))
    assert term(padded("maximum", 0.0)) != term(reduced("maximum", 6))


def test_products_with_padding_leave_no_trace():
    """As a tiled matrix product pads both operands with zeros, or only one."""

    def product(extent, *padding):
        body = []
        for name in ("x", "w"):
            body.append(load(v(name), "x", K if name == "x" else 7 - K, where=less(K, 6)))
            body.append(fill(v(f"{name}0"), 0.0 if name in padding else 2.0))
            body.append(
                Select(v(f"{name}1"), less(K, 6), v(name), v(f"{name}0"), at()),
            )
        body.append(apply(v("p"), "multiply", v("x1"), v("w1")))
        return reduced("add", extent, body=body, arg=v("p"))

    assert term(product(6)) == term(product(8, "x", "w")) == term(product(8, "x"))
    assert term(product(6)) != term(product(8))


def test_counting_is_independent_of_how_it_is_done():
    one = [fill(v("one"), 1.0)]
    counted = reduced("add", 6, body=one, arg=v("one"))
    assert term(counted) == term(cell(6.0))


def test_a_maximum_of_repeated_elements_has_the_form_of_the_maximum():
    clamped = reduced("maximum", 8, body=[load(v("x"), "x", K - 4 * (K // 4))], arg=v("x"))
    assert output(clamped) == output(reduced("maximum", 4))


@pytest.mark.parametrize("operator", ["add", "maximum", "minimum_number", "logical_or"])
def test_scans_keep_their_values(operator):
    dtype = BOOL if operator == "logical_or" else F32
    tested = kernel(
        [buffer("x", 5, dtype=dtype), buffer("y", 2, 5, role="out")],
        [
            each(
                axis("j", 5),
                body=[
                    load(v("x", dtype), "x", J),
                    Scan(v("a"), operator, "j", v("x", dtype), at()),
                    Scan(v("b"), operator, "j", v("x", dtype), at(), inclusive=False),
                    store(1, "y", (0, J), v("a")),
                    store(2, "y", (1, J), v("b")),
                ],
            )
        ],
        ver("y", 2),
    )
    x = np.array([0.0, 0.0, 1.0, 0.0, 1.0]) if dtype is BOOL else np.array([-3.0, -1, -4, -1, -5])
    found = evaluate(tested, {}, Reals({"x": x})).outputs["y"].reshape(2, 5)
    assert forms.value(output(tested), {"x": x}).tolist() == found.tolist()


def test_an_atomic_sum_is_the_reduction():
    scatter = Scatter(ver("y", 2), ver("y", 1), place(0), v("x"), at(), combine="add")
    tested = kernel(
        [buffer("x", 8), buffer("y", 1, role="out")],
        [
            fill(v("z"), 0.0),
            store(1, "y", (0,), v("z")),
            each(axis("i", 4), body=[load(v("x"), "x", I), scatter]),
        ],
        ver("y", 2),
    )
    assert term(tested) == term(reduced("add", 4))


def test_every_point_takes_part_in_an_atomic():
    """`atomicAdd(&y, 1)`, from eight points."""
    scatter = Scatter(ver("y", 2), ver("y", 1), place(0), v("one"), at(), combine="add")
    tested = kernel(
        [buffer("y", 1, role="out")],
        [
            fill(v("z"), 0.0),
            fill(v("one"), 1.0),
            store(1, "y", (0,), v("z")),
            each(axis("i", 8), body=[scatter]),
        ],
        ver("y", 2),
    )
    assert term(tested) == term(cell(8.0))
    assert evaluate(tested, {}, Reals({})).outputs["y"].tolist() == [8]


# -- conditions on data -----------------------------------------------------------------


def positive_only(how):
    """`y[0]` = the sum of the positive elements of x, with an atomic."""
    body = [load(v("x"), "x", I), fill(v("z"), 0.0), apply(v("p", BOOL), "greater", v("x"), v("z"))]
    if how == "select":
        body += [Select(v("s"), v("p", BOOL), v("x"), v("z"), at())]
        body += [Scatter(ver("y", 2), ver("y", 1), place(0), v("s"), at(), combine="add")]
    elif how == "mask":
        mask = v("p", BOOL)
        body += [
            Scatter(ver("y", 2), ver("y", 1), place(0), v("x"), at(), combine="add", mask=mask)
        ]
    else:
        scatter = Scatter(ver("y", 3), ver("y", 1), place(0), v("x"), at(), combine="add")
        merge = Merge(ver("y", 2), ver("y", 3), ver("y", 1))
        body += [Guard(v("p", BOOL), (scatter,), at(), (), (merge,))]
    return kernel(
        [buffer("x", 4), buffer("y", 1, role="out")],
        [fill(v("o"), 0.0), store(1, "y", (0,), v("o")), each(axis("i", 4), body=body)],
        ver("y", 2),
    )


def test_conditions_on_data_select():
    x = np.array([3.0, -1.0, 4.0, -1.0])
    for how in ("select", "mask", "guard"):
        assert forms.value(output(positive_only(how)), {"x": x}).tolist() == [7]
    assert term(positive_only("select")) == term(positive_only("mask"))
    assert term(positive_only("mask")) == term(positive_only("guard"))


def test_stores_of_several_points_to_one_cell_under_a_condition_keep_all_conditions():
    """`if (x[i] > 0) y[0] = 1`, from every point."""
    body = [load(v("x"), "x", I), fill(v("z"), 0.0), fill(v("one"), 1.0)]
    body += [apply(v("p", BOOL), "greater", v("x"), v("z"))]
    body += [store(2, "y", (0,), v("one"), mask=v("p", BOOL))]
    tested = kernel(
        [buffer("x", 4), buffer("y", 1, role="out")],
        [fill(v("o"), 0.0), store(1, "y", (0,), v("o")), each(axis("i", 4), body=body)],
        ver("y", 2),
    )
    for x, wanted in (([-1, 2, -1, -1], 1), ([-1, -2, -1, -1], 0), ([1, -1, -1, -1], 1)):
        assert forms.value(output(tested), {"x": np.array(x)}).tolist() == [wanted]


def test_a_condition_on_positions_is_decided():
    tested = kernel(
        [buffer("x", 4), buffer("y", 4, role="out")],
        [
            each(
                axis("i", 4),
                body=[
                    load(v("x"), "x", I),
                    Position(v("p", I32), I, at()),
                    fill(v("two", I32), 2),
                    apply(v("c", BOOL), "less", v("p", I32), v("two", I32)),
                    fill(v("z"), 0.0),
                    Select(v("r"), v("c", BOOL), v("x"), v("z"), at()),
                    store(1, "y", (I,), v("r")),
                ],
            )
        ],
        ver("y", 1),
    )
    assert text(tested) == "y[i0] = x[i0] for 0 <= i0 < 2\ny[i0] = 0 for 2 <= i0 < 4"


# -- what nobody wrote, and what is not understood --------------------------------------


def reads_scratch(*ops, value):
    return kernel(
        [buffer("x", 4), buffer("s", 4, role="scratch"), buffer("y", 4, role="out")],
        [
            each(
                axis("i", 4),
                body=[load(v("x"), "x", I), load(v("s"), "s", I), *ops, store(1, "y", (I,), value)],
            )
        ],
        ver("y", 1),
    )


@pytest.mark.parametrize(
    "ops",
    [
        [apply(v("r"), "subtract", v("s"), v("s"))],
        [apply(v("r"), "divide", v("s"), v("s"))],
        [apply(v("r"), "subtract", v("x"), v("s"))],
        [fill(v("z"), 0.0), apply(v("r"), "multiply", v("s"), v("z"))],
        [
            apply(v("t"), "add", v("x"), v("s")),
            apply(v("r"), "subtract", v("t"), v("t")),
        ],
        [
            apply(v("t"), "exp", v("s")),
            apply(v("c", BOOL), "less", v("x"), v("x")),
            Select(v("r"), v("c", BOOL), v("t"), v("x"), at()),
        ],
    ],
)
def test_what_is_computed_from_nothing_is_undefined(ops):
    form, evaluation = normalise(reads_scratch(*ops, value=v("r")), {})
    (piece,) = form.outputs[0].pieces
    assert piece.form == Missing(used=True)
    assert not form.understood
    assert [t.kind for t in evaluation.trouble] == ["unwritten-read"]


def test_a_copy_of_nothing_is_noted():
    form, evaluation = normalise(reads_scratch(value=v("s")), {})
    assert form.outputs[0].pieces[0].form == Missing()
    assert [(t.kind, t.count) for t in evaluation.trouble] == [("unwritten-read", 4)]


def test_what_is_not_used_does_no_harm():
    ops = [apply(v("e"), "exp", v("s")), Select(v("r"), less(I, 9), v("x"), v("e"), at())]
    form, evaluation = normalise(reads_scratch(*ops, value=v("r")), {})
    assert form.understood
    assert evaluation.trouble == ()
    assert str(form) == "y[i0] = x[i0] for 0 <= i0 < 4\n"


def test_cells_that_nobody_wrote_are_not_those_that_hold_nothing_computed():
    half = kernel(
        [buffer("x", 4), buffer("y", 4, role="out")],
        [each(axis("i", 2), body=[load(v("x"), "x", I), store(1, "y", (I,), v("x"))])],
        ver("y", 1),
    )
    form, evaluation = normalise(half, {})
    assert form.understood
    assert evaluation.trouble == ()
    assert str(form) == "y[i0] = x[i0] for 0 <= i0 < 2\ny[i0] = nothing for 2 <= i0 < 4\n"


def opaque(op, value=None):
    return kernel(
        [buffer("x", 4), buffer("y", 4, role="out")],
        [
            each(
                axis("i", 4),
                body=[load(v("x"), "x", I), op, store(1, "y", (I,), value or v("o"))],
            )
        ],
        ver("y", 1),
    )


@pytest.mark.parametrize(
    "op",
    [
        Opaque((v("o"),), (v("x"),), "asm(...)", "inline assembly", at()),
        Random(v("o"), "uniform", (v("x"),), I, at()),
    ],
)
def test_what_is_not_understood_equals_nothing(op):
    one, other = normalise(opaque(op), {})[0], normalise(opaque(op), {})[0]
    assert not one.understood
    assert one != other


def test_what_is_not_understood_shows_through_an_expression_too_large_to_write():
    op = Opaque((v("o"),), (), "?", "?", at())
    steps = [apply(v("v0"), "exp", v("o"))]
    steps += [apply(v(f"v{n}"), "sin", v(f"v{n - 1}")) for n in range(1, 200)]
    tested = kernel(
        [buffer("y", 1, role="out")],
        [op, *steps, store(1, "y", (0,), v("v199"))],
        ver("y", 1),
    )
    form, _ = normalise(tested, {})
    assert not form.understood
    assert any(isinstance(f, Unknown) for f in walk(form.outputs[0].pieces[0].form))


# -- size ---------------------------------------------------------------------------------


def chain(length, operators, extent=4):
    body = [load(v("v0"), "x", I)]
    for n in range(1, length + 1):
        operator = operators[n % len(operators)]
        binary = operator in ("add", "multiply", "maximum")
        args = (v(f"v{n - 1}"), v("v0")) if binary else (v(f"v{n - 1}"),)
        body.append(apply(v(f"v{n}"), operator, *args))
    body.append(store(1, "y", (I,), v(f"v{length}")))
    return kernel(
        [buffer("x", extent), buffer("y", extent, role="out")],
        [each(axis("i", extent), body=body)],
        ver("y", 1),
    )


@pytest.mark.parametrize(
    "operators", [("add",), ("multiply",), ("exp",), ("add", "exp"), ("add", "multiply")]
)
def test_deep_chains_end(operators):
    form, _ = normalise(chain(3000, operators), {})
    assert form == normalise(chain(3000, operators), {})[0]
    assert form != normalise(chain(2999, operators), {})[0]
    assert str(form)


def test_a_deep_sum_is_flat():
    assert text(chain(99, ("add",))) == "y[i0] = add(100*x[i0]) for 0 <= i0 < 4"


def total(place, extent=10_000, size=40_000):
    """A kernel `y[i] = sum of x[place]` over `extent` values of `K`."""
    summed = Reduce(v("r"), "add", (axis("k", extent),), (load(v("x"), "x", place),), v("x"), at())
    return kernel(
        [buffer("x", size), buffer("y", 2, role="out")],
        [each(axis("i", 2), body=[summed, store(1, "y", (I,), v("r"))])],
        ver("y", 1),
    )


def test_wide_expressions_end():
    wide = total(K // 3 * 5 + K % 3 + I)
    form, _ = normalise(wide, {})
    assert isinstance(form.outputs[0].pieces[0].form, Hashed)
    assert form == normalise(wide, {})[0]


def test_a_sum_over_equal_steps_is_written_out_however_long_it_is():
    assert text(total(2 * K + I)) == "y[i0] = add(over 10000: x[i0 + 2*k0]) for 0 <= i0 < 2"
    assert output(total(2 * K + I)) == output(total(19_998 - 2 * K + I))
    assert output(total(2 * K + I)) != output(total(3 * K + I))
    x = np.random.default_rng(0).normal(size=40_000)
    for step in (2, 3):
        wanted = [x[i : i + 10_000 * step : step].sum() for i in range(2)]
        assert forms.value(output(total(step * K + I)), {"x": x}) == pytest.approx(
            wanted, rel=1e-12
        )


def window(first, second, operator="add"):
    """A kernel `y[i] = operator of x[i + p, q] * w[p, q]` over two axes, the first outside."""
    summed = Reduce(
        v("r"),
        operator,
        (first, second),
        (
            load(v("x"), "x", I + Index.axis("p"), Index.axis("q")),
            load(v("w"), "w", Index.axis("p"), Index.axis("q")),
            apply(v("m"), "multiply", v("x"), v("w")),
        ),
        v("m"),
        at(),
    )
    return kernel(
        [buffer("x", 40, 300), buffer("w", 40, 300), buffer("y", 2, role="out")],
        [each(axis("i", 2), body=[summed, store(1, "y", (I,), v("r"))])],
        ver("y", 1),
    )


def test_a_sum_over_a_grid_is_a_sum_of_sums():
    rng = np.random.default_rng(0)
    given = {"x": rng.normal(size=(40, 300)), "w": rng.normal(size=(40, 300))}
    for rows, columns in ((3, 3), (30, 200)):
        p, q = axis("p", rows), axis("q", columns)
        inner = "multiply(w[k0, k1], x[i0 + k0, k1])"
        wanted = f"y[i0] = add(over {rows}: add(over {columns}: {inner})) for 0 <= i0 < 2"
        assert text(window(p, q)) == text(window(q, p)) == wanted
        x, w = given["x"], given["w"][:rows, :columns]
        total = [(x[i : i + rows, :columns] * w).sum() for i in range(2)]
        assert forms.value(output(window(p, q)), given) == pytest.approx(total, rel=1e-12)
    assert output(window(axis("p", 3), axis("q", 6))) != output(window(axis("p", 6), axis("q", 3)))
    assert (
        text(window(axis("p", 3), axis("q", 4), "multiply")).count("over 3: multiply(over 4") == 2
    )


def test_operands_in_no_order_are_listed():
    """Two coordinates are in equal steps always: a grid has rows of three."""
    pairs = total(K // 2 * 10 + K % 2 * 3 + I, extent=8)
    assert text(pairs).startswith("y[i0] = add(over 8: x[table")
    x = np.arange(100.0) ** 2
    wanted = [sum(x[10 * k + i] + x[10 * k + 3 + i] for k in range(4)) for i in range(2)]
    assert forms.value(output(pairs), {"x": x}) == pytest.approx(wanted)


def test_rows_in_equal_steps_that_are_no_grid_are_listed():
    """Of six places, rows of three begin right and end otherwise."""
    uneven = total(K + K // 3 * 7 + K // 5 + I, extent=6)
    assert text(uneven).startswith("y[i0] = add(over 6: x[table")


def test_every_cell_its_own_number():
    """An index written out is one piece, not one a cell."""

    def iota(scale):
        return kernel(
            [buffer("y", 50, 100, role="out")],
            [
                each(
                    axis("i", 50),
                    axis("j", 100),
                    body=[
                        Position(v("p"), 100 * I + J, at()),
                        fill(v("c"), scale),
                        apply(v("r"), "multiply", v("p"), v("c")),
                        store(1, "y", (I, J), v("r")),
                    ],
                )
            ],
            ver("y", 1),
        )

    whole = output(iota(3.0))
    assert str(whole) == "y[i0, i1] = 300*i0 + 3*i1 for 0 <= i0 < 50, 0 <= i1 < 100"
    for scale in (3.0, 0.3):
        wanted = np.arange(5000.0).reshape(50, 100) * scale
        assert np.allclose(forms.value(output(iota(scale)), {}), wanted, rtol=1e-6)
    assert output(iota(0.3)) == output(iota(0.3)) != output(iota(0.4))


@pytest.mark.parametrize("extent", [0, 1])
def test_outputs_of_no_or_one_cell(extent):
    form, _ = normalise(chain(2, ("exp",), extent), {})
    assert len(form.outputs[0].pieces) == extent
    assert forms.value(form.outputs[0], {"x": np.zeros(extent)}).shape == (extent,)


def test_buffers_without_dimensions():
    tested = kernel(
        [buffer("x"), buffer("y", role="out")],
        [load(v("x"), "x"), apply(v("r"), "exp", v("x")), store(1, "y", (), v("r"))],
        ver("y", 1),
    )
    found = output(tested)
    assert str(found.pieces[0].form) == "exp(x[])"
    assert forms.value(found, {"x": np.array(0.0)}).tolist() == 1.0


@pytest.mark.parametrize(
    ("budget", "kind"), [(Budget(steps=2000), "steps"), (Budget(bytes=20_000), "bytes")]
)
def test_work_stops_at_the_budget(budget, kind):
    with pytest.raises(Exhausted) as stopped:
        normalise(chain(500, ("exp",), 1000), {}, meter=Meter(budget))
    assert stopped.value.kind == kind


def test_a_long_scan_ends():
    tested = kernel(
        [buffer("x", 20_000), buffer("y", 20_000, role="out")],
        [
            each(
                axis("j", 20_000),
                body=[
                    load(v("x"), "x", J),
                    Scan(v("s"), "add", "j", v("x"), at()),
                    store(1, "y", (J,), v("s")),
                ],
            )
        ],
        ver("y", 1),
    )
    with pytest.raises(Exhausted):
        normalise(tested, {}, meter=Meter(Budget(steps=1_000_000)))


def test_a_reduction_without_neutral_element_is_refused_where_it_needs_one():
    with pytest.raises(Unevaluable):
        normalise(reduced("power", 8, where=less(K, 3)), {})


def test_a_loop_that_carries_an_infinity():
    """The running maximum of online softmax starts at minus infinity."""
    fold = Fold(
        (axis("k", 3, AxisKind.SEQUENTIAL),),
        (
            State(v("m"), v("low"), v("m0"), v("m1")),
            State(v("s"), v("zero"), v("s0"), v("s1")),
        ),
        (
            load(v("x"), "x", K),
            apply(v("m1"), "maximum", v("m0"), v("x")),
            apply(v("d"), "subtract", v("m0"), v("m1")),
            apply(v("scale"), "exp", v("d")),
            apply(v("old"), "multiply", v("s0"), v("scale")),
            apply(v("t"), "subtract", v("x"), v("m1")),
            apply(v("e"), "exp", v("t")),
            apply(v("s1"), "add", v("old"), v("e")),
        ),
        at(),
    )
    tested = kernel(
        [buffer("x", 3), buffer("y", 1, role="out")],
        [fill(v("low"), -math.inf), fill(v("zero"), 0.0), fold, store(1, "y", (0,), v("s"))],
        ver("y", 1),
    )
    x = np.array([1.0, 3.0, 2.0])
    wanted = np.exp(x - 3.0).sum()
    assert forms.value(output(tested), {"x": x})[0] == pytest.approx(wanted, rel=1e-12)
    assert not any(
        isinstance(f, Number) and not math.isfinite(f.value)
        for f in walk(output(tested).pieces[0].form)
    )
