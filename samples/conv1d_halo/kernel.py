"""y[r, i] = sum over t of taps[t] * x[r, i + t - radius], zeros beyond the ends of a row.

A row lies on one partition with zeros on either side of it: what one tap adds is the same tile,
shifted along the free axis.
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def conv1d(x, taps):
    rows, length = x.shape
    count = taps.shape[0]
    radius = count // 2
    y = nl.ndarray((rows, length), dtype=x.dtype, buffer=nl.shared_hbm)

    pmax = nl.tile_size.pmax
    taps_tile = nl.ndarray((pmax, count), dtype=taps.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=taps_tile, src=taps.ap(pattern=[[0, pmax], [1, count]]))

    for start in range(0, rows, pmax):
        size = min(pmax, rows - start)
        padded = nl.ndarray((size, length + 2 * radius), dtype=x.dtype, buffer=nl.sbuf)
        nisa.memset(dst=padded[:, 0:radius], value=0.0)
        nisa.memset(dst=padded[:, radius + length : length + 2 * radius], value=0.0)
        nisa.dma_copy(dst=padded[:, radius : radius + length], src=x[start : start + size, :])

        total = nl.ndarray((size, length), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(
            dst=total,
            data=padded[:, 0:length],
            op0=nl.multiply,
            operand0=taps_tile[0:size, 0:1],
        )
        for tap in range(1, count):
            following = nl.ndarray((size, length), dtype=nl.float32, buffer=nl.sbuf)
            nisa.scalar_tensor_tensor(
                dst=following,
                data=padded[:, tap : tap + length],
                op0=nl.multiply,
                operand0=taps_tile[0:size, tap : tap + 1],
                op1=nl.add,
                operand1=total,
            )
            total = following
        nisa.dma_copy(dst=y[start : start + size, :], src=total)
    return y
