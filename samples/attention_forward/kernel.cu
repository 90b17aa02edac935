// out = softmax(q k^T * scale) v for each head, with q, k, v and out of shape
// [heads, length, HEAD_DIM] in float32, for any length.

#include <cuda_runtime.h>
#include <math.h>

constexpr int QUERIES = 64;  // a block takes so many queries of a head, one a thread
constexpr int KEYS = 32;     // and goes through its keys and values in tiles of so many

// Online softmax: the sums so far are scaled down whenever a larger score turns up, so that no
// scores are kept.
template <int HEAD_DIM>
__global__ void __launch_bounds__(QUERIES)
    attention_forward(const float* __restrict__ q, const float* __restrict__ k,
                      const float* __restrict__ v, float* __restrict__ out, int length,
                      float scale) {
  __shared__ float k_tile[KEYS][HEAD_DIM];
  __shared__ float v_tile[KEYS][HEAD_DIM];

  const size_t head = static_cast<size_t>(blockIdx.y) * length * HEAD_DIM;
  const int row = blockIdx.x * QUERIES + threadIdx.x;

  float query[HEAD_DIM];
  float sums[HEAD_DIM];
  for (int d = 0; d < HEAD_DIM; ++d) {
    query[d] = row < length ? q[head + row * HEAD_DIM + d] * scale : 0.0f;
    sums[d] = 0.0f;
  }
  float largest = -INFINITY;
  float total = 0.0f;

  for (int start = 0; start < length; start += KEYS) {
    const int count = min(KEYS, length - start);
    for (int i = threadIdx.x; i < count * HEAD_DIM; i += QUERIES) {
      k_tile[i / HEAD_DIM][i % HEAD_DIM] = k[head + start * HEAD_DIM + i];
      v_tile[i / HEAD_DIM][i % HEAD_DIM] = v[head + start * HEAD_DIM + i];
    }
    __syncthreads();

    for (int key = 0; key < count; ++key) {
      float score = 0.0f;
      for (int d = 0; d < HEAD_DIM; ++d) {
        score += query[d] * k_tile[key][d];
      }
      const float before = largest;
      largest = fmaxf(before, score);
      const float shrink = expf(before - largest);
      const float weight = expf(score - largest);
      total = total * shrink + weight;
      for (int d = 0; d < HEAD_DIM; ++d) {
        sums[d] = sums[d] * shrink + weight * v_tile[key][d];
      }
    }
    __syncthreads();
  }

  if (row < length) {
    for (int d = 0; d < HEAD_DIM; ++d) {
      out[head + row * HEAD_DIM + d] = sums[d] / total;
    }
  }
}

void run_attention_forward(const float* q, const float* k, const float* v, float* out, int heads,
                           int length, cudaStream_t stream) {
  constexpr int HEAD_DIM = 32;
  const dim3 grid((length + QUERIES - 1) / QUERIES, heads);
  attention_forward<HEAD_DIM>
      <<<grid, QUERIES, 0, stream>>>(q, k, v, out, length, 1.0f / sqrtf(HEAD_DIM));
}
