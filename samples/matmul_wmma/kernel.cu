// C[M, N] = A[M, K] * B[K, N] of half precision, with sums and result in float, for any sizes.

#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

namespace wmma = nvcuda::wmma;

constexpr int WARP = 32;
constexpr int FRAGMENT = 16;            // rows, columns and depth of one product of fragments
constexpr int WARPS = 2;                // along each side of the tile of C
constexpr int TILE = WARPS * FRAGMENT;  // rows and columns of C that a block computes
constexpr int THREADS = WARPS * WARPS * WARP;

// Each warp computes 16 x 16 elements of C.  The tiles of A and B, and C's at the end, go
// through shared memory, where what hangs over an edge is zero.
__global__ void __launch_bounds__(THREADS)
    matmul_wmma(const half* __restrict__ a, const half* __restrict__ b, float* __restrict__ c,
                int m, int n, int k) {
  __shared__ half a_tile[TILE][FRAGMENT];
  __shared__ half b_tile[FRAGMENT][TILE];
  __shared__ float c_tile[TILE][TILE];

  const int warp_row = threadIdx.x / WARP / WARPS * FRAGMENT;
  const int warp_col = threadIdx.x / WARP % WARPS * FRAGMENT;
  const int block_row = blockIdx.y * TILE;
  const int block_col = blockIdx.x * TILE;

  wmma::fragment<wmma::accumulator, FRAGMENT, FRAGMENT, FRAGMENT, float> sums;
  wmma::fill_fragment(sums, 0.0f);

  for (int start = 0; start < k; start += FRAGMENT) {
    for (int i = threadIdx.x; i < TILE * FRAGMENT; i += THREADS) {
      const int a_row = block_row + i / FRAGMENT;
      const int a_col = start + i % FRAGMENT;
      a_tile[i / FRAGMENT][i % FRAGMENT] =
          a_row < m && a_col < k ? a[a_row * k + a_col] : __float2half(0.0f);
      const int b_row = start + i / TILE;
      const int b_col = block_col + i % TILE;
      b_tile[i / TILE][i % TILE] =
          b_row < k && b_col < n ? b[b_row * n + b_col] : __float2half(0.0f);
    }
    __syncthreads();

    wmma::fragment<wmma::matrix_a, FRAGMENT, FRAGMENT, FRAGMENT, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, FRAGMENT, FRAGMENT, FRAGMENT, half, wmma::row_major> right;
    wmma::load_matrix_sync(left, &a_tile[warp_row][0], FRAGMENT);
    wmma::load_matrix_sync(right, &b_tile[0][warp_col], TILE);
    wmma::mma_sync(sums, left, right, sums);
    __syncthreads();
  }

  wmma::store_matrix_sync(&c_tile[warp_row][warp_col], sums, TILE, wmma::mem_row_major);
  __syncthreads();
  for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
    const int row = block_row + i / TILE;
    const int col = block_col + i % TILE;
    if (row < m && col < n) {
      c[row * n + col] = c_tile[i / TILE][i % TILE];
    }
  }
}

void run_matmul_wmma(const half* a, const half* b, float* c, int m, int n, int k,
                     cudaStream_t stream) {
  const dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
  matmul_wmma<<<grid, THREADS, 0, stream>>>(a, b, c, m, n, k);
}
