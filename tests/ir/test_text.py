"""The IR and normal forms as text."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

from migrate.ir.index import Index, minimum
from migrate.ir.nodes import (
    AsyncCopy,
    AxisKind,
    Barrier,
    Cast,
    Contract,
    Fold,
    Gather,
    Guard,
    Merge,
    Opaque,
    Output,
    Position,
    Random,
    Reduce,
    Rounding,
    Scan,
    Scatter,
    Select,
    State,
    Statements,
    Transpose,
)
from migrate.ir.normal import normalise
from migrate.ir.predicate import both, equal, less, negate
from migrate.ir.text import render, render_op
from migrate.ir.validate import problems
from tests.ir import strategies as make
from tests.ir.build import (
    BOOL,
    I32,
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
    store,
    v,
    ver,
)

N = Index.size("n")


def every_op():
    """A kernel without sense that has every op."""
    total = Reduce(
        v("sum"),
        "add",
        (axis("k", 8, AxisKind.LANE),),
        (load(v("b"), "x", I, K),),
        v("b"),
        at(4),
        where=less(K, N),
        initial=v("zero"),
    )
    product = Contract(
        v("dot"),
        (axis("k", 8),),
        (load(v("l"), "x", I, K), load(v("r"), "x", K, J)),
        v("l"),
        v("r"),
        at(5),
    )
    loop = Fold(
        (axis("k", minimum(4, N), AxisKind.SEQUENTIAL),),
        (
            State(v("last"), v("zero"), v("now"), v("next")),
            State(ver("s", 3), ver("s", 1), ver("s", 2), ver("s", 4)),
        ),
        (
            load(v("e"), "s", K, number=2),
            apply(v("next"), "fma", v("now"), v("e"), v("zero")),
            store(4, "s", (K,), v("next"), into=2),
        ),
        at(6),
        where=negate(equal(K, I)),
    )
    guard = Guard(
        both(less(I, N), less(J, 3)),
        (store(1, "y", (I, J), v("dot")),),
        at(7),
        (store(2, "y", (I, J), v("last"), into=0, where=less(J, 2), mask=v("c", BOOL)),),
        (Merge(ver("y", 3), ver("y", 1), ver("y", 2)),),
    )
    body = [
        load(v("a"), "x", I, J, where=less(J, N)),
        fill(v("zero"), 0.0),
        AsyncCopy(ver("s", 1), ver("s"), place(J), ver("x"), place(I, J), at(2), where=less(J, 2)),
        Barrier("block", at(3)),
        total,
        product,
        loop,
        apply(v("c", BOOL), "greater", v("a"), v("zero")),
        Select(v("by_data"), v("c", BOOL), v("a"), v("zero"), at()),
        Select(v("by_place"), less(I, J), v("a"), v("zero"), at()),
        Position(v("p", I32), 8 * I + J, at()),
        Cast(v("cast", I32), v("a"), at(), Rounding.TOWARD_ZERO),
        Scan(v("run"), "add", "j", v("a"), at()),
        Scan(v("before"), "maximum", "j", v("a"), at(), inclusive=False),
        Transpose(v("t"), v("a"), (("i", "j"), ("j", "i")), at()),
        Random(v("u"), "uniform", (v("a"),), I, at()),
        Opaque((v("o"),), (v("a"),), "asm(\x1b[2J)", "inline assembly", at(8)),
        guard,
        Gather(v("g"), ver("x"), (I, v("p", I32)), at(), where=less(I, 4)),
        Scatter(
            ver("y", 4),
            ver("y", 3),
            (v("cast", I32), J),
            v("g"),
            at(9),
            combine="add",
            where=less(I, 4),
            mask=v("c", BOOL),
        ),
    ]
    found = kernel(
        [buffer("x", 8, N), buffer("s", 8, role="scratch"), buffer("y", 8, N, role="out")],
        [
            each(
                axis("i", 8, AxisKind.GRID),
                axis("j", 8, AxisKind.BLOCK),
                body=body,
                where=less(J, N),
            )
        ],
        ver("y", 4),
        sizes=["n"],
    )
    return replace(
        found,
        outputs=(Output(ver("y", 4), 0),),
        statements=Statements(20, 1),
        computed_at=(("n", 8),),
    )


def test_every_op(golden):
    assert problems(every_op()) == ()
    golden("every_op", render(every_op()))


def test_spans_are_shown_where_asked_for():
    lines = render(every_op(), spans=True).splitlines()
    assert lines[-1] == "  understood 19 of 20 statements"
    assert next(line for line in lines if "barrier" in line).endswith("barrier block  @ 3:1")


def test_reviewed_text_is_made_harmless():
    opaque = next(op for op in every_op().body[0].body if isinstance(op, Opaque))
    assert "\x1b" not in render_op(opaque)


def softmax():
    second = Index.axis("l")
    top = Reduce(v("m"), "maximum", (axis("k", 5),), (load(v("x"), "x", I, K),), v("x"), at())
    inner = (
        load(v("z"), "x", I, second),
        apply(v("d"), "subtract", v("z"), v("m")),
        apply(v("e"), "exp", v("d")),
    )
    total = Reduce(v("s"), "add", (axis("l", 5),), inner, v("e"), at())
    each_column = [
        load(v("w"), "x", I, J),
        apply(v("f"), "subtract", v("w"), v("m")),
        apply(v("g"), "exp", v("f")),
        apply(v("q"), "divide", v("g"), v("s")),
        store(1, "y", (I, J), v("q")),
    ]
    return kernel(
        [buffer("x", 3, 5), buffer("y", 3, 5, role="out")],
        [each(axis("i", 3), body=[top, total, each(axis("j", 5), body=each_column)])],
        ver("y", 1),
    )


def product_with_edge():
    contract = Contract(
        v("r"),
        (axis("k", 4),),
        (load(v("a"), "a", I, K), load(v("b"), "b", K, J)),
        v("a"),
        v("b"),
        at(),
    )
    return kernel(
        [buffer("a", 5, 4), buffer("b", 4, 6), buffer("y", 5, 6, role="out")],
        [
            each(
                axis("i", 5),
                axis("j", 6),
                where=less(I, 4),
                body=[
                    contract,
                    fill(v("c"), 0.1),
                    apply(v("n"), "negate", v("r")),
                    Select(v("s"), less(J, 3), v("n"), v("c"), at()),
                    store(1, "y", (I, J), v("s")),
                ],
            )
        ],
        ver("y", 1),
    )


def reversed_rows():
    return kernel(
        [buffer("a", 4, 3), buffer("y", 4, 3, role="out")],
        [
            each(
                axis("i", 4),
                axis("j", 3),
                body=[
                    load(v("a"), "a", 3 - I, (2 * J + I) % 3),
                    apply(v("r"), "reciprocal", v("a")),
                    apply(v("h"), "multiply", v("r"), v("r")),
                    store(1, "y", (I, J), v("h")),
                ],
            )
        ],
        ver("y", 1),
    )


def test_normal_forms(golden):
    for tested in (softmax, product_with_edge, reversed_rows):
        golden(tested.__name__, str(normalise(tested(), {})[0]))


SCRIPT = """
from tests.ir import strategies as make
from tests.ir.test_text import softmax, spec
from migrate.ir.normal import meaning
shapes = make.tensors(spec())
for kernel in (softmax(), *(make.lower(spec(), make.Schedule(n), shapes) for n in range(9))):
    found = meaning(kernel, {})
    print(str(found.form).replace("\\n", "; "), found.terms["y"].tolist())
"""


def spec():
    row = make.Line((("i0", 1),), 0)
    inner = make.Line((("k0", 1),), 1)
    total = make.Red("add", "k0", 5, make.Apply("exp", (make.In("m", (row, inner)),)), 0.5)
    other = make.Apply("maximum", (make.In("a", (row,)), make.In("b", (row,))))
    return make.Spec((7,), make.Where(make.Line((("i0", 1),), -2), total, other), None)


def test_normal_forms_do_not_depend_on_the_process(checkout):
    """Neither on the seed of Python's hashes nor on what ran before."""
    texts = set()
    for seed in ("0", "1", "77"):
        found = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            cwd=checkout,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(checkout)},
            capture_output=True,
            text=True,
            check=True,
        )
        texts.add(found.stdout)
    assert len(texts) == 1
    ((text),) = texts
    _, *realisations = text.splitlines()
    assert len(realisations) == 9
    assert len(set(realisations)) == 1
