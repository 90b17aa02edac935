"""What the evaluator makes of every kind of op, in numbers."""

from __future__ import annotations

import numpy as np
import pytest

from migrate.budget import Budget, Exhausted, Meter
from migrate.ir.evaluate import Unevaluable, evaluate
from migrate.ir.index import Index, minimum
from migrate.ir.nodes import (
    AsyncCopy,
    AxisKind,
    Barrier,
    Cast,
    Fold,
    Gather,
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
    Transpose,
)
from migrate.ir.predicate import less
from migrate.ir.reals import Reals
from migrate.ir.validate import problems
from tests.ir.build import (
    BOOL,
    F32,
    I32,
    U8,
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

X = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0])


def run(tested, sizes=None, **inputs):
    assert problems(tested) == ()
    return evaluate(tested, sizes or {}, Reals(inputs))


def result(tested, sizes=None, **inputs):
    found = run(tested, sizes, **inputs)
    assert found.trouble == ()
    (content,) = found.outputs.values()
    return content.tolist()


def guarded(condition, then, otherwise, merges, before=()):
    guard = Guard(condition, tuple(then), at(), tuple(otherwise), tuple(merges))
    body = [load(v("x"), "x", I), *before, guard]
    return kernel(
        [buffer("x", 6), buffer("y", 6, role="out")],
        [each(axis("i", 6), body=body)],
        merges[0].result,
    )


def test_a_guard_merges_what_both_branches_store():
    tested = guarded(
        less(I, 2),
        [store(1, "y", (I,), v("x"))],
        [apply(v("n"), "negate", v("x")), store(2, "y", (I,), v("n"), into=0)],
        [Merge(ver("y", 3), ver("y", 1), ver("y", 2))],
    )
    assert result(tested, x=X) == [3, 1, -4, -1, -5, -9]


def test_a_guard_without_otherwise_keeps_what_was_there():
    zero = [fill(v("z"), 0.0), store(1, "y", (I,), v("z"))]
    tested = guarded(
        less(I, 2),
        [store(2, "y", (I,), v("x"))],
        [],
        [Merge(ver("y", 3), ver("y", 2), ver("y", 1))],
        before=zero,
    )
    assert result(tested, x=X) == [3, 1, 0, 0, 0, 0]


def test_a_guard_merges_values():
    guard = Guard(
        less(I, 2),
        (apply(v("n"), "negate", v("x")),),
        at(),
        (),
        (Merge(v("m"), v("n"), v("x")),),
    )
    tested = kernel(
        [buffer("x", 6), buffer("y", 6, role="out")],
        [each(axis("i", 6), body=[load(v("x"), "x", I), guard, store(1, "y", (I,), v("m"))])],
        ver("y", 1),
    )
    assert result(tested, x=X) == [-3, -1, 4, 1, 5, 9]


def test_a_guard_on_data():
    condition = [fill(v("c"), 3.5), apply(v("big", BOOL), "greater", v("x"), v("c"))]
    tested = guarded(
        v("big", BOOL),
        [store(1, "y", (I,), v("x"))],
        [fill(v("z"), 0.0), store(2, "y", (I,), v("z"), into=0)],
        [Merge(ver("y", 3), ver("y", 1), ver("y", 2))],
        before=condition,
    )
    assert result(tested, x=X) == [0, 0, 4, 0, 5, 9]


@pytest.mark.parametrize("taken", [True, False])
def test_a_guarded_loop_keeps_its_stores(taken):
    loop = Fold(
        (axis("k", 2, AxisKind.SEQUENTIAL),),
        (State(ver("y", 3), ver("y", 0), ver("y", 1), ver("y", 2)),),
        (store(2, "y", (I + 3 * K,), v("x")),),
        at(),
    )
    tested = kernel(
        [buffer("x", 6), buffer("y", 6, role="out")],
        [
            each(
                axis("i", 3),
                body=[
                    load(v("x"), "x", I),
                    Guard(
                        less(I, 3 if taken else 0),
                        (loop,),
                        at(),
                        (),
                        (Merge(ver("y", 4), ver("y", 3), ver("y", 0)),),
                    ),
                ],
            )
        ],
        ver("y", 4),
    )
    assert result(tested, x=X) == (
        [3, 1, 4] * 2 if taken else pytest.approx([np.nan] * 6, nan_ok=True)
    )


