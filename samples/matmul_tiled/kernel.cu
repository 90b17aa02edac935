// C[M, N] = A[M, K] * B[K, N] in float32, row-major, for any M, N and K.

#include <cuda_runtime.h>

constexpr int TILE = 16;

// A block computes TILE x TILE elements of C.  It goes along K in steps of TILE: its threads
// put a tile of A and one of B into shared memory, zeros where a tile hangs over an edge, and
// each adds TILE products to its own sum.
__global__ void matmul_tiled(const float* __restrict__ a, const float* __restrict__ b,
                             float* __restrict__ c, int m, int n, int k) {
  __shared__ float a_tile[TILE][TILE];
  __shared__ float b_tile[TILE][TILE];

  const int row = blockIdx.y * TILE + threadIdx.y;
  const int col = blockIdx.x * TILE + threadIdx.x;

  float sum = 0.0f;
  for (int start = 0; start < k; start += TILE) {
    const int a_col = start + threadIdx.x;
    const int b_row = start + threadIdx.y;
    a_tile[threadIdx.y][threadIdx.x] = row < m && a_col < k ? a[row * k + a_col] : 0.0f;
    b_tile[threadIdx.y][threadIdx.x] = b_row < k && col < n ? b[b_row * n + col] : 0.0f;
    __syncthreads();

    for (int i = 0; i < TILE; ++i) {
      sum += a_tile[threadIdx.y][i] * b_tile[i][threadIdx.x];
    }
    __syncthreads();
  }

  if (row < m && col < n) {
    c[row * n + col] = sum;
  }
}

void run_matmul_tiled(const float* a, const float* b, float* c, int m, int n, int k,
                      cudaStream_t stream) {
  const dim3 block(TILE, TILE);
  const dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
  matmul_tiled<<<grid, block, 0, stream>>>(a, b, c, m, n, k);
}
