"""Integers in registers of the engines' sequencers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from migrate.nki.simulate import simulate
from migrate.numerics.rounded import Rounded
from tests.nki.kernels import kernel, module
from tests.nki.running import agreeing, lifted, opaque, run

OUT = """
out = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.shared_hbm)
nisa.register_store(dst=out, src=r)
return out
"""

MOVED = """
r = nisa.register_alloc(1)
s = nisa.register_alloc(x[0:1])
nisa.register_move(dst=r, src=s)
nisa.register_move(dst=s, src=2)
"""


def stored(body: str) -> str:
    """A kernel that returns what the register `r` holds; `x` is a tensor of integers."""
    return kernel(body + OUT)


def ints(*values: int) -> Any:
    return np.array(values, np.int32)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("r = nisa.register_alloc(5)", 5),
        ("r = nisa.register_alloc()\nnisa.register_move(dst=r, src=-7)", -7),
        ("r = nisa.register_alloc()\nnisa.register_move(dst=r, imm=6)", 6),
        ("r = nisa.register_alloc()\nnisa.register_load(dst=r, src=x[1:2])", 20),
        ("r = nisa.register_alloc(x[2:3])", 30),
        ("s = nisa.register_alloc(x[0:1])\nr = nisa.register_alloc(s)", 10),
        (MOVED, 10),
    ],
)
def test_what_a_register_holds(body: str, wanted: int) -> None:
    assert run(stored(body), ints(10, 20, 30)).outputs[0].tolist() == [[wanted]]
    agreeing(stored(body), x=ints(10, 20, 30))


def test_a_register_that_nothing_was_put_into() -> None:
    found = simulate(module(stored("r = nisa.register_alloc()")), "k", (ints(1),), domain=Rounded())
    assert [h.code for h in found.happenings] == ["uninitialised"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("r = nisa.register_alloc()\nif r:\n    pass", "register"),
        ("r = nisa.register_alloc()\nnisa.register_load(dst=r, src=x)", "3 elements"),
        ("r = nisa.register_alloc()\nnisa.register_move(dst=x, src=1)", "no register"),
        ("r = nisa.register_alloc()\nnisa.register_move(r)", "wrong arguments"),
    ],
)
def test_what_a_register_is_not_for(body: str, reason: str) -> None:
    found = simulate(module(stored(body)), "k", (ints(1, 2, 3),), domain=Rounded())
    assert not found.complete
    assert any(reason in event.message for event in found.specialization.events), (
        found.specialization.events
    )


def test_a_register_holds_what_was_last_put_there_when_used() -> None:
    text = kernel(
        """
r = nisa.register_alloc(x[0:1])
tile = nl.ndarray((1, 2), dtype=y.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile[:, 0:1], src=y[nl.ds(r, 1)])
nisa.register_load(dst=r, src=x[1:2])
nisa.dma_copy(dst=tile[:, 1:2], src=y[nl.ds(r, 1)])
out = nl.ndarray((1, 2), dtype=y.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=tile)
return out
""",
        "x, y",
    )
    y = np.arange(10, dtype=np.float32).reshape(10, 1) * 2
    assert run(text, ints(3, 7), y).outputs[0].tolist() == [[6.0, 14.0]]
    agreeing(text, x=ints(3, 7), y=y)


def test_a_register_with_a_known_integer_is_that_integer() -> None:
    text = kernel(
        """
r = nisa.register_alloc(3)
out = nl.ndarray((1, 2), dtype=x.dtype, buffer=nl.shared_hbm)
for i in nl.dynamic_range(r):
    nisa.dma_copy(dst=out, src=x[i : i + 1])
return out
"""
    )
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    np.testing.assert_array_equal(run(text, x).outputs[0], x[2:3])
    assert opaque(lifted(text, x=x)) == []
