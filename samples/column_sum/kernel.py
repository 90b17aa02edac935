"""y[c] + x[0, c] + ... + x[rows - 1, c], for matrices of any size.

Rows lie on partitions, which only the Tensor engine sums over: a product with a column of ones.
The products of all tiles of rows add up in one PSUM bank.
"""

import nki
import nki.isa as nisa
import nki.language as nl

PMAX = nl.tile_size.pmax
FMAX = nl.tile_size.gemm_moving_fmax


@nki.jit
def column_sum(x, y):
    rows, cols = x.shape
    result = nl.ndarray((cols,), dtype=y.dtype, buffer=nl.shared_hbm)
    ones = nl.ndarray((PMAX, 1), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)

    for col in range(0, cols, FMAX):
        width = min(FMAX, cols - col)
        total = nl.ndarray((1, width), dtype=nl.float32, buffer=nl.psum)
        for row in range(0, rows, PMAX):
            count = min(PMAX, rows - row)
            tile = nl.ndarray((count, width), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[row : row + count, col : col + width])
            nisa.nc_matmul(dst=total, stationary=ones[0:count, :], moving=tile)

        before = nl.ndarray((1, width), dtype=y.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=before, src=y[col : col + width].reshape((1, width)))
        after = nl.ndarray((1, width), dtype=y.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=after, data1=before, data2=total, op=nl.add)
        nisa.dma_copy(dst=result[col : col + width].reshape((1, width)), src=after)
    return result
