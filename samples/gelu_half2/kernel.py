"""y[i] = gelu(x[i]) by the tanh formula, in the format of x, for vectors of any length.

The Scalar engine takes 16-bit numbers to fp32, has the function as one of its tables, and
rounds to the format of the destination.
"""

import nki
import nki.isa as nisa
import nki.language as nl

COLS = 512


def gelu_block(y, x, start, rows, cols):
    """Elements from `start` on, `cols` of them on each partition."""
    end = start + rows * cols
    tile = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[start:end].reshape((rows, cols)))
    result = nl.ndarray((rows, cols), dtype=y.dtype, buffer=nl.sbuf)
    nisa.activation(dst=result, op=nl.gelu_apprx_tanh, data=tile)
    nisa.dma_copy(dst=y[start:end].reshape((rows, cols)), src=result)


@nki.jit
def gelu(x):
    n = x.shape[0]
    y = nl.ndarray((n,), dtype=x.dtype, buffer=nl.shared_hbm)

    rows = n // COLS
    for row in range(0, rows, nl.tile_size.pmax):
        gelu_block(y, x, row * COLS, min(nl.tile_size.pmax, rows - row), COLS)

    rest = n % COLS
    if rest > 0:
        gelu_block(y, x, n - rest, 1, rest)
    return y
