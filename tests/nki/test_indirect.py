"""Operands whose position is read from memory: gathers, scatters, dynamic slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from migrate.ir.nodes import Gather, Kernel, walk
from migrate.nki.simulate import simulate
from migrate.numerics.rounded import Rounded
from tests.nki.kernels import kernel, module
from tests.nki.running import agreeing, lifted, opaque, run

RNG = np.random.default_rng(5)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def ints(*values: int, dtype: Any = np.int32) -> Any:
    return np.array(values, dtype)


def gathers(found: Kernel) -> int:
    return sum(isinstance(op, Gather) for op in walk(found.body))


def moves(dst: str, src: str, before: str = "", **kwargs: str) -> str:
    """A kernel that loads `index`, then copies `src` (of x) through a tile into `dst`."""
    options = "".join(f", {name}={value}" for name, value in kwargs.items())
    return kernel(
        f"""
n, width = x.shape
rows = index.shape[0]
at = nl.ndarray((rows, 1), dtype=index.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=at, src=index)
out = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
tile = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf)
{before}
nisa.dma_copy(dst={dst}, src={src}{options})
nisa.dma_copy(dst=out, src=tile)
return out
""",
        "x, index",
    )


ROWS = moves(
    "tile",
    "x.ap(pattern=[[width, rows], [1, width]], offset=0, vector_offset=at, indirect_dim=0)",
)
SELECTED = moves("tile", "x.vector_select(0, at)")
NUMPY_STYLE = moves("tile", "x[at, nl.arange(width)[None, :]]")


@pytest.mark.parametrize("text", [ROWS, SELECTED, NUMPY_STYLE], ids=["ap", "vector", "index"])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_rows_are_gathered(text: str, dtype: Any) -> None:
    x, index = normal(9, 6), ints(3, 8, 0, 3, 5, dtype=dtype)[:, None]
    found = run(text, x, index)
    np.testing.assert_array_equal(found.outputs[0], x[index[:, 0]])
    assert gathers(agreeing(text, x=x, index=index)) == 1


def test_columns_of_gathered_rows() -> None:
    text = moves(
        "tile[:, 0:2]",
        "x.ap(pattern=[[width, rows], [1, 2]], offset=3, vector_offset=at, indirect_dim=0)",
        "nisa.memset(dst=tile, value=0.0)",
    )
    x, index = normal(9, 6), ints(3, 8, 0)[:, None]
    wanted = np.zeros((3, 6), np.float32)
    wanted[:, :2] = x[index[:, 0], 3:5]
    np.testing.assert_array_equal(run(text, x, index).outputs[0], wanted)
    agreeing(text, x=x, index=index)


def test_the_first_step_of_a_gather_does_not_count() -> None:
    text = moves(
        "tile",
        "x.ap(pattern=[[77, rows], [1, width]], vector_offset=at, indirect_dim=0)",
    )
    x, index = normal(9, 6), ints(3, 8, 0)[:, None]
    np.testing.assert_array_equal(run(text, x, index).outputs[0], x[index[:, 0]])


def outside(index: Any, **kwargs: str) -> Any:
    text = moves(
        "tile",
        "x.ap(pattern=[[width, rows], [1, width]], vector_offset=at, indirect_dim=0)",
        "nisa.memset(dst=tile, value=7.0)",
        **kwargs,
    )
    return text, simulate(
        module(text), "k", (np.arange(12, dtype=np.float32).reshape(4, 3), index), domain=Rounded()
    )


def test_a_row_that_is_not_there() -> None:
    _, found = outside(ints(1, 4, 2)[:, None])
    assert [h.code for h in found.happenings] == ["out-of-bounds"]
    assert "3 elements outside x are read" in found.happenings[0].message


@pytest.mark.parametrize("missing", [4, -1])
def test_a_row_that_is_not_there_may_be_skipped(missing: int) -> None:
    index = ints(1, missing, 2)[:, None]
    text, found = outside(index, oob_mode="nisa.oob_mode.skip")
    assert found.happenings == ()
    wanted = np.array([[3, 4, 5], [7, 7, 7], [6, 7, 8]], np.float32)
    np.testing.assert_array_equal(found.outputs[0], wanted)
    agreeing(text, x=np.arange(12, dtype=np.float32).reshape(4, 3), index=index)


SCATTER = kernel(
    """
rows, width = x.shape
at = nl.ndarray((rows, 1), dtype=index.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=at, src=index)
tile = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x)
out = nl.ndarray((size, width), dtype=x.dtype, buffer=nl.shared_hbm)
empty = nl.ndarray((size, width), dtype=x.dtype, buffer=nl.sbuf)
nisa.memset(dst=empty, value=0.0)
nisa.dma_copy(dst=out, src=empty)
nisa.dma_copy(
    dst=out.ap(pattern=[[width, rows], [1, width]], vector_offset=at, indirect_dim=0),
    src=tile,
    oob_mode=nisa.oob_mode.skip,
)
return out
""",
    "x, index, size",
)


def test_rows_are_scattered() -> None:
    x, index = normal(4, 6), ints(3, 8, 0, 99)[:, None]
    wanted = np.zeros((9, 6), np.float32)
    wanted[[3, 8, 0]] = x[:3]
    np.testing.assert_array_equal(run(SCATTER, x, index, 9).outputs[0], wanted)
    assert opaque(lifted(SCATTER, x=x, index=index, size=9)) == []


BY_SCALAR = {
    "tile": "at",
    "element": "at[0:1, 0:1]",
    "register": "start",
}


@pytest.mark.parametrize("source", BY_SCALAR)
def test_one_position_for_all(source: str) -> None:
    before = "start = nisa.register_alloc()\nnisa.register_load(dst=start, src=at)"
    text = kernel(
        f"""
