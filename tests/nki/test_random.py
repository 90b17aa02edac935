"""Random numbers: not computed without a stream, and said to be random in the IR."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from migrate.ir.nodes import Random, walk
from migrate.nki.simulate import simulate
from migrate.numerics.rounded import Rounded
from tests.nki.kernels import module
from tests.nki.running import lifted, on_tiles, opaque, run, troubles

RNG = np.random.default_rng(25)

DRAWS = {
    "dropout": "nisa.dropout(dst=r, data=x_t, prob=0.25)",
    "rand2": "nisa.rand2(dst=r, min=-2.0, max=3.0)",
}


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def text(line: str, dtype: str = "x.dtype") -> str:
    return on_tiles(line, "x", r=f"x.shape, dtype={dtype}")


@pytest.mark.parametrize("line", DRAWS.values(), ids=DRAWS)
def test_no_numbers_without_a_stream(line: str) -> None:
    found = simulate(module(text(line)), "k", (normal(4, 5),), domain=Rounded(), target="trn3")
    assert not found.complete
    kernel = lifted(text(line), target="trn3", x=normal(4, 5))
    assert opaque(kernel) == []
    assert any(isinstance(op, Random) for op in walk(kernel.body))


def test_with_a_stream_a_quarter_is_dropped_and_the_rest_stays() -> None:
    x = normal(64, 200)
    found = run(text(DRAWS["dropout"]), x, seed=1).outputs[0]
    kept = found != 0
    np.testing.assert_array_equal(found[kept], x[kept])
    assert 0.23 < 1 - kept.mean() < 0.27


def test_uniform_numbers_within_their_bounds() -> None:
    found = run(text(DRAWS["rand2"]), normal(64, 200), seed=1, target="trn3").outputs[0]
    assert found.min() >= -2
    assert found.max() <= 3
    assert abs(found.mean() - 0.5) < 0.1


@pytest.mark.parametrize(("rate", "kept"), [("0.0", True), ("1.0", False)])
def test_a_certain_dropout_needs_no_numbers(rate: str, kept: bool) -> None:
    x = normal(4, 5)
    found = run(text(f"nisa.dropout(dst=r, data=x_t, prob={rate})"), x)
    np.testing.assert_array_equal(found.outputs[0], x if kept else np.zeros_like(x))


def test_random_bits_are_integers() -> None:
    assert troubles(text("nisa.rng(dst=r)"), normal(2, 3)) == ["dtype"]
    kernel = text("nisa.rng(dst=r)", "nl.uint32")
    assert not simulate(module(kernel), "k", (normal(2, 3),), domain=Rounded()).complete
    assert any(isinstance(op, Random) for op in walk(lifted(kernel, x=normal(2, 3)).body))


def test_bounds_in_order() -> None:
    found = troubles(text("nisa.rand2(dst=r, min=3.0, max=3.0)"), normal(2, 3), target="trn3")
    assert found == ["argument"]


def test_a_seed_is_one_number() -> None:
    kernel = text("nisa.set_rng_seed(src_seeds=x_t)\nnisa.tensor_copy(dst=r, src=x_t)")
    assert "size" in troubles(kernel, normal(2, 3))


@pytest.mark.parametrize("target", ["trn2", "trn3"])
def test_uniform_numbers_of_the_language_exist_on_every_target(target: str) -> None:
    kernel = on_tiles(
        """
        drawn = nl.rand((x.shape[0], 8), nl.float32)
        nisa.tensor_copy(dst=r, src=drawn)
        """,
        "x",
        r="(x.shape[0], 8), dtype=nl.float32",
    )
    assert troubles(kernel, normal(4, 5), target=target) == []
    assert any(isinstance(op, Random) for op in walk(lifted(kernel, x=normal(4, 5)).body))


def test_a_mask_on_several_axes_of_dropout() -> None:
    kernel = text(
        """
        p, f = nl.mgrid[0:4, 0:5]
        nisa.tensor_copy(dst=r, src=x_t)
        nisa.dropout(dst=r[p, f], data=x_t[p, f], prob=1.0, mask=p >= f)
        """
    )
    x = normal(4, 5)
    rows, columns = np.mgrid[0:4, 0:5]
    wanted = np.where(rows >= columns, 0, x)
    np.testing.assert_array_equal(run(kernel, x).outputs[0], wanted)
