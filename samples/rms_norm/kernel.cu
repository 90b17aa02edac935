// y[r, c] = x[r, c] * weight[c] / sqrt(mean of x[r]^2 + epsilon), for rows of any length.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

constexpr int THREADS = 128;
constexpr int WARP = 32;

// The sum over the threads of a block, given to all of them.
template <int BLOCK>
__device__ float block_sum(float value) {
  __shared__ float warp_sums[BLOCK / WARP];

  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_block_tile<WARP> warp = cg::tiled_partition<WARP>(block);

  value = cg::reduce(warp, value, cg::plus<float>());
  if (warp.thread_rank() == 0) {
    warp_sums[warp.meta_group_rank()] = value;
  }
  block.sync();
  value = warp.thread_rank() < warp.meta_group_size() ? warp_sums[warp.thread_rank()] : 0.0f;
  return cg::reduce(warp, value, cg::plus<float>());
}

// One block a row.  Where rows keep the alignment of float4, all of a row but its last few
// elements goes in vectors of four; what is left, or the whole row, goes by elements.
__global__ void __launch_bounds__(THREADS)
    rms_norm(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ y,
             int cols, float epsilon) {
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
  const float* row = x + start;
  float* out = y + start;

  const float4* row4 = reinterpret_cast<const float4*>(row);
  const float4* weight4 = reinterpret_cast<const float4*>(weight);
  float4* out4 = reinterpret_cast<float4*>(out);
  const int vectors = cols % 4 == 0 ? cols / 4 : 0;

  float squares = 0.0f;
  for (int i = threadIdx.x; i < vectors; i += THREADS) {
    const float4 v = row4[i];
    squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  for (int i = 4 * vectors + threadIdx.x; i < cols; i += THREADS) {
    squares += row[i] * row[i];
  }

  const float scale = rsqrtf(block_sum<THREADS>(squares) / cols + epsilon);

  for (int i = threadIdx.x; i < vectors; i += THREADS) {
    const float4 v = row4[i];
    const float4 w = weight4[i];
    out4[i] = make_float4(v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z,
                          v.w * scale * w.w);
  }
  for (int i = 4 * vectors + threadIdx.x; i < cols; i += THREADS) {
    out[i] = row[i] * scale * weight[i];
  }
}

void run_rms_norm(const float* x, const float* weight, float* y, int rows, int cols,
                  float epsilon, cudaStream_t stream) {
  rms_norm<<<rows, THREADS, 0, stream>>>(x, weight, y, cols, epsilon);
}
