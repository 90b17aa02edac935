"""What is not well formed is said, and nothing else."""

from __future__ import annotations

import pytest

from migrate.ir.index import Index
from migrate.ir.nodes import AxisKind, Fold, Guard, Merge, Reduce, Scan, State, Store
from migrate.ir.predicate import less
from migrate.ir.validate import problems
from tests.ir.build import I, J, K, apply, at, axis, buffer, each, fill, kernel, load, store, v, ver

LAST = (ver("y", 1),)


def over_rows(*body, outputs=LAST, sizes=()):
    return kernel(
        [buffer("x", 4), buffer("z", 4, role="scratch"), buffer("y", 4, role="out")],
        [each(axis("i", 4), body=list(body))],
        *outputs,
        sizes=sizes,
    )


LOAD, STORE = load(v("x"), "x", I), store(1, "y", (I,), v("x"))


def loop(state, *body):
    return Fold((axis("k", 3, AxisKind.SEQUENTIAL),), (state,), body, at())


def test_a_well_formed_kernel():
    assert problems(over_rows(LOAD, STORE)) == ()


@pytest.mark.parametrize(
    ("tested", "message"),
    [
        (over_rows(STORE), "%x is used before it is made, or out of scope"),
        (over_rows(LOAD, LOAD, STORE), "%x is defined twice"),
        (over_rows(LOAD, STORE, outputs=[ver("y", 2)]), "output y.2 is never made"),
        (over_rows(load(v("x"), "x", J), STORE), "axis j is unknown"),
        (over_rows(load(v("x"), "x", Index.size("n")), STORE), "size n is unknown"),
        (over_rows(load(v("x"), "w", I), STORE), "there is no buffer w"),
        (over_rows(load(v("x"), "x", I, I), STORE), "x has 1 dimensions, not 2"),
        (over_rows(LOAD, STORE, sizes=["i"]), "i is both an axis and a size"),
        (over_rows(LOAD, each(axis("i", 2), body=[]), STORE), "axis i is bound twice"),
        (
            over_rows(LOAD, apply(v("r"), "frobnicate", v("x")), STORE),
            "no operator is called frobnicate",
        ),
        (over_rows(LOAD, apply(v("r"), "add", v("x")), STORE), "add takes 2 arguments, not 1"),
        (over_rows(LOAD, Scan(v("s"), "add", "j", v("x"), at()), STORE), "axis j is not in scope"),
        (
            over_rows(LOAD, Store(ver("y", 1), ver("z"), (I,), v("x"), at())),
            "a store into z makes y.1",
        ),
        (
            over_rows(each(axis("j", 2), body=[LOAD]), STORE),
            "%x is used before it is made, or out of scope",
        ),
        (
            over_rows(
                Guard(less(I, 2), (LOAD,), at()),
                STORE,
            ),
            "%x is used before it is made, or out of scope",
        ),
        (
            over_rows(
                LOAD,
                Guard(less(I, 2), (STORE,), at(), (), (Merge(ver("y", 2), ver("y", 1), ver("z")),)),
                outputs=[ver("y", 2)],
            ),
            "y.2, y.1, z.0 are not one thing",
        ),
        (
            over_rows(
                LOAD,
                loop(State(v("r"), v("x"), v("in"), ver("y", 0))),
                STORE,
            ),
            "%r, %x, %in, y.0 are not one thing",
        ),
        (
            over_rows(
                LOAD,
                loop(State(v("r"), v("x"), v("in"), v("next")), fill(v("other"), 0.0)),
                STORE,
            ),
            "%next is used before it is made, or out of scope",
        ),
        (
            over_rows(
                Reduce(
                    v("x"),
                    "add",
                    (axis("k", 4),),
                    (load(v("a"), "x", K),),
                    v("a"),
                    at(),
                    initial=v("a"),
                ),
                STORE,
            ),
            "%a is used before it is made, or out of scope",
        ),
    ],
)
def test_each_defect_is_said(tested, message):
    found = problems(tested)
    assert any(message in problem for problem in found), found
