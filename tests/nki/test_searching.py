"""Instructions that look for elements, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.nki.running import agreeing, on_tiles, run, troubles

RNG = np.random.default_rng(21)

MAX8 = on_tiles("nisa.max8(dst=r, src=x_t)", "x", r="(x.shape[0], 8), dtype=nl.float32")
FIND = on_tiles(
    "nisa.nc_find_index8(dst=r, data=x_t, vals=v_t)", "x, v", r="(x.shape[0], 8), dtype=nl.uint32"
)
REPLACE = on_tiles(
    "nisa.nc_match_replace8(dst=r, data=x_t, vals=v_t, imm=-9.0, dst_idx=at)",
    "x, v",
    r="x.shape, dtype=nl.float32",
    at="(x.shape[0], 8), dtype=nl.uint16",
)


def few(*shape: int) -> Any:
    """Numbers of which many are equal."""
    return RNG.integers(-4, 5, size=shape).astype(np.float32)


@pytest.mark.parametrize("width", [8, 9, 40])
def test_the_eight_largest_in_descending_order(width: int) -> None:
    x = few(5, width)
    wanted = -np.sort(-x, axis=1)[:, :8]
    np.testing.assert_array_equal(run(MAX8, x).outputs[0], wanted)
    agreeing(MAX8, x=x)


def found_first(row: Any, values: Any, order: Any) -> list[int | None]:
    """Positions of eight values; equal ones take successive places in `order`."""
    taken: set[int] = set()
    places: list[int | None] = [None] * 8
    for slot in order:
        for place, number in enumerate(row):
            if number == values[slot] and place not in taken:
                taken.add(place)
                places[slot] = place
                break
    return places


def values_of(x: Any) -> Any:
    """Some that occur, some twice, one that does not."""
    v = np.stack([RNG.choice(row, 8) for row in x])
    v[:, 3] = v[:, 6]
    v[:, 5] = 77
    return v


@pytest.mark.parametrize("width", [8, 20])
def test_places_of_eight_values(width: int) -> None:
    x = few(4, width)
    v = values_of(x)
    places = [found_first(row, values, range(8)) for row, values in zip(x, v, strict=True)]
    wanted = [[0xFFFFFFFF if place is None else place for place in row] for row in places]
    np.testing.assert_array_equal(run(FIND, x, v).outputs[0], np.array(wanted, np.uint32))
    agreeing(FIND, x=x, v=v)


def test_values_are_replaced_once_each_and_looked_for_from_the_last() -> None:
    x = few(4, 12)
    v = values_of(x)
    wanted, at = x.copy(), np.zeros((4, 8), np.uint16)
    for row, (data, values) in enumerate(zip(x, v, strict=True)):
        for slot, place in enumerate(found_first(data, values, range(7, -1, -1))):
            at[row, slot] = 0xFFFF if place is None else place
            if place is not None:
                wanted[row, place] = -9
    outputs = run(REPLACE, x, v).outputs
    np.testing.assert_array_equal(outputs[0], wanted)
    np.testing.assert_array_equal(outputs[1], at)
    agreeing(REPLACE, x=x, v=v)


def test_searches_take_at_least_eight_elements() -> None:
    assert "size" in troubles(MAX8, few(2, 7))
    assert "size" in troubles(FIND, few(2, 7), few(2, 8))


def test_places_are_unsigned_numbers() -> None:
    text = FIND.replace("nl.uint32", "nl.int32")
    assert troubles(text, few(2, 9), few(2, 8)) == ["dtype"]


NONZERO = on_tiles(
    "nisa.memset(dst=r, value=5)\n"
    "nisa.nonzero_with_count(dst=r, src=x_t, index_offset=10, padding_val=-3)",
    "x",
    r="(x.shape[0], x.shape[1] + 1), dtype=nl.int32",
)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_places_of_what_is_not_zero_and_their_number(dtype: Any) -> None:
    x = RNG.integers(0, 2, size=(33, 7)).astype(dtype)
    x[16] = 0
    wanted = np.full((33, 8), 5, np.int32)
    for row in (0, 16, 32):
        (places,) = np.nonzero(x[row])
        wanted[row, :7] = -3
        wanted[row, : len(places)] = places + 10
        wanted[row, 7] = len(places)
    np.testing.assert_array_equal(run(NONZERO, x).outputs[0], wanted)
    agreeing(NONZERO, x=x)


def test_one_element_more_for_the_count() -> None:
    text = NONZERO.replace("x.shape[1] + 1", "x.shape[1]")
    assert troubles(text, few(16, 7)) == ["size-mismatch"]


BOUNDS = on_tiles(
    "nisa.sequence_bounds(dst=r, segment_ids=x_t)",
    "x",
    r="(1, 2, x.shape[1]), dtype=nl.float32",
)


@pytest.mark.parametrize(
    "ids",
    [
        [1, 1, 2, 2, 2, 0, 0],
        [0, 0, 3, 3, 1, 1, 1],
        [4],
        [0],
        [7, 7, 7],
        [1, 2, 3, 1],
    ],
)
def test_bounds_of_segments(ids: list[int]) -> None:
    n = len(ids)
    wanted = np.zeros((1, 2, n), np.float32)
    for k, segment in enumerate(ids):
        start = stop = k
        while start > 0 and ids[start - 1] == segment:
            start -= 1
        while stop < n and ids[stop] == segment:
            stop += 1
        wanted[0, :, k] = (n, -1) if segment == 0 else (start, stop)
    x = np.array([ids], np.float32)
    np.testing.assert_array_equal(run(BOUNDS, x).outputs[0], wanted)
    agreeing(BOUNDS, x=x)


def test_segments_lie_in_one_partition() -> None:
    assert "size" in troubles(BOUNDS, few(2, 4))
