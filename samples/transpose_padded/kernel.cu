// y[c, r] = x[r, c], for matrices of any size.

#include <cuda_runtime.h>

constexpr int TILE = 32;
constexpr int ROWS = 8;  // rows of threads: each thread moves TILE / ROWS elements

// A block turns a tile in shared memory, so that both reads and writes go along rows.  The
// column of padding puts the elements of a tile's column into different banks.
__global__ void transpose_padded(const float* __restrict__ x, float* __restrict__ y, int rows,
                                 int cols) {
  __shared__ float tile[TILE][TILE + 1];

  int col = blockIdx.x * TILE + threadIdx.x;
  int row = blockIdx.y * TILE + threadIdx.y;
#pragma unroll
  for (int i = 0; i < TILE; i += ROWS) {
    if (row + i < rows && col < cols) {
      tile[threadIdx.y + i][threadIdx.x] = x[(row + i) * cols + col];
    }
  }
  __syncthreads();

  col = blockIdx.y * TILE + threadIdx.x;
  row = blockIdx.x * TILE + threadIdx.y;
#pragma unroll
  for (int i = 0; i < TILE; i += ROWS) {
    if (row + i < cols && col < rows) {
      y[(row + i) * rows + col] = tile[threadIdx.x][threadIdx.y + i];
    }
  }
}

void run_transpose_padded(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
  const dim3 block(TILE, ROWS);
  const dim3 grid((cols + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
  transpose_padded<<<grid, block, 0, stream>>>(x, y, rows, cols);
}
