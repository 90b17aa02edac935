// C[M, N] = A[M, K] * B[K, N] in float32, row-major; K and N are multiples of four.

#include <cuda_runtime.h>

constexpr int BM = 64;  // a block computes BM x BN elements of C, in steps of BK along K
constexpr int BN = 64;
constexpr int BK = 16;
constexpr int TM = 4;  // a thread computes TM x TN of them
constexpr int TN = 4;
constexpr int THREADS = (BM / TM) * (BN / TN);

static_assert(BM * BK == 4 * THREADS && BK * BN == 4 * THREADS,
              "a thread loads one float4 of each tile");

// Four neighbours of a row, zeros beyond the matrix.
__device__ float4 load4(const float* matrix, int row, int col, int rows, int cols) {
  if (row < rows && col < cols) {
    return *reinterpret_cast<const float4*>(&matrix[row * cols + col]);
  }
  return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

__global__ void __launch_bounds__(THREADS)
    matmul_register_blocked(const float* __restrict__ a, const float* __restrict__ b,
                            float* __restrict__ c, int m, int n, int k) {
  // Two tiles each: one is read while the next one is written.  A's is turned, so that a
  // thread reads its TM elements of a column as one vector.
  __shared__ float a_tile[2][BK][BM];
  __shared__ float b_tile[2][BK][BN];

  const int a_row = threadIdx.x / (BK / 4);
  const int a_col = threadIdx.x % (BK / 4) * 4;
  const int b_row = threadIdx.x / (BN / 4);
  const int b_col = threadIdx.x % (BN / 4) * 4;
  const int row = threadIdx.x / (BN / TN) * TM;
  const int col = threadIdx.x % (BN / TN) * TN;
  const int block_row = blockIdx.y * BM;
  const int block_col = blockIdx.x * BN;

  float sums[TM][TN] = {};

  float4 a_next = load4(a, block_row + a_row, a_col, m, k);
  float4 b_next = load4(b, b_row, block_col + b_col, k, n);
  int current = 0;
  for (int start = 0; start < k; start += BK) {
    a_tile[current][a_col + 0][a_row] = a_next.x;
    a_tile[current][a_col + 1][a_row] = a_next.y;
    a_tile[current][a_col + 2][a_row] = a_next.z;
    a_tile[current][a_col + 3][a_row] = a_next.w;
    *reinterpret_cast<float4*>(&b_tile[current][b_row][b_col]) = b_next;
    __syncthreads();

    // The loads of the next step are under way while this one computes.
    if (start + BK < k) {
      a_next = load4(a, block_row + a_row, start + BK + a_col, m, k);
      b_next = load4(b, start + BK + b_row, block_col + b_col, k, n);
    }

#pragma unroll
    for (int i = 0; i < BK; ++i) {
      float a_values[TM];
      float b_values[TN];
      *reinterpret_cast<float4*>(a_values) =
          *reinterpret_cast<const float4*>(&a_tile[current][i][row]);
      *reinterpret_cast<float4*>(b_values) =
          *reinterpret_cast<const float4*>(&b_tile[current][i][col]);
#pragma unroll
      for (int r = 0; r < TM; ++r) {
#pragma unroll
        for (int s = 0; s < TN; ++s) {
          sums[r][s] += a_values[r] * b_values[s];
        }
      }
    }
    current ^= 1;
  }

#pragma unroll
  for (int r = 0; r < TM; ++r) {
    const int to_row = block_row + row + r;
    const int to_col = block_col + col;
    if (to_row < m && to_col < n) {
      *reinterpret_cast<float4*>(&c[to_row * n + to_col]) =
          make_float4(sums[r][0], sums[r][1], sums[r][2], sums[r][3]);
    }
  }
}

void run_matmul_register_blocked(const float* a, const float* b, float* c, int m, int n, int k,
                                 cudaStream_t stream) {
  const dim3 grid((n + BN - 1) / BN, (m + BM - 1) / BM);
  matmul_register_blocked<<<grid, THREADS, 0, stream>>>(a, b, c, m, n, k);
}
