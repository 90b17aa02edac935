// Methods, operators, lambdas, half precision and cooperative groups.
#include <cooperative_groups.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;

struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};

template <typename T = float>
struct Running {
  T mean, square;
  int count;
  __device__ Running() : mean(0), square(0), count(0) {}
  __device__ void add(const T& x) { ++count; T d = x - mean; mean += d / count; square += d * (x - mean); }
  __host__ __device__ static T zero() { return T{}; }
};

template <class Op>
__global__ void reduce(float* out, const __half* in, int n, Op op) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<32>(block);
  float total = Running<float>::zero();
  Running<> seen;
  for (int i = threadIdx.x; i < n; i += blockDim.x) { total = op(total, __half2float(in[i])); seen.add(total); }
  auto twice = [=](float v) { return v * 2.0f; };
  total = cg::reduce(tile, total, cg::plus<float>());
  half2 pair = __floats2half2_rn(total, seen.mean);
  if constexpr (sizeof(int) == 4) { if (tile.thread_rank() == 0) atomicAdd(out, twice(total) + __low2float(pair)); }
}

void start(float* out, const __half* in, int n) { reduce<<<1, {128, 1, 1}>>>(out, in, n, Plus()); }
