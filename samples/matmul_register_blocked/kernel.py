"""C[M, N] = A[M, K] B[K, N] in float32, for any M, N and K; A is given transposed.

A tile of A stays in the Tensor engine while several tiles of B move past it, each into a PSUM
bank of its own: the sums of GROUP tiles of C are open at once, and A is loaded for all of them.
"""

import nki
import nki.isa as nisa
import nki.language as nl

TILE_M = nl.tile_size.gemm_stationary_fmax
TILE_N = nl.tile_size.gemm_moving_fmax
TILE_K = nl.tile_size.pmax
GROUP = 4  # of the eight PSUM banks: the other half takes the next group


@nki.jit
def matmul(a_t, b):
    k, m = a_t.shape
    _, n = b.shape
    c = nl.ndarray((m, n), dtype=a_t.dtype, buffer=nl.shared_hbm)

    for m_start in range(0, m, TILE_M):
        m_end = min(m_start + TILE_M, m)
        for group_start in range(0, n, GROUP * TILE_N):
            group_end = min(group_start + GROUP * TILE_N, n)
            starts = list(range(group_start, group_end, TILE_N))
            banks = []
            for n_start in starts:
                size = min(TILE_N, n - n_start)
                banks.append(nl.ndarray((m_end - m_start, size), dtype=nl.float32, buffer=nl.psum))

            for k_start in range(0, k, TILE_K):
                k_end = min(k_start + TILE_K, k)
                a_tile = nl.ndarray(
                    (k_end - k_start, m_end - m_start), dtype=a_t.dtype, buffer=nl.sbuf
                )
                nisa.dma_copy(dst=a_tile, src=a_t[k_start:k_end, m_start:m_end])
                b_tile = nl.ndarray(
                    (k_end - k_start, group_end - group_start), dtype=b.dtype, buffer=nl.sbuf
                )
                nisa.dma_copy(dst=b_tile, src=b[k_start:k_end, group_start:group_end])
                for number, bank in enumerate(banks):
                    at = starts[number] - group_start
                    nisa.nc_matmul(
                        dst=bank, stationary=a_tile, moving=b_tile[:, at : at + bank.shape[1]]
                    )

            for number, bank in enumerate(banks):
                c_tile = nl.ndarray(bank.shape, dtype=c.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(dst=c_tile, src=bank)
                n_start = starts[number]
                nisa.dma_copy(dst=c[m_start:m_end, n_start : n_start + bank.shape[1]], src=c_tile)
    return c
