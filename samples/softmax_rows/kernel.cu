// y[r, c] = exp(x[r, c] - max of row r) / sum of the same over row r, for rows of any length.

#include <cuda_runtime.h>
#include <math.h>

constexpr int WARP = 32;
constexpr int THREADS = 256;
constexpr int WARPS = THREADS / WARP;

__device__ float warp_max(float value) {
  for (int offset = WARP / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}

__device__ float warp_sum(float value) {
  for (int offset = WARP / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

// One block a row.  Each thread goes through its part of the row, the threads of a warp combine
// their results by shuffles, the warps through shared memory.
__global__ void softmax_rows(const float* __restrict__ x, float* __restrict__ y, int cols) {
  __shared__ float warp_result[WARPS];

  const int lane = threadIdx.x % WARP;
  const int warp = threadIdx.x / WARP;
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  float* out = y + static_cast<size_t>(blockIdx.x) * cols;

  float largest = -INFINITY;
  for (int col = threadIdx.x; col < cols; col += THREADS) {
    largest = fmaxf(largest, row[col]);
  }
  largest = warp_max(largest);
  if (lane == 0) {
    warp_result[warp] = largest;
  }
  __syncthreads();
  largest = warp_max(lane < WARPS ? warp_result[lane] : -INFINITY);
  __syncthreads();

  float total = 0.0f;
  for (int col = threadIdx.x; col < cols; col += THREADS) {
    total += expf(row[col] - largest);
  }
  total = warp_sum(total);
  if (lane == 0) {
    warp_result[warp] = total;
  }
  __syncthreads();
  total = warp_sum(lane < WARPS ? warp_result[lane] : 0.0f);

  for (int col = threadIdx.x; col < cols; col += THREADS) {
    out[col] = expf(row[col] - largest) / total;
  }
}

void run_softmax_rows(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
  softmax_rows<<<rows, THREADS, 0, stream>>>(x, y, cols);
}
