// Macros that are loop heads, bodies and arguments; conditionals inside of statements.
#define LOOP(i, n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)
#define CHECK(x) do { if (!(x)) return; } while (0)
#define APPLY(name, body) __global__ void name(float* y, const float* x, int n) { LOOP(i, n) { body } }
#define LARGER(a, b) ({ __typeof__(a) first = (a); __typeof__(b) second = (b); first > second ? first : second; })
#define JOIN(a, b) a##b
#define SHOW(x) #x
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
#define FAST 1
#else
#define FAST 0
#endif

APPLY(square, y[i] = x[i] * x[i];)
APPLY(JOIN(cu, be), y[i] = x[i] * x[i] * x[i];)

__global__ void guarded(int* out, int* seen, int n) {
  CHECK(n > 0);
  LOOP(i, n) {
#if FAST
    if (i < n && out[i] > (n)) { atomicAdd(&seen[0], 1);
#else
    if (out[i] > n) {
#endif
      out[i] = LARGER(out[i], n) + LARGER(i, LARGER(n, 3));
      asm volatile("add.s32 %0, %1, %2;" : "=r"(out[i]) : "r"(i), "r"(n));
    }
  }
}
