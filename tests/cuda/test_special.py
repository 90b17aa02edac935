"""Functions of the language and of CUDA that are more than one operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.cuda.running import compute, run


def words(count: int) -> np.ndarray[Any, Any]:
    made = np.random.default_rng(3).integers(-(2**31), 2**31, count).astype(np.int32)
    made[:4] = [0, -1, 1, -(2**31)]
    return made


def _bits(value: int) -> str:
    return format(value & 0xFFFFFFFF, "032b")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("__popc", lambda v: _bits(v).count("1")),
        ("__clz", lambda v: (_bits(v) + "1").index("1")),
        ("__ffs", lambda v: (_bits(v)[::-1] + "1").index("1") % 32 + 1 if v else 0),
        ("__brev", lambda v: int(_bits(v)[::-1], 2)),
        ("__clzll", lambda v: (format(v & (2**64 - 1), "064b") + "1").index("1")),
        ("__popcll", lambda v: format(v & (2**64 - 1), "064b").count("1")),
    ],
)
def test_counts_of_bits(name: str, expected: Any) -> None:
    x = words(16)
    out = compute(f"out[i] = {name}(x[i]);", lanes=16, x=x)
    assert out.tolist() == np.array([expected(int(v)) for v in x]).astype(np.int32).tolist()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("__mulhi(x[i], y[i])", lambda a, b: (a * b) >> 32),
        ("__umulhi(x[i], y[i])", lambda a, b: ((a & M) * (b & M)) >> 32),
        ("(int)(__mul64hi((long long)x[i] << 32, y[i]) >> 3)", lambda a, b: ((a << 32) * b) >> 67),
        ("(int)__umul64hi(x[i] * 4294967297ull, y[i] * 3ull)", lambda a, b: None),
        ("__byte_perm(x[i], y[i], 0x7531)", lambda a, b: _permuted((a, b))),
        ("__funnelshift_l(x[i], y[i], 5)", lambda a, b: ((b & M) << 5) | ((a & M) >> 27)),
        ("__funnelshift_r(x[i], y[i], 33)", lambda a, b: ((b & M) << 31) | ((a & M) >> 1)),
        ("__dp4a(x[i], y[i], 7)", lambda a, b: _dot(a, b) + 7),
        ("__sad(x[i], y[i], 2u)", lambda a, b: abs(a - b) + 2),
        ("__hadd(x[i], y[i])", lambda a, b: (a + b) >> 1),
        ("__rhadd(x[i], y[i])", lambda a, b: (a + b + 1) >> 1),
    ],
)
def test_products_and_permutations(expression: str, expected: Any) -> None:
    x, y = words(16), words(20)[4:]
    out = compute(f"out[i] = {expression};", lanes=16, x=x, y=y)
    for got, a, b in zip(out.tolist(), x.tolist(), y.tolist(), strict=True):
        wanted = expected(a, b)
        if wanted is None:
            wanted = (((a & W) * 4294967297 & W) * ((b & W) * 3 & W)) >> 64
        assert got & M == wanted & M


M, W = 2**32 - 1, 2**64 - 1


def _permuted(pair: tuple[int, int]) -> int:
    whole = np.array(pair, np.int32).view(np.uint8)
    return int(whole[[1, 3, 5, 7]].view(np.uint32)[0])


def _dot(a: int, b: int) -> int:
    left, right = (np.array([v], np.int32).view(np.int8).astype(int) for v in (a, b))
    return int((left * right).sum())


def test_copies_swaps_and_classification() -> None:
    text = """
    __global__ void k(const float* x, float* y, int* n) {
      int i = threadIdx.x;
      float4 v; float part[4]; int4 bits;
      memcpy(&v, x + 4 * i, sizeof(float4));
      memcpy(&bits, &v, sizeof(v));
      memcpy(part, &bits, 16);
      std::swap(part[0], part[3]);
      float s, c;
      sincosf(part[1], &s, &c);
      float cleared[2];
      memset(cleared, 0, sizeof(cleared));
      y[4 * i] = part[0]; y[4 * i + 1] = s * s + c * c; y[4 * i + 2] = hypotf(part[2], 4.0f);
      y[4 * i + 3] = __saturatef(part[3]) + cleared[1] + std::move(cleared[0]);
      n[i] = isfinite(x[i]) + 2 * signbit(part[1]);
    }
    """
    x = np.linspace(-2, 3, 16, dtype=np.float32)
    x[1] = np.inf
    done = run(text, block=4, x=x, y=np.zeros(16, np.float32), n=np.zeros(4, np.int32))
    rows, out = x.reshape(4, 4), done.outputs["y"].reshape(4, 4)
    assert np.array_equal(out[:, 0], rows[:, 3])
    assert np.allclose(out[1:, 1], 1)
    assert np.allclose(out[:, 2], np.hypot(rows[:, 2], 4))
    assert np.allclose(out[:, 3], np.clip(rows[:, 0], 0, 1))
    assert done.outputs["n"].tolist() == [1, 2, 1, 1]


def test_warp_reductions_and_matches() -> None:
    text = """
    __global__ void k(int* y) {
      int i = threadIdx.x;
      if (i % 3 == 0) return;
      y[4 * i] = __reduce_add_sync(__activemask(), i);
      y[4 * i + 1] = __reduce_max_sync(__activemask(), -i);
      y[4 * i + 2] = __match_any_sync(__activemask(), i % 2);
      y[4 * i + 3] = __reduce_or_sync(__activemask(), 1u << (i & 3));
    }
    """
    out = run(text, block=40, y=np.zeros(160, np.int32)).outputs["y"].reshape(40, 4)
    for i in range(40):
        warp = [j for j in range(40) if j // 32 == i // 32 and j % 3]
        if i % 3 == 0:
            assert out[i].tolist() == [0] * 4
            continue
        same = sum(1 << (j % 32) for j in warp if j % 2 == i % 2)
        union = 0
        for j in warp:
            union |= 1 << (j & 3)
        assert out[i, 0] == sum(warp)
        assert out[i, 1] == -min(warp)
        assert int(out[i, 2]) & M == same
        assert out[i, 3] == union


def test_an_assertion_that_fails_is_told() -> None:
    text = """
    __global__ void k(const int* x, int* y) {
      int i = threadIdx.x;
      assert(x[i] >= 0 && "no negative numbers");
      y[i] = x[i];
    }
    """
    x = np.array([1, 2, 3, -4], np.int32)
    done = run(text, block=4, x=x, y=np.zeros_like(x))
    assert [(event.kind, event.thread) for event in done.events] == [("assertion", (3, 0, 0))]
    assert run(text, block=3, x=x, y=np.zeros_like(x)).events == ()


def test_globals_have_the_values_that_the_file_gives() -> None:
    text = """
    constexpr int rows = 2;
    __constant__ float weights[rows][2] = {{1.0f, 2.0f}, {3.0f}};
    __device__ int counter = 5;
    const int steps[] = {10, 20, 30};
    __device__ const double half = 1.0 / 2;
    __global__ void k(float* y) {
      int i = threadIdx.x;
      y[i] = weights[i / 2][i % 2] + steps[i % 3] + (float)half;
      if (i == 0) atomicAdd(&counter, 2);
    }
    """
    done = run(text, block=4, y=np.zeros(4, np.float32))
    assert done.outputs["y"].tolist() == [11.5, 22.5, 33.5, 10.5]
    assert done.outputs["counter"].tolist() == [7]
    given = run(text, block=4, y=np.zeros(4, np.float32), weights=np.zeros((2, 2), np.float32))
    assert given.outputs["y"].tolist() == [10.5, 20.5, 30.5, 10.5]


def test_a_variable_template() -> None:
    text = """
    template <typename T> __constant__ T weights[3];
    template <typename T> __global__ void k(T* y) {
      y[threadIdx.x] = weights<T>[threadIdx.x] * T(2);
    }
    """
    weights = np.array([1, 2, 3], np.int32)
    y = np.zeros(3, np.int32)
    done = run(text, block=3, template={"T": "int"}, y=y, weights=weights)
    assert done.outputs["y"].tolist() == [2, 4, 6]


def test_shared_memory_of_file_scope() -> None:
    text = """
    extern __shared__ float cells[];
    __device__ float other(int i) { return cells[i]; }
    __global__ void k(float* y) {
      cells[threadIdx.x] = 2.0f * threadIdx.x;
      __syncthreads();
      y[threadIdx.x] = other(7 - threadIdx.x);
    }
    """
    done = run(text, block=8, shared_bytes=32, y=np.zeros(8, np.float32))
    assert done.outputs["y"].tolist() == [14, 12, 10, 8, 6, 4, 2, 0]


def test_a_cast_to_a_reference_is_a_view() -> None:
    text = """
    __global__ void k(float* x, int* y) {
      int i = threadIdx.x;
      y[i] = reinterpret_cast<int&>(x[i]);
      reinterpret_cast<float4&>(x[0]).w = 9.0f;
    }
    """
    x = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    done = run(text, block=1, x=x, y=np.zeros(1, np.int32))
    assert done.outputs["y"].tolist() == [0x3F800000]
    assert done.outputs["x"].tolist() == [1, 2, 3, 9]


def test_reference_members_and_braces_as_arguments() -> None:
    text = """
    struct Pair { float m, d; };
    __device__ Pair joined(Pair a, Pair b) { return {fmaxf(a.m, b.m), a.d + b.d}; }
    struct Adder {
      float& total;
      __device__ Adder(float& t) : total(t) {}
      __device__ void add(float v) { total += v; }
    };
    __global__ void k(const float* x, float* y) {
      Pair p = {-1.0f, 0.0f};
      for (int i = 0; i < 4; ++i) p = joined(p, {x[i], 1.0f});
      Adder into(y[2]);
      into.add(p.m);
      into.add(1.0f);
      y[0] = p.m; y[1] = p.d;
    }
    """
    x = np.array([0.5, 3.0, 2.0, 1.0], np.float32)
    done = run(text, block=1, x=x, y=np.zeros(3, np.float32))
    assert done.outputs["y"].tolist() == [3, 4, 4]
