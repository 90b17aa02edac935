"""Inline PTX: known answers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from migrate.cuda.check import function
from migrate.cuda.parse import parse
from migrate.numerics.bounded import Bounded
from migrate.source import Source
from tests.cuda.lifting import agrees
from tests.cuda.running import run

RNG = np.random.default_rng(13)
STEPS = 20_000_000

# A 16 x 8 tile of a product: copied by cp.async, loaded by ldmatrix, multiplied in two ways.
TILE = r"""
#define LOAD4(R0, R1, R2, R3, at) \
  asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0, %1, %2, %3}, [%4];\n" \
    : "=r"(R0), "=r"(R1), "=r"(R2), "=r"(R3) : "r"(at))
#define LOAD2T(R0, R1, at) \
  asm volatile("ldmatrix.sync.aligned.x2.trans.m8n8.shared.b16 {%0, %1}, [%2];\n" \
    : "=r"(R0), "=r"(R1) : "r"(at))
#define PAIR(value) (reinterpret_cast<half2*>(&(value))[0])
__global__ void k(const half* a, const half* b, half* c, float* d) {
  __shared__ half sa[16][16 + 8];
  __shared__ half sb[16][8];
  int lane = threadIdx.x;
  uint32_t to = __cvta_generic_to_shared(&sa[lane / 2][(lane % 2) * 8]);
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], %2;\n"
    :: "r"(to), "l"(&a[lane * 8]), "n"(16));
  uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(&sb[0][0]));
  if (lane < 16)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;\n"
      :: "r"((unsigned)(base + lane * 8 * sizeof(half))), "l"(b + lane * 8));
  asm volatile("cp.async.commit_group;\n" ::);
  asm volatile("cp.async.wait_group %0;\n" :: "n"(PENDING));
  __syncthreads();
  uint32_t ra[4], rb[2], rc[2] = {0, 0};
  LOAD4(ra[0], ra[1], ra[2], ra[3], __cvta_generic_to_shared(&sa[lane % 16][(lane / 16) * 8]));
  uint32_t bp = base + (lane % 16) * 8 * 2;
  LOAD2T(rb[0], rb[1], bp);
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
      "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%8, %9};\n"
      : "=r"(rc[0]), "=r"(rc[1])
      : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]),
        "r"(rc[0]), "r"(rc[1]));
  PAIR(c[(lane / 4) * 8 + (lane % 4) * 2]) = PAIR(rc[0]);
  uint32_t copy = rc[1];
  *(uint32_t*)(&c[(lane / 4 + 8) * 8 + (lane % 4) * 2]) = copy;
  float t[4] = {1.f, 1.f, 1.f, 1.f};
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(t[0]), "+f"(t[1]), "+f"(t[2]), "+f"(t[3])
      : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  for (int i = 0; i < 4; i++) d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = t[i];
}
"""


def tile(pending: int = 0, **options: Any) -> tuple[Any, np.ndarray]:
    a = RNG.integers(-4, 5, size=(16, 16)).astype(np.float16)
    b = RNG.integers(-4, 5, size=(16, 8)).astype(np.float16)
    done = run(
        TILE.replace("PENDING", str(pending)), a=a, b=b, c=np.zeros((16, 8), np.float16),
        d=np.zeros((16, 8), np.float32), steps=STEPS, **options,
    )  # fmt: skip
    return done, a.astype(np.float64) @ b


def test_a_tile_copied_loaded_and_multiplied() -> None:
    done, expected = tile()
    assert np.array_equal(done.outputs["c"].reshape(16, 8), expected)
    assert np.array_equal(done.outputs["d"].reshape(16, 8), expected + 1)
    assert done.events == ()


def test_packed_registers_keep_their_error_bounds() -> None:
    done, expected = tile(domain=Bounded())
    assert np.allclose(done.outputs["c"].value.reshape(16, 8), expected)
    assert done.outputs["c"].allowance().max() < 1


def test_reading_a_copy_that_was_not_waited_for_is_reported() -> None:
    done, _ = tile(pending=1)
    assert {event.kind for event in done.events} == {"unfinished-copy"}
    assert {event.buffer for event in done.events} == {"sa", "sb"}


def test_a_tile_lifts() -> None:
    a = RNG.integers(-4, 5, size=(16, 16)).astype(np.float16)
    b = RNG.integers(-4, 5, size=(16, 8)).astype(np.float16)
    agrees(
        TILE.replace("PENDING", "0"), a=a, b=b, c=np.zeros((16, 8), np.float16),
        d=np.zeros((16, 8), np.float32),
    )  # fmt: skip


STAGES = r"""
__global__ void k(const half* a, const half* b, half* c, int depth) {
  extern __shared__ half s[];
  int lane = threadIdx.x;
  uint32_t base = __cvta_generic_to_shared(s);
  uint32_t rc[2] = {0, 0};
  for (int stage = 0; stage < 2; stage++) {
    int at = stage * 384 + (lane / 2) * 16 + (((lane % 2) ^ ((lane / 4) % 2)) * 8);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
      :: "r"(base + at * (int)sizeof(half)),
         "l"(a + (lane / 2) * depth + stage * 16 + lane % 2 * 8));
    if (lane < 16)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
        :: "r"(base + (stage * 384 + 256 + lane * 8) * (int)sizeof(half)),
           "l"(b + (stage * 16 + lane) * 8));
    asm volatile("cp.async.commit_group;");
  }
  for (int k = 0; k < depth / 16; k++) {
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    int from = (k & 1) * 384, row = lane % 16;
    uint32_t ra[4], rb[2];
    asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
      : "r"(base + (from + row * 16 + (((lane / 16) ^ ((row / 2) % 2)) * 8)) * 2));
    asm volatile("ldmatrix.sync.aligned.x2.trans.m8n8.shared.b16 {%0, %1}, [%2];"
      : "=r"(rb[0]), "=r"(rb[1]) : "r"(base + (from + 256 + row * 8) * 2));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
      "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
      : "+r"(rc[0]), "+r"(rc[1])
      : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  }
  *(half2*)&c[(lane / 4) * 8 + lane % 4 * 2] = *(half2*)&rc[0];
  *(half2*)&c[(lane / 4 + 8) * 8 + lane % 4 * 2] = *(half2*)&rc[1];
}
"""


def test_a_swizzled_tile_in_two_stages_lifts() -> None:
    a = RNG.integers(-4, 5, size=(16, 32)).astype(np.float16)
    b = RNG.integers(-4, 5, size=(32, 8)).astype(np.float16)
    given = {"a": a, "b": b, "c": np.zeros((16, 8), np.float16), "depth": 32}
    done = run(STAGES, shared_bytes=1536, steps=STEPS, **given)
    assert np.array_equal(done.outputs["c"].reshape(16, 8), a.astype(np.float64) @ b)
    assert done.events == ()
    agrees(STAGES, shared_bytes=1536, **given)


def test_stmatrix_is_the_reverse_of_ldmatrix() -> None:
    text = r"""
    __global__ void k(half* out, const half* x) {
      __shared__ half s[8][8], t[8][8], u[8][8];
      int lane = threadIdx.x;
      s[lane / 4][lane % 4 * 2] = x[lane * 2];
      s[lane / 4][lane % 4 * 2 + 1] = x[lane * 2 + 1];
      __syncthreads();
      unsigned r;
      asm("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
        : "=r"(r) : "r"((unsigned)__cvta_generic_to_shared(&s[lane % 8][0])));
      asm("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};"
        :: "r"((unsigned)__cvta_generic_to_shared(&t[lane % 8][0])), "r"(r));
      asm("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};"
        :: "r"((unsigned)__cvta_generic_to_shared(&u[lane % 8][0])), "r"(r));
      __syncthreads();
      out[lane] = t[lane / 8][lane % 8];
      out[lane + 32] = t[4 + lane / 8][lane % 8];
      out[lane + 64] = u[lane / 8][lane % 8];
      out[lane + 96] = u[4 + lane / 8][lane % 8];
    }
    """
    x = np.arange(64).astype(np.float16)
    done = run(text, out=np.zeros(128, np.float16), x=x, steps=STEPS)
    expected = np.concatenate([x, x.reshape(8, 8).T.reshape(-1)])
    assert np.array_equal(done.outputs["out"], expected)


@pytest.mark.parametrize(("kind", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_a_product_of_depth_eight(kind: str, dtype: Any) -> None:
    pair = {"f16": "half2", "bf16": "__nv_bfloat162"}[kind]
    element = {"f16": "half", "bf16": "__nv_bfloat16"}[kind]
    text = f"""
    __global__ void k(const {element}* a, const {element}* b, float* d) {{
      int g = threadIdx.x / 4, t = threadIdx.x % 4;
      {pair} a0 = *({pair}*)&a[g * 8 + t * 2], a1 = *({pair}*)&a[(g + 8) * 8 + t * 2];
      {pair} b0;
      b0.x = b[t * 2 * 8 + g];
      b0.y = b[(t * 2 + 1) * 8 + g];
      float c[4] = {{}};
      asm("mma.sync.aligned.m16n8k8.row.col.f32.{kind}.{kind}.f32 "
          "{{%0,%1,%2,%3}}, {{%4,%5}}, {{%6}}, {{%7,%8,%9,%10}};"
          : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
          : "r"(*(unsigned*)&a0), "r"(*(unsigned*)&a1), "r"(*(unsigned*)&b0),
            "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
      for (int i = 0; i < 4; i++) d[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = c[i];
    }}
    """
    a = RNG.integers(-4, 5, size=(16, 8))
    b = RNG.integers(-4, 5, size=(8, 8))
    done = run(
        text, a=a.astype(dtype), b=b.astype(dtype), d=np.zeros((16, 8), np.float32), steps=STEPS
    )
    assert np.array_equal(done.outputs["d"].reshape(16, 8), a @ b)


def test_a_product_in_tf32() -> None:
    text = """
    __global__ void k(const float* a, const float* b, float* d) {
      int g = threadIdx.x / 4, t = threadIdx.x % 4;
      uint32_t ra[4], rb[2];
      for (int i = 0; i < 4; i++)
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(ra[i]) : "f"(a[(g + i % 2 * 8) * 8 + t + i / 2 * 4]));
      for (int i = 0; i < 2; i++)
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rb[i]) : "f"(b[(t + 4 * i) * 8 + g]));
      float c[4] = {0.f, 0.f, 0.f, 0.f};
      asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
          "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
      for (int i = 0; i < 4; i++) d[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = c[i];
    }
    """
    a = RNG.normal(size=(16, 8)).astype(np.float32)
    b = RNG.integers(-4, 5, size=(8, 8)).astype(np.float32)
    done = run(text, a=a, b=b, d=np.zeros((16, 8), np.float32), steps=STEPS)
    bits = a.view(np.uint32)
    rounded = ((bits + 0x1000) & ~np.uint32(0x1FFF)).view(np.float32)
    expected = rounded.astype(np.float64) @ b
    assert np.allclose(done.outputs["d"].reshape(16, 8), expected, rtol=1e-6, atol=1e-6)
    assert not np.allclose(done.outputs["d"].reshape(16, 8), a.astype(np.float64) @ b, rtol=1e-6)


def test_a_product_of_bytes() -> None:
    text = """
    __global__ void k(const int* a, const int* b, int* d) {
      int g = threadIdx.x / 4, t = threadIdx.x % 4;
      int c[4] = {1, 1, 1, 1};
      asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 "
          "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
          : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
          : "r"(a[g * 4 + t]), "r"(a[(g + 8) * 4 + t]), "r"(b[g * 4 + t]));
      for (int i = 0; i < 4; i++) d[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = c[i];
    }
    """
    a = RNG.integers(-128, 128, size=(16, 16)).astype(np.int8)
    b = RNG.integers(-128, 128, size=(8, 16)).astype(np.int8)
    done = run(
        text, a=a.view(np.int32), b=b.view(np.int32), d=np.zeros((16, 8), np.int32), steps=STEPS
    )
    expected = a.astype(np.int32) @ b.T.astype(np.int32) + 1
    assert np.array_equal(done.outputs["d"].reshape(16, 8), expected)


REGISTERS = r"""
template <typename T, int N> __device__ void fill(T (&r)[N], T value) {
  for (int i = 0; i < N; ++i) r[i] = value;
}
__global__ void k(const half* a, const half* b, half* d, float scale) {
  int g = threadIdx.x / 4, t = threadIdx.x % 4;
  uint32_t ra[2], acc[4], out[2][2];
  fill<uint32_t, 4>(acc, 0);
  ra[0] = *(uint32_t*)&a[g * 8 + t * 2];
  ra[1] = *(uint32_t*)&a[(g + 8) * 8 + t * 2];
  half2 rb = __halves2half2(b[t * 2 * 8 + g], b[(t * 2 + 1) * 8 + g]);
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3])
      : "r"(ra[0]), "r"(ra[1]), "r"(*(uint32_t*)&rb));
  // The floats give way to halves where they are.
  float* f = reinterpret_cast<float*>(acc);
  half* h = reinterpret_cast<half*>(acc);
  for (int i = 0; i < 4; i++) h[i] = __float2half(f[i] * scale);
  out[0][0] = acc[0];
  out[0][1] = __shfl_sync(0xffffffff, acc[0], g * 4 + (t + 1) % 4);
  out[1][0] = acc[1];
  out[1][1] = __shfl_sync(0xffffffff, acc[1], g * 4 + (t + 1) % 4);
  for (int i = 0; i < 2; i++) {
    *(half2*)&d[(g + 8 * i) * 8 + t * 2] = *(half2*)&out[i][0];
    *(half2*)&d[(g + 8 * i) * 8 + (t + 1) % 4 * 2] = *(half2*)&out[i][1];
  }
}
"""


@pytest.mark.parametrize("domain", [None, Bounded()])
def test_an_integer_holds_floats_and_then_halves(domain: Any) -> None:
    a = RNG.integers(-4, 5, size=(16, 8)).astype(np.float16)
    b = RNG.integers(-4, 5, size=(8, 8)).astype(np.float16)
    options = {"domain": domain} if domain is not None else {}
    done = run(
        REGISTERS, a=a, b=b, d=np.zeros((16, 8), np.float16), scale=0.5, steps=STEPS, **options
    )
    found = done.outputs["d"]
    found = found if domain is None else found.value
    assert np.array_equal(np.asarray(found).reshape(16, 8), 0.5 * (a.astype(np.float64) @ b))
    assert done.events == ()


def one(body: str, x: np.ndarray, kind: str = "float") -> np.ndarray:
    """What `body` makes of `v` in `r`, for each element."""
    text = f"""
    __global__ void k({kind}* out, const {kind}* x) {{
      {kind} v = x[threadIdx.x], r = 0;
      {body}
      out[threadIdx.x] = r;
    }}
    """
    done = run(text, block=len(x), out=np.zeros_like(x), x=x, steps=STEPS)
    return np.asarray(done.outputs["out"])


X = np.linspace(0.25, 4, 32).astype(np.float32)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));', np.exp2(X)),
        ('asm("lg2.approx.f32 %0, %1;" : "=f"(r) : "f"(v));', np.log2(X)),
        ('asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));', 1 / X),
        ('asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(v));', 1 / np.sqrt(X)),
        ('asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(v));', np.tanh(X)),
        ('asm("fma.rn.f32 %0, %1, %1, %1;" : "=f"(r) : "f"(v));', X * X + X),
        (('asm("{ .reg .f32 t; mul.f32 t, %1, 0f40000000; add.f32 %0, t, %1; }" '
          ': "=f"(r) : "f"(v));'), 3 * X),
        ('asm("ld.global.nc.f32 %0, [%1+4];" : "=f"(r) : "l"(x));', np.full_like(X, X[1])),
        ('asm("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(r) : "f"(v), "r"(3));',
         X[np.arange(32) ^ 3]),
        ('unsigned l; asm("mov.u32 %0, %%laneid;" : "=r"(l)); r = l;', np.arange(32)),
        (('asm("{ .reg .pred p; setp.gt.f32 p, %1, %2; @p mov.f32 %0, %1; }" '
          ': "+f"(r) : "f"(v), "f"(1.f));'),
         np.where(X > 1, X, 0)),
        (('asm volatile("st.global.cs.f32 [%0], %1;" :: "l"(out + threadIdx.x), "f"(v)); '
          "r = out[threadIdx.x] * 2.f;"), 2 * X),
    ],
)  # fmt: skip
def test_instructions_of_one_thread(body: str, expected: np.ndarray) -> None:
    assert np.allclose(one(body, X), expected, rtol=1e-6)


def test_vector_loads_and_stores() -> None:
    text = """
    __global__ void k(float* out, const float* x) {
      float a, b, c, d;
      asm volatile("ld.global.cs.v4.f32 {%0, %1, %2, %3}, [%4];"
        : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(x + threadIdx.x * 4));
      asm volatile("st.global.v2.f32 [%0], {%1, %2};"
        :: "l"(out + threadIdx.x * 2), "f"(d), "f"(b));
    }
    """
    done = run(text, block=8, out=np.zeros(16, np.float32), x=X, steps=STEPS)
    assert np.array_equal(done.outputs["out"], X.reshape(8, 4)[:, [3, 1]].reshape(-1))


def test_packed_halves_are_converted_and_computed() -> None:
    text = """
    __global__ void k(half2* out, const float2* x) {
      half2 p, q;
      float2 v = x[threadIdx.x];
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(*(unsigned*)&p) : "f"(v.y), "f"(v.x));
      out[threadIdx.x] = p;
    }
    """
    done = run(text, block=16, out=np.zeros(32, np.float16), x=X, steps=STEPS)
    assert np.array_equal(done.outputs["out"], X.astype(np.float16))


def test_reductions_in_memory() -> None:
    text = """
    __global__ void k(int* out) {
      int before;
      asm volatile("red.global.add.s32 [%0], %1;" :: "l"(out), "r"(2));
      asm volatile("atom.global.max.s32 %0, [%1], %2;"
        : "=r"(before) : "l"(out + 1), "r"((int)threadIdx.x));
      asm volatile("bar.sync 0;");
    }
    """
    done = run(text, out=np.zeros(2, np.int32), steps=STEPS)
    assert np.array_equal(done.outputs["out"], [64, 31])


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ('asm("add.cc.u32 %0, %0, %0;" : "+r"(u));', "add.cc.u32 is not understood"),
        (('asm("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0}, {%0}, {%0}, {%0};" '
          ': "+r"(u));'),
         "is not understood"),
        ('asm("mov.u32 %0, %%clock;" : "=r"(u));', "operand %clock"),
        ('asm("cp.async.bulk.commit_group;");', "cp.async.bulk.commit_group"),
        ('asm("bar.sync 1, 64;");', "bar.sync is not understood"),
        ('asm("mov.u32 %0, %1;" : "=r"(u) : "f"(1.5f));', "a register of float is read as"),
        ('asm("$$$");', "this assembly is not understood"),
    ],
)  # fmt: skip
def test_what_is_not_understood_says_why(code: str, reason: str) -> None:
    text = f"__global__ void k(unsigned* x) {{ unsigned u = x[0]; {code} x[0] = u; }}"
    made = function(parse(Source.of(text, "kernel.cu")), "k")
    assert any(reason in issue.reason for issue in made.issues), made.issues
