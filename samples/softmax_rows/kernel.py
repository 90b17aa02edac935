"""y[r, c] = exp(x[r, c] - max of row r) / sum of the same over row r.

A row lies on one partition, so that its maximum and its sum are reductions along the free
axis; up to 128 rows make a tile.
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def softmax_rows(x):
    rows, cols = x.shape
    y = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)

    for start in range(0, rows, nl.tile_size.pmax):
        count = min(nl.tile_size.pmax, rows - start)
        tile = nl.ndarray((count, cols), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[start : start + count, :])

        # The Scalar engine computes exp(data + bias) and sums it as it goes: the negative
        # maximum is the bias.
        negative_max = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=negative_max, op=nl.maximum, data=tile, axis=1, negate=True)

        exps = nl.ndarray((count, cols), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation_reduce(
            dst=exps,
            op=nl.exp,
            data=tile,
            reduce_op=nl.add,
            reduce_res=total,
            bias=negative_max,
        )

        scale = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(dst=scale, data=total)
        result = nl.ndarray((count, cols), dtype=y.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=result, data=exps, op0=nl.multiply, operand0=scale)
        nisa.dma_copy(dst=y[start : start + count, :], src=result)
    return y
