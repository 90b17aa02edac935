"""y[r, c] = x[r, c] * weight[c] / sqrt(mean of x[r]^2 + epsilon).

A row lies on one partition: the Scalar engine squares it and adds it up in one instruction.
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def rms_norm(x, weight, epsilon):
    rows, cols = x.shape
    y = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)

    # The same weights for every row: a transfer that reads them once a partition.
    pmax = nl.tile_size.pmax
    weights = nl.ndarray((pmax, cols), dtype=weight.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=weights, src=weight.ap(pattern=[[0, pmax], [1, cols]]))
    epsilons = nl.ndarray((pmax, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=epsilons, value=epsilon)

    for start in range(0, rows, pmax):
        count = min(pmax, rows - start)
        tile = nl.ndarray((count, cols), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[start : start + count, :])

        squares = nl.ndarray((count, cols), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation_reduce(
            dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=total
        )

        # 1 / sqrt(total / cols + epsilon): the mean is the scale of the activation.
        scale = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(
            dst=scale, op=nl.rsqrt, data=total, scale=1.0 / cols, bias=epsilons[0:count, :]
        )

        result = nl.ndarray((count, cols), dtype=y.dtype, buffer=nl.sbuf)
        nisa.scalar_tensor_tensor(
            dst=result,
            data=tile,
            op0=nl.multiply,
            operand0=scale,
            op1=nl.multiply,
            operand1=weights[0:count, :],
        )
        nisa.dma_copy(dst=y[start : start + count, :], src=result)
    return y
