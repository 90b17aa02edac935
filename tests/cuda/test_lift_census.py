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

KERNELS = {
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
}


@pytest.mark.parametrize("name", KERNELS)
def test_labels(name: str) -> None:
    text, block, expected = KERNELS[name]
    made = lifted(text, GRID, block)
    assert (computes(made), work_mapping(made)) == expected


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
