"""What instructions leave in tensors that they read and write at once, or share with others."""

from __future__ import annotations

import numpy as np

from migrate.nki.simulate import simulate
from migrate.numerics.rounded import Rounded
from tests.nki.kernels import kernel, module
from tests.nki.running import run

ROWS = np.arange(32, dtype=np.float32).reshape(4, 8)

TILE = """\
t = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)
out = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=t, src=x)
"""
OUT = "nisa.dma_copy(dst=out, src=t)\nreturn out\n"


def test_a_tile_moves_within_itself() -> None:
    found = run(
        kernel(TILE + "nisa.tensor_copy(dst=t[:, 1:8], src=t[:, 0:7])\n" + OUT, "x"), ROWS
    ).outputs[0]
    np.testing.assert_array_equal(found[:, 1:], ROWS[:, :7])
    np.testing.assert_array_equal(found[:, 0], ROWS[:, 0])


def test_a_result_and_its_sum_in_the_tile_that_is_read() -> None:
    line = (
        "nisa.activation(dst=t[:, 0:7], op=nl.copy, data=t[:, 1:8],"
        " reduce_op=nl.add, reduce_res=t[:, 7:8], reduce_cmd=nisa.reduce_cmd.reset_reduce)\n"
    )
    found = run(kernel(TILE + line + OUT, "x"), ROWS).outputs[0]
    np.testing.assert_array_equal(found[:, :7], ROWS[:, 1:])
    np.testing.assert_array_equal(found[:, 7], ROWS[:, 1:].sum(axis=1))


def test_one_tile_over_and_over() -> None:
    body = """\
out = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.shared_hbm)
t = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=t, value=1.0)
for k in range(3):
    u = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=u, src=x)
    nisa.tensor_tensor(dst=u, data1=u, data2=t, op=nl.add)
    nisa.tensor_copy(dst=t, src=u)
nisa.dma_copy(dst=out, src=t)
return out
"""
    np.testing.assert_array_equal(run(kernel(body, "x"), ROWS).outputs[0], 3 * ROWS + 1)


def test_arguments_stay_as_they_are_unless_the_kernel_writes_them() -> None:
    given = ROWS.copy()
    found = run(kernel("nisa.dma_copy(dst=x[0:1], src=y[0:1])\nreturn x, y", "x, y"), given, ROWS)
    np.testing.assert_array_equal(given, ROWS)
    np.testing.assert_array_equal(found.inputs_after["x"][0], ROWS[0])
    for output in found.outputs:
        assert not np.shares_memory(output, given)
        assert not np.shares_memory(output, ROWS)
    again = run(kernel(TILE + OUT.replace("return out", "return out, out[0:2]"), "x"), ROWS)
    assert not np.shares_memory(*again.outputs)


def test_what_was_never_written_reads_as_no_number() -> None:
    body = TILE + "u = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)\n"
    body += "nisa.tensor_copy(dst=u[:, 0:3], src=t[:, 0:3])\nnisa.dma_copy(dst=out, src=u)\n"
    found = simulate(module(kernel(body + "return out", "x")), "k", [ROWS], domain=Rounded())
    assert [(h.code, h.count) for h in found.happenings] == [("uninitialised", 20)]
    np.testing.assert_array_equal(found.outputs[0][:, :3], ROWS[:, :3])
    assert np.isnan(found.outputs[0][:, 3:]).all()
