"""out = softmax(q k^T * scale) v for each head, with q, k, v and out of [heads, length, dim].

A tile of 128 queries keeps all of its scores in SBUF, one row a partition: with the whole row
at hand the softmax takes its maximum first, and nothing has to be scaled afterwards.
"""

import nki
import nki.isa as nisa
import nki.language as nl

PMAX = nl.tile_size.pmax
FMAX = nl.tile_size.gemm_moving_fmax


def turned(tile, buffer_dtype):
    """The transpose of a tile of up to 128 x 128, in SBUF."""
    rows, cols = tile.shape
    psum = nl.ndarray((cols, rows), dtype=tile.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=psum, data=tile)
    result = nl.ndarray((cols, rows), dtype=buffer_dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=psum)
    return result


def load_turned(tensor, head):
    """All rows of a head as (dim, length): what the Tensor engine sums over on partitions."""
    _, length, dim = tensor.shape
    result = nl.ndarray((dim, length), dtype=tensor.dtype, buffer=nl.sbuf)
    for start in range(0, length, PMAX):
        count = min(PMAX, length - start)
        rows = nl.ndarray((count, dim), dtype=tensor.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=rows, src=tensor[head, start : start + count, :])
        psum = nl.ndarray((dim, count), dtype=tensor.dtype, buffer=nl.psum)
        nisa.nc_transpose(dst=psum, data=rows)
        nisa.tensor_copy(dst=result[:, start : start + count], src=psum)
    return result


@nki.jit
def attention(q, k, v, scale):
    heads, length, dim = q.shape
    out = nl.ndarray((heads, length, dim), dtype=q.dtype, buffer=nl.shared_hbm)

    for head in range(heads):
        q_t = load_turned(q, head)
        k_t = load_turned(k, head)

        for start in range(0, length, PMAX):
            count = min(PMAX, length - start)

            scores = nl.ndarray((count, length), dtype=nl.float32, buffer=nl.sbuf)
            for first in range(0, length, FMAX):
                size = min(FMAX, length - first)
                product = nl.ndarray((count, size), dtype=nl.float32, buffer=nl.psum)
                nisa.nc_matmul(
                    dst=product,
                    stationary=q_t[:, start : start + count],
                    moving=k_t[:, first : first + size],
                )
                nisa.tensor_copy(dst=scores[:, first : first + size], src=product)

            # exp(scale * score - scale * maximum), and the sum of a row on the way.
            largest = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_reduce(dst=largest, op=nl.maximum, data=scores, axis=1)
            shift = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(dst=shift, data=largest, op0=nl.multiply, operand0=-scale)
            weights = nl.ndarray((count, length), dtype=nl.float32, buffer=nl.sbuf)
            total = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation_reduce(
                dst=weights,
                op=nl.exp,
                data=scores,
                reduce_op=nl.add,
                reduce_res=total,
                bias=shift,
                scale=scale,
            )

            mixed = nl.ndarray((count, dim), dtype=nl.float32, buffer=nl.psum)
            for first in range(0, length, PMAX):
                size = min(PMAX, length - first)
                weights_t = turned(weights[:, first : first + size], v.dtype)
                values = nl.ndarray((size, dim), dtype=v.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=values, src=v[head, first : first + size, :])
                nisa.nc_matmul(dst=mixed, stationary=weights_t, moving=values)

            share = nl.ndarray((count, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.reciprocal(dst=share, data=total)
            result = nl.ndarray((count, dim), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_scalar(dst=result, data=mixed, op0=nl.multiply, operand0=share)
            nisa.dma_copy(dst=out[head, start : start + count, :], src=result)
    return out
