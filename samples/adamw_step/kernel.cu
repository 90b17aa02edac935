// One step of AdamW on n parameters: moments m and v and parameters p are updated in place.

#include <cuda_runtime.h>

struct Hyper {
  float rate;
  float beta1;
  float beta2;
  float epsilon;
  float decay;
  float correction1;  // 1 / (1 - beta1^step)
  float correction2;  // 1 / (1 - beta2^step)
};

// How the weights decay: away from the gradient (AdamW), or as a part of it (Adam with L2).
struct Decoupled {
  __device__ float gradient(float g, float, const Hyper&) const { return g; }
  __device__ float shrink(float p, const Hyper& h) const { return p * (1.0f - h.rate * h.decay); }
};

struct Coupled {
  __device__ float gradient(float g, float p, const Hyper& h) const { return g + h.decay * p; }
  __device__ float shrink(float p, const Hyper&) const { return p; }
};

template <typename Decay>
__global__ void adamw_step(float* __restrict__ p, float* __restrict__ m, float* __restrict__ v,
                           const float* __restrict__ g, int n, Hyper hyper) {
  const Decay decay;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    const float gradient = decay.gradient(g[i], p[i], hyper);
    const float mean = hyper.beta1 * m[i] + (1.0f - hyper.beta1) * gradient;
    const float variance = hyper.beta2 * v[i] + (1.0f - hyper.beta2) * gradient * gradient;
    const float step = mean * hyper.correction1 /
                       (sqrtf(variance * hyper.correction2) + hyper.epsilon);
    p[i] = decay.shrink(p[i], hyper) - hyper.rate * step;
    m[i] = mean;
    v[i] = variance;
  }
}

void run_adamw_step(float* p, float* m, float* v, const float* g, int n, Hyper hyper,
                    cudaStream_t stream) {
  const int threads = 128;
  const int blocks = min((n + threads - 1) / threads, 8);
  adamw_step<Decoupled><<<blocks, threads, 0, stream>>>(p, m, v, g, n, hyper);
}
