"""C[M, N] = A[M, K] B[K, N] in float32, for any M, N and K; A is given transposed.

The tensor engine sums over the partitions of both operands, so that K lies on them: tiles of
A are stationary as (K, M), tiles of B move past them as (K, N), and the products of one tile
of C add up in a PSUM bank.
"""

import nki
import nki.isa as nisa
import nki.language as nl

TILE_M = nl.tile_size.gemm_stationary_fmax
TILE_N = nl.tile_size.gemm_moving_fmax
TILE_K = nl.tile_size.pmax


def load_tile(src, k_start, k_size, start, size):
    """A (k_size, size) tile of a matrix with K rows."""
    tile = nl.ndarray((k_size, size), dtype=src.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=src[k_start : k_start + k_size, start : start + size])
    return tile


@nki.jit
def matmul_tiled(a_t, b):
    k, m = a_t.shape
    _, n = b.shape
    c = nl.ndarray((m, n), dtype=a_t.dtype, buffer=nl.shared_hbm)

    for m_start in range(0, m, TILE_M):
        m_size = min(TILE_M, m - m_start)

        # The tiles of A for these rows of C stay in SBUF while B moves past them.
        a_tiles = []
        for k_start in range(0, k, TILE_K):
            k_size = min(TILE_K, k - k_start)
            a_tiles.append(load_tile(a_t, k_start, k_size, m_start, m_size))

        for n_start in range(0, n, TILE_N):
            n_size = min(TILE_N, n - n_start)
            product = nl.ndarray((m_size, n_size), dtype=nl.float32, buffer=nl.psum)

            # The first matmul into a new PSUM tile overwrites it, the others add to it.
            for k_start in range(0, k, TILE_K):
                k_size = min(TILE_K, k - k_start)
                a_tile = a_tiles[k_start // TILE_K]
                b_tile = load_tile(b, k_start, k_size, n_start, n_size)
                nisa.nc_matmul(dst=product, stationary=a_tile, moving=b_tile)

            c_tile = nl.ndarray((m_size, n_size), dtype=c.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=c_tile, src=product)
            nisa.dma_copy(dst=c[m_start : m_start + m_size, n_start : n_start + n_size], src=c_tile)
    return c
