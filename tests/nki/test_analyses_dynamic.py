"""What the analyses say about operands whose position is read from memory, and loops of the
device: nothing that is not so.
"""

from __future__ import annotations

import pytest

from migrate.nki.analyses import Analyses
from migrate.nki.specialize import specialize
from migrate.nki.values import TensorSpec
from migrate.numerics.dtypes import DType
from tests.nki.kernels import kernel, module, tensor


def told(text: str, **specs: TensorSpec) -> set[str]:
    analyses = Analyses("trn2")
    found = specialize(
        module(text),
        "k",
        dict(specs),
        on_instruction=analyses.execute,
        on_allocation=analyses.allocated,
    )
    assert found.complete, found.events
    return {problem.code for problem in (*found.problems, *analyses.problems(found))}


def gathering(columns: int) -> str:
    return kernel(
        f"""
n, width = x.shape
out = nl.ndarray((1280, {columns}), dtype=x.dtype, buffer=nl.shared_hbm)
for i in range(10):
    at = nl.ndarray((128, 1), dtype=index.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=at, src=index[i * 128 : (i + 1) * 128])
    tile = nl.ndarray((128, {columns}), dtype=x.dtype, buffer=nl.sbuf)
    rows = x.ap([[width, 128], [1, {columns}]], vector_offset=at, indirect_dim=0)
    nisa.dma_copy(dst=tile, src=rows)
    nisa.dma_copy(dst=out[i * 128 : (i + 1) * 128], src=tile)
return out
""",
        "x, index",
    )


@pytest.mark.parametrize(("columns", "small"), [(512, False), (4, True)])
def test_rows_that_are_gathered_are_pieces(columns: int, small: bool) -> None:
    found = told(
        gathering(columns),
        x=tensor("x", 5000, 512),
        index=tensor("index", 1280, 1, dtype=DType.INT32),
    )
    assert ("small-descriptors" in found) is small


def test_a_scatter_writes_somewhere() -> None:
    text = kernel(
        """
at = nl.ndarray((1, 1), dtype=index.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=at, src=index)
between = nl.ndarray((4096, 512), dtype=x.dtype, buffer=nl.private_hbm)
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
out = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
for i in range(8):
    nisa.dma_copy(dst=tile, src=x[i * 128 : (i + 1) * 128])
    nisa.dma_copy(dst=between.ap([[512, 128], [1, 512]], scalar_offset=at), src=tile)
nisa.dma_copy(dst=tile, src=between[0:128])
nisa.dma_copy(dst=out, src=tile)
return out
""",
        "x, index",
    )
    found = told(text, x=tensor("x", 1024, 512), index=tensor("index", 1, 1, dtype=DType.INT32))
    assert not found & {"round-trip", "unwritten-read", "unwritten-output"}


CARRIED = """
stop = nisa.register_alloc(count[0:1])
a = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
b = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
out = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
{loop}
    for j in range(8):
        part = parts[j]
        nisa.tensor_scalar(dst=part, data=part, op0=nl.multiply, operand0=0.5)
        nisa.tensor_scalar(dst=b, data=part, op0=nl.add, operand0=1.0)
        nisa.dma_copy(dst=out[:, j * 64 : (j + 1) * 64], src=b)
return out
"""


def test_the_next_turn_reads_too() -> None:
    start = """
parts = []
for j in range(8):
    part = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=part, src=x[:, j * 64 : (j + 1) * 64])
    parts.append(part)
"""
    body = start + CARRIED
    specs = {"x": tensor("x", 128, 512), "count": tensor("count", 1, dtype=DType.INT32)}
    once = kernel(body.format(loop="if True:"), "x, count")
    assert "unfused" in told(once, **specs)
    turning = kernel(body.format(loop="for i in nl.dynamic_range(stop):"), "x, count")
    assert "unfused" not in told(turning, **specs)


def test_windows_in_elements_of_two_sizes() -> None:
    text = kernel(
        """
out = nl.ndarray((64, 32), dtype=nl.uint32, buffer=nl.shared_hbm)
for j in range(8):
    halves = nl.ndarray((128, 64), dtype=nl.uint16, buffer=nl.sbuf)
    nisa.memset(dst=halves, value=0)
    part = halves[64:128]
    nisa.tensor_scalar(dst=part, data=part, op0=nl.add, operand0=3)
    other = nl.ndarray((128, 64), dtype=nl.uint16, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=other[64:128], data=part, op0=nl.add, operand0=1)
    nisa.dma_copy(dst=out, src=halves.view(nl.uint32)[64:128])
return out
"""
    )
    assert "unfused" not in told(text, x=tensor("x", 1))
