"""Instructions that reduce what they make, in the registers of their engine, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from migrate.nki.simulate import simulate
from migrate.numerics.rounded import Rounded
from tests.nki.kernels import module
from tests.nki.running import agreeing, lifted, on_tiles, opaque, run, troubles

RNG = np.random.default_rng(24)

CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def text(line: str, parameters: str = "x") -> str:
    return on_tiles(
        line, parameters, r="x.shape, dtype=nl.float32", s="(x.shape[0], 1), dtype=nl.float32"
    )


def both(kernel: str, *wanted: Any, target: str = "trn2", **args: Any) -> None:
    """A run gives what is wanted, and the IR says the same."""
    found = run(kernel, *args.values(), target=target).outputs
    for got, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, expected, **CLOSE)
    agreeing(kernel, target=target, **args)


def test_exponential_subtracts_a_maximum_and_sums() -> None:
    kernel = text(
        """
        top = nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=top, op=nl.maximum, data=x_t, axis=1)
        nisa.exponential(
            dst=r, src=x_t, max_value=top, reduce_res=s, reduce_cmd=nisa.reduce_cmd.reset_reduce
        )
        """
    )
    x = normal(5, 9)
    wanted = np.exp(x - x.max(1, keepdims=True))
    both(kernel, wanted, wanted.sum(1, keepdims=True), target="trn3", x=x)
    assert "target" in troubles(kernel, x)


def test_a_sum_goes_on_from_a_given_number_and_from_the_last_instruction() -> None:
    kernel = text(
        """
        nisa.exponential(
            dst=r[:, 0:4], src=x_t[:, 0:4], reduce_cmd=nisa.reduce_cmd.load_reduce, reduce_init=2.5
        )
        nisa.exponential(
            dst=r[:, 4:9], src=x_t[:, 4:9], reduce_cmd=nisa.reduce_cmd.reduce, reduce_res=s
        )
        """
    )
    x = normal(5, 9)
    both(kernel, np.exp(x), 2.5 + np.exp(x).sum(1, keepdims=True), target="trn3", x=x)


def test_a_start_value_is_for_loading_only() -> None:
    kernel = text("nisa.exponential(dst=r, src=x_t, reduce_res=s, reduce_init=2.5)")
    assert troubles(kernel, normal(2, 3), target="trn3") == ["argument"]


@pytest.mark.parametrize(
    ("op", "reference"),
    [("add", np.sum), ("multiply", np.prod), ("maximum", np.max), ("minimum", np.min)],
)
def test_tensor_scalar_reduce(op: str, reference: Any) -> None:
    kernel = text(
        f"nisa.tensor_scalar_reduce(dst=r, data=x_t, op0=nl.multiply, operand0=c_t,"
        f" reduce_op=nl.{op}, reduce_res=s)",
        "x, c",
    )
    x, c = normal(4, 6), normal(4, 1)
    both(kernel, x * c, reference(x * c, axis=1, keepdims=True), x=x, c=c)


def test_a_result_may_be_negated() -> None:
    kernel = text(
        "nisa.tensor_scalar_reduce(dst=r, data=x_t, op0=nl.add, operand0=1.0,"
        " reduce_op=nl.maximum, reduce_res=s, reduce_res_negate=True)"
    )
    x = normal(4, 6)
    both(kernel, x + 1, -(x + 1).max(1, keepdims=True), x=x)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("op0=nl.bitwise_and, operand0=1, reduce_op=nl.add", "operator"),
        ("op0=nl.add, operand0=1.0, reduce_op=nl.subtract", "operator"),
        ("op0=nl.add, operand0=1.0, reduce_op=nl.add, reverse0=True", "argument"),
    ],
)
def test_what_tensor_scalar_reduce_refuses(arguments: str, code: str) -> None:
    kernel = text(f"nisa.tensor_scalar_reduce(dst=r, data=x_t, {arguments}, reduce_res=s)")
    assert code in troubles(kernel, normal(2, 3))


CUMULATIVE = on_tiles(
    "nisa.tensor_scalar_cumulative(dst=r, src=x_t, op0=nl.multiply, op1=nl.{op}, imm0=0.5{more})",
    "x",
    r="x.shape, dtype=nl.float32",
)


def cumulative(op: str, more: str = "") -> str:
    return CUMULATIVE.replace("{op}", op).replace("{more}", more)


@pytest.mark.parametrize(
    ("op", "reference"),
    [("add", np.add), ("multiply", np.multiply), ("maximum", np.maximum), ("minimum", np.minimum)],
)
def test_every_state_is_kept(op: str, reference: Any) -> None:
    x = normal(3, 7)
    both(cumulative(op), reference.accumulate(x * np.float32(0.5), axis=1), x=x)


def test_a_difference_subtracts_what_was_there() -> None:
    x = normal(3, 7)
    wanted, state = np.zeros_like(x), np.zeros(3, np.float32)
    for k in range(7):
        state = x[:, k] * np.float32(0.5) - state
        wanted[:, k] = state
    both(cumulative("subtract"), wanted, x=x)


def test_states_from_a_given_number() -> None:
    x = normal(3, 7)
    kernel = cumulative("add", ", imm1=4.0, reduce_cmd=nisa.reduce_cmd.load_reduce")
    both(kernel, 4 + np.cumsum(x * 0.5, axis=1), x=x)


def test_states_go_on_over_instructions() -> None:
    kernel = on_tiles(
        """
        nisa.tensor_scalar_cumulative(
            dst=r[:, 0:3], src=x_t[:, 0:3], op0=nl.multiply, op1=nl.add, imm0=1.0
        )
        nisa.tensor_scalar_cumulative(
            dst=r[:, 3:7], src=x_t[:, 3:7], op0=nl.multiply, op1=nl.add, imm0=1.0,
            reduce_cmd=nisa.reduce_cmd.reduce,
        )
        """,
        "x",
        r="x.shape, dtype=nl.float32",
    )
    x = normal(3, 7)
    both(kernel, np.cumsum(x, axis=1), x=x)


def test_32_bit_integers_have_no_cumulative_form() -> None:
    assert "dtype" in troubles(cumulative("add"), RNG.integers(0, 9, (2, 3)).astype(np.int32))


def test_activate2_has_two_stages_before_the_function() -> None:
    kernel = text(
        "nisa.activate2(dst=r, op=nl.exp, data=x_t, imm0=c_t, imm1=2.0, op0=nl.multiply,"
        " op1=nl.subtract, reverse1=True, reduce_op=nl.maximum, reduce_res=s,"
        " reduce_cmd=nisa.reduce_cmd.reset_reduce)",
        "x, c",
    )
    x, c = normal(4, 6), normal(4, 1)
    wanted = np.exp(2 - x * c)
    both(kernel, wanted, wanted.max(1, keepdims=True), target="trn3", x=x, c=c)


def test_the_slope_of_prelu() -> None:
    kernel = on_tiles(
        "nisa.activate2(dst=r, op=nl.prelu, data=x_t, imm0=0.5, imm1=0.0, op0=nl.add,"
        " op1=nl.bypass, relu_param=0.25)",
        "x",
        r="x.shape, dtype=nl.float32",
    )
    x = normal(4, 6)
    shifted = x + np.float32(0.5)
    both(kernel, np.where(shifted > 0, shifted, 0.25 * shifted), target="trn3", x=x)


def test_stages_come_in_six_pairs() -> None:
    kernel = on_tiles(
        "nisa.activate2(dst=r, op=nl.exp, data=x_t, imm0=0.5, imm1=0.5, op0=nl.bypass, op1=nl.add)",
        "x",
        r="x.shape, dtype=nl.float32",
    )
    assert troubles(kernel, normal(2, 3), target="trn3") == ["operator"]


def test_select_reduce_takes_the_maximum_of_what_it_chose() -> None:
    kernel = text(
        "nisa.select_reduce(dst=r, predicate=p_t, on_true=x_t, on_false=-1.5, reduce_res=s,"
        " reduce_cmd=nisa.reduce_cmd.reset_reduce, reverse_pred=True)",
        "x, p",
    )
    x, p = normal(4, 6), RNG.integers(0, 2, (4, 6)).astype(np.uint8)
    wanted = np.where(p == 0, x, np.float32(-1.5))
    both(kernel, wanted, wanted.max(1, keepdims=True), x=x, p=p)


def test_activation_reduce_starts_anew() -> None:
    kernel = text(
        """
        nisa.activation_reduce(dst=r, op=nl.exp, data=x_t, reduce_op=nl.add, reduce_res=s)
        nisa.activation_reduce(dst=r, op=nl.square, data=x_t, reduce_op=nl.add, reduce_res=s)
        """
    )
    x = normal(4, 6)
    both(kernel, x**2, (x**2).sum(1, keepdims=True), x=x)


def test_a_sum_of_the_scalar_engine_over_a_loop() -> None:
    kernel = text(
        """
        for i in range(3):
            nisa.activation(
                dst=r[:, i * 2 : i * 2 + 2], op=nl.square, data=x_t[:, i * 2 : i * 2 + 2],
                reduce_op=nl.add,
                reduce_cmd=nisa.reduce_cmd.reset_reduce if i == 0 else nisa.reduce_cmd.reduce,
                reduce_res=s,
            )
        """
    )
    x = normal(4, 6)
    both(kernel, x**2, (x**2).sum(1, keepdims=True), x=x)


def test_registers_that_nothing_was_reduced_into_are_unknown() -> None:
    kernel = text(
        "nisa.exponential(dst=r, src=x_t, reduce_cmd=nisa.reduce_cmd.reduce, reduce_res=s)"
    )
    found = simulate(module(kernel), "k", (normal(2, 3),), domain=Rounded(), target="trn3")
    assert not found.complete or found.happenings != ()


def test_a_gap_in_the_ir_where_a_reduction_is_not_documented() -> None:
    kernel = text(
        "nisa.activate2(dst=r, op=nl.exp, data=x_t, imm0=1.0, imm1=0.0, op0=nl.multiply,"
        " op1=nl.add, reduce_op=nl.abs_max, reduce_res=s,"
        " reduce_cmd=nisa.reduce_cmd.reset_reduce)"
    )
    assert opaque(lifted(kernel, target="trn3", x=normal(2, 3))) != []
