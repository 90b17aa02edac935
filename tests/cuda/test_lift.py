"""Lifted IR: its text, and that it evaluates to what the kernel computes."""

from __future__ import annotations

import numpy as np
import pytest

from migrate.ir.index import Index, ceil_div
from migrate.ir.nodes import Fold, Kernel, Opaque, walk
from migrate.ir.text import render
from migrate.source import SourceError
from tests.cuda.lifting import agrees, lifted
from tests.cuda.test_execute import COPY_WIDE, MATMUL, SOFTMAX

RNG = np.random.default_rng(11)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def opaque(kernel: Kernel) -> list[str]:
    return [op.reason for op in walk(kernel.body) if isinstance(op, Opaque)]


ADD = """
__global__ void k(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    c[i] = a[i] + b[i];
  }
}
"""


def test_vector_add() -> None:
    n = Index.size("n")
    made = lifted(
        ADD, (ceil_div(n, 256),), (256,), sizes={"n": n}, lengths={"a": n, "b": n, "c": n}
    )
    assert render(made) == (
        "kernel k (cuda)\n"
        "  sizes n\n"
        "  buffer a[n] float32 hbm in\n"
        "  buffer b[n] float32 hbm in\n"
        "  buffer c[n] float32 hbm out\n"
        "  parallel blockIdx.x<(n + 255) // 256 (grid), threadIdx.x<256 (block)\n"
        "    if -256*blockIdx.x + n - threadIdx.x - 1 >= 0\n"
        "      %v1:float32 = load a.0[256*blockIdx.x + threadIdx.x]\n"
        "      %v2:float32 = load b.0[256*blockIdx.x + threadIdx.x]\n"
        "      %v3:float32 = add %v1, %v2\n"
        "      c.1 = store c.0[256*blockIdx.x + threadIdx.x] <- %v3\n"
        "      merge c.2 = c.1 else c.0\n"
        "  output c.2 (in place)\n"
        "  understood 3 of 3 statements\n"
    )


def test_an_early_return_reads_like_a_guard() -> None:
    early = ADD.replace("if (i < n) {", "if (i >= n) return; {")
    n = Index.size("n")
    texts = [
        render(lifted(text, (ceil_div(n, 256),), (256,), sizes={"n": n})).splitlines()[:-1]
        for text in (ADD, early)
    ]
    assert texts[0] == texts[1]


def test_a_grid_stride_loop_is_a_fold() -> None:
    text = """
    __global__ void k(const float* a, float* c, float s, int n) {
      for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        c[i] = a[i] * s;
    }
    """
    made = lifted(text, (Index.size("g"),), (64,), lengths={"a": 10, "c": 10})
    assert render(made) == (
        "kernel k (cuda)\n"
        "  sizes g, n\n"
        "  buffer a[10] float32 hbm in\n"
        "  buffer c[10] float32 hbm out\n"
        "  buffer s[] float32 constant in\n"
        "  parallel blockIdx.x<g (grid), threadIdx.x<64 (block)\n"
        "    %v1:float32 = load s.0[]\n"
        "    fold i<(-64*blockIdx.x + n - threadIdx.x - 1) // (64*g) + 1 (sequential)\n"
        "      carry c.1 = c.0 then c.2 -> c.3\n"
        "      %v2:float32 = load a.0[64*g*i + 64*blockIdx.x + threadIdx.x]\n"
        "      %v3:float32 = multiply %v2, %v1\n"
        "      c.2 = store c.1[64*g*i + 64*blockIdx.x + threadIdx.x] <- %v3\n"
        "  output c.3 (in place)\n"
        "  understood 3 of 3 statements\n"
    )


def test_places_of_what_decides_an_index() -> None:
    made = lifted(ADD, (4,), (64,))
    load = next(op for op in walk(made.body) if type(op).__name__ == "Load")
    lines = [span.start_line for span in load.sources]
    assert lines[0] == 5
    assert 3 in lines


