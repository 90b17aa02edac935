"""Cooperative groups against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from migrate.cuda.check import function
from migrate.cuda.parse import parse
from migrate.cuda.runtime import Unsupported
from migrate.source import Source
from tests.cuda.lifting import agrees
from tests.cuda.running import run

STEPS = 10_000_000


def reasons(text: str) -> set[str]:
    made = function(parse(Source.of(text, "kernel.cu")), "k")
    return {issue.reason for issue in made.issues}


def compute(body: str, x: np.ndarray, *, block: object = 64, grid: object = 1) -> np.ndarray:
    """What `body` leaves in the variable `r` of each thread, `v` being the thread's number of x."""
    text = f"""
    namespace cg = cooperative_groups;
    __global__ void k(float* out, const float* x) {{
      int i = cg::this_grid().thread_rank();
      float v = x[i], r = 0.f;
      {body}
      out[i] = r;
    }}
    """
    out = np.zeros(x.shape, np.float32)
    done = run(text, grid=grid, block=block, out=out, x=x, steps=STEPS)  # type: ignore[arg-type]
    assert done.events == ()
    return np.asarray(done.outputs["out"])


X = np.random.default_rng(3).normal(size=128).astype(np.float32)


def test_ranks_and_sizes_of_a_tile() -> None:
    body = """
      auto t = cg::tiled_partition<8>(cg::this_thread_block());
      r = t.thread_rank() + 10 * t.size() + 100 * t.meta_group_rank() + 10000 * t.meta_group_size();
    """
    thread = np.arange(128) % 64
    expected = thread % 8 + 80 + 100 * (thread // 8) + 10000 * 8
    assert np.array_equal(compute(body, X, grid=2), expected)


def test_ranks_in_a_block_of_two_dimensions() -> None:
    body = """
      cg::thread_block b = cg::this_thread_block();
      r = b.thread_rank() + 1000 * b.thread_index().y + 100000 * b.size() + b.group_index().x;
    """
    thread = np.arange(128)
    found = compute(body, X, block=(16, 8, 1))
    assert np.array_equal(found, thread + 1000 * (thread // 16) + 100000 * 128)


def test_a_tile_named_by_its_class_without_a_namespace() -> None:
    body = "thread_block_tile<4> t = tiled_partition<4>(this_thread_block()); r = t.thread_rank();"
    assert np.array_equal(compute(body, X, block=128), np.arange(128) % 4)


@pytest.mark.parametrize("width", [2, 16, 32])
def test_reduction_of_a_tile(width: int) -> None:
    body = f"""
      cg::thread_block_tile<{width}> t = cg::tiled_partition<{width}>(cg::this_thread_block());
      r = cg::reduce(t, v, cg::plus<float>());
    """
    sums = X.reshape(-1, width).sum(axis=1, dtype=np.float64)
    assert np.allclose(compute(body, X, grid=2), np.repeat(sums, width), rtol=1e-5)


def test_the_extrema_of_a_tile_are_exact() -> None:
    body = """
      auto t = cg::tiled_partition<32>(cg::this_thread_block());
      r = cg::reduce(t, v, cg::greater<float>{}) - cg::reduce(t, v, cg::less<float>{});
    """
    rows = X.reshape(-1, 32)
    expected = np.repeat(rows.max(axis=1) - rows.min(axis=1), 32)
    assert np.array_equal(compute(body, X, grid=2), expected)


def test_a_reduction_by_an_operator_of_the_program() -> None:
    body = """
      auto t = cg::tiled_partition<16>(cg::this_thread_block());
      float scale = 2.f;
      r = cg::reduce(t, v, [=](float a, float b) { return fmaxf(a, b) * (scale / 2.f); });
    """
    expected = np.repeat(X.reshape(-1, 16).max(axis=1), 16)
    assert np.array_equal(compute(body, X, grid=2), expected)


def test_a_reduction_of_structs_by_a_function() -> None:
    text = """
    struct Both { float top; float sum; };
    __device__ Both join(Both a, Both b) { return {fmaxf(a.top, b.top), a.sum + b.sum}; }
    __global__ void k(float* out, const float* x) {
      auto t = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
      Both mine = {x[threadIdx.x], x[threadIdx.x]};
      Both all = cooperative_groups::reduce(t, mine, join);
      if (t.thread_rank() == 0) { out[0] = all.top; out[1] = all.sum; }
    }
    """
    done = run(text, out=np.zeros(2, np.float32), x=X[:32], steps=STEPS)
    assert np.allclose(done.outputs["out"], [X[:32].max(), X[:32].sum()], rtol=1e-5)


def test_scans_of_a_tile() -> None:
    body = """
      auto t = cg::tiled_partition<8>(cg::this_thread_block());
      r = cg::inclusive_scan(t, v) + 100.f * cg::exclusive_scan(t, v);
    """
    sums = np.cumsum(X.reshape(-1, 8), axis=1, dtype=np.float64)
    expected = sums + 100 * (sums - X.reshape(-1, 8))
    assert np.allclose(compute(body, X, grid=2), expected.reshape(-1), rtol=1e-4, atol=1e-3)


def test_exchanges_within_a_tile() -> None:
    body = """
      auto t = cg::tiled_partition<4>(cg::this_thread_block());
      r = t.shfl(v, 2) + 10.f * t.shfl_down(v, 1);
      r += 100.f * t.shfl_up(v, 1) + 1000.f * t.shfl_xor(v, 3);
    """
    rows = X.reshape(-1, 4)
    down = np.concatenate([rows[:, 1:], rows[:, 3:]], axis=1)
    up = np.concatenate([rows[:, :1], rows[:, :3]], axis=1)
    expected = rows[:, 2:3] + 10 * down + 100 * up + 1000 * rows[:, ::-1]
    assert np.allclose(compute(body, X, grid=2), expected.reshape(-1), rtol=1e-5, atol=1e-3)


def test_votes_within_a_tile() -> None:
    body = """
      auto t = cg::tiled_partition<4>(cg::this_thread_block());
      r = t.any(v > 1.f) + 10 * t.all(v > -1.f) + 100 * t.ballot(v > 0.f);
    """
    rows = X.reshape(-1, 4)
    bits = ((rows > 0) * [1, 2, 4, 8]).sum(axis=1)
    expected = (rows > 1).any(axis=1) + 10 * (rows > -1).all(axis=1) + 100 * bits
    assert np.array_equal(compute(body, X, grid=2), np.repeat(expected, 4))


def test_the_lanes_that_are_active_are_a_group() -> None:
    body = """
      if (v > 0.f) {
        cg::coalesced_group g = cg::coalesced_threads();
        r = g.size() * 100 + g.thread_rank();
      }
    """
    rows = X.reshape(-1, 32) > 0
    rank = np.cumsum(rows, axis=1) - 1
    expected = np.where(rows, rows.sum(axis=1, keepdims=True) * 100 + rank, 0)
    assert np.array_equal(compute(body, X, grid=2), expected.reshape(-1))


def test_groups_are_passed_to_device_functions() -> None:
    text = """
    template <typename Group> __device__ unsigned place(const Group& g) { return g.thread_rank(); }
    __device__ float whole(cg::thread_block_tile<32>& w, float v, float f) {
      return f * cg::reduce(w, v, cg::plus<float>());
    }
    __global__ void k(float* out, const float* x) {
      cg::thread_block b = cg::this_thread_block();
      cg::thread_block_tile<32> w = cg::tiled_partition<32>(b);
      out[place(b)] = whole(w, x[place(b)], 2.f) + place(w);
    }
    """
    done = run(text, block=64, out=np.zeros(64, np.float32), x=X[:64], steps=STEPS)
    expected = np.repeat(2 * X[:64].reshape(2, 32).sum(axis=1), 32) + np.arange(64) % 32
    assert np.allclose(done.outputs["out"], expected, rtol=1e-5)


def test_a_barrier_of_the_grid_orders_the_blocks() -> None:
    text = """
    __global__ void k(float* out, float* x) {
      auto g = cooperative_groups::this_grid();
      x[g.thread_rank()] = g.thread_rank();
      g.sync();
      out[g.thread_rank()] = x[g.size() - 1 - g.thread_rank()];
    }
    """
    zero = np.zeros(128, np.float32)
    done = run(text, grid=2, block=64, out=zero, x=zero)
    assert np.array_equal(done.outputs["out"], np.arange(128)[::-1])


def test_blocks_that_do_not_run_together_cannot_wait_for_each_other() -> None:
    text = "__global__ void k(float* x) { cooperative_groups::this_grid().sync(); x[0] = 1.f; }"
    with pytest.raises(Unsupported, match="do not run together"):
        run(text, grid=128, block=1024, x=np.zeros(1, np.float32))


def test_a_divergent_barrier_of_a_group_is_reported() -> None:
    text = """
    __global__ void k(float* x) {
      auto b = cooperative_groups::this_thread_block();
      if (threadIdx.x < 16) { b.sync(); x[threadIdx.x] = 1.f; }
    }
    """
    done = run(text, x=np.zeros(32, np.float32))
    assert [event.kind for event in done.events] == ["divergent-barrier"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("auto c = cg::this_cluster();", "thread block clusters are not understood"),
        ("auto t = cg::tiled_partition<64>(cg::this_thread_block());", "a tile of 64 threads"),
        ("auto t = cg::tiled_partition<3>(cg::this_thread_block());", "a tile of 3 threads"),
        ("float v = cg::reduce(cg::this_thread_block(), 1.f, cg::plus<float>());", "over thread_b"),
    ],
)
def test_what_is_not_understood_says_why(body: str, reason: str) -> None:
    found = reasons(f"__global__ void k(float* x) {{ {body} }}")
    assert any(reason in one for one in found), found


def test_a_function_of_the_file_hides_that_of_the_library() -> None:
    text = """
    __device__ float reduce(float a, float b) { return a - b; }
    __global__ void k(float* out) { out[0] = reduce(3.f, 1.f); }
    """
    assert run(text, block=1, out=np.zeros(1, np.float32)).outputs["out"][0] == 2


def test_a_row_reduction_with_groups_lifts() -> None:
    text = """
    __global__ void k(float* out, const float* x, int C) {
      cg::thread_block block = cg::this_thread_block();
      cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
      int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
      float s = 0.f;
      for (int c = warp.thread_rank(); c < C; c += warp.size()) s += x[row * C + c];
      s = cg::reduce(warp, s, cg::plus<float>{});
      if (warp.thread_rank() == 0) out[row] = s;
    }
    """
    x = np.random.default_rng(0).normal(size=(4, 70)).astype(np.float32)
    agrees(text, grid=2, block=64, out=np.zeros(4, np.float32), x=x, C=70)
