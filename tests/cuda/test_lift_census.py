"""The labels of kernels as people write them, from their IR."""

from __future__ import annotations

import pytest

from migrate.ir.census import computes, work_mapping
from migrate.ir.index import Index
from tests.cuda.lifting import lifted

GRID = tuple(Index.size(f"gridDim.{axis}") for axis in "xyz")

WARP_SUM = """
__device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffff, v, d);
  return v;
}
"""

KERNELS: dict[str, tuple[str, tuple[int, ...], tuple[str | None, str | None]]] = {
    "map": (
        (
            "__global__ void k(const float* x, float* y, int n) {"
            " int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = expf(x[i]); }"
        ),
        (256,),
        ("elementwise", "thread per element, 1-D"),
    ),
    "map of four neighbours a thread": (
        (
            "__global__ void k(const float* x, float* y) {"
            " int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);"
            " for (int j = 0; j < 4; ++j) y[i + j] = expf(x[i + j]); }"
        ),
        (256,),
        ("elementwise", "thread per element, 1-D"),
    ),
    "grid stride": (
        (
            "__global__ void k(const float* x, float* y, int n) {"
            " for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; "
            " i += blockDim.x * gridDim.x)"
            " y[i] = 2.0f * x[i]; }"
        ),
        (128,),
        ("elementwise", "grid-stride loop"),
    ),
    "block stride over the row of a block": (
        (
            "__global__ void k(const float* x, float* y, int c) {"
            " for (int i = threadIdx.x; i < c; i += blockDim.x)"
            " y[blockIdx.x * c + i] = expf(x[blockIdx.x * c + i]); }"
        ),
        (128,),
        ("elementwise", "block per row"),
    ),
    "row of a thread": (
        (
            "__global__ void k(const float* x, float* y, int n, int c) {"
            " int r = blockIdx.x * blockDim.x + threadIdx.x; if (r >= n) return; float s = 0.0f;"
            " for (int i = 0; i < c; ++i) s += x[r * c + i]; y[r] = s; }"
        ),
        (128,),
        ("row/full reduce", "thread per row"),
    ),
    "row of a warp": (
        WARP_SUM + "__global__ void k(const float* x, float* y, int c) {"
        " int r = blockIdx.x * 4 + threadIdx.x / 32, l = threadIdx.x % 32; float s = 0.0f;"
        " for (int i = l; i < c; i += 32) s += x[r * c + i]; s = warp_sum(s);"
        " if (l == 0) y[r] = s; }",
        (128,),
        ("row/full reduce", "warp per row"),
    ),
    "softmax of a row by a thread, its maximum by comparison": (
        (
            "__global__ void k(const float* x, float* y, int n, int c) {"
            " int r = blockIdx.x * blockDim.x + threadIdx.x; if (r >= n) return;"
            " float m = -1e30f, s = 0.0f;"
            " for (int i = 0; i < c; ++i) { if (x[r * c + i] > m) m = x[r * c + i]; }"
            " for (int i = 0; i < c; ++i) { y[r * c + i] = expf(x[r * c + i] - m);"
            " s += y[r * c + i]; }"
            " for (int i = 0; i < c; ++i) y[r * c + i] /= s; }"
        ),
        (128,),
        ("softmax/norm", "thread per row"),
    ),
    "normalised with moments of others": (
        (
            "__global__ void k(const float* x, const float* m, const float* s, float* y, int c) {"
            " int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = s[i / c] * (x[i] - m[i / c]); }"
        ),
        (128,),
        ("softmax/norm", "thread per element, 1-D"),
    ),
    "product by tiles": (
        (
            "__global__ void k(const float* a, const float* b, float* c, int n) {"
            " __shared__ float s[8][8], t[8][8]; int x = threadIdx.x, y = threadIdx.y;"
            " int row = blockIdx.y * 8 + y, col = blockIdx.x * 8 + x; float sum = 0.0f;"
            " for (int k0 = 0; k0 < n; k0 += 8) { s[y][x] = a[row * n + k0 + x];"
            " t[y][x] = b[(k0 + y) * n + col]; __syncthreads();"
            " for (int k = 0; k < 8; ++k) sum += s[y][k] * t[k][x]; __syncthreads(); }"
            " c[row * n + col] = sum; }"
        ),
        (8, 8),
        ("GEMM/GEMV", "block tile 2-D"),
    ),
    "permutation of a flat index": (
        (
            "__global__ void k(const float* x, float* y, int a, int b, int c) {"
            " int i = blockIdx.x * blockDim.x + threadIdx.x;"
            " int p = i / (b * c), q = i / c % b, r = i % c; y[i] = x[(q * a + p) * c + r]; }"
        ),
        (128,),
        ("transpose/permute", "thread per element, 1-D"),
    ),
    "repetition of a flat index": (
        (
            "__global__ void k(const float* x, float* y, int b, int c) {"
            " int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = x[i / (b * c) * c + i % c]; }"
        ),
        (128,),
        ("gather/scatter/index", "thread per element, 1-D"),
    ),
    "neighbours": (
        (
            "__global__ void k(const float* x, float* y, int n) {"
            " int i = blockIdx.x * blockDim.x + threadIdx.x;"
            " if (i > 0 && i < n - 1) y[i] = x[i - 1] + x[i] + x[i + 1]; }"
        ),
        (128,),
        ("conv/pool/stencil", "thread per element, 1-D"),
    ),
    "numbers made from the thread's own": (
        (
            "__global__ void k(float* y) { unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;"
            " unsigned int s = i; s ^= s << 13; s ^= s >> 17; y[i] = s * 0.5f; }"
        ),
        (128,),
        ("RNG", "thread per element, 1-D"),
    ),
    "one thread": (
        (
            "__global__ void k(float* y) { if (blockIdx.x == 0 && threadIdx.x == 0)"
            " y[0] = y[0] + 1.0f; }"
        ),
        (128,),
        ("elementwise", "single thread"),
    ),
    "sum by one block": (
        (
            "__global__ void k(const float* x, float* y, int n) { __shared__ float s[64];"
            " int t = threadIdx.x; float a = 0.0f; for (int i = t; i < n; i += 64) a += x[i];"
            " s[t] = a; __syncthreads();"
            " for (int d = 32; d > 0; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }"
            " if (t == 0) y[0] = s[0]; }"
        ),
        (64,),
        ("row/full reduce", "single block"),
    ),
    "running sums of a thread": (
        (
            "__global__ void k(const float* x, float* y, int c) {"
            " int r = blockIdx.x * blockDim.x + threadIdx.x; float s = 0.0f;"
            " for (int i = 0; i < c; ++i) { s += x[r * c + i]; y[r * c + i] = s; } }"
        ),
        (128,),
        ("scan/prefix", "thread per row"),
    ),
    "a tile that is turned on chip and put down elsewhere": (
        (
            "__global__ void k(const float* x, float* y, int r, int c) {"
            " __shared__ float s[16][17]; int t = threadIdx.x, u = threadIdx.y;"
            " s[u][t] = x[(blockIdx.y * 16 + u) * c + blockIdx.x * 16 + t]; __syncthreads();"
            " y[(blockIdx.x * 16 + u) * r + blockIdx.y * 16 + t] = s[t][u]; }"
        ),
        (16, 16),
        ("transpose/permute", "block tile 2-D"),
    ),
    "a window over a tile on chip, beyond it over the tensor": (
        (
            "__global__ void k(const float* x, const float* w, float* y, int n, int m) {"
            " __shared__ float s[128]; int t = threadIdx.x, i = blockIdx.x * 128 + t;"
            " s[t] = x[i]; __syncthreads(); float sum = 0.0f;"
            " for (int j = 0; j < m; ++j) { int p = t + j - m / 2;"
            " if (p >= 0 && p < 128) sum += s[p] * w[j]; else sum += x[i + j - m / 2] * w[j]; }"
            " y[i] = sum; }"
        ),
        (128,),
        ("conv/pool/stencil", "block tile 1-D"),
    ),
    "a neighbour that wraps at the edge": (
        (
            "__global__ void k(const float* x, float* y, int n) {"
            " int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n)"
            " y[i] = x[i] - x[(i + 1) % n]; }"
        ),
        (128,),
        ("conv/pool/stencil", "thread per element, 1-D"),
    ),
    "remainders without a shift are no neighbours": (
        (
            "__global__ void k(const float* x, const float* b, float* y, int n) {"
            " int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = x[i] + b[i % n]; }"
        ),
        (128,),
        ("elementwise", "thread per element, 1-D"),
    ),
    "counters": (
        (
            "__global__ void k(int* c) { unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;"
            " atomicAdd(&c[0], 10); atomicMax(&c[1], (int)i); }"
        ),
        (128,),
        ("histogram/atomic", "thread per element, 1-D"),
    ),
    "a loop over the grid that counts on chip, and one thread that stores": (
        (
            "__global__ void k(int* c, int n) { __shared__ int s[1];"
            " for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;"
            " i += blockDim.x * gridDim.x) atomicAdd(&s[0], 1);"
            " if (blockIdx.x == 0 && threadIdx.x == 0) c[0] = s[0]; }"
        ),
        (128,),
        (None, "grid-stride loop"),
    ),
    "a loop at whose every round the thread is at its one element": (
        (
            "__global__ void k(unsigned int* y) {"
            " int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = i;"
            " for (int j = 0; j < i; ++j) y[i] = y[i] * 1664525u + 1013904223u; }"
        ),
        (128,),
        (None, "thread per element, 1-D"),
    ),
    "rows of a thread, in batches that blocks number": (
        (
            "__global__ void k(const float* x, const float* s, float* y, int h, int w) {"
            " int b = blockIdx.y, i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= h) return;"
            " for (int j = 0; j < w; ++j)"
            " y[(b * w + j) * h + i] = x[(b * w + j) * h + i] * s[b * h + i]; }"
        ),
        (128,),
        ("elementwise", "thread per row"),
    ),
    "products of a block that two numbers choose together": (
        (
            "__global__ void k(const float* a, const float* b, float* c, int d) {"
            " __shared__ float s[32]; int t = threadIdx.x;"
            " int o = (blockIdx.x * gridDim.y + blockIdx.y) * 32; s[t] = a[o + t];"
            " __syncthreads(); float sum = 0.0f;"
            " for (int j = 0; j < 32; ++j) sum += s[j] * b[(o + t) * 32 + j];"
            " c[o + t] = sum; }"
        ),
        (32,),
        ("GEMM/GEMV", "block tile 1-D"),
    ),
    "a running softmax of products that weighs another tensor": (
        (
            "__global__ void k(const float* q, const float* kk, const float* v, float* y,"
            " int n, int d) { int i = blockIdx.x * blockDim.x + threadIdx.x;"
            " float m = -1e30f, l = 0.0f, o = 0.0f;"
            " for (int j = 0; j < n; ++j) { float s = 0.0f;"
            " for (int e = 0; e < d; ++e) s += q[i * d + e] * kk[j * d + e];"
            " float t = fmaxf(m, s), a = expf(m - t), p = expf(s - t);"
            " l = l * a + p; o = o * a + p * v[j]; m = t; } y[i] = o / l; }"
        ),
        (128,),
        ("attention", None),
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_labels(name: str) -> None:
    text, block, expected = KERNELS[name]
    made = lifted(text, GRID, block)
    found = (computes(made), work_mapping(made))
    assert [f for f, e in zip(found, expected, strict=True) if e] == [e for e in expected if e]


def test_what_stands_around_a_gap_is_still_labelled() -> None:
    text = """
    __global__ void k(const float* x, float* y, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i >= n) return;
      float a = x[i] * 2.0f;
      float b = unheard_of(a);
      y[i] = expf(a) + b;
    }
    """
    made = lifted(text, GRID, (128,))
    assert (computes(made), work_mapping(made)) == ("elementwise", "thread per element, 1-D")
    assert made.statements.opaque == 1


GAPS = {
    "one texture at several places": (
        (
            "__global__ void k(cudaTextureObject_t t, float* y, int w, int h, int r) {"
            " int j = blockIdx.x * blockDim.x + threadIdx.x; if (j >= h) return; float s = 0.0f;"
            " for (int i = 0; i < w; ++i) { s += tex2D<float>(t, i + r, j);"
            " s -= tex2D<float>(t, i - r, j); y[j * w + i] = s; } }"
        ),
        ("conv/pool/stencil", "thread per row"),
    ),
    "one texture at one place": (
        (
            "__global__ void k(cudaTextureObject_t t, float* y, int w) {"
            " int i = blockIdx.x * blockDim.x + threadIdx.x,"
            " j = blockIdx.y * blockDim.y + threadIdx.y;"
            " y[j * w + i] = tex2D<float>(t, i / (float)w, j); }"
        ),
        ("gather/scatter/index", "thread per element, 2-D/3-D"),
    ),
    "a generator": (
        (
            "__global__ void k(curandState* s, unsigned int seed) {"
            " unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;"
            " curand_init(seed, i, 0, &s[i]); }"
        ),
        ("RNG", "thread per element, 1-D"),
    ),
    "a scan of a library over what is not known": (
        (
            "__global__ void k(const int* x, int* y) {"
            " typedef cub::BlockScan<int, 64> Sums; int o = blockIdx.x * 64;"
            " int v = unheard_of(x + o); v = Sums(unheard_of(o)).Unheard(v);"
            " strange(y + o, v); }"
        ),
        ("scan/prefix", "block tile 1-D"),
    ),
    "tiles that two numbers choose, and the other way round": (
        (
            "__global__ void k(const float* a, float* b, int m, int n) {"
            " __shared__ float s[1024]; int p = blockIdx.x, q = blockIdx.y;"
            " auto x = make_tensor(make_gmem_ptr(a), make_shape(m, n));"
            " auto y = make_tensor(make_gmem_ptr(b), make_shape(n, m));"
            " auto u = local_tile(x, make_shape(32, 32), make_coord(p, q));"
            " auto v = local_tile(y, make_shape(32, 32), make_coord(q, p));"
            " copy(u, s); __syncthreads(); copy(s, v); }"
        ),
        ("transpose/permute", "block tile 2-D"),
    ),
    "a place that a loaded number chooses": (
        (
            "__global__ void k(const float* x, const int* p, float* y, int n) {"
            " for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;"
            " i += blockDim.x * gridDim.x) { y[i] = 0.0f; int j = p[i];"
            " while (j * j < p[j]) { y[i] += x[j]; j = p[j]; } } }"
        ),
        ("gather/scatter/index", "grid-stride loop"),
    ),
    "tensors at the one place of the thread": (
        (
            "__global__ void k(const float* x, float* y, int n) {"
            " for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;"
            " i += blockDim.x * gridDim.x) { y[i] = *(int*)(&(x[i])) < 0 ? 1.0f : 0.0f; } }"
        ),
        ("elementwise", "grid-stride loop"),
    ),
}


@pytest.mark.parametrize("name", GAPS)
def test_the_text_tells_what_the_gaps_hide(name: str) -> None:
    text, expected = GAPS[name]
    made = lifted(text, GRID, (16, 16))
    assert made.statements.opaque > 0
    assert (computes(made), work_mapping(made)) == expected