@pytest.mark.parametrize("n", [1, 63, 64, 200])
def test_simple_kernels_agree(n: int) -> None:
    a, b = floats(n), floats(n)
    agrees(ADD, grid=4, block=64, a=a, b=b, c=zeros(n), n=n)
    early = ADD.replace("if (i < n) {", "if (i >= n) return; {")
    agrees(early, grid=4, block=64, a=a, b=b, c=zeros(n), n=n)


@pytest.mark.parametrize(
    "body",
    [
        "y[i] = x[i] * 2.0f - 1.0f / (x[i] * x[i] + 1.0f);",
        "y[i] = expf(x[i]) + fmaxf(x[i], 0.0f) * tanhf(x[i]);",
        "y[i] = x[i] > 0.0f ? x[i] : 0.1f * x[i];",
        "float v = x[i]; if (v > 0.5f) v = 0.5f; else if (v < -0.5f) v = -0.5f; y[i] = v;",
        "float v; if (i % 2 == 0) v = x[i]; else v = -x[i]; y[i] = v;",
        "y[i] = i > 0 ? x[i - 1] : 0.0f;",
        "y[n - 1 - i] = x[i];",
        "y[i] = (float)(i * 3 + 1) / 2;",
        "y[i] = (int)(x[i] * 10.0f) % 3;",
        "if (x[i] > 0.0f && i % 3 == 1) y[i] = 1.0f;",
        "if (i % 3 == 1 && x[i] > 0.0f) y[i] = 1.0f;",
        "if (i % 3 == 1 || x[i] > 0.0f) y[i] = 1.0f; else y[i] = 2.0f;",
        "bool p = x[i] > 0.0f; bool q = i < 5; y[i] = p && !q ? 1.0f : 2.0f;",
        "int j = min(i, 5); y[i] = x[j] + x[max(j, 3)];",
        "int j = i < 7 ? i : 7; y[i] = x[j];",
        "const float* p = x + i; float* q = &y[i]; *q = *p + p[0];",
        "y[i] += x[i];",
        "y[i] = x[i]; y[i] *= 2.0f; y[i]++;",
        "float a[3] = {x[i], 1.0f}; a[2] = a[0] * a[1]; y[i] = a[2] + a[i % 3];",
        "double d = x[i]; y[i] = (float)(d * 0.1);",
        "if (i >= 20) return; if (x[i] < 0.0f) { y[i] = -1.0f; return; } y[i] = 1.0f;",
        "if (i < 20) { if (x[i] < 0.0f) return; y[i] = 1.0f; } y[i] = y[i] + 3.0f;",
        "int j = (int)fabsf(x[i] * 5.0f) % n; y[i] = x[j];",
        "y[i] = x[(i & 3) + ((i >> 2) << 2)];",
        "y[i] = x[i ^ 1];",
        "unsigned d = 30u - i; y[i] = x[d / 2];",
        "unsigned j = threadIdx.x; if (j - 1 < 3u) y[i] = x[i]; else y[i] = 0.0f;",
        "float s = 0.0f; for (int j = 0; j < n; ++j) s += x[j]; y[i] = s;",
        "float s = 0.0f; for (int j = n - 1; j >= 0; --j) s = s * 0.5f + x[j]; y[i] = s;",
        "float s = 0.0f; for (int j = 0; j <= i; j += 2) s += x[j]; y[i] = s;",
        "float s = 0.0f; int j = i; while (j < n) { s += x[j]; j += 7; } y[i] = s + j;",
        "float s = 0.0f; int j = 0; do { s += x[j]; j++; } while (j < i); y[i] = s;",
        "float s = 0; const float* p = x; for (int j = 0; j < 4; ++j, p += 2) s += *p; y[i] = s;",
        "float s = 0.0f; for (int o = 16; o > 0; o >>= 1) s += x[o]; y[i] = s;",
        "int c = 0; for (int j = 0; j < n; ++j) if (x[j] > x[i]) c++; y[i] = c;",
        "float m = -2; int w = 0; for (int j = 0; j < n; j++) if (x[j] > m) m = x[w=j]; y[i] = w;",
        "float s = 0; for (int j = 0; j < n; ++j) { if (j % 2) continue; s += x[j]; } y[i] = s;",
        "for (int j = 0; j < 3; ++j) for (int l = 0; l < 2; ++l) y[i] = y[i] / 2 + x[j * 2 + l];",
    ],
)
def test_bodies_agree(body: str) -> None:
    text = f"""
    __global__ void k(const float* x, float* y, int n) {{
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) {{ {body} }}
    }}
    """
    made = agrees(text, grid=2, block=16, x=floats(24), y=floats(24), n=24)
    assert opaque(made) == []
    assert made.statements.opaque == 0


