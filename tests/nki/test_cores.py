"""Two programs of a grid that wait for each other and exchange tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from migrate.nki.simulate import Execution, simulate
from migrate.numerics.rounded import Rounded
from tests.nki.kernels import kernel, module

RNG = np.random.default_rng(31)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def ran(text: str, *args: Any, grid: tuple[int, ...] = (2,)) -> Execution[Any]:
    return simulate(module(text), "k", args, domain=Rounded(), grid=grid)


EXCHANGE = """
rows, width = x.shape
core = nl.program_id(0)
half = rows // 2
mine = nl.ndarray((half, width), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=mine, src=x[nl.ds(core * half, half)])
{turns}
    theirs = nl.ndarray((half, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.sendrecv(
        src=mine, dst=theirs, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id={pipe}
    )
    nisa.tensor_tensor(dst=mine, data1=mine, data2=theirs, op=nl.add)
    nisa.tensor_scalar(dst=mine, data=mine, op0=nl.multiply, operand0=2.0 + core)
out = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out[nl.ds(core * half, half)], src=mine)
return out
"""


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_tiles_exchanged(turns: int) -> None:
    text = kernel(EXCHANGE.format(turns=f"for turn in range({turns}):", pipe=0))
    x = normal(8, 4)
    left, right = x[:4], x[4:]
    for _ in range(turns):
        left, right = (left + right) * np.float32(2), (right + left) * np.float32(3)
    found = ran(text, x)
    assert found.complete, (found.happenings, found.specialization.events)
    assert found.happenings == ()
    np.testing.assert_array_equal(found.outputs[0], np.concatenate([left, right]))


SHARED = """
rows, width = x.shape
core = nl.program_id(0)
half = rows // 2
between = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
mine = nl.ndarray((half, width), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=mine, src=x[nl.ds(core * half, half)])
nisa.dma_copy(dst=between[nl.ds(core * half, half)], src=mine)
{barrier}
nisa.dma_copy(dst=mine, src=between[nl.ds((1 - core) * half, half)])
out = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out[nl.ds(core * half, half)], src=mine)
return out
"""


def test_a_barrier_lets_both_read_what_both_wrote() -> None:
    x = normal(8, 4)
    found = ran(kernel(SHARED.format(barrier="nisa.core_barrier(between, (0, 1))")), x)
    assert found.complete, (found.happenings, found.specialization.events)
    assert found.happenings == ()
    np.testing.assert_array_equal(found.outputs[0], np.concatenate([x[4:], x[:4]]))


def test_without_a_barrier_it_may_not_be_there_yet() -> None:
    found = ran(kernel(SHARED.format(barrier="")), normal(8, 4))
    assert [happening.code for happening in found.happenings] == ["uninitialised"]


def test_a_barrier_of_one_program_orders_nothing() -> None:
    text = kernel(SHARED.replace("// 2", "// 1").replace("(1 - core)", "core"))
    x = normal(8, 4)
    found = ran(text.format(barrier="nisa.core_barrier(between, (0, 1))"), x, grid=(1,))
    assert found.complete
    np.testing.assert_array_equal(found.outputs[0], x)


@pytest.mark.parametrize("core", [0, 1])
def test_a_core_that_waits_alone(core: int) -> None:
    barrier = f"if core == {core}:\n    nisa.core_barrier(between, (0, 1))"
    found = ran(kernel(SHARED.format(barrier=barrier)), normal(8, 4))
    assert not found.complete
    assert any("does not come" in happening.message for happening in found.happenings)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (EXCHANGE.format(turns="for turn in range(1):", pipe="core"), "different instructions"),
        (
            EXCHANGE.format(turns="for turn in range(1):", pipe=0).replace(
                "send_to_rank=1 - core", "send_to_rank=core"
            ),
            "not between the two cores",
        ),
    ],
)
def test_cores_that_miss_each_other(text: str, reason: str) -> None:
    found = ran(kernel(text), normal(8, 4))
    assert not found.complete
    assert any(reason in happening.message for happening in found.happenings), found.happenings


def test_loops_of_the_device_before_and_after_a_meeting() -> None:
    text = kernel(
        """
rows, width = x.shape
core = nl.program_id(0)
stop = nisa.register_alloc(count[0:1])
total = nl.ndarray((1, width), dtype=x.dtype, buffer=nl.sbuf)
nisa.memset(dst=total, value=0.0)
for turn in range(2):
    for i in nl.dynamic_range(stop):
        row = nl.ndarray((1, width), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=row, src=x[nl.ds(i, 1)])
        nisa.tensor_tensor(dst=total, data1=total, data2=row, op=nl.add)
    theirs = nl.ndarray((1, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.sendrecv(
        src=total, dst=theirs, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0
    )
    nisa.tensor_tensor(dst=total, data1=total, data2=theirs, op=nl.add)
out = nl.ndarray((2, width), dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out[nl.ds(core, 1)], src=total)
return out
""",
        "x, count",
    )
    x = normal(5, 3)
    found = ran(text, x, np.array([4], np.int32))
    assert found.complete, (found.happenings, found.specialization.events)
    each = x[:4].sum(axis=0)
    wanted = (2 * each + each) * 2
    np.testing.assert_allclose(found.outputs[0], [wanted, wanted], rtol=1e-5)


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_an_exchange_in_a_loop_of_the_device(turns: int) -> None:
    loop = "for turn in nl.dynamic_range(nisa.register_alloc(count[0:1])):"
    text = kernel(EXCHANGE.format(turns=loop, pipe=0), "x, count")
    x = normal(8, 4)
    left, right = x[:4], x[4:]
    for _ in range(turns):
        left, right = (left + right) * np.float32(2), (right + left) * np.float32(3)
    found = ran(text, x, np.array([turns], np.int32))
    assert found.complete, (found.happenings, found.specialization.events)
    np.testing.assert_array_equal(found.outputs[0], np.concatenate([left, right]))


def test_loops_of_the_device_that_turn_differently_often() -> None:
    loop = "for turn in nl.dynamic_range(nisa.register_alloc(count[nl.ds(core, 1)])):"
    text = kernel(EXCHANGE.format(turns=loop, pipe=0), "x, count")
    for counts in ((1, 2), (2, 1)):
        found = ran(text, normal(8, 4), np.array(counts, np.int32))
        assert not found.complete
        assert any("does not come" in happening.message for happening in found.happenings)


def test_a_core_with_nothing_to_do() -> None:
    text = kernel(
        """
rows, width = x.shape
out = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
if nl.program_id(0) == 0:
    stop = nisa.register_alloc(count[0:1])
    for i in nl.dynamic_range(stop):
        nisa.dma_copy(dst=out[nl.ds(i, 1)], src=x[nl.ds(i, 1)])
return out
""",
        "x, count",
    )
    x = normal(5, 3)
    found = ran(text, x, np.array([5], np.int32))
    assert found.complete
    assert found.happenings == ()
    np.testing.assert_array_equal(found.outputs[0], x)
