"""Memory seen in several ways: casts, unions, carved shared memory, pointers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from migrate.cuda.runtime import Fault
from migrate.numerics.bounded import Bounded
from tests.cuda.running import run


def floats(count: int) -> np.ndarray[Any, Any]:
    return (np.arange(count, dtype=np.float32) - count / 3) / 4


def test_dynamic_shared_memory_is_carved_up_by_casts() -> None:
    text = """
    extern __shared__ __align__(16) char raw[];
    __global__ void k(const float* x, float* y, int n) {
      float* a = (float*)raw;
      int* b = reinterpret_cast<int*>(a + n);
      double* c = (double*)(raw + n * (sizeof(float) + sizeof(int)));
      __half* d = (__half*)(c + n);
      int i = threadIdx.x;
      a[i] = x[i]; b[i] = -i; c[i] = 2.5 * i; d[i] = __float2half(x[i]);
      __syncthreads();
      int j = n - 1 - i;
      y[i] = a[j] + b[j] + (float)c[j] + __half2float(d[j]);
    }
    """
    x = floats(16)
    done = run(text, block=16, shared_bytes=16 * 18, x=x, y=np.zeros_like(x), n=16)
    i = np.arange(16, dtype=np.float32)
    expected = (x - i + 2.5 * i + x.astype(np.float16).astype(np.float32))[::-1]
    assert np.allclose(done.outputs["y"], expected)
    assert done.events == ()
    with pytest.raises(Fault, match="element 286"):
        run(text, block=16, shared_bytes=16 * 18 - 2, x=x, y=np.zeros_like(x), n=16)


def test_a_union_is_its_bits() -> None:
    text = """
    union Word { float f; unsigned u; unsigned char b[4]; };
    __global__ void k(const float* x, unsigned* y) {
      int i = threadIdx.x;
      Word w; w.f = x[i];
      Word copy = w;
      copy.b[0] = 0xff;
      union { unsigned long long whole; unsigned half[2]; } wide;
      wide.whole = 0x1122334455667788ull;
      y[2 * i] = copy.u;
      y[2 * i + 1] = wide.half[1] + (w.u & 1u);
    }
    """
    x = floats(8)
    done = run(text, block=8, x=x, y=np.zeros(16, np.uint32))
    bits = x.view(np.uint32)
    assert np.array_equal(done.outputs["y"][::2], bits | 0xFF)
    assert np.array_equal(done.outputs["y"][1::2], 0x11223344 + (bits & 1))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("__float_as_int(x[i])", lambda x: x.view(np.int32)),
        ("*(int*)&v", lambda x: x.view(np.int32)),
        ("*reinterpret_cast<unsigned*>(&v) >> 31", lambda x: x.view(np.uint32) >> 31),
        ("((unsigned char*)&v)[3]", lambda x: x.view(np.uint8)[3::4]),
        ("(int)__int_as_float(__float_as_int(x[i]) & 0x7fffffff)", lambda x: np.abs(x).astype(int)),
        ("(int)(__double_as_longlong((double)v) >> 52)", lambda x: x.astype(float).view(int) >> 52),
    ],
)
def test_bits_of_a_value(expression: str, expected: Any) -> None:
    text = f"""
    __global__ void k(const float* x, int* y) {{
      int i = threadIdx.x; float v = x[i]; y[i] = {expression};
    }}
    """
    x = floats(8)
    done = run(text, block=8, x=x, y=np.zeros(8, np.int32))
    assert np.array_equal(done.outputs["y"], expected(x).astype(np.int32))


def test_words_of_halves_keep_their_values() -> None:
    text = """
    __global__ void k(const __half* x, __half* y) {
      int i = threadIdx.x;
      __shared__ unsigned words[8];
      words[i] = *reinterpret_cast<const unsigned*>(x + 2 * i);
      __syncthreads();
      unsigned w = words[7 - i];
      __half low = *reinterpret_cast<__half*>(&w);
      *reinterpret_cast<unsigned*>(y + 2 * i) = w;
      y[2 * i] = __hadd(low, low);
    }
    """
    x = floats(16).astype(np.float16)
    expected = x.reshape(8, 2)[::-1].copy()
    expected[:, 0] *= 2
    done = run(text, block=8, x=x, y=np.zeros_like(x))
    assert np.array_equal(done.outputs["y"], expected.reshape(-1))
    bounded = run(text, block=8, x=x, y=np.zeros_like(x), domain=Bounded())
    assert np.array_equal(bounded.outputs["y"].value, expected.reshape(-1))


def test_pointers_are_values() -> None:
    text = """
    struct Row { const float* data; int length; };
    __device__ const float* pick(bool first, const float* a, const float* b) {
      return first ? a : b;
    }
    __global__ void k(const float* a, const float* b, float** rows, float* y) {
      int i = threadIdx.x;
      const float* from = pick(i % 2 == 0, a, b);
      const float* table[2] = {a, b};
      Row row = {table[i / 2 % 2] + 1, 2};
      const float* end = from + 4;
      float total = 0;
      while (from != end) total += *from++;
      y[i] = total + row.data[row.length] + rows[i % 3][i];
      rows[i % 3][i] = -1.0f;
      y[i + 4] = (float)(((size_t)(a + 3) - reinterpret_cast<size_t>(a)) + (end - from));
    }
    """
    a, b = floats(8), floats(8) * 3
    rows = [floats(4) * n for n in (5, 7, 9)]
    done = run(text, block=4, a=a, b=b, rows=rows, y=np.zeros(8, np.float32))
    sums = [a[:4].sum(), b[:4].sum()]
    expected = [sums[i % 2] + (a, b)[i // 2 % 2][3] + rows[i % 3][i] for i in range(4)]
    assert np.allclose(done.outputs["y"][:4], expected)
    assert done.outputs["y"][4:].tolist() == [12.0] * 4


def test_atomics_on_views() -> None:
    text = """
    __device__ float largest(float* at, float v) {
      int* bits = (int*)at;
      int old = *bits, assumed;
      do {
        assumed = old;
        old = atomicCAS(bits, assumed, __float_as_int(fmaxf(v, __int_as_float(assumed))));
      } while (assumed != old);
      return __int_as_float(old);
    }
    __global__ void k(const float* x, float* y, unsigned* n) {
      largest(y, x[threadIdx.x]);
      atomicMax((int*)n, -5 + (int)threadIdx.x);
    }
    """
    x = floats(32)
    np.random.default_rng(1).shuffle(x)
    n = np.array([2**32 - 9], np.uint32)
    done = run(text, block=32, x=x, y=np.array([-9.0], np.float32), n=n)
    assert done.outputs["y"][0] == x.max()
    assert done.outputs["n"].view(np.int32)[0] == 26


def test_a_copied_struct_may_be_partly_unset_but_not_its_use() -> None:
    text = """
    struct Two { float a; float b; };
    __global__ void k(float* y) {
      Two t; t.a = 1;
      Two u = t, arr[1];
      arr[0] = u;
      y[0] = arr[0].a;
    }
    """
    assert run(text, block=1, y=floats(1)).events == ()
    unset = "__global__ void k(float* y) { float a[2]; a[0] = 1; y[0] = a[1]; }"
    done = run(unset, block=1, y=floats(1))
    assert [(e.kind, e.index, e.size) for e in done.events] == [("uninitialised", 1, 2)]


def test_a_pointer_that_was_not_set_is_told() -> None:
    text = """
    __global__ void k(float* x, int n) {
      float* p;
      if (n > 1) p = x;
      if (n > 2) p[0] = 1;
      x[1] = p == x;
    }
    """
    assert run(text, block=1, x=floats(2), n=3).outputs["x"].tolist() == [1, 1]
    done = run(text, block=1, x=floats(2), n=1)
    assert [event.kind for event in done.events] == ["uninitialised"]


def test_misaligned_views_are_faults() -> None:
    text = "__global__ void k(char* x, int n) { ((int*)(x + n))[0] = 1; }"
    done = run(text, block=1, x=np.zeros(16, np.int8), n=4)
    assert done.outputs["x"].tolist() == [0] * 4 + [1] + [0] * 11
    with pytest.raises(Fault, match="accessed together"):
        run(text, block=1, x=np.zeros(16, np.int8), n=2)