def test_device_functions_are_inlined() -> None:
    text = """
    __device__ float clamped(float v, float low, float high) {
      if (v < low) return low;
      if (v > high) return high;
      return v;
    }
    __device__ void swap(float& a, float& b) { float t = a; a = b; b = t; }
    template <typename T> __device__ T total(const T* p, int n) {
      T sum = 0; for (int j = 0; j < n; ++j) sum += p[j]; return sum;
    }
    __global__ void k(const float* x, float* y, int n) {
      int i = threadIdx.x;
      float a = clamped(x[i], -0.5f, 0.5f), b = 3.0f;
      swap(a, b);
      swap(y[i], b);
      y[i] += a + total(x + 1, n);
    }
    """
    made = agrees(text, block=16, x=floats(16), y=floats(16), n=5)
    assert opaque(made) == []
    spans = [op.span for op in walk(made.body) if op.span.via]
    assert {frame.name for span in spans for frame in span.via} == {"clamped", "swap", "total"}


def test_vectors_agree() -> None:
    text = """
    __global__ void k(const float* x, float* y, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i >= n / 4) return;
      float4 v = reinterpret_cast<const float4*>(x)[i];
      v.y *= 2.0f;
      float4 w = make_float4(v.w, v.z, v.y, v.x);
      float4 total = {0, 0, 0, 0};
      for (int j = 0; j < 3; ++j) { total.x += w.x; total.w += 1.0f; }
      reinterpret_cast<float4*>(y)[i] = w;
      reinterpret_cast<float4*>(y)[i].w += total.x + total.w + total.y;
    }
    """
    made = agrees(text, grid=2, block=4, x=floats(28), y=zeros(28), n=28)
    assert opaque(made) == []


def test_wide_copies_agree() -> None:
    x = floats(64).astype(np.float16)
    made = agrees(COPY_WIDE, block=8, x=x, y=np.zeros_like(x), rtol=1e-3)
    assert opaque(made) == []


@pytest.mark.parametrize(("rows", "cols", "block"), [(3, 70, 64), (2, 20, 32)])
def test_softmax_agrees(rows: int, cols: int, block: int) -> None:
    x = floats(rows, cols)
    made = agrees(SOFTMAX, grid=rows, block=block, x=x, y=zeros(rows, cols), cols=cols)
    assert opaque(made) == []
    assert made.statements.coverage == 1.0


