"""Lockstep execution against what C++ and CUDA define."""

from __future__ import annotations

import numpy as np
import pytest

from migrate.budget import Exhausted
from migrate.cuda.runtime import Fault, Unsupported
from migrate.source import SourceError
from tests.cuda.running import compute, run

RNG = np.random.default_rng(7)
ADD = """
__global__ void k(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    c[i] = a[i] + b[i];
  }
}
"""


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("n", [1, 255, 256, 257, 1000])
def test_vector_add(n: int) -> None:
    a, b, c = floats(n), floats(n), np.full(n, 9, np.float32)
    done = run(ADD, grid=-(-n // 256), block=256, a=a, b=b, c=c, n=n)
    assert np.array_equal(done.outputs["c"], a + b)
    assert (c == 9).all()
    assert done.written == {"c"}
    assert done.events == ()


def test_early_return_is_a_guard() -> None:
    text = ADD.replace("if (i < n) {", "if (i >= n) return; {")
    a, b = floats(100), floats(100)
    done = run(text, grid=2, block=64, a=a, b=b, c=np.zeros(100, np.float32), n=100)
    assert np.array_equal(done.outputs["c"], a + b)


@pytest.mark.parametrize("grid", [1, 3, 100])
def test_grid_stride_loop(grid: int) -> None:
    text = """
    __global__ void k(const float* a, float* c, int n) {
      for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        c[i] = a[i] * 2.0f;
    }
    """
    a = floats(777)
    done = run(text, grid=grid, block=32, a=a, c=np.zeros_like(a), n=777)
    assert np.array_equal(done.outputs["c"], a * np.float32(2))


def test_more_blocks_than_run_together() -> None:
    n = 200_000
    a, b = floats(n), floats(n)
    done = run(ADD, grid=-(-n // 64), block=64, a=a, b=b, c=np.zeros(n, np.float32), n=n)
    assert np.array_equal(done.outputs["c"], a + b)


def test_three_dimensions() -> None:
    text = """
    __global__ void k(int* out) {
      int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
      int z = blockIdx.z * blockDim.z + threadIdx.z;
      out[(z * gridDim.y * blockDim.y + y) * gridDim.x * blockDim.x + x] = x + 100 * y + 10000 * z;
    }
    """
    done = run(text, grid=(2, 3, 2), block=(4, 2, 3), out=np.zeros(6 * 6 * 8, np.int32))
    z, y, x = np.mgrid[0:6, 0:6, 0:8]
    assert np.array_equal(done.outputs["out"].reshape(6, 6, 8), x + 100 * y + 10000 * z)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7 / -2", -3),
        ("2147483647 + 1", -(2**31)),
        ("65537 * 65537", 131073),
        ("-8 >> 1", -4),
        ("(int)((unsigned)-8 >> 1)", 0x7FFFFFFC),
        ("(signed char)200", -56),
        ("(unsigned char)300", 44),
        ("~5", -6),
        ("5 & 3 | 8 ^ 1", 9),
        ("!5", 0),
        ("1 < 2 && 2 < 1 || 3 > 2", 1),
        ("(int)2.9f", 2),
        ("(int)-2.9f", -2),
        ("(int)3e9f", 2**31 - 1),
        ("__float2int_rn(2.5f)", 2),
        ("abs(-3) + max(2, 7) - min(2, 7)", 8),
        ("sizeof(double) == 8 ? 10 : 20", 10),
        ("(-1 > 1u) ? 1 : 0", 1),
        ("(1, 2)", 2),
        ("'a'", 97),
        ("0x1F + 010 + 0b11", 42),
    ],
)
def test_integers_are_those_of_cpp(expression: str, expected: int) -> None:
    assert compute(f"out[i] = {expression};")[0] == expected


def test_float_operations_round_to_float() -> None:
    x = floats(64)
    got = compute("out[i] = x[i] * 0.1f + x[i] / 3.0f;", "float", 64, x=x)
    exact = x.astype(np.float64) * np.float32(0.1) + (x / np.float32(3)).astype(np.float64)
    assert np.array_equal(got, exact.astype(np.float32))


def test_a_double_literal_computes_in_double() -> None:
    x = floats(64)
    got = compute("out[i] = x[i] * 0.1;", "float", 64, x=x)
    assert np.array_equal(got, (x.astype(np.float64) * 0.1).astype(np.float32))


@pytest.mark.parametrize(
    "statement", ["out[i] = a * a - b;", "float t = -b; t += a * a; out[i] = t;"]
)
def test_contraction(statement: str) -> None:
    body = f"float a = 1.0f + 1.0f / 4096.0f, b = 1.0f + 1.0f / 2048.0f; {statement}"
    text = f"__global__ void k(float* out) {{ int i = threadIdx.x; {body} }}"
    out = np.zeros(1, np.float32)
    assert run(text, block=1, out=out).outputs["out"][0] == np.float32(2.0**-24)
    assert run(text, block=1, out=out, fma=False).outputs["out"][0] == 0


def test_intrinsics() -> None:
    x = np.abs(floats(50)) + np.float32(0.1)
    got = compute("out[i] = expf(x[i]) + sqrtf(x[i]) * tanhf(x[i]);", "float", 50, x=x)
    wide = x.astype(np.float64)
    expected = np.exp(wide) + np.sqrt(wide) * np.tanh(wide)
    assert np.allclose(got, expected, rtol=3e-7)


def test_fmaxf_ignores_nan() -> None:
    x = np.array([np.nan, 1.0], np.float32)
    assert np.array_equal(compute("out[i] = fmaxf(x[i], 0.0f);", "float", 2, x=x), [0, 1])


def test_divergent_loops_break_and_continue() -> None:
    body = """
    int total = 0;
    for (int j = 0; ; ++j) {
      if (j % 2) continue;
      if (j > i) break;
      total += j;
    }
    out[i] = total;
    """
    got = compute(body, lanes=40)
    assert got.tolist() == [sum(j for j in range(i + 1) if j % 2 == 0) for i in range(40)]


def test_while_and_do() -> None:
    body = "int n = i, c = 0; while (n > 1) { n = n % 2 ? 3 * n + 1 : n / 2; ++c; } out[i] = c;"

    def collatz(n: int) -> int:
        count = 0
        while n > 1:
            n, count = (3 * n + 1 if n % 2 else n // 2), count + 1
        return count

    assert compute(body, lanes=30).tolist() == [collatz(i) for i in range(30)]
    body = "int n = i, c = 0; do { ++c; n -= 3; } while (n > 0); out[i] = c;"
    assert compute(body, lanes=9).tolist() == [1, 1, 1, 1, 2, 2, 2, 3, 3]


def test_switch_with_fall_through() -> None:
    body = """
    int v = 0;
    switch (i) { case 0: v = 1; break; case 1: v = 10; case 2: v += 5; break; default: v = 99; }
    out[i] = v;
    """
    assert compute(body, lanes=4).tolist() == [1, 15, 5, 99]


def test_side_effects_happen_once_and_only_where_they_should() -> None:
    body = (
        "int n = i; int a = n++; int b = ++n; out[i] = a * 100 + b * 10 + (i > 2 && ++n > 0) + n;"
    )
    expected = [i * 100 + (i + 2) * 10 + (i > 2) + i + 2 + (i > 2) for i in range(5)]
    assert compute(body, lanes=5).tolist() == expected


def test_short_circuit_protects_a_load() -> None:
    x = np.array([5, -5, 5], np.int32)
    got = compute("out[i] = (i < 3 && x[i] > 0) ? 1 : 0;", lanes=8, x=x)
    assert got.tolist() == [1, 0, 1, 0, 0, 0, 0, 0]


def test_local_arrays_and_pointers() -> None:
    body = """
    int a[4] = {1, 2}; int m[2][3] = {{1, 2, 3}, {4, 5, 6}};
    int* p = a + 1; *p += i; p[1] = 7; int* q = &m[1][0];
    out[i] = a[0] + a[1] * 10 + a[2] * 100 + a[3] * 1000 + q[2] * 10000 + (int)(p - a) * 100000;
    """
    expected = [1 + (2 + i) * 10 + 700 + 60000 + 100000 for i in range(3)]
    assert compute(body, lanes=3).tolist() == expected


def test_vector_types_and_views() -> None:
    text = """
    __global__ void k(float* x, float* y) {
      int i = threadIdx.x;
      float4 v = reinterpret_cast<const float4*>(x)[i];
      v.y *= 2.0f;
      float4 w = make_float4(v.w, v.z, v.y, v.x);
      *(float4*)(y + 4 * i) = w;
      reinterpret_cast<float4*>(y)[i].w += 1.0f;
    }
    """
    x = floats(32)
    expected = x.reshape(8, 4).copy()
    expected[:, 1] *= 2
    expected = expected[:, ::-1].copy()
    expected[:, 3] += 1
    done = run(text, block=8, x=x, y=np.zeros_like(x))
    assert np.array_equal(done.outputs["y"].reshape(8, 4), expected)


COPY_WIDE = """
__global__ void k(const __half* x, __half* y) {
  int i = threadIdx.x * 8;
  __half pack[8];
  reinterpret_cast<float4*>(pack)[0] = *reinterpret_cast<const float4*>(x + i);
  for (int j = 0; j < 8; ++j) pack[j] = __hmul(pack[j], __float2half(2.0f));
  float4 wide = *reinterpret_cast<float4*>(&pack[0]);
  *reinterpret_cast<float4*>(&y[i]) = wide;
}
"""


def test_wide_copies_of_narrow_memory() -> None:
    x = floats(64).astype(np.float16)
    done = run(COPY_WIDE, block=8, x=x, y=np.zeros_like(x))
    assert np.array_equal(done.outputs["y"], x * np.float16(2))
    # Taken apart, it is its bits: one float is two halves.
    text = COPY_WIDE.replace("= wide;", "= make_float4(wide.x, 0, 0, 0);")
    done = run(text, block=8, x=x, y=np.zeros_like(x))
    kept = np.zeros_like(x).reshape(8, 8)
    kept[:, :2] = (x * np.float16(2)).reshape(8, 8)[:, :2]
    assert np.array_equal(done.outputs["y"], kept.reshape(-1))


def test_device_functions_with_references_and_early_returns() -> None:
    text = """
    __device__ float clamped(float v, float low, float high) {
      if (v < low) return low;
      if (v > high) { return high; }
      return v;
    }
    __device__ void swap(float& a, float& b) { float t = a; a = b; b = t; }
    template <typename T> __device__ T total(const T* p, int n) {
      T sum = 0; for (int j = 0; j < n; ++j) sum += p[j]; return sum;
    }
    __global__ void k(float* x, float* y) {
      int i = threadIdx.x;
      float a = clamped(x[i], -0.5f, 0.5f), b = 3.0f;
      swap(a, b);
      swap(y[i], b);
      y[i] += a + total(x, 2);
    }
    """
    x = floats(16)
    done = run(text, block=16, x=x, y=np.zeros_like(x))
    clipped = np.clip(x, np.float32(-0.5), np.float32(0.5))
    assert np.array_equal(done.outputs["y"], clipped + (np.float32(3) + (x[0] + x[1])))


def test_half_and_bfloat16() -> None:
    import ml_dtypes

    text = """
    __global__ void k(const __half* a, const __nv_bfloat16* b, __half* c, __nv_bfloat16* d) {
      int i = threadIdx.x;
      c[i] = __hadd(a[i], __float2half(0.1f));
      d[i] = __float2bfloat16(__bfloat162float(b[i]) * 3.0f);
    }
    """
    a, b = floats(20).astype(np.float16), floats(20).astype(ml_dtypes.bfloat16)
    done = run(text, block=20, a=a, b=b, c=np.zeros_like(a), d=np.zeros_like(b))
    assert np.array_equal(done.outputs["c"], a + np.float16(0.1))
    assert np.array_equal(done.outputs["d"], (b.astype(np.float32) * 3).astype(ml_dtypes.bfloat16))


def test_constant_memory_is_an_argument() -> None:
    text = """
    __constant__ float weights[4];
    __device__ float weight(int j) { return weights[j]; }
    __global__ void k(float* y) { y[threadIdx.x] = weight(threadIdx.x); }
    """
    w = floats(4)
    done = run(text, block=4, y=np.zeros(4, np.float32), weights=w)
    assert np.array_equal(done.outputs["y"], w)


def test_optional_pointers() -> None:
    text = """
    __global__ void k(float* y, const float* bias) {
      y[threadIdx.x] = 1.0f + (bias != nullptr ? bias[threadIdx.x] : 0.0f);
      if (bias) y[threadIdx.x] += 1.0f;
    }
    """
    y = np.zeros(4, np.float32)
    assert run(text, block=4, y=y, bias=None).outputs["y"].tolist() == [1] * 4
    assert run(text, block=4, y=y, bias=y).outputs["y"].tolist() == [2] * 4


# Blocks


SOFTMAX = """
__inline__ __device__ float warp_max(float v) {
  for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, o));
  return v;
}
__inline__ __device__ float warp_sum(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
  return __shfl_sync(0xffffffff, v, 0);
}
__global__ void k(const float* x, float* y, int cols) {
  __shared__ float partial[8];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float* row = x + blockIdx.x * cols;
  float m = -INFINITY;
  for (int j = threadIdx.x; j < cols; j += blockDim.x) m = fmaxf(m, row[j]);
  m = warp_max(m);
  if (lane == 0) partial[warp] = m;
  __syncthreads();
  m = partial[0];
  for (int w = 1; w < blockDim.x / 32; ++w) m = fmaxf(m, partial[w]);
  __syncthreads();
  float s = 0.0f;
  for (int j = threadIdx.x; j < cols; j += blockDim.x) s += expf(row[j] - m);
  s = warp_sum(s);
  if (lane == 0) partial[warp] = s;
  __syncthreads();
  s = 0.0f;
  for (int w = 0; w < blockDim.x / 32; ++w) s += partial[w];
  for (int j = threadIdx.x; j < cols; j += blockDim.x)
    y[blockIdx.x * cols + j] = expf(row[j] - m) / s;
}
"""


@pytest.mark.parametrize(("rows", "cols", "block"), [(5, 700, 256), (3, 64, 128), (700, 33, 64)])
def test_softmax_by_shuffles_and_shared_memory(rows: int, cols: int, block: int) -> None:
    x = floats(rows, cols)
    done = run(SOFTMAX, grid=rows, block=block, x=x, y=np.zeros_like(x), cols=cols)
    wide = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected = wide / wide.sum(axis=1, keepdims=True)
    assert np.allclose(done.outputs["y"].reshape(x.shape), expected, rtol=2e-6, atol=1e-9)
    assert done.events == ()


MATMUL = """
template <int T>
__global__ void k(const float* a, const float* b, float* c, int m, int n, int depth) {
  __shared__ float left[T][T], right[T][T + 1];
  int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
  float sum = 0.0f;
  for (int start = 0; start < depth; start += T) {
    int p = start + threadIdx.x, q = start + threadIdx.y;
    left[threadIdx.y][threadIdx.x] = row < m && p < depth ? a[row * depth + p] : 0.0f;
    right[threadIdx.y][threadIdx.x] = col < n && q < depth ? b[q * n + col] : 0.0f;
    __syncthreads();
    for (int j = 0; j < T; ++j) sum += left[threadIdx.y][j] * right[j][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}
"""


@pytest.mark.parametrize(("m", "n", "depth"), [(16, 16, 16), (19, 35, 21)])
def test_tiled_matmul(m: int, n: int, depth: int) -> None:
    a, b = floats(m, depth), floats(depth, n)
    done = run(
        MATMUL,
        grid=(-(-n // 8), -(-m // 8), 1),
        block=(8, 8, 1),
        template={"T": 8},
        a=a, b=b, c=np.zeros((m, n), np.float32), m=m, n=n, depth=depth,
    )  # fmt: skip
    expected = np.zeros((m, n))
    # One fused multiply-add after the other, in the order of the loop.
    for j in range(depth):
        product = a[:, j : j + 1].astype(np.float64) * b[j].astype(np.float64)
        expected = (expected + product).astype(np.float32).astype(np.float64)
    assert np.array_equal(done.outputs["c"].reshape(m, n), expected)
    assert done.events == ()


def test_dynamic_shared_memory() -> None:
    text = """
    __global__ void k(const int* x, int* y) {
      extern __shared__ int buffer[];
      buffer[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
      __syncthreads();
      y[blockIdx.x * blockDim.x + threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
    }
    """
    x = np.arange(64, dtype=np.int32)
    done = run(text, grid=4, block=16, x=x, y=np.zeros_like(x), shared_bytes=64)
    assert np.array_equal(done.outputs["y"], x.reshape(4, 16)[:, ::-1].reshape(-1))
    with pytest.raises(Fault, match="has 8"):
        run(text, grid=4, block=16, x=x, y=np.zeros_like(x), shared_bytes=32)


def test_atomics_in_lane_order() -> None:
    text = """
    __global__ void k(int* counts, int* ranks, float* sum, int* highest, const int* x) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      ranks[i] = atomicAdd(&counts[x[i]], 1);
      atomicAdd(sum, 0.5f);
      atomicMax(highest, x[i]);
    }
    """
    x = RNG.integers(0, 5, 64).astype(np.int32)
    zeros = {"counts": np.zeros(5, np.int32), "ranks": np.zeros(64, np.int32)}
    done = run(
        text, grid=2, x=x, sum=np.zeros(1, np.float32), highest=np.zeros(1, np.int32), **zeros
    )
    assert np.array_equal(done.outputs["counts"], np.bincount(x, minlength=5))
    assert done.outputs["ranks"].tolist() == [int((x[:i] == x[i]).sum()) for i in range(64)]
    assert done.outputs["sum"][0] == 32
    assert done.outputs["highest"][0] == x.max()


def test_votes() -> None:
    body = """
    unsigned b = __ballot_sync(0xffffffff, i % 3 == 0);
    out[i] = __popc_free(b);
    """
    text = f"""
    __device__ int __popc_free(unsigned b) {{
      int c = 0; while (b) {{ b &= b - 1; ++c; }} return c;
    }}
    __global__ void k(int* out) {{ int i = threadIdx.x; {body}
      out[i] += 100 * __any_sync(0xffffffff, i == 40) + 1000 * __all_sync(0xffffffff, i < 40); }}
    """
    got = run(text, block=64, out=np.zeros(64, np.int32)).outputs["out"]
    low = sum(i % 3 == 0 for i in range(32)) + 1000
    high = sum(i % 3 == 0 for i in range(32, 64)) + 100
    assert got.tolist() == [low] * 32 + [high] * 32


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("__shfl_up_sync(0xffffffff, i, 1)", [0, *range(31)]),
        ("__shfl_down_sync(0xffffffff, i, 2)", [*range(2, 32), 30, 31]),
        ("__shfl_xor_sync(0xffffffff, i, 3)", [i ^ 3 for i in range(32)]),
        ("__shfl_sync(0xffffffff, i, 5)", [5] * 32),
        ("__shfl_sync(0xffffffff, i, 1, 8)", [i // 8 * 8 + 1 for i in range(32)]),
        ("__shfl_down_sync(0xffffffff, i, 1, 4)", [i + 1 if i % 4 < 3 else i for i in range(32)]),
        ("__shfl_up_sync(0xffffffff, i, 1, 4)", [i - 1 if i % 4 else i for i in range(32)]),
    ],
)
def test_shuffles(call: str, expected: list[int]) -> None:
    assert compute(f"out[i] = {call};", lanes=32).tolist() == expected


# What goes wrong


def test_an_access_outside_is_a_fault_with_its_place() -> None:
    text = ADD.replace("i < n", "i <= n")
    with pytest.raises(Fault) as fault:
        run(text, grid=2, block=64, a=floats(100), b=floats(100), c=floats(100), n=100)
    event = fault.value.event
    assert (event.kind, event.buffer, event.index, event.size) == ("out-of-bounds", "a", 100, 100)
    assert (event.block, event.thread) == ((1, 0, 0), (36, 0, 0))
    assert event.span.start_line == 5


def test_a_fault_in_a_helper_names_the_call() -> None:
    text = """
    __device__ float at(const float* p, int i) { return p[i]; }
    __global__ void k(const float* p, float* y) {
      y[0] = at(p, -1);
    }
    """
    with pytest.raises(Fault) as fault:
        run(text, block=1, p=floats(4), y=floats(1))
    span = fault.value.event.span
    assert span.start_line == 2
    assert [(frame.kind, frame.name, frame.line) for frame in span.via] == [("call", "at", 4)]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("int v; if (i > 5) v = 1; out[i] = v;", "uninitialised"),
        ("__shared__ int s[64]; s[i] = i; __syncthreads(); out[i] = s[i + 1];", "uninitialised"),
        ("int a[2]; a[0] = 1; out[i] = a[1];", "uninitialised"),
        ("out[0] = i;", "conflicting-stores"),
        ("if (i < 7) __syncthreads(); out[i] = 1;", "divergent-barrier"),
        ("out[i] = 5 / (i - 3);", "division-by-zero"),
        ("if (i < 16) out[i] = __shfl_down_sync(0xffff, i, 8);", "inactive-shuffle-source"),
    ],
)
def test_events(body: str, kind: str) -> None:
    text = f"__global__ void k(int* out) {{ int i = threadIdx.x; {body} }}"
    events = run(text, block=32, out=np.zeros(32, np.int32)).events
    assert [event.kind for event in events] == [kind]
    assert events[0].span.start_line == 1


@pytest.mark.parametrize(
    "body",
    [
        "out[0] = 1;",
        "if (i < 0) __syncthreads(); out[i] = 1;",
        "if (i > 3) return; __syncthreads(); out[i] = 1;",
        "int v; if (i > 5) v = 1; if (i > 5) out[i] = v;",
        "int d = i - 3; out[i] = d ? 5 / d : 0;",
    ],
)
def test_no_events(body: str) -> None:
    text = f"__global__ void k(int* out) {{ int i = threadIdx.x; {body} }}"
    assert run(text, block=32, out=np.zeros(32, np.int32)).events == ()


def test_a_misaligned_vector_access_is_a_fault() -> None:
    text = "__global__ void k(float* x) { float4 v = *(float4*)(x + 1); x[0] = v.x; }"
    with pytest.raises(Fault) as fault:
        run(text, block=1, x=floats(16))
    assert fault.value.event.kind == "misaligned"


def test_what_is_not_understood_stops_only_when_reached() -> None:
    text = "__global__ void k(int* out, int n) {{ if (n > {}) frobnicate(out); out[0] = n; }}"
    assert run(text.format(5), block=1, out=np.zeros(1, np.int32), n=3).outputs["out"][0] == 3
    with pytest.raises(Unsupported, match="frobnicate"):
        run(text.format(1), block=1, out=np.zeros(1, np.int32), n=3)


def test_a_loop_without_end_stops_at_the_meter() -> None:
    with pytest.raises(Exhausted):
        run("__global__ void k(int* p) { while (true) { *p = 1; } }", p=np.zeros(1, np.int32))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": None}, "takes one number"),
        ({"a": np.zeros(4)}, "points to float"),
        ({"extra": 1}, "no parameter extra"),
        ({"block": 2048}, "at most 1024"),
        ({"grid": 0}, "at least one"),
        ({"kernel": "other"}, "no function named other"),
    ],
)
def test_arguments_that_do_not_fit(change: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"a": floats(4), "b": floats(4), "c": floats(4), "n": 4}
    with pytest.raises(SourceError, match=message):
        run(ADD, **{**given, **change})  # type: ignore[arg-type]
