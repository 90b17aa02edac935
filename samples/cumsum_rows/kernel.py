"""y[r, c] = x[r, 0] + ... + x[r, c], for rows of any length.

A row lies on one partition, and one instruction runs along it: state = state * 1 + x.  Long rows
go in pieces; each starts with the last sum of the one before.
"""

import nki
import nki.isa as nisa
import nki.language as nl

COLS = 256


@nki.jit
def cumsum(x):
    rows, cols = x.shape
    y = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)

    pmax = nl.tile_size.pmax
    ones = nl.ndarray((pmax, COLS), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)

    for start in range(0, rows, pmax):
        count = min(pmax, rows - start)
        carry = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=carry, value=0.0)

        for col in range(0, cols, COLS):
            width = min(COLS, cols - col)
            tile = nl.ndarray((count, width), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[start : start + count, col : col + width])
            sums = nl.ndarray((count, width), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor_scan(
                dst=sums,
                data0=ones[0:count, 0:width],
                data1=tile,
                initial=carry,
                op0=nl.multiply,
                op1=nl.add,
            )
            nisa.tensor_copy(dst=carry, src=sums[:, width - 1 : width])
            nisa.dma_copy(dst=y[start : start + count, col : col + width], src=sums)
    return y