@pytest.mark.parametrize(("m", "n", "depth"), [(8, 8, 8), (11, 13, 9)])
def test_tiled_matmul_agrees(m: int, n: int, depth: int) -> None:
    made = agrees(
        MATMUL,
        grid=(-(-n // 4), -(-m // 4)),
        block=(4, 4),
        template={"T": 4},
        a=floats(m, depth), b=floats(depth, n), c=zeros(m, n), m=m, n=n, depth=depth,
    )  # fmt: skip
    assert opaque(made) == []


@pytest.mark.parametrize(
    "call",
    [
        "__shfl_up_sync(0xffffffff, v, 1)",
        "__shfl_down_sync(0xffffffff, v, 2)",
        "__shfl_xor_sync(0xffffffff, v, 3)",
        "__shfl_sync(0xffffffff, v, 5)",
        "__shfl_sync(0xffffffff, v, 1, 8)",
        "__shfl_down_sync(0xffffffff, v, 1, 4)",
        "__shfl_up_sync(0xffffffff, v, 1, 4)",
        "__shfl_xor_sync(0xffffffff, v, 4, 8)",
    ],
)
def test_shuffles_agree(call: str) -> None:
    text = f"""
    __global__ void k(const float* x, float* y) {{
      int i = blockIdx.x * blockDim.x + threadIdx.x; float v = x[i]; y[i] = {call};
    }}
    """
    made = agrees(text, grid=2, block=64, x=floats(128), y=zeros(128))
    assert opaque(made) == []


def test_atomics_and_dynamic_shared_memory_agree() -> None:
    text = """
    __global__ void k(const float* x, const int* bin, float* sums, float* out) {
      extern __shared__ float buffer[];
      buffer[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
      __syncthreads();
      out[blockIdx.x * blockDim.x + threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
      atomicAdd(&sums[bin[threadIdx.x]], x[threadIdx.x]);
      atomicAdd(sums + 1, 1.0f);
    }
    """
    bins = RNG.integers(0, 4, 16).astype(np.int32)
    made = agrees(
        text, grid=3, block=16, shared_bytes=64, rtol=1e-4,
        x=floats(48), bin=bins, sums=zeros(4), out=zeros(48),
    )  # fmt: skip
    assert opaque(made) == []


def test_constant_memory_agrees() -> None:
    text = """
    __constant__ float weights[2][2];
    __global__ void k(float* y) { y[threadIdx.x] = weights[threadIdx.x / 2][threadIdx.x % 2]; }
    """
    agrees(text, block=4, y=zeros(4), weights=floats(2, 2))


def test_roles_follow_what_is_read_and_written() -> None:
    text = """
    __global__ void k(const float* a, float* b, float* c, float* d, float* e) {
      int i = threadIdx.x;
      b[i] = a[i]; c[i] += a[i]; d[i] = 1.0f; d[i] = d[i] + e[i];
    }
    """
    made = lifted(text, (1,), (32,))
    roles = {buffer.name: buffer.role for buffer in made.buffers}
    assert roles == {"a": "in", "b": "out", "c": "inout", "d": "out", "e": "in"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("while (x[i] > 0.0f) { y[i] = 1.0f; }", "not counted"),
        ("int m = (int)x[0]; for (int j = 0; j < m; ++j) y[j] = 1.0f;", "depend on data"),
        ("frobnicate(y);", "frobnicate is neither defined in this file nor known"),
        ("y[i] = atomicAdd(&y[0], 1.0f);", "the old value of atomicAdd is used"),
        ("y[i] = (float)((const int*)x)[i];", "memory of float accessed as int"),
    ],
)
def test_what_is_not_lifted_is_opaque_with_a_reason(body: str, reason: str) -> None:
    text = f"""
    __global__ void k(const float* x, float* y, int n) {{
      int i = threadIdx.x;
      {body}
      y[i] = y[i] * 2.0f;
    }}
    """
    made = lifted(text, (1,), (32,))
    found = [op for op in walk(made.body) if isinstance(op, Opaque)]
    assert any(reason in op.reason for op in found)
    assert all(op.span.start_line == 4 for op in found)
    assert 0 < made.statements.opaque < made.statements.total


def test_what_an_opaque_statement_may_write_is_unknown_after_it() -> None:
    text = """
    __global__ void k(const float* x, float* y, float* z) {
      int i = threadIdx.x;
      y[i] = x[i];
      frobnicate(y);
      z[i] = y[i];
    }
    """
    made = lifted(text, (1,), (32,))
    found = next(op for op in walk(made.body) if isinstance(op, Opaque))
    assert {str(result) for result in found.results} == {"y.2", "z.1"}


def test_loops_over_sizes_stay_loops() -> None:
    text = """
    __global__ void k(const float* x, float* y, int n) {
      float s = 0.0f;
      for (int j = 0; j < n; ++j) s += x[j];
      y[0] = s;
    }
    """
    made = lifted(text, (1,), (1,))
    loop = next(op for op in walk(made.body) if isinstance(op, Fold))
    assert [str(axis.extent) for axis in loop.axes] == ["n"]
    assert loop.axes[0].name == "j"
    assert loop.span.start_line == 4


def test_names_that_do_not_fit() -> None:
    with pytest.raises(SourceError, match="no parameter m"):
        lifted(ADD, (1,), (32,), sizes={"m": 3})
