"""Kernels as they are written around indirect access: what they compute, run and lifted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.nki.kernels import kernel
from tests.nki.running import agreeing, run

RNG = np.random.default_rng(21)

GATHER = kernel(
    """
n, width = x.shape
rows = index.shape[0]
out = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
for t in nl.affine_range(rows // 4):
    at = nl.ndarray((4, 1), dtype=index.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=at, src=index[t * 4 : (t + 1) * 4])
    for c in nl.affine_range(width // 3):
        tile = nl.ndarray((4, 3), dtype=x.dtype, buffer=nl.sbuf)
        part = x.ap([[width, 4], [1, 3]], offset=c * 3, vector_offset=at, indirect_dim=0)
        nisa.dma_copy(dst=tile, src=part)
        nisa.dma_copy(dst=out[t * 4 : (t + 1) * 4, c * 3 : (c + 1) * 3], src=tile)
return out
""",
    "x, index",
)

PAGES = """
pages, size, width = x.shape
count = table.shape[1]
out = nl.ndarray((count * size, width), dtype=x.dtype, buffer=nl.shared_hbm)
entries = nl.ndarray((1, count), dtype=table.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=entries, src=table)
for k in nl.affine_range(count):
    tile = nl.ndarray((size, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src={page})
    nisa.dma_copy(dst=out[k * size : (k + 1) * size], src=tile)
return out
"""

PAGE = {
    "ap": "x.ap([[width, size], [1, width]], scalar_offset=entries[0:1, k : k + 1])",
    "select": "x.select(0, entries[0:1, k : k + 1])",
}

SCATTER = """
rows, width = x.shape
out = nl.ndarray((9, width), dtype=x.dtype, buffer=nl.shared_hbm)
zero = nl.ndarray((9, width), dtype=x.dtype, buffer=nl.sbuf)
nisa.memset(dst=zero, value=0.0)
nisa.dma_copy(dst=out, src=zero)
for t in nl.affine_range(rows // 2):
    at = nl.ndarray((2, 1), dtype=index.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=at, src=index[t * 2 : (t + 1) * 2])
    tile = nl.ndarray((2, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[t * 2 : (t + 1) * 2])
    there = out.ap([[width, 2], [1, width]], vector_offset=at, indirect_dim=0)
    nisa.dma_copy(dst=there, src=tile, oob_mode=nisa.oob_mode.{mode})
return out
"""

ADD_AT = kernel(
    """
rows, width = x.shape
at = nl.ndarray((rows, 1), dtype=index.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=at, src=index)
tile = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x)
out = nl.ndarray(y.shape, dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=y)
there = out.ap([[width, rows], [1, width]], vector_offset=at, indirect_dim=0)
nisa.dma_compute(dst=there, srcs=[there, tile], reduce_op=nl.add)
return out
""",
    "x, y, index",
)

CACHE = kernel(
    """
b, s, d = cache.shape
out = nl.ndarray(cache.shape, dtype=cache.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=cache)
at = nl.ndarray((1, 1), dtype=index.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=at, src=index)
for k in range(b):
    tile = nl.ndarray((1, d), dtype=cache.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[k : k + 1])
    rows = out.reshape((b * s, d))
    there = rows.ap([[d, 1], [1, d]], offset=k * s * d, scalar_offset=at, indirect_dim=0)
    nisa.dma_copy(dst=there, src=tile)
return out
""",
    "cache, x, index",
)

IN_A_TILE = kernel(
    """
n, width = x.shape
tile = nl.ndarray((n, width), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x)
r = nisa.register_alloc()
nisa.register_load(r, index)
part = nl.ndarray((n, 2), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_scalar(dst=part, data=tile[:, nl.ds(r, 2)], op0=nl.multiply, operand0=2.0)
nisa.tensor_copy(dst=tile[:, nl.ds(r, 2)], src=part)
out = nl.ndarray((n, width), dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=tile)
return out
""",
    "x, index",
)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def column(*values: int) -> Any:
    return np.array(values, np.int32)[:, None]


def check(text: str, wanted: Any, **args: Any) -> None:
    found = run(text, *args.values())
    np.testing.assert_array_equal(found.outputs[0], wanted)
    agreeing(text, **args)


def test_rows_gathered_in_tiles() -> None:
    x, index = normal(9, 6), column(3, 0, 8, 8, 1, 2, 0, 5)
    check(GATHER, x[index[:, 0]], x=x, index=index)


@pytest.mark.parametrize("page", PAGE)
def test_pages_of_a_table(page: str) -> None:
    x, table = normal(5, 3, 6), column(3, 0, 4, 4).T.copy()
    wanted = x[table[0]].reshape(12, 6)
    check(kernel(PAGES.format(page=PAGE[page]), "x, table"), wanted, x=x, table=table)


@pytest.mark.parametrize(
    ("mode", "index"),
    [("error", (3, 8, 0, 1, 7, 2)), ("skip", (3, 8, 0, 100, -7, 2))],
)
def test_rows_scattered_in_tiles(mode: str, index: tuple[int, ...]) -> None:
    x = normal(6, 6)
    wanted = np.zeros((9, 6), np.float32)
    for row, place in enumerate(index):
        if 0 <= place < 9:
            wanted[place] = x[row]
    check(kernel(SCATTER.format(mode=mode), "x, index"), wanted, x=x, index=column(*index))


def test_rows_added_at_places() -> None:
    x, y, index = normal(4, 6), normal(9, 6), column(3, 8, 0, 5)
    wanted = y.copy()
    wanted[index[:, 0]] += x
    check(ADD_AT, wanted, x=x, y=y, index=index)


def test_one_row_of_each_sequence_of_a_cache() -> None:
    cache, x = normal(3, 5, 4), normal(3, 4)
    wanted = cache.copy()
    wanted[:, 2] = x
    check(CACHE, wanted, cache=cache, x=x, index=column(2))


def test_a_part_of_a_tile_from_where_a_register_says() -> None:
    x = normal(3, 8)
    wanted = x.copy()
    wanted[:, 5:7] *= 2
    check(IN_A_TILE, wanted, x=x, index=column(5))


RETURNING = """
from neuronxcc import nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.isa as nisa


@nki.jit
def k(x, index):
    n, width = x.shape
    ip = nl.arange(4)[:, None]
    iw = nl.arange(width)[None, :]
    out = nl.ndarray(({rows}, width), dtype=x.dtype, buffer=nl.shared_hbm)
    at = nl.load(index)
    {body}
    return out
"""

LOADED = {
    "a tile of indices": "nl.store(out, value=nl.load(x[at, iw]))",
    "an index tensor into it": "nl.store(out[ip, iw], value=nl.load(x[at[ip, 0], iw]))",
}


@pytest.mark.parametrize("how", LOADED)
def test_rows_loaded_by_index_tensors(how: str) -> None:
    x, index = normal(9, 6), column(3, 0, 8, 8)
    check(RETURNING.format(rows=4, body=LOADED[how]), x[index[:, 0]], x=x, index=index)


def test_rows_loaded_under_a_mask() -> None:
    x, index = normal(9, 6), column(3, 0, 8, 700)
    body = "nl.store(out[ip, iw], value=nl.load(x[at[ip, 0], iw], mask=(ip < 3)), mask=(ip < 3))"
    check(RETURNING.format(rows=3, body=body), x[index[:3, 0]], x=x, index=index)


def test_rows_stored_by_index_tensors() -> None:
    x, index = normal(9, 6), column(3, 0, 8, 1)
    wanted = x.copy()
    wanted[index[:, 0]] = x[:4]
    body = "nl.store(out, value=nl.load(x)); nl.store(out[at, iw], value=nl.load(x[0:4]))"
    check(RETURNING.format(rows=9, body=body), wanted, x=x, index=index)


def test_many_loops_over_places_of_a_table() -> None:
    loop = """
for i{n} in range(3):
    nisa.dma_copy(dst=tile, src=x[:, (0, 5, 2)[i{n}] : (0, 5, 2)[i{n}] + 1])
    nisa.dma_copy(dst=out[:, {n} * 3 + i{n} : {n} * 3 + i{n} + 1], src=tile)
"""
    body = "".join(loop.format(n=n) for n in range(10))
    text = kernel(
        """
rows = x.shape[0]
tile = nl.ndarray((rows, 1), dtype=x.dtype, buffer=nl.sbuf)
out = nl.ndarray((rows, 30), dtype=x.dtype, buffer=nl.shared_hbm)
"""
        + body
        + "return out"
    )
    x = normal(4, 6)
    check(text, np.tile(x[:, [0, 5, 2]], 10), x=x)
