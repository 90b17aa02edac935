// Row softmax with shuffles, a template and a launch.
#include <cuda_runtime.h>
#define WARP 32
#define CEIL(a, b) (((a) + (b) - 1) / (b))

template <typename T>
__device__ __forceinline__ T warp_max(T value) {
#pragma unroll
  for (int offset = WARP / 2; offset > 0; offset >>= 1)
    value = max(value, __shfl_xor_sync(0xffffffff, value, offset));
  return value;
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK) softmax(const T* __restrict__ x, T* y, int cols) {
  __shared__ T partial[BLOCK / WARP];
  extern __shared__ unsigned char extra[];
  const int row = blockIdx.x;
  T best = (T)(-INFINITY);
  for (int c = threadIdx.x; c < cols; c += blockDim.x) best = max(best, x[row * cols + c]);
  best = warp_max<T>(best);
  if (threadIdx.x % WARP == 0) partial[threadIdx.x / WARP] = best;
  __syncthreads();
  for (int w = 0; w < BLOCK / WARP; ++w) best = max(best, partial[w]);
  T sum = T(0);
  for (int c = 0; c < cols; ++c) sum += expf(x[row * cols + c] - best);
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    y[row * cols + c] = expf(x[row * cols + c] - best) / sum;
}

void run(const float* x, float* y, int rows, int cols) {
  dim3 grid(rows);
  dim3 block(CEIL(cols, 4) > 256 ? 256 : 128);
  softmax<float, 256><<<grid, block, 256 * sizeof(float)>>>(x, y, cols);
}
