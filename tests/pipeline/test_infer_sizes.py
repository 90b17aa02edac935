"""Tiles, and the sizes around them."""

from __future__ import annotations

from migrate.ir.index import Index, ceil_div, minimum
from migrate.pipeline.infer_sizes import (
    MAX_ELEMENTS,
    MAX_WORK,
    Frame,
    positions,
    rounded,
    small,
    tiles_of,
)

M, N, K = Index.size("m"), Index.size("n"), Index.size("k")
MATRIX = Frame(((M, N),))


def test_tiles_are_divisors_and_limits() -> None:
    step = Index.axis("step")
    found = tiles_of([ceil_div(N, 512), minimum(128, M - 128 * step), N % 8])
    assert found == {"n": {512, 8}, "m": {128}}
    assert tiles_of([N + M, minimum(N, M)]) == {}


def test_positions_lie_around_the_tiles() -> None:
    found = positions(["m"], {"m": frozenset({128})}, {}, Frame(((M,),)), {})
    values = [sizes["m"] for sizes in found]
    assert values[0] < 128
    assert 128 in values
    assert any(value > 128 and value % 128 for value in values)


def test_nested_tiles_get_a_position_between() -> None:
    found = positions(["n"], {"n": frozenset({512, 65536})}, {}, Frame(((N,),)), {})
    assert any(512 < sizes["n"] < 65536 for sizes in found)
    assert any(sizes["n"] > 65536 for sizes in found)


def test_no_position_is_too_large() -> None:
    tiles = {name: frozenset({512}) for name in "mnk"}
    frame = Frame(((M, K), (K, N), (M, N)))
    for sizes in positions(["m", "n", "k"], tiles, {}, frame, {}):
        assert sizes["m"] * sizes["n"] <= MAX_ELEMENTS
        assert sizes["m"] * sizes["n"] * sizes["k"] <= MAX_WORK


def test_sizes_without_tiles_give_way_first() -> None:
    frame = Frame(((M, N, K),))
    for sizes in positions(["m", "n", "k"], {"n": frozenset({128})}, {}, frame, {}):
        assert sizes["n"] >= 97


def test_fixed_sizes_and_multiples_hold() -> None:
    frame = Frame(((M, N),), (), ((N, 4),))
    found = positions(["m", "n"], {"n": frozenset({128})}, {}, frame, {"m": 7})
    assert {sizes["m"] for sizes in found} == {7}
    assert all(sizes["n"] % 4 == 0 for sizes in found)


def test_a_block_holds_at_most_1024_threads() -> None:
    frame = Frame(((M, N),), (N,))
    found = positions(["m", "n"], {"n": frozenset({2048})}, {}, frame, {})
    assert found
    assert all(0 < sizes["n"] <= 1024 for sizes in found)


def test_factors_of_one_extent_do_not_all_have_the_tile() -> None:
    frame = Frame(((M * N, K),))
    found = positions(
        ["m", "n", "k"], {"n": frozenset({128}), "m": frozenset({128})}, {}, frame, {}
    )
    assert all(sizes["m"] <= 3 for sizes in found)


def test_small_sizes_differ_at_first() -> None:
    first = small(["m", "n"], MATRIX)[0]
    assert first["m"] != first["n"]
    assert all(MATRIX.admits(sizes) for sizes in small(["m", "n"], MATRIX))


def test_rounding_to_whole_tiles() -> None:
    tiles = {"m": frozenset({128})}
    assert rounded({"m": 145, "n": 7}, tiles, MATRIX, {}) == {"m": 256, "n": 7}
