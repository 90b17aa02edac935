"""Loops whose trips only the device knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from migrate.budget import Budget, Exhausted, Meter
from migrate.nki.simulate import simulate
from migrate.numerics.rounded import Rounded
from tests.nki.kernels import kernel, module
from tests.nki.running import agreeing, lifted, opaque, run

RNG = np.random.default_rng(3)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def ints(*values: int) -> Any:
    return np.array(values, np.int32)


SUM = """
rows, width = x.shape
stop = nisa.register_alloc()
nisa.register_load(dst=stop, src=count)
total = nl.ndarray((1, width), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=total, value=0.0)
{loop}
out = nl.ndarray((1, width), dtype=nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=total)
return out
"""

ADD = """
    row = nl.ndarray((1, width), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=row, src={row})
    nisa.tensor_tensor(dst=total, data1=total, data2=row, op=nl.add)
"""

ROW = "x.ap([[width, 1], [1, width]], scalar_offset=i, indirect_dim=0)"

LOOPS = {
    "dynamic_range": "for i in nl.dynamic_range(stop):" + ADD.format(row=ROW),
    "two bounds": "for i in nl.dynamic_range(0, stop, 1):" + ADD.format(row="x[nl.ds(i, 1)]"),
    "fori_loop": "def body(i):" + ADD.format(row=ROW) + "nl.fori_loop(0, stop, body)",
}


def summing(loop: str) -> str:
    return kernel(SUM.format(loop=LOOPS.get(loop, loop)), "x, count")


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("count", [0, 1, 4])
def test_as_many_trips_as_the_data_say(loop: str, count: int) -> None:
    x = normal(5, 3)
    found = run(summing(loop), x, ints(count)).outputs[0]
    np.testing.assert_allclose(found[0], x[:count].sum(axis=0), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("loop", LOOPS)
def test_such_a_loop_has_no_ir(loop: str) -> None:
    reasons = opaque(lifted(summing(loop), x=normal(5, 3), count=ints(2)))
    assert len(reasons) == 1
    assert "loop" in reasons[0]


def test_steps() -> None:
    text = summing("for i in nl.dynamic_range(1, stop, 2):" + ADD.format(row=ROW))
    x = normal(9, 3)
    found = run(text, x, ints(8)).outputs[0]
    np.testing.assert_allclose(found[0], x[1:8:2].sum(axis=0), rtol=1e-6)


@pytest.mark.parametrize("bounds", ["4", "1, 4", "lower=0, upper=4"])
def test_known_trips_are_unrolled(bounds: str) -> None:
    loop = f"for i in nl.dynamic_range({bounds}):"
    if "lower" in bounds:
        text = summing(f"def body(i):{ADD.format(row=ROW)}nl.fori_loop({bounds}, body_fun=body)")
    else:
        text = summing(loop + ADD.format(row="x[i : i + 1]"))
    x = normal(5, 3)
    first = 1 if "1" in bounds else 0
    found = run(text, x, ints(0)).outputs[0]
    np.testing.assert_allclose(found[0], x[first:4].sum(axis=0), rtol=1e-6)
    agreeing(text, x=x, count=ints(0))


HALVING = {
    "while": """
while go:
    nisa.tensor_scalar(dst=value, data=value, op0=nl.multiply, operand0=0.5)
    nisa.tensor_scalar(dst=left, data=left, op0=nl.subtract, operand0=1)
    nisa.register_load(dst=go, src=left)
""",
    "while_loop": """
def body(r):
    nisa.tensor_scalar(dst=value, data=value, op0=nl.multiply, operand0=0.5)
    nisa.tensor_scalar(dst=left, data=left, op0=nl.subtract, operand0=1)
    following = nisa.register_alloc()
    nisa.register_load(dst=following, src=left)
    return following
nl.while_loop(go, body)
""",
}


def halving(kind: str) -> str:
    return kernel(
        f"""
left = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=left, src=count)
value = nl.ndarray((1, 4), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=value, src=x)
go = nisa.register_alloc()
nisa.register_load(dst=go, src=left)
{HALVING[kind]}
out = nl.ndarray((1, 4), dtype=nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=value)
return out
""",
        "x, count",
    )


@pytest.mark.parametrize("kind", HALVING)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_turns_while_a_register_is_not_zero(kind: str, count: int) -> None:
    x = normal(1, 4)
    found = run(halving(kind), x, ints(count)[:, None]).outputs[0]
    np.testing.assert_array_equal(found, x * np.float32(0.5**count))


@pytest.mark.parametrize("kind", HALVING)
def test_a_loop_that_never_ends_ends_the_run(kind: str) -> None:
    meter = Meter(Budget(steps=20_000), doing="a test")
    found = simulate(
        module(halving(kind)),
        "k",
        (normal(1, 4), ints(-1)[:, None]),
        domain=Rounded(),
        meter=meter,
    )
    assert not found.complete


def test_loops_in_loops() -> None:
    text = kernel(
        """
rows, width = x.shape
outer = nisa.register_alloc(counts[0:1])
inner = nisa.register_alloc(counts[1:2])
total = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=total, value=0.0)
for i in nl.dynamic_range(outer):
    for j in nl.dynamic_range(inner):
        one = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=one, src=x[nl.ds(i, 1), nl.ds(j, 1)])
        nisa.tensor_tensor(dst=total, data1=total, data2=one, op=nl.add)
out = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=total)
return out
""",
        "x, counts",
    )
    x = normal(5, 3)
    found = run(text, x, ints(4, 2)).outputs[0]
    np.testing.assert_allclose(found[0, 0], x[:4, :2].sum(), rtol=1e-5)


def test_a_tile_of_the_body_is_new_in_every_turn() -> None:
    text = summing(
        """
for i in nl.dynamic_range(stop):
    row = nl.ndarray((1, width), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=total, data2=row, op=nl.add)
    nisa.memset(dst=row, value=1.0)
"""
    )
    found = simulate(module(text), "k", (normal(5, 3), ints(2)), domain=Rounded())
    assert [h.code for h in found.happenings] == ["uninitialised"]


def test_outputs_written_a_part_in_each_turn() -> None:
    text = kernel(
        """
rows, width = x.shape
stop = nisa.register_alloc(count[0:1])
out = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
for i in nl.dynamic_range(stop):
    row = nl.ndarray((1, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=row, src=x[nl.ds(i, 1)])
    nisa.dma_copy(dst=out[nl.ds(i, 1)], src=row)
return out
""",
        "x, count",
    )
    x = normal(5, 3)
    np.testing.assert_array_equal(run(text, x, ints(5)).outputs[0], x)
    found = simulate(module(text), "k", (x, ints(4)), domain=Rounded())
    assert [h.code for h in found.happenings] == ["unwritten-output"]


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        ("for i in nl.dynamic_range(0, stop, 0):\n    pass", "step 0"),
        ("for i in nl.dynamic_range(stop):\n    nisa.register_move(dst=i, src=0)", "of a loop"),
        ("for i in nl.dynamic_range(stop):\n    break", "leaving a loop"),
        ("for i in nl.dynamic_range(stop):\n    if i > 0:\n        pass", "register"),
        ("for i in range(stop):\n    pass", "register"),
        ("nl.while_loop(1, lambda r: r)", "no register"),
    ],
)
def test_what_such_a_loop_may_not_do(loop: str, reason: str) -> None:
    found = simulate(module(summing(loop)), "k", (normal(5, 3), ints(2)), domain=Rounded())
    assert not found.complete
    messages = [event.message for event in found.specialization.events]
    assert any(reason in message for message in messages), messages


def test_what_a_loop_put_into_a_register_is_not_known_after_it() -> None:
    text = summing(
        """
r = nisa.register_alloc(0)
for i in nl.dynamic_range(stop):
    nisa.register_move(dst=r, src=i)
row = nl.ndarray((1, width), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=row, src=x[nl.ds(r, 1)])
nisa.tensor_tensor(dst=total, data1=total, data2=row, op=nl.add)
"""
    )
    x = normal(5, 3)
    for count in (0, 3):
        found = run(text, x, ints(count)).outputs[0]
        np.testing.assert_allclose(found[0], x[max(count - 1, 0)], rtol=1e-6)


def test_a_budget_of_steps_holds_for_the_turns() -> None:
    meter = Meter(Budget(steps=5_000), doing="a test")
    try:
        found = simulate(
            module(summing("dynamic_range")),
            "k",
            (normal(5, 3), ints(2_000_000)),
            domain=Rounded(),
            meter=meter,
        )
    except Exhausted:
        return
    assert not found.complete


def test_what_a_body_puts_into_its_position_has_no_effect_on_the_loop() -> None:
    add = ADD.format(row=ROW)
    text = summing(
        f"def body(i):{add}    nisa.register_move(dst=i, src=77)\nnl.fori_loop(0, stop, body)"
    )
    x = normal(5, 3)
    found = run(text, x, ints(4)).outputs[0]
    np.testing.assert_allclose(found[0], x[:4].sum(axis=0), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "over",
    ["nl.affine_range(stop=3)", "range(stop=3)", "nl.affine_range(None)", "nl.dynamic_range()"],
)
def test_a_range_without_a_bound(over: str) -> None:
    text = summing(f"for i in {over}:\n    pass")
    found = simulate(module(text), "k", (normal(5, 3), ints(2)), domain=Rounded())
    messages = [event.message for event in found.specialization.events]
    assert any("wrong arguments" in message for message in messages), messages


def test_advice_to_the_scheduler_changes_no_loop() -> None:
    over = "nl.sequential_range(4, directives=nki.compiler.no_reorder())"
    x = normal(5, 3)
    found = run(summing(f"for i in {over}:" + ADD.format(row="x[i : i + 1]")), x, ints(2))
    np.testing.assert_allclose(found.outputs[0][0], x[:4].sum(axis=0), rtol=1e-6)


def test_after_what_is_not_understood_nothing_is_told() -> None:
    text = kernel(
        """
stop = nisa.register_alloc()
nisa.no_such_instruction(dst=count)
nisa.register_load(dst=stop, src=count)
out = nl.ndarray((1, 3), dtype=x.dtype, buffer=nl.shared_hbm)
for i in nl.dynamic_range(stop):
    nisa.dma_copy(dst=out, src=x[nl.ds(i, 1)])
return out
""",
        "x, count",
    )
    found = simulate(module(text), "k", (normal(5, 3), ints(2)), domain=Rounded())
    assert not found.complete
    assert {happening.code for happening in found.happenings} <= {"unsupported"}