def test_a_loop_carries_values_and_versions():
    """y[i, k] = the sum of x up to k, and the last sum at the end."""
    fold = Fold(
        (axis("k", 3, AxisKind.SEQUENTIAL),),
        (
            State(v("total"), v("zero"), v("sum"), v("more")),
            State(ver("y", 3), ver("y", 0), ver("y", 1), ver("y", 2)),
        ),
        (
            load(v("x"), "x", I, K),
            apply(v("more"), "add", v("sum"), v("x")),
            store(2, "y", (I, K), v("more")),
        ),
        at(),
    )
    tested = kernel(
        [buffer("x", 2, 3), buffer("y", 2, 4, role="out")],
        [
            each(
                axis("i", 2),
                body=[fill(v("zero"), 0.0), fold, store(4, "y", (I, 3), v("total"))],
            )
        ],
        ver("y", 4),
    )
    assert result(tested, x=X) == [3, 4, 8, 8, 1, 6, 15, 15]


def test_a_loop_without_rounds_gives_what_it_was_given():
    fold = Fold(
        (axis("k", 0, AxisKind.SEQUENTIAL),),
        (State(v("total"), v("x"), v("sum"), v("more")),),
        (apply(v("more"), "add", v("sum"), v("sum")),),
        at(),
    )
    tested = kernel(
        [buffer("x", 6), buffer("y", 6, role="out")],
        [each(axis("i", 6), body=[load(v("x"), "x", I), fold, store(1, "y", (I,), v("total"))])],
        ver("y", 1),
    )
    assert result(tested, x=X) == X.tolist()


def test_nested_loops_store_into_what_they_carry():
    """y[0] counts the rounds of a triangular nest."""
    one = [load(v("old"), "y", 0, number=4), apply(v("new"), "add", v("old"), v("one"))]
    inner = Fold(
        (axis("j", K + 1, AxisKind.SEQUENTIAL),),
        (State(ver("y", 6), ver("y", 3), ver("y", 4), ver("y", 5)),),
        (*one, store(5, "y", (0,), v("new"))),
        at(),
    )
    outer = Fold(
        (axis("k", 4, AxisKind.SEQUENTIAL),),
        (State(ver("y", 7), ver("y", 1), ver("y", 3), ver("y", 6)),),
        (inner,),
        at(),
    )
    tested = kernel(
        [buffer("y", 1, role="out")],
        [fill(v("one"), 1.0), fill(v("zero"), 0.0), store(1, "y", (0,), v("zero")), outer],
        ver("y", 7),
    )
    assert result(tested) == [10]


def test_an_old_version_keeps_its_content_after_a_store():
    """A reversal through one scratch buffer that is overwritten before it is read."""
    tested = kernel(
        [buffer("x", 6), buffer("s", 6, role="scratch"), buffer("y", 6, role="out")],
        [
            each(axis("i", 6), body=[load(v("x"), "x", I), store(1, "s", (I,), v("x"))]),
            each(
                axis("j", 6),
                body=[
                    load(v("a"), "s", J, number=1),
                    apply(v("n"), "negate", v("a")),
                    store(2, "s", (J,), v("n")),
                    load(v("old"), "s", 5 - J, number=1),
                    load(v("new"), "s", J, number=2),
                    apply(v("r"), "add", v("old"), v("new")),
                    store(1, "y", (J,), v("r")),
                ],
            ),
        ],
        ver("y", 1),
    )
    assert result(tested, x=X) == (X[::-1] - X).tolist()


def test_a_version_from_outside_a_loop_survives_its_rounds():
    """Each round starts from the same content, whatever the round before stored."""
    fold = Fold(
        (axis("k", 3, AxisKind.SEQUENTIAL),),
        (State(v("last"), v("zero"), v("kept"), v("next")),),
        (
            load(v("was"), "s", 0, number=1),
            apply(v("more"), "add", v("was"), v("one")),
            store(2, "s", (0,), v("more")),
            load(v("now"), "s", 0, number=2),
            apply(v("next"), "add", v("kept"), v("now")),
        ),
        at(),
    )
    tested = kernel(
        [buffer("s", 1, role="scratch"), buffer("y", 1, role="out")],
        [
            fill(v("one"), 1.0),
            fill(v("zero"), 0.0),
            store(1, "s", (0,), v("one")),
            fold,
            store(1, "y", (0,), v("last")),
        ],
        ver("y", 1),
    )
    assert result(tested) == [6]


