"""HW203: tiles that the hardware does not take at once."""

import pytest

from tests.rules.judged import by, compared, line

COPY = "for (int i = 0; i < cols; ++i) y[i] = x[i];"

TILES = """
most = {most}
for start in range(0, rows, most):
    count = min(most, rows - start)
    tile = nl.ndarray((count, cols), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[start : start + count, :])
    nisa.dma_copy(dst=y[start : start + count, :], src=tile)
"""


@pytest.mark.parametrize("rows", [100, 128, 200])
def test_tiles_of_128_rows_are_taken(rows: int) -> None:
    result = compared(COPY, TILES.format(most="nl.tile_size.pmax"), rows, 4)
    assert by(result, "HW203") == []
    assert result.verdict == "faithful"


def test_the_constant_that_allows_too_many_partitions_is_the_place() -> None:
    result = compared(COPY, TILES.format(most="2 * nl.tile_size.pmax"), 200, 4)
    (finding,) = by(result, "HW203")
    assert line(finding) == 1
    assert "200 partitions, 128 at most" in finding.message
    assert result.verdict == "not-faithful"


def test_without_a_bound_the_size_itself_is_the_place() -> None:
    whole = """
tile = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x)
nisa.dma_copy(dst=y, src=tile)
"""
    assert by(compared(COPY, whole, 128, 4), "HW203") == []
    places = {line(f) for f in by(compared(COPY, whole, 129, 4), "HW203")}
    assert places
    assert places <= {-1, 1, 2}, "where rows comes from, or the tile"


PRODUCT = """
a = nl.ndarray((rows, 1), dtype=x.dtype, buffer=nl.sbuf)
b = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.sbuf)
nisa.memset(dst=a, value=1.0)
nisa.dma_copy(dst=b, src=x)
p = nl.ndarray((1, cols), dtype=nl.float32, buffer=nl.psum)
nisa.nc_matmul(dst=p, stationary=a, moving=b)
"""


@pytest.mark.parametrize(("cols", "found"), [(512, 0), (513, 1)])
def test_a_matmul_moves_512_columns(cols: int, found: int) -> None:
    result = compared(COPY, PRODUCT, 8, cols)
    messages = [f.message for f in by(result, "HW203")]
    assert len(messages) == found
    assert all("512 at most" in message for message in messages)
