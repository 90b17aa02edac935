// y[r, c] = x[r, 0] + ... + x[r, c], for rows of any length.

#include <cuda_runtime.h>

constexpr int WARP = 32;
constexpr int THREADS = 128;
constexpr int WARPS = THREADS / WARP;
constexpr unsigned FULL = 0xffffffffu;

// The sum of the lanes up to and with this one.
__device__ float warp_scan(float value, int lane) {
#pragma unroll
  for (int offset = 1; offset < WARP; offset *= 2) {
    const float below = __shfl_up_sync(FULL, value, offset);
    if (lane >= offset) {
      value += below;
    }
  }
  return value;
}

// One block a row, in chunks of an element a thread: a scan in each warp, one over the sums
// of the warps, and what all chunks before came to.
__global__ void __launch_bounds__(THREADS)
    cumsum_rows(const float* __restrict__ x, float* __restrict__ y, int cols) {
  __shared__ float warp_sums[WARPS];

  const int lane = threadIdx.x % WARP;
  const int warp = threadIdx.x / WARP;
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  float* out = y + static_cast<size_t>(blockIdx.x) * cols;

  float carry = 0.0f;
  for (int start = 0; start < cols; start += THREADS) {
    const int col = start + threadIdx.x;
    float value = warp_scan(col < cols ? row[col] : 0.0f, lane);
    if (lane == WARP - 1) {
      warp_sums[warp] = value;
    }
    __syncthreads();

    if (warp == 0) {
      const float sums = warp_scan(lane < WARPS ? warp_sums[lane] : 0.0f, lane);
      if (lane < WARPS) {
        warp_sums[lane] = sums;
      }
    }
    __syncthreads();

    if (warp > 0) {
      value += warp_sums[warp - 1];
    }
    if (col < cols) {
      out[col] = carry + value;
    }
    carry += warp_sums[WARPS - 1];
    __syncthreads();
  }
}

void run_cumsum_rows(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
  cumsum_rows<<<rows, THREADS, 0, stream>>>(x, y, cols);
}
