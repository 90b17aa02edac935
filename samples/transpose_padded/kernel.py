"""y[c, r] = x[r, c], for matrices of any size.

The Tensor engine turns a tile of up to 128 x 128 on its way into PSUM: rows of x lie on
partitions before, columns of x after.
"""

import nki
import nki.isa as nisa
import nki.language as nl

TILE = nl.tile_size.pmax


@nki.jit
def transpose(x):
    rows, cols = x.shape
    y = nl.ndarray((cols, rows), dtype=x.dtype, buffer=nl.shared_hbm)

    for row in range(0, rows, TILE):
        height = min(TILE, rows - row)
        strip = nl.ndarray((height, cols), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=strip, src=x[row : row + height, :])

        for col in range(0, cols, TILE):
            width = min(TILE, cols - col)
            turned = nl.ndarray((width, height), dtype=x.dtype, buffer=nl.psum)
            nisa.nc_transpose(dst=turned, data=strip[:, col : col + width])
            result = nl.ndarray((width, height), dtype=y.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=turned)
            nisa.dma_copy(dst=y[col : col + width, row : row + height], src=result)
    return y
