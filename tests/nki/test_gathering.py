"""Instructions that move elements within and between partitions, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from migrate.nki.simulate import simulate
from migrate.numerics.rounded import Rounded
from tests.nki.kernels import module
from tests.nki.running import agreeing, on_tiles, run, troubles

RNG = np.random.default_rng(22)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


GATHER = on_tiles(
    "nisa.nc_n_gather(dst=r, data=x_t, indices=at_t)", "x, at", r="at.shape, dtype=x.dtype"
)


@pytest.mark.parametrize("count", [1, 6, 15])
def test_each_partition_gathers_from_itself(count: int) -> None:
    x = normal(3, 10)
    at = RNG.integers(0, 10, size=(3, count)).astype(np.uint32)
    np.testing.assert_array_equal(run(GATHER, x, at).outputs[0], np.take_along_axis(x, at, 1))
    agreeing(GATHER, x=x, at=at)


def test_gathered_from_several_axes_as_one() -> None:
    x = normal(3, 4, 5)
    at = RNG.integers(0, 20, size=(3, 6)).astype(np.uint32)
    wanted = np.take_along_axis(x.reshape(3, 20), at, 1)
    np.testing.assert_array_equal(run(GATHER, x, at).outputs[0], wanted)


def test_an_index_outside_is_told() -> None:
    x, at = normal(2, 4), np.array([[0, 4], [1, 2]], np.uint32)
    found = simulate(module(GATHER), "k", (x, at), domain=Rounded())
    assert [h.code for h in found.happenings] == ["out-of-bounds"]


def test_what_a_gather_refuses() -> None:
    x = normal(4, 6)
    assert troubles(GATHER, x, np.zeros((4, 2), np.int32)) == ["dtype"]
    assert "partition-mismatch" in troubles(GATHER, x, np.zeros((3, 2), np.uint32))


def local(each: int, count: str) -> str:
    return on_tiles(
        f"nisa.local_gather(dst=r, src_buffer=x_t, index=at_t, num_elem_per_idx={each})",
        "x, at",
        r=f"(x.shape[0], {count}), dtype=x.dtype",
    )


@pytest.mark.parametrize("each", [1, 4])
@pytest.mark.parametrize("rows", [16, 48])
def test_sixteen_partitions_share_their_indices(each: int, rows: int) -> None:
    x = normal(rows, 24)
    at = RNG.integers(0, 24 - each + 1, size=(rows, 2)).astype(np.uint16)
    wanted = np.zeros((rows, 32 * each), np.float32)
    for row in range(rows):
        core = at[row // 16 * 16 : row // 16 * 16 + 16]
        for k in range(32):
            start = core[k % 16, k // 16]
            wanted[row, k * each : (k + 1) * each] = x[row, start : start + each]
    text = local(each, str(32 * each))
    np.testing.assert_array_equal(run(text, x, at).outputs[0], wanted)
    agreeing(text, x=x, at=at)


def test_what_a_local_gather_refuses() -> None:
    assert "size" in troubles(local(1, "16"), normal(15, 8), np.zeros((15, 1), np.uint16))
    assert "argument" in troubles(local(3, "48"), normal(16, 8), np.zeros((16, 1), np.uint16))
    assert "dtype" in troubles(local(1, "16"), normal(16, 8), np.zeros((16, 1), np.uint32))


def test_elements_that_the_documentation_says_nothing_of_are_not_made_up() -> None:
    x, at = normal(16, 8), np.zeros((16, 1), np.uint16)
    found = simulate(module(local(2, "16")), "k", (x, at), domain=Rounded())
    assert not found.complete


SHUFFLE = on_tiles(
    """
    nisa.memset(dst=r, value=3.0)
    nisa.nc_stream_shuffle(dst=r, src=x_t, shuffle_mask={mask})
    """,
    "x",
    r="x.shape, dtype=x.dtype",
)

MASKS = {
    "all from one": [5] * 32,
    "reversed": list(range(31, -1, -1)),
    "some kept": [255, 3, 255, 2, *range(4, 32)],
    "at random": [int(n) for n in np.random.default_rng(3).permutation(32)],
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("rows", [32, 96])
def test_partitions_move_within_each_group_of_32(mask: list[int], rows: int) -> None:
    x = normal(rows, 3)
    wanted = np.full_like(x, 3)
    for row in range(rows):
        source = mask[row % 32]
        if source != 255:
            wanted[row] = x[row // 32 * 32 + source]
    text = SHUFFLE.replace("{mask}", repr(mask))
    np.testing.assert_array_equal(run(text, x).outputs[0], wanted)
    agreeing(text, x=x)


def test_a_shuffle_in_place() -> None:
    mask = list(range(31, -1, -1))
    text = on_tiles(
        f"nisa.nc_stream_shuffle(dst=x_t, src=x_t, shuffle_mask={mask})\n"
        "nisa.tensor_copy(dst=r, src=x_t)",
        "x",
        r="x.shape, dtype=x.dtype",
    )
    x = normal(32, 4)
    np.testing.assert_array_equal(run(text, x).outputs[0], x[::-1])
    agreeing(text, x=x)


def test_a_mask_has_32_numbers() -> None:
    assert "argument" in troubles(SHUFFLE.replace("{mask}", "[0, 1]"), normal(32, 2))
    bad = [32, *range(1, 32)]
    assert "argument" in troubles(SHUFFLE.replace("{mask}", repr(bad)), normal(32, 2))


MASKED = on_tiles(
    """
    p, f = nl.mgrid[0:4, 0:6]
    nisa.memset(dst=r, value=0.0)
    {line}
    """,
    "x, at",
    r="at.shape, dtype=x.dtype",
)


@pytest.mark.parametrize(
    ("mask", "kept"),
    [("p < 3", np.s_[:3, :]), ("f < 2", np.s_[:, :2]), ("(p < 3) & (f >= 2)", np.s_[:3, 2:])],
)
def test_a_masked_gather_still_reads_all_elements(mask: str, kept: Any) -> None:
    line = f"nisa.nc_n_gather(dst=r[p, f], data=x_t, indices=at_t[p, f], mask={mask})"
    text = MASKED.replace("{line}", line)
    x, at = normal(4, 6), RNG.permuted(np.tile(np.arange(6, dtype=np.uint32), (4, 1)), axis=1)
    wanted = np.zeros_like(x)
    wanted[kept] = np.take_along_axis(x, at, 1)[kept]
    np.testing.assert_array_equal(run(text, x, at).outputs[0], wanted)
    agreeing(text, x=x, at=at)


@pytest.mark.parametrize(
    "line",
    [
        "nisa.nc_stream_shuffle(dst=r[p, f], src=x_t[p, f], shuffle_mask=[0] * 32, mask=p < 3)",
        "nisa.dma_transpose(dst=r[0:4, 0:4], src=x_t[p, f], axes=(1, 0), mask=p < 3)",
        "nisa.tensor_partition_reduce(dst=r[0:1, :], op=nl.add, data=x_t[p, f], mask=p < 3)",
    ],
)
def test_masks_of_what_moves_partitions_are_not_guessed(line: str) -> None:
    text = MASKED.replace("{line}", line)
    found = simulate(module(text), "k", (normal(4, 6), normal(4, 6)), domain=Rounded())
    assert not found.complete
