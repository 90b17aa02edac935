// y[r, c] = (x[r, c] - mean of row r) / sqrt(variance of row r + epsilon) * gamma[c] + beta[c].

#include <cuda_runtime.h>

constexpr int WARP = 32;
constexpr int THREADS = 128;
constexpr int WARPS = THREADS / WARP;
constexpr unsigned FULL = 0xffffffffu;

// Mean and sum of squared differences from it of `count` numbers (Welford).
struct Moments {
  float mean;
  float m2;
  float count;
};

__device__ void add(Moments& moments, float value) {
  moments.count += 1.0f;
  const float delta = value - moments.mean;
  moments.mean += delta / moments.count;
  moments.m2 += delta * (value - moments.mean);
}

// The moments of two disjoint sets together (Chan, Golub and LeVeque); either may be empty.
__device__ Moments merge(const Moments& a, const Moments& b) {
  const float count = a.count + b.count;
  const float share = count > 0.0f ? b.count / count : 0.0f;
  const float delta = b.mean - a.mean;
  return {a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.count * share, count};
}

__device__ Moments warp_merge(Moments moments) {
#pragma unroll
  for (int offset = WARP / 2; offset > 0; offset /= 2) {
    const Moments other = {__shfl_xor_sync(FULL, moments.mean, offset),
                           __shfl_xor_sync(FULL, moments.m2, offset),
                           __shfl_xor_sync(FULL, moments.count, offset)};
    moments = merge(moments, other);
  }
  return moments;
}

// One block a row.
__global__ void layer_norm_welford(const float* __restrict__ x, const float* __restrict__ gamma,
                                   const float* __restrict__ beta, float* __restrict__ y,
                                   int cols, float epsilon) {
  __shared__ Moments warp_moments[WARPS];

  const int lane = threadIdx.x % WARP;
  const int warp = threadIdx.x / WARP;
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  float* out = y + static_cast<size_t>(blockIdx.x) * cols;

  Moments moments = {0.0f, 0.0f, 0.0f};
  for (int col = threadIdx.x; col < cols; col += THREADS) {
    add(moments, row[col]);
  }
  moments = warp_merge(moments);
  if (lane == 0) {
    warp_moments[warp] = moments;
  }
  __syncthreads();
  moments = warp_merge(lane < WARPS ? warp_moments[lane] : Moments{0.0f, 0.0f, 0.0f});

  const float scale = rsqrtf(moments.m2 / moments.count + epsilon);
  for (int col = threadIdx.x; col < cols; col += THREADS) {
    out[col] = (row[col] - moments.mean) * scale * gamma[col] + beta[col];
  }
}

void run_layer_norm_welford(const float* x, const float* gamma, const float* beta, float* y,
                            int rows, int cols, float epsilon, cudaStream_t stream) {
  layer_norm_welford<<<rows, THREADS, 0, stream>>>(x, gamma, beta, y, cols, epsilon);
}