def test_the_extent_of_an_inner_axis_may_depend_on_an_outer_one():
    """Sums over triangles, as a reduction and as a loop."""
    reduce = Reduce(v("sum"), "add", (axis("k", I + 1),), (load(v("x"), "x", K),), v("x"), at())
    fold = Fold(
        (axis("j", I + 1, AxisKind.SEQUENTIAL),),
        (State(v("total"), v("zero"), v("so_far"), v("more")),),
        (load(v("z"), "x", J), apply(v("more"), "add", v("so_far"), v("z"))),
        at(),
    )
    body = [fill(v("zero"), 0.0), reduce, fold]
    tested = kernel(
        [buffer("x", 6), buffer("y", 6, 2, role="out")],
        [
            each(
                axis("i", 6),
                body=[*body, store(1, "y", (I, 0), v("sum")), store(2, "y", (I, 1), v("total"))],
            )
        ],
        ver("y", 2),
    )
    assert result(tested, x=X) == np.repeat(np.cumsum(X), 2).tolist()


def test_sizes_and_ragged_tiles():
    n = Index.size("n")
    tested = kernel(
        [buffer("x", n), buffer("y", n, role="out")],
        [
            each(
                axis("i", (n + 3) // 4),
                axis("j", minimum(4, n - 4 * I)),
                body=[load(v("x"), "x", 4 * I + J), store(1, "y", (4 * I + J,), v("x"))],
            )
        ],
        ver("y", 1),
        sizes=["n"],
    )
    assert result(tested, {"n": 6}, x=X) == X.tolist()
    with pytest.raises(Unevaluable, match="n has no value"):
        evaluate(tested, {}, Reals({}))


def test_touching_out_of_range_is_noted_and_gives_nothing():
    tested = kernel(
        [buffer("x", 6), buffer("y", 6, role="out")],
        [each(axis("i", 6), body=[load(v("x"), "x", I + 1), store(1, "y", (I - 1,), v("x"))])],
        ver("y", 1),
    )
    found = run(tested, x=X)
    assert [(t.kind, t.buffer, t.count, t.example) for t in found.trouble] == [
        ("out-of-range", "x", 1, (6, 6)),
        ("out-of-range", "y", 1, (-1, 6)),
    ]
    assert found.outputs["y"].tolist() == pytest.approx([4, 1, 5, 9, np.nan, np.nan], nan_ok=True)


def test_out_of_range_in_one_dimension_is_noted_though_the_cell_exists():
    tested = kernel(
        [buffer("x", 2, 3), buffer("y", 1, role="out")],
        [load(v("x"), "x", 0, 3), store(1, "y", (0,), v("x"))],
        ver("y", 1),
    )
    (trouble,) = run(tested, x=X).trouble
    assert trouble.kind == "out-of-range"


def test_points_that_take_no_part_touch_nothing():
    tested = kernel(
        [buffer("x", 6), buffer("y", 6, role="out")],
        [
            each(
                axis("i", 9),
                body=[load(v("x"), "x", I), store(1, "y", (I,), v("x"))],
                where=less(I, 6),
            )
        ],
        ver("y", 1),
    )
    assert result(tested, x=X) == X.tolist()


def test_points_that_disagree_about_a_cell_are_a_conflict():
    def tested(value):
        return kernel(
            [buffer("x", 6), buffer("y", 3, role="out")],
            [each(axis("i", 6), body=[value, store(1, "y", (I // 2,), v("x"))])],
            ver("y", 1),
        )

    (trouble,) = run(tested(load(v("x"), "x", I)), x=X).trouble
    assert (trouble.kind, trouble.buffer, trouble.count) == ("conflict", "y", 3)
    assert result(tested(load(v("x"), "x", I // 2)), x=X) == [3, 1, 4]


def test_a_masked_store_keeps_what_was_there():
    tested = kernel(
        [buffer("x", 6), buffer("y", 6, role="out")],
        [
            each(
                axis("i", 6),
                body=[
                    load(v("x"), "x", I),
                    fill(v("c"), 3.5),
                    store(1, "y", (I,), v("c")),
                    apply(v("big", BOOL), "greater", v("x"), v("c")),
                    store(2, "y", (I,), v("x"), mask=v("big", BOOL)),
                ],
            )
        ],
        ver("y", 2),
    )
    assert result(tested, x=X) == [3.5, 3.5, 4, 3.5, 5, 9]


@pytest.mark.parametrize(
    ("combine", "wanted"),
    [("add", [8, 15]), ("maximum", [4, 9]), ("multiply", [12, 45]), ("subtract", [-8, -13])],
)
def test_a_scatter_combines_all_that_meet_in_a_cell(combine, wanted):
    start = {"add": 0.0, "maximum": 0.0, "multiply": 1.0, "subtract": 2.0}[combine]
    if combine == "subtract":
        wanted = [start - 8, start - 15]
    tested = kernel(
        [buffer("x", 6), buffer("at", 6, dtype=I32), buffer("y", 2, role="out")],
        [
            each(axis("j", 2), body=[fill(v("z"), start), store(1, "y", (J,), v("z"))]),
            each(
                axis("i", 6),
                body=[
                    load(v("x"), "x", I),
                    load(v("to", I32), "at", I),
                    Scatter(
                        ver("y", 2), ver("y", 1), (v("to", I32),), v("x"), at(), combine=combine
                    ),
                ],
            ),
        ],
        ver("y", 2),
    )
    assert result(tested, x=X, at=[0, 0, 0, 1, 1, 1]) == wanted


def test_a_masked_scatter_combines_only_where_the_mask_holds():
    tested = kernel(
        [buffer("x", 6), buffer("y", 1, role="out")],
        [
            fill(v("z"), 0.0),
            store(1, "y", (0,), v("z")),
            each(
                axis("i", 6),
                body=[
                    load(v("x"), "x", I),
                    fill(v("c"), 3.5),
                    apply(v("big", BOOL), "greater", v("x"), v("c")),
                    Scatter(
                        ver("y", 2),
                        ver("y", 1),
                        place(0),
                        v("x"),
                        at(),
                        combine="add",
                        mask=v("big", BOOL),
                    ),
                ],
            ),
        ],
        ver("y", 2),
    )
    assert result(tested, x=X) == [18]


def test_a_gather_reads_where_data_says():
    tested = kernel(
        [buffer("x", 6), buffer("at", 3, dtype=I32), buffer("y", 3, role="out")],
        [
            each(
                axis("i", 3),
                body=[
                    load(v("from", I32), "at", I),
                    Gather(v("g"), ver("x"), (v("from", I32),), at()),
                    store(1, "y", (I,), v("g")),
                ],
            )
        ],
        ver("y", 1),
    )
    assert result(tested, x=X, at=[5, 0, 2]) == [9, 3, 4]
    (trouble,) = run(tested, x=X, at=[5, -1, 6]).trouble
    assert (trouble.kind, trouble.count) == ("out-of-range", 2)


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("operator", ["add", "multiply", "maximum", "minimum_number"])
def test_a_scan_is_a_running_reduction(operator, inclusive):
    scan = Scan(v("s"), operator, "j", v("x"), at(), inclusive=inclusive)
    tested = kernel(
        [buffer("x", 2, 3), buffer("y", 2, 3, role="out")],
        [
            each(
                axis("i", 2),
                axis("j", 3),
                body=[load(v("x"), "x", I, J), scan, store(1, "y", (I, J), v("s"))],
            )
        ],
        ver("y", 1),
    )
    step = {
        "add": np.add,
        "multiply": np.multiply,
        "maximum": np.maximum,
        "minimum_number": np.minimum,
    }[operator]
    first = {"add": 0.0, "multiply": 1.0, "maximum": -np.inf, "minimum_number": np.inf}[operator]
    rows = X.reshape(2, 3)
    wanted = step.accumulate(rows, axis=1)
    if not inclusive:
        wanted = np.concatenate([np.full((2, 1), first), wanted[:, :-1]], axis=1)
    assert result(tested, x=X) == wanted.reshape(-1).tolist()


def test_a_scan_passes_over_points_that_take_no_part():
    tested = kernel(
        [buffer("x", 6), buffer("y", 6, role="out")],
        [
            each(
                axis("j", 6),
                where=less(J % 3, 2),
                body=[
                    load(v("x"), "x", J),
                    Scan(v("s"), "add", "j", v("x"), at()),
                    store(1, "y", (J,), v("s")),
                ],
            )
        ],
        ver("y", 1),
    )
    nan = np.nan
    assert result(tested, x=X) == pytest.approx([3, 4, nan, 5, 10, nan], nan_ok=True)


def test_a_scan_along_a_loop_is_refused():
    fold = Fold(
        (axis("j", 6, AxisKind.SEQUENTIAL),),
        (State(ver("y", 3), ver("y", 0), ver("y", 1), ver("y", 2)),),
        (
            load(v("x"), "x", J),
            Scan(v("s"), "add", "j", v("x"), at()),
            store(2, "y", (J,), v("s")),
        ),
        at(),
    )
    tested = kernel([buffer("x", 6), buffer("y", 6, role="out")], [fold], ver("y", 3))
    with pytest.raises(Unevaluable, match="loop"):
        run(tested, x=X)


def test_a_transpose_gives_the_numbers_to_other_axes():
    turn = Transpose(v("t"), v("x"), (("i", "j"), ("j", "i")), at())

    def tested(rows, columns):
        return kernel(
            [buffer("x", rows, columns), buffer("y", rows, columns, role="out")],
            [
                each(
                    axis("i", rows),
                    axis("j", columns),
                    body=[load(v("x"), "x", I, J), turn, store(1, "y", (I, J), v("t"))],
                )
            ],
            ver("y", 1),
        )

    square = np.arange(9.0)
    assert result(tested(3, 3), x=square) == square.reshape(3, 3).T.reshape(-1).tolist()
    with pytest.raises(Unevaluable, match="same points"):
        run(tested(2, 3), x=X)


def test_copies_selects_positions_and_barriers():
    copy = AsyncCopy(ver("s", 1), ver("s"), place(5 - I), ver("x"), place(I), at())
    tested = kernel(
        [buffer("x", 6), buffer("s", 6, role="scratch"), buffer("y", 6, role="out")],
        [
            each(axis("i", 6), body=[copy]),
            Barrier("block", at()),
            each(
                axis("j", 6),
                body=[
                    load(v("s"), "s", J, number=1),
                    Position(v("p"), 10 * J, at()),
                    Select(v("r"), less(J, 3), v("s"), v("p"), at()),
                    store(1, "y", (J,), v("r")),
                ],
            ),
        ],
        ver("y", 1),
    )
    assert result(tested, x=X) == [9, 5, 1, 30, 40, 50]


@pytest.mark.parametrize(
    ("rounding", "wanted"),
    [
        (Rounding.NEAREST_EVEN, [2, 2, -2, 3]),
        (Rounding.TOWARD_ZERO, [1, 2, -1, 2]),
        (Rounding.AWAY, [2, 3, -2, 3]),
    ],
)
def test_casts_to_integers_round(rounding, wanted):
    tested = kernel(
        [buffer("x", 4), buffer("y", 4, role="out", dtype=I32)],
        [
            each(
                axis("i", 4),
                body=[
                    load(v("x"), "x", I),
                    Cast(v("c", I32), v("x"), at(), rounding),
                    store(1, "y", (I,), v("c", I32)),
                ],
            )
        ],
        ver("y", 1),
    )
    assert result(tested, x=[1.5, 2.5, -1.5, 2.6]) == wanted


def test_casts_between_integers_wrap_and_to_bool_compare():
    def tested(to):
        return kernel(
            [buffer("x", 4, dtype=I32), buffer("y", 4, role="out", dtype=to)],
            [
                each(
                    axis("i", 4),
                    body=[
                        load(v("x", I32), "x", I),
                        Cast(v("c", to), v("x", I32), at()),
                        store(1, "y", (I,), v("c", to)),
                    ],
                )
            ],
            ver("y", 1),
        )

    assert result(tested(U8), x=[-1, 0, 255, 300]) == [255, 0, 255, 44]
    assert result(tested(BOOL), x=[-1, 0, 255, 300]) == [1, 0, 1, 1]
    assert result(tested(F32), x=[-1, 0, 255, 300]) == [-1, 0, 255, 300]


def test_integers_divide_as_in_c():
    tested = pointwise("divide", dtypes=(I32, I32), result=I32)
    assert result(tested, x0=[7, -7, 49, 2**30], x1=[2, 2, 49, 3]) == [3, -3, 1, 2**30 // 3]
    assert result(pointwise("divide", dtypes=(F32, F32)), x0=[7] * 4, x1=[2] * 4) == [3.5] * 4


def test_logical_operators_take_any_number_for_a_truth_value():
    tested = pointwise("logical_and", dtypes=(F32, F32), result=BOOL)
    assert result(tested, x0=[5, 1, 0, 2], x1=[1, 3, 4, 0]) == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("operator", "wanted"), [("add", 0), ("multiply", 1), ("maximum", -np.inf), ("logical_and", 1)]
)
def test_a_reduction_of_nothing_is_the_neutral_number(operator, wanted):
    reduce = Reduce(v("r"), operator, (axis("k", 0),), (load(v("x"), "x", K),), v("x"), at())
    tested = kernel(
        [buffer("x", 6), buffer("y", 2, role="out")],
        [each(axis("i", 2), body=[reduce, store(1, "y", (I,), v("r"))])],
        ver("y", 1),
    )
    assert result(tested, x=X) == [wanted] * 2


def test_a_reduction_starts_from_its_initial_value():
    reduce = Reduce(
        v("r"),
        "maximum",
        (axis("k", 6),),
        (load(v("x"), "x", K),),
        v("x"),
        at(),
        where=less(K, 3),
        initial=v("start"),
    )
    for start, wanted in ((1.5, 4), (7.0, 7)):
        tested = kernel(
            [buffer("x", 6), buffer("y", 1, role="out")],
            [fill(v("start"), start), reduce, store(1, "y", (0,), v("r"))],
            ver("y", 1),
        )
        assert result(tested, x=X) == [wanted]


def test_what_is_not_understood_is_noted_and_unknown():
    opaque = Opaque((v("o"), ver("s", 1)), (v("x"),), "asm(...)", "inline assembly", at(7))
    tested = kernel(
        [buffer("x", 6), buffer("s", 6, role="scratch"), buffer("y", 6, role="out")],
        [
            each(
                axis("i", 6),
                body=[
                    load(v("x"), "x", I),
                    opaque,
                    Random(v("u"), "uniform", (v("x"),), I, at()),
                    load(v("s"), "s", I, number=1),
                    store(1, "y", (I,), v("o")),
                    store(2, "y", (I,), v("u"), where=less(I, 2)),
                    store(3, "y", (I,), v("s"), where=less(I, 1)),
                ],
            )
        ],
        ver("y", 3),
    )
    found = run(tested, x=X)
    assert [(t.kind, t.message, t.span.start_line) for t in found.trouble] == [
        ("opaque", "inline assembly", 7)
    ]
    assert np.isnan(found.outputs["y"]).all()


def test_writers_name_the_last_store_of_every_cell():
    tested = kernel(
        [buffer("x", 6), buffer("y", 6, role="out")],
        [
            each(
                axis("i", 6),
                body=[
                    load(v("x"), "x", I),
                    store(1, "y", (I,), v("x"), where=less(I, 4)),
                    store(2, "y", (I,), v("x"), where=less(I, 2)),
                ],
            )
        ],
        ver("y", 2),
    )
    found = run(tested, x=X)
    assert found.writers["y"].tolist() == [1, 1, 0, 0, -1, -1]
    assert [op.result for op in found.stores] == [ver("y", 1), ver("y", 2)]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_buffers_without_dimensions_or_cells(shape):
    axes = [axis(name, extent) for name, extent in zip("ij", shape, strict=False)]
    index = [Index.axis(a.name) for a in axes]
    body = [load(v("x"), "x", *index), store(1, "y", index, v("x"))]
    tested = kernel(
        [buffer("x", *shape), buffer("y", *shape, role="out")],
        [each(*axes, body=body)],
        ver("y", 1),
    )
    content = np.ones(shape)
    assert result(tested, x=content) == content.reshape(-1).tolist()


def test_work_stops_at_the_budget():
    def tested(extent):
        body = [Position(v("p"), I * J, at()), store(1, "y", (0,), v("p"))]
        return kernel(
            [buffer("y", 1, role="out")],
            [each(axis("i", extent), axis("j", extent), body=body)],
            ver("y", 1),
        )

    for budget, kind in ((Budget(steps=1000), "steps"), (Budget(bytes=1000), "bytes")):
        with pytest.raises(Exhausted) as stopped:
            evaluate(tested(1000), {}, Reals({}), meter=Meter(budget))
        assert stopped.value.kind == kind
    with pytest.raises(Exhausted):
        evaluate(tested(1 << 20), {}, Reals({}))


def test_a_loop_gives_back_what_its_rounds_used():
    fold = Fold(
        (axis("k", 200, AxisKind.SEQUENTIAL),),
        (State(v("total"), v("x"), v("sum"), v("more")),),
        (apply(v("more"), "add", v("sum"), v("x")),),
        at(),
    )
    tested = kernel(
        [buffer("x", 1000), buffer("y", 1000, role="out")],
        [each(axis("i", 1000), body=[load(v("x"), "x", I), fold, store(1, "y", (I,), v("total"))])],
        ver("y", 1),
    )
    meter = Meter(Budget(bytes=200_000))
    found = evaluate(tested, {}, Reals({"x": np.ones(1000)}), meter=meter)
    assert found.outputs["y"].tolist() == [201] * 1000
