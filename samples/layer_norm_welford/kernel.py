"""y[r, c] = (x[r, c] - mean of row r) / sqrt(variance of row r + epsilon) * gamma[c] + beta[c].

A row lies on one partition and stays in SBUF, so that a second pass over it for the variance
costs no transfer: the mean first, then the squares of what is left without it.
"""

import nki
import nki.isa as nisa
import nki.language as nl


def on_all_partitions(vector, partitions):
    """A vector of device memory, repeated on each partition."""
    cols = vector.shape[0]
    tile = nl.ndarray((partitions, cols), dtype=vector.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=vector.reshape((1, cols)).broadcast(0, partitions))
    return tile


@nki.jit
def layer_norm(x, gamma, beta, epsilon):
    rows, cols = x.shape
    y = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)

    pmax = nl.tile_size.pmax
    gammas = on_all_partitions(gamma, pmax)
    betas = on_all_partitions(beta, pmax)
    epsilons = nl.ndarray((pmax, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=epsilons, value=epsilon)

    for start in range(0, rows, pmax):
        count = min(pmax, rows - start)
        tile = nl.ndarray((count, cols), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[start : start + count, :])

        negative_sum = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=negative_sum, op=nl.add, data=tile, axis=1, negate=True)
        negative_mean = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(
            dst=negative_mean, data=negative_sum, op0=nl.multiply, operand0=1.0 / cols
        )

        squares = nl.ndarray((count, cols), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation_reduce(
            dst=squares,
            op=nl.square,
            data=tile,
            reduce_op=nl.add,
            reduce_res=total,
            bias=negative_mean,
        )
        scale = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(
            dst=scale, op=nl.rsqrt, data=total, scale=1.0 / cols, bias=epsilons[0:count, :]
        )

        normal = nl.ndarray((count, cols), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(
            dst=normal,
            data=tile,
            op0=nl.add,
            operand0=negative_mean,
            op1=nl.multiply,
            operand1=scale,
        )
        weighted = nl.ndarray((count, cols), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=weighted, data1=normal, data2=gammas[0:count, :], op=nl.multiply)
        result = nl.ndarray((count, cols), dtype=y.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=result, data1=weighted, data2=betas[0:count, :], op=nl.add)
        nisa.dma_copy(dst=y[start : start + count, :], src=result)
    return y
