"""A tile that is filled and then combined into starts there; one that stays filled is a number."""

from __future__ import annotations

import pytest

from migrate.ir.constructs import constructs
from migrate.ir.validate import problems
from tests.ir.build import I, apply, axis, buffer, each, fill, kernel, load, store, v, ver


@pytest.mark.parametrize(("combined", "kind"), [(False, "constant"), (True, "initial-value")])
def test_what_a_number_in_a_tile_is(combined: bool, kind: str) -> None:
    x, number, held, total = v("x"), v("number"), v("held"), v("total")
    body = [
        each(axis("i", 8), body=[fill(number, 2.0), store(1, "tile", (I,), number)]),
        each(
            axis("i", 8),
            body=[
                load(x, "x", I),
                load(held, "tile", I, number=1),
                apply(total, "add", held, x),
                store(2, "tile", (I,), total) if combined else store(1, "y", (I,), total),
            ],
        ),
    ]
    if combined:
        sums = v("sums")
        body.append(
            each(axis("i", 8), body=[load(sums, "tile", I, number=2), store(1, "y", (I,), sums)])
        )
    made = kernel(
        [buffer("x", 8), buffer("tile", 8, role="scratch"), buffer("y", 8, role="out")],
        body,
        ver("y", 1),
    )
    assert problems(made) == ()
    found = [c for c in constructs(made) if c.kind in {"constant", "initial-value"}]
    assert [(c.kind, c.numbers) for c in found] == [(kind, (2.0,))]