n, width = x.shape
at = nl.ndarray((1, 1), dtype=index.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=at, src=index)
{before if source == "register" else ""}
out = nl.ndarray((3, width), dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(
    dst=out,
    src=x.ap(
        pattern=[[width, 3], [1, width]],
        offset=width,
        scalar_offset={BY_SCALAR[source]},
        indirect_dim=0,
    ),
)
return out
""",
        "x, index",
    )
    x, index = normal(9, 6), ints(4)[:, None]
    np.testing.assert_array_equal(run(text, x, index).outputs[0], x[5:8])
    assert gathers(agreeing(text, x=x, index=index)) >= 1


def test_one_position_along_an_inner_axis() -> None:
    text = kernel(
        """
n, width = x.shape
at = nl.ndarray((1, 1), dtype=index.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=at, src=index)
tile = nl.ndarray((n, width), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x)
part = nl.ndarray((n, 2), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_copy(
    dst=part,
    src=tile.ap(pattern=[[width, n], [1, 2]], scalar_offset=at, indirect_dim=1),
)
out = nl.ndarray((n, 2), dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=part)
return out
""",
        "x, index",
    )
    x, index = normal(9, 6), ints(4)[:, None]
    np.testing.assert_array_equal(run(text, x, index).outputs[0], x[:, 4:6])
    agreeing(text, x=x, index=index)


@pytest.mark.parametrize(
    "src",
    [
        "x.select(0, start).reshape((1, width))",
        "x[start].reshape((1, width))",
        "x[nl.ds(start, 1)]",
        "x[nl.ds(start, 1), 0:width]",
    ],
)
def test_subscripts_with_a_register(src: str) -> None:
    text = kernel(
        f"""
n, width = x.shape
start = nisa.register_alloc()
nisa.register_load(dst=start, src=index)
out = nl.ndarray((1, width), dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src={src})
return out
""",
        "x, index",
    )
    x, index = normal(9, 6), ints(4)
    np.testing.assert_array_equal(run(text, x, index).outputs[0], x[4:5])
    agreeing(text, x=x, index=index)


def test_a_slice_that_starts_too_late() -> None:
    text = kernel(
        """
n, width = x.shape
start = nisa.register_alloc()
nisa.register_load(dst=start, src=index)
out = nl.ndarray((2, width), dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=x[nl.ds(start, 2)])
return out
""",
        "x, index",
    )
    found = simulate(module(text), "k", (normal(9, 6), ints(8)), domain=Rounded())
    assert [h.code for h in found.happenings] == ["out-of-bounds"]


@pytest.mark.parametrize(
    ("src", "reason"),
    [
        ("x.ap([[width, rows], [1, width]], vector_offset=at, scalar_offset=at)", "exclude"),
        ("x.ap([[width, rows], [1, width]], vector_offset=at, indirect_dim=1)", "axis 0"),
        ("x.ap([[width, rows], [1, width]], vector_offset=tile)", "an integer is needed"),
        ("x.ap([[width, rows], [1, width]], scalar_offset=at)", "elements, not one"),
        ("x.ap([[width, 9], [1, width]], vector_offset=at)", "3 elements for 9 rows"),
    ],
)
def test_what_no_instruction_takes(src: str, reason: str) -> None:
    found = simulate(
        module(moves("tile", src)), "k", (normal(9, 6), ints(1, 2, 3)[:, None]), domain=Rounded()
    )
    assert not found.complete
    assert any(reason in event.message for event in found.specialization.events)


def test_what_is_skipped_is_not_out_of_bounds() -> None:
    text = kernel(
        """
at = nl.ndarray((1, 1), dtype=index.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=at, src=index)
tile = nl.ndarray((4, 6), dtype=x.dtype, buffer=nl.sbuf)
nisa.memset(dst=tile, value=0.0)
rows = x.ap(pattern=[[6, 4], [1, 6]], scalar_offset=at, indirect_dim=0)
nisa.dma_copy(dst=tile, src=rows, oob_mode=nisa.oob_mode.skip)
out = nl.ndarray((4, 6), dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=tile)
return out
""",
        "x, index",
    )
    x = normal(3, 6)
    wanted = np.zeros((4, 6), np.float32)
    wanted[:2] = x[1:]
    np.testing.assert_array_equal(run(text, x, ints(1)[:, None]).outputs[0], wanted)


def test_one_of_several_sources_out_of_bounds() -> None:
    text = kernel(
        """
tile = nl.ndarray((4, 6), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_compute(dst=tile, srcs=[x[0:4], x[2:6]], reduce_op=nl.add)
out = nl.ndarray((4, 6), dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=tile)
return out
"""
    )
    found = simulate(module(text), "k", (normal(5, 6),), domain=Rounded())
    assert "out-of-bounds" in {p.code for p in found.specialization.problems}


@pytest.mark.parametrize("offset", ["", ", offset=0", ", scalar_offset=at[0:1, 0:1]"])
def test_a_pattern_on_a_part_of_a_tensor_may_start_in_two_places(offset: str) -> None:
    text = moves("tile", f"x[3:9].ap([[width, rows], [1, width]]{offset})")
    found = simulate(module(text), "k", (normal(9, 6), ints(1, 2, 0)[:, None]), domain=Rounded())
    assert not found.complete
    assert any("contradicts" in event.message for event in found.specialization.events)
