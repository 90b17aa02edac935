// y[i] = gelu(x[i]) by the tanh formula, in half or bfloat16, for vectors of any length.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// How two numbers of a 16-bit format lie in one 32-bit word.
template <typename T>
struct Packed;

template <>
struct Packed<__half> {
  using Pair = __half2;
  static __device__ float2 unpack(Pair pair) { return __half22float2(pair); }
  static __device__ Pair pack(float2 values) { return __float22half2_rn(values); }
  static __device__ float widen(__half value) { return __half2float(value); }
  static __device__ __half narrow(float value) { return __float2half_rn(value); }
};

template <>
struct Packed<__nv_bfloat16> {
  using Pair = __nv_bfloat162;
  static __device__ float2 unpack(Pair pair) { return __bfloat1622float2(pair); }
  static __device__ Pair pack(float2 values) { return __float22bfloat162_rn(values); }
  static __device__ float widen(__nv_bfloat16 value) { return __bfloat162float(value); }
  static __device__ __nv_bfloat16 narrow(float value) { return __float2bfloat16_rn(value); }
};

__device__ __forceinline__ float gelu(float x) {
  constexpr float ROOT = 0.7978845608028654f;  // sqrt(2 / pi)
  constexpr float CUBIC = 0.044715f;
  return 0.5f * x * (1.0f + tanhf(ROOT * (x + CUBIC * x * x * x)));
}

// A thread takes two elements at once, and one thread the last element of an odd number.
template <typename T>
__global__ void gelu_half2(const T* __restrict__ x, T* __restrict__ y, int n) {
  using Format = Packed<T>;
  using Pair = typename Format::Pair;

  const int pairs = n / 2;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < pairs) {
    const float2 values = Format::unpack(reinterpret_cast<const Pair*>(x)[i]);
    reinterpret_cast<Pair*>(y)[i] = Format::pack(make_float2(gelu(values.x), gelu(values.y)));
  } else if (i == pairs && n % 2 != 0) {
    y[n - 1] = Format::narrow(gelu(Format::widen(x[n - 1])));
  }
}

void run_gelu_half2(const __half* x, __half* y, int n, cudaStream_t stream) {
  const int threads = 256;
  const int items = (n + 1) / 2;
  gelu_half2<__half><<<(items + threads - 1) / threads, threads, 0, stream>>>(x, y, n);
}
