"""The running state along the free axis, against NumPy, and lifted."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from migrate.nki.simulate import simulate
from migrate.numerics.rounded import Rounded
from tests.nki.kernels import kernel, module
from tests.nki.test_lift import lifted

RNG = np.random.default_rng(5)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def scanning(call: str, out: str = "nl.float32") -> str:
    return kernel(
        f"""
p, f = x.shape
a = nl.ndarray((p, f), dtype=nl.float32, buffer=nl.sbuf)
b = nl.ndarray((p, f), dtype=nl.float32, buffer=nl.sbuf)
v = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x)
nisa.dma_copy(dst=b, src=y)
nisa.dma_copy(dst=v, src=z)
c = nl.ndarray((p, f), dtype={out}, buffer=nl.sbuf)
{call}
r = nl.ndarray((p, f), dtype={out}, buffer=nl.shared_hbm)
nisa.dma_copy(dst=r, src=c)
return r
""",
        "x, y, z",
    )


def stepped(first: Any, second: Any, x: Any, y: Any, start: Any) -> Any:
    states = np.empty_like(x)
    state = start[:, 0]
    for k in range(x.shape[1]):
        state = second(first(x[:, k], state), y[:, k])
        states[:, k] = state
    return states


@pytest.mark.parametrize(
    ("call", "first", "second", "starts"),
    [
        ("initial=v, op0=nl.multiply, op1=nl.add", np.multiply, np.add, True),
        ("initial=0.0, op0=nl.add, op1=nl.maximum", np.add, np.maximum, False),
        ("initial=v, op0=nl.subtract, op1=nl.minimum", np.subtract, np.minimum, True),
        (
            "initial=v, op0=nl.subtract, op1=nl.minimum, reverse0=True",
            lambda left, state: state - left,
            np.minimum,
            True,
        ),
        (
            "initial=v, op0=nl.multiply, op1=nl.subtract, reverse1=True",
            np.multiply,
            lambda state, right: right - state,
            True,
        ),
    ],
)
@pytest.mark.parametrize("shape", [(5, 7), (1, 3), (4, 1)])
def test_every_state_is_kept(
    call: str, first: Any, second: Any, starts: bool, shape: tuple[int, int]
) -> None:
    x, y, z = normal(*shape), normal(*shape), normal(shape[0], 1)
    text = scanning(f"nisa.tensor_tensor_scan(dst=c, data0=a, data1=b, {call})")
    found = simulate(module(text), "k", (x, y, z), domain=Rounded())
    assert found.happenings == ()
    assert found.specialization.problems == ()
    wanted = stepped(first, second, x, y, z if starts else np.zeros_like(z))
    np.testing.assert_array_equal(found.outputs[0], wanted)
    lifted(text, x=x, y=y, z=z)


def test_the_state_is_not_rounded_to_the_destination() -> None:
    x, y, z = np.ones((1, 300), np.float32), np.full((1, 300), 0.01, np.float32), np.zeros((1, 1))
    call = "nisa.tensor_tensor_scan(c, a, b, v, nl.multiply, nl.add)"
    text = scanning(call, "nl.bfloat16")
    found = simulate(module(text), "k", (x, y, z.astype(np.float32)), domain=Rounded())
    sums = np.cumsum(y, axis=1, dtype=np.float32).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(found.outputs[0], sums)


def test_a_bit_pattern_is_no_state() -> None:
    call = "nisa.tensor_tensor_scan(c, a, b, v, nl.bitwise_and, nl.add)"
    found = simulate(
        module(scanning(call)), "k", (normal(2, 2), normal(2, 2), normal(2, 1)), domain=Rounded()
    )
    assert not found.complete


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("nisa.tensor_tensor_scan(c, a, b[:, 0:1], v, nl.multiply, nl.add)", "size-mismatch"),
        ("nisa.tensor_tensor_scan(c, a, b, a, nl.multiply, nl.add)", "not-a-column"),
        ("nisa.tensor_tensor_scan(c, a, b, v, nl.exp, nl.add)", "operator"),
    ],
)
def test_what_the_compiler_refuses(call: str, code: str) -> None:
    arrays = (normal(3, 4), normal(3, 4), normal(3, 1))
    found = simulate(module(scanning(call)), "k", arrays, domain=Rounded())
    assert code in {problem.code for problem in found.specialization.problems}
