// Tiled product: two-dimensional shared arrays, vector loads, per-thread arrays.
namespace tiles {
constexpr int TILE = 16;
struct Shape { int m, n, k; };
union Bits { float f; unsigned u; };
typedef float4 Four;
using Index = long long;

__constant__ float scale[4] = {1.0f, 2.0f, 3.0f, 4.0f};

__global__ void product(const float* a, const float* b, float* c, Shape s) {
  __shared__ float left[TILE][TILE + 1], right[TILE][TILE + 1];
  int i = blockIdx.y * TILE + threadIdx.y, j = blockIdx.x * TILE + threadIdx.x;
  float acc[2] = {0.f, 0.f};
  for (int t = 0; t < s.k; t += TILE) {
    left[threadIdx.y][threadIdx.x] = i < s.m && t + threadIdx.x < (s.k) ? a[i * s.k + t + threadIdx.x] : 0;
    right[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * s.n + j];
    __syncthreads();
    for (int q = 0; q < TILE; q++) acc[q & 1] += left[threadIdx.y][q] * right[q][threadIdx.x];
    __syncthreads();
  }
  if (i < s.m && j < s.n) c[i * s.n + j] = (acc[0] + acc[1]) * scale[i % 4];
}

__global__ void copy4(float* out, const float* in, Index n) {
  Index i = (Index)(blockIdx.x) * blockDim.x + threadIdx.x;
  Four v = reinterpret_cast<const Four*>(in)[i];
  Bits bits;
  bits.f = v.x;
  v.x = bits.u ? v.y : -v.z;
  do { v.w *= 2; } while (v.w < 1.f);
  switch (i % 3) { case 0: v.x = 1; break; case 1: v.y = 2; default: v.z = 3; }
  *reinterpret_cast<Four*>(&out[i * 4]) = make_float4(v.x, v.y, v.z, v.w);
}
}  // namespace tiles
