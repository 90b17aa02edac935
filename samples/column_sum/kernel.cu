// y[c] += x[0, c] + ... + x[rows - 1, c], for matrices of any size.

#include <cuda_runtime.h>

constexpr int COLS = 32;  // columns of a block, one a lane
constexpr int ROWS = 8;   // rows of a block that are read at once, one a warp
constexpr int STEPS = 4;  // and how often, so that a block takes ROWS * STEPS rows

// A block adds up its part of COLS columns: each thread in a register, the threads of a column
// in shared memory, and the first of them with what the other blocks find.
__global__ void __launch_bounds__(COLS * ROWS)
    column_sum(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
  __shared__ float sums[ROWS][COLS];

  const int col = blockIdx.x * COLS + threadIdx.x;
  const int first = blockIdx.y * ROWS * STEPS + threadIdx.y;

  float sum = 0.0f;
  if (col < cols) {
    for (int step = 0; step < STEPS; ++step) {
      const int row = first + step * ROWS;
      if (row < rows) {
        sum += x[row * cols + col];
      }
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();

  for (int half = ROWS / 2; half > 0; half /= 2) {
    if (threadIdx.y < half) {
      sums[threadIdx.y][threadIdx.x] += sums[threadIdx.y + half][threadIdx.x];
    }
    __syncthreads();
  }
  if (threadIdx.y == 0 && col < cols) {
    atomicAdd(&y[col], sums[0][threadIdx.x]);
  }
}

void run_column_sum(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
  const dim3 block(COLS, ROWS);
  const dim3 grid((cols + COLS - 1) / COLS, (rows + ROWS * STEPS - 1) / (ROWS * STEPS));
  column_sum<<<grid, block, 0, stream>>>(x, y, rows, cols);
}
