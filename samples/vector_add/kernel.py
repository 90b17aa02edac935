"""out[i] = x[i] + y[i], for vectors of any length.

A vector is cut into rows of 512 elements.  Up to 128 rows make a tile, one row a
partition; what is left behind the last whole row is a tile of a single partition.
"""

import nki
import nki.isa as nisa
import nki.language as nl


def add_block(out, x, y, start, rows, cols):
    """Add `rows * cols` elements from `start` on, each partition taking `cols` of them."""
    end = start + rows * cols
    x_tile = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.sbuf)
    y_tile = nl.ndarray((rows, cols), dtype=y.dtype, buffer=nl.sbuf)
    sum_tile = nl.ndarray((rows, cols), dtype=out.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x_tile, src=x[start:end].reshape((rows, cols)))
    nisa.dma_copy(dst=y_tile, src=y[start:end].reshape((rows, cols)))
    nisa.tensor_tensor(dst=sum_tile, data1=x_tile, data2=y_tile, op=nl.add)
    nisa.dma_copy(dst=out[start:end].reshape((rows, cols)), src=sum_tile)


@nki.jit
def vector_add(x, y):
    n = x.shape[0]
    out = nl.ndarray((n,), dtype=x.dtype, buffer=nl.shared_hbm)

    tile_rows = nl.tile_size.pmax
    cols = 512
    rows = n // cols
    for row in range(0, rows, tile_rows):
        add_block(out, x, y, row * cols, min(tile_rows, rows - row), cols)

    rest = n % cols
    if rest > 0:
        add_block(out, x, y, n - rest, 1, rest)
    return out
