"""C[M, N] = A[M, K] B[K, N] of half precision, with sums and result in fp32, for any sizes.

The Tensor engine takes fp16 as it is and adds the products up in fp32 in PSUM.  It sums over
the partitions of both operands, so that tiles of A are turned on chip first.
"""

import nki
import nki.isa as nisa
import nki.language as nl

TILE_M = nl.tile_size.gemm_stationary_fmax
TILE_N = nl.tile_size.gemm_moving_fmax
TILE_K = nl.tile_size.pmax


def turned_tile(a, m_start, m_size, k_start, k_size):
    """A (k_size, m_size) tile of the transpose of A."""
    rows = nl.ndarray((m_size, k_size), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=rows, src=a[m_start : m_start + m_size, k_start : k_start + k_size])
    turned = nl.ndarray((k_size, m_size), dtype=a.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=turned, data=rows)
    tile = nl.ndarray((k_size, m_size), dtype=a.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=turned)
    return tile


@nki.jit
def matmul_half(a, b):
    m, k = a.shape
    _, n = b.shape
    c = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)

    for m_start in range(0, m, TILE_M):
        m_size = min(TILE_M, m - m_start)
        a_tiles = [
            turned_tile(a, m_start, m_size, k_start, min(TILE_K, k - k_start))
            for k_start in range(0, k, TILE_K)
        ]

        for n_start in range(0, n, TILE_N):
            n_size = min(TILE_N, n - n_start)
            product = nl.ndarray((m_size, n_size), dtype=nl.float32, buffer=nl.psum)
            for step, k_start in enumerate(range(0, k, TILE_K)):
                k_size = min(TILE_K, k - k_start)
                b_tile = nl.ndarray((k_size, n_size), dtype=b.dtype, buffer=nl.sbuf)
                nisa.dma_copy(
                    dst=b_tile, src=b[k_start : k_start + k_size, n_start : n_start + n_size]
                )
                nisa.nc_matmul(dst=product, stationary=a_tiles[step], moving=b_tile)

            c_tile = nl.ndarray((m_size, n_size), dtype=c.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=c_tile, src=product)
            nisa.dma_copy(dst=c[m_start : m_start + m_size, n_start : n_start + n_size], src=c_tile)
    return c
