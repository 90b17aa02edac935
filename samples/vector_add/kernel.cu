// out[i] = x[i] + y[i], for vectors of any length.

#include <cuda_runtime.h>

__global__ void vector_add(const float* __restrict__ x, const float* __restrict__ y,
                           float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = x[i] + y[i];
  }
}

void run_vector_add(const float* x, const float* y, float* out, int n, cudaStream_t stream) {
  const int threads = 256;
  const int blocks = (n + threads - 1) / threads;
  vector_add<<<blocks, threads, 0, stream>>>(x, y, out, n);
}
