// y[r, :] = softmax(x[r, :]) for every row, with the row's maximum subtracted first.

#include <cfloat>
#include <cuda_runtime.h>

constexpr int THREADS = 128;

// A block takes a row.  Its threads go over the columns in steps of THREADS, and combine what
// each has found in shared memory, half of them at a time.
__global__ void softmax_masked(const float* __restrict__ x, float* __restrict__ y, int cols) {
  __shared__ float partial[THREADS];
  const int lane = threadIdx.x;
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;

  float largest = -FLT_MAX;
  for (int c = lane; c < cols; c += THREADS) {
    largest = fmaxf(largest, row[c]);
  }
  partial[lane] = largest;
  __syncthreads();
  for (int step = THREADS / 2; step > 0; step /= 2) {
    if (lane < step) {
      partial[lane] = fmaxf(partial[lane], partial[lane + step]);
    }
    __syncthreads();
  }
  largest = partial[0];
  __syncthreads();

  float total = 0.0f;
  for (int c = lane; c < cols; c += THREADS) {
    total += expf(row[c] - largest);
  }
  partial[lane] = total;
  __syncthreads();
  for (int step = THREADS / 2; step > 0; step /= 2) {
    if (lane < step) {
      partial[lane] += partial[lane + step];
    }
    __syncthreads();
  }
  total = partial[0];

  for (int c = lane; c < cols; c += THREADS) {
    y[static_cast<size_t>(blockIdx.x) * cols + c] = expf(row[c] - largest) / total;
  }
}

void run_softmax_masked(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
  softmax_masked<<<rows, THREADS, 0, stream>>>(x, y, cols);
}
