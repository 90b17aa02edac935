"""CUB's collectives against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from migrate.cuda.check import function
from migrate.cuda.parse import parse
from migrate.source import Source
from tests.cuda.lifting import agrees
from tests.cuda.running import run

STEPS = 20_000_000
X = np.random.default_rng(5).normal(size=512).astype(np.float32)
H = np.random.default_rng(6).integers(-9, 10, size=512).astype(np.int32)


@pytest.mark.parametrize("threads", [32, 64, 100, 256])
def test_block_reductions(threads: int) -> None:
    text = """
    template <int THREADS> __global__ void k(float* out, const float* x, int valid) {
      typedef cub::BlockReduce<float, THREADS> Reduce;
      __shared__ typename Reduce::TempStorage temp;
      __shared__ typename cub::BlockReduce<float, THREADS>::TempStorage other;
      float v = x[threadIdx.x];
      float sum = Reduce(temp).Sum(v);
      float top = cub::BlockReduce<float, THREADS>(other).Reduce(v, cub::Max());
      float some = Reduce(temp).Sum(v, valid);
      float low = Reduce(temp).Reduce(v, [](float a, float b) { return a < b ? a : b; });
      float both[2] = {v, 1.f};
      float all = Reduce(temp).Sum(both);
      if (threadIdx.x > 0) return;
      out[0] = sum; out[1] = top; out[2] = some; out[3] = low; out[4] = all;
    }
    """
    done = run(
        text,
        block=threads,
        out=np.zeros(5, np.float32),
        x=X,
        valid=threads - 7,
        template={"THREADS": threads},
        steps=STEPS,
    )
    x = X[:threads].astype(np.float64)
    expected = [x.sum(), x.max(), x[:-7].sum(), x.min(), x.sum() + threads]
    assert np.allclose(done.outputs["out"], expected, rtol=1e-5, atol=1e-5)
    assert done.events == ()


def test_a_block_of_two_dimensions_is_reduced_whole() -> None:
    text = """
    __global__ void k(int* out, const int* x) {
      using Reduce = cub::BlockReduce<int, 16, cub::BLOCK_REDUCE_WARP_REDUCTIONS, 8>;
      __shared__ Reduce::TempStorage temp;
      int at = threadIdx.y * 16 + threadIdx.x;
      int sum = Reduce(temp).Sum(x[at]);
      if (at == 0) out[0] = sum;
    }
    """
    done = run(text, block=(16, 8, 1), out=np.zeros(1, np.int32), x=H, steps=STEPS)
    assert done.outputs["out"][0] == H[:128].sum()


@pytest.mark.parametrize("threads", [32, 96, 50])
def test_block_scans(threads: int) -> None:
    text = """
    template <int THREADS> __global__ void k(int* out, const int* x) {
      typedef cub::BlockScan<int, THREADS> Scan;
      __shared__ typename Scan::TempStorage temp;
      int t = threadIdx.x, v = x[t], inclusive, exclusive, total, top;
      Scan(temp).InclusiveSum(v, inclusive);
      Scan(temp).ExclusiveSum(v, exclusive, total);
      Scan(temp).InclusiveScan(v, top, cub::Max());
      int items[2] = {v, 2}, sums[2];
      Scan(temp).ExclusiveSum(items, sums);
      out[t] = inclusive;
      out[THREADS + t] = exclusive;
      out[2 * THREADS + t] = total;
      out[3 * THREADS + t] = top;
      out[4 * THREADS + 2 * t] = sums[0];
      out[4 * THREADS + 2 * t + 1] = sums[1];
      Scan(temp).InclusiveSum(items, items);
      out[6 * THREADS + 2 * t] = items[0];
      out[6 * THREADS + 2 * t + 1] = items[1];
    }
    """
    done = run(
        text,
        block=threads,
        out=np.zeros(8 * threads, np.int32),
        x=H,
        template={"THREADS": threads},
        steps=STEPS,
    )
    x = H[:threads]
    pairs = np.stack([x, np.full_like(x, 2)], axis=1).reshape(-1)
    expected = [
        x.cumsum(),
        x.cumsum() - x,
        np.full_like(x, x.sum()),
        np.maximum.accumulate(x),
        pairs.cumsum() - pairs,
        pairs.cumsum(),
    ]
    assert np.array_equal(done.outputs["out"], np.concatenate(expected))
    assert done.events == ()


def test_a_scan_by_an_operator_that_does_not_commute() -> None:
    text = """
    struct Compose {
      __device__ float2 operator()(float2 a, float2 b) const {
        return make_float2(a.x * b.x, b.x * a.y + b.y);
      }
    };
    __global__ void k(float* out, const float* x) {
      using Scan = cub::BlockScan<float2, 64>;
      union Storage { typename Scan::TempStorage scan; };
      __shared__ Storage temp;
      float2 item = make_float2(0.5f, x[threadIdx.x]), done;
      Scan(temp.scan).InclusiveScan(item, done, Compose());
      out[threadIdx.x] = done.y;
    }
    """
    done = run(text, block=64, out=np.zeros(64, np.float32), x=X, steps=STEPS)
    state, expected = 0.0, []
    for value in X[:64]:
        state = 0.5 * state + float(value)
        expected.append(state)
    assert np.allclose(done.outputs["out"], expected, rtol=1e-5, atol=1e-6)


def test_the_class_may_be_a_member_of_the_programs_own() -> None:
    text = """
    template <int THREADS_> struct Traits {
      static constexpr int THREADS = THREADS_;
      using Reduce = cub::BlockReduce<int, THREADS>;
    };
    template <typename Traits> __global__ void k(int* out, const int* x) {
      extern __shared__ char memory[];
      auto& temp = reinterpret_cast<typename Traits::Reduce::TempStorage&>(memory);
      int again = Traits::Reduce(temp).Sum(x[threadIdx.x]);
      if (threadIdx.x == 0) out[0] = again;
    }
    """
    done = run(
        text, block=64, out=np.zeros(1, np.int32), x=H, template={"Traits": "Traits<64>"},
        shared_bytes=16, steps=STEPS,
    )  # fmt: skip
    assert done.outputs["out"][0] == H[:64].sum()


def test_a_scan_that_goes_on_from_block_to_block() -> None:
    text = """
    struct Running {
      int before;
      __device__ Running(int start) : before(start) {}
      __device__ int operator()(int total) {
        int old = before;
        before += total;
        return old;
      }
    };
    __global__ void k(int* out, const int* x, int n) {
      typedef cub::BlockScan<int, 64> Scan;
      __shared__ typename Scan::TempStorage temp;
      Running running(100);
      for (int at = 0; at < n; at += 64) {
        int sum;
        Scan(temp).InclusiveSum(x[at + threadIdx.x], sum, running);
        out[at + threadIdx.x] = sum;
        __syncthreads();
        int items[2] = {1, 2};
        Running other(at);
        Scan(temp).ExclusiveScan(items, items, cub::Sum(), other);
        out[n + 2 * (at + threadIdx.x)] = items[0];
        out[n + 2 * (at + threadIdx.x) + 1] = items[1];
      }
    }
    """
    done = run(text, block=64, out=np.zeros(768, np.int32), x=H, n=256, steps=STEPS)
    first = 100 + H[:256].cumsum()
    ones = np.tile([1, 2], 64)
    again = [at + ones.cumsum() - ones for at in range(0, 256, 64)]
    assert np.array_equal(done.outputs["out"], np.concatenate([first, *again]))


def test_guarded_loads_and_stores_of_blocked_items() -> None:
    text = """
    __global__ void k(float* out, const float* x, int n) {
      using Load = cub::BlockLoad<float, 32, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
      using Store = cub::BlockStore<float, 32, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
      __shared__ typename Load::TempStorage a;
      __shared__ typename Store::TempStorage b;
      float items[4];
      Load(a).Load(x + blockIdx.x * 128, items, n - blockIdx.x * 128, 0.f);
      for (int i = 0; i < 4; i++) items[i] *= 10 * i;
      Store(b).Store(out + blockIdx.x * 128, items, n - blockIdx.x * 128);
    }
    """
    before = np.full(256, 7, np.float32)
    done = run(text, grid=2, out=before, x=X[:200], n=200, steps=STEPS)
    expected = np.where(
        np.arange(256) < 200, np.resize(X[:200], 256) * (np.arange(256) % 4) * 10, 7
    )
    assert np.allclose(done.outputs["out"], expected)


@pytest.mark.parametrize("striped", [True, False])
def test_the_algorithm_may_be_chosen_by_a_constant(striped: bool) -> None:
    text = """
    template <bool STRIPED> __global__ void k(float* out, const float* x) {
      static constexpr auto HOW = STRIPED ? cub::BLOCK_LOAD_STRIPED : cub::BLOCK_LOAD_TRANSPOSE;
      typedef cub::BlockLoad<float, 32, 2, HOW> Load;
      __shared__ typename Load::TempStorage a;
      float items[2];
      Load(a).Load(x, items);
      out[threadIdx.x * 2] = items[0];
      out[threadIdx.x * 2 + 1] = items[1];
    }
    """
    done = run(text, out=np.zeros(64, np.float32), x=X, template={"STRIPED": striped}, steps=STEPS)
    expected = X[:64].reshape(2, 32).T.reshape(-1) if striped else X[:64]
    assert np.array_equal(done.outputs["out"], expected)


def test_a_warp_reduction_in_parts_of_a_warp() -> None:
    text = """
    __global__ void k(float* out, const float* x) {
      using Reduce = cub::WarpReduce<float, 8>;
      __shared__ typename Reduce::TempStorage temp[4];
      float sum = Reduce(temp[threadIdx.x / 8]).Sum(x[threadIdx.x]);
      if (threadIdx.x % 8 == 0) out[threadIdx.x / 8] = sum;
    }
    """
    done = run(text, out=np.zeros(4, np.float32), x=X, steps=STEPS)
    assert np.allclose(done.outputs["out"], X[:32].reshape(4, 8).sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("cub::BlockReduce<float, 32>(t).Reduce(x[0], 3);", "int as an operator"),
        ("cub::BlockScan<float, 32>(t).Sort(x[0]);", "BlockScan::Sort is not understood"),
        ("typedef cub::BlockRadixSort<int, 32, 4> Sort; Sort(t).Sort(x);", "BlockRadixSort"),
    ],
)
def test_what_is_not_understood_says_why(body: str, reason: str) -> None:
    text = f"""
    __global__ void k(float* x) {{
      __shared__ typename cub::BlockReduce<float, 32>::TempStorage t;
      {body}
    }}
    """
    made = function(parse(Source.of(text, "kernel.cu")), "k")
    assert any(reason in issue.reason for issue in made.issues), made.issues


def test_a_block_reduction_lifts() -> None:
    text = """
    __global__ void k(float* out, const float* x, int C) {
      typedef cub::BlockReduce<float, 64> Reduce;
      __shared__ typename Reduce::TempStorage temp;
      float s = 0.f;
      for (int c = threadIdx.x; c < C; c += 64) s += x[blockIdx.x * C + c];
      s = Reduce(temp).Sum(s);
      if (threadIdx.x == 0) out[blockIdx.x] = s;
    }
    """
    x = np.random.default_rng(0).normal(size=(3, 70)).astype(np.float32)
    agrees(text, grid=3, block=64, out=np.zeros(3, np.float32), x=x, C=70)
