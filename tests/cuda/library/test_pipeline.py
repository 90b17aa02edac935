"""Asynchronous copies from CUDA C++."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cuda.lifting import agrees
from tests.cuda.running import run

STEPS = 10_000_000
X = np.random.default_rng(17).normal(size=256).astype(np.float32)

STAGES = """
__global__ void k(float* out, const float* x, int n) {
  __shared__ float s[2][128];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&s[0][t * 4], &x[t * 4], 16);
  __pipeline_commit();
  __pipeline_memcpy_async(&s[1][t * 4], &x[128 + t * 4], 4 * sizeof(float));
  __pipeline_commit();
  __pipeline_wait_prior(WAIT);
  __syncthreads();
  out[t] = s[STAGE][127 - t];
}
"""


def stages(wait: int, stage: int) -> str:
    return STAGES.replace("WAIT", str(wait)).replace("STAGE", str(stage))


@pytest.mark.parametrize(("wait", "stage"), [(1, 0), (0, 0), (0, 1)])
def test_a_group_that_was_waited_for_is_there(wait: int, stage: int) -> None:
    done = run(stages(wait, stage), out=np.zeros(32, np.float32), x=X, n=0, steps=STEPS)
    assert np.array_equal(done.outputs["out"], X[128 * stage :][:128][::-1][:32])
    assert done.events == ()


def test_the_newest_group_may_still_be_under_way() -> None:
    done = run(stages(1, 1), out=np.zeros(32, np.float32), x=X, n=0, steps=STEPS)
    assert [event.kind for event in done.events] == ["unfinished-copy"]
    assert "s is read before" in done.events[0].message


def test_zeros_fill_what_is_not_copied() -> None:
    text = """
    __global__ void k(float* out, const float* x, int n) {
      __shared__ float s[128];
      int t = threadIdx.x;
      int left = max(min(n - t * 4, 4), 0);
      __pipeline_memcpy_async(&s[t * 4], &x[t * 4], 16, 16 - left * 4);
      __pipeline_commit();
      __pipeline_wait_prior(0);
      __syncthreads();
      for (int i = 0; i < 4; i++) out[t + 32 * i] = s[t + 32 * i];
    }
    """
    done = run(text, out=np.ones(128, np.float32), x=X[:70], n=70, steps=STEPS)
    assert np.array_equal(done.outputs["out"], np.where(np.arange(128) < 70, np.resize(X, 128), 0))


def test_a_copy_by_a_whole_block() -> None:
    text = """
    __global__ void k(float* out, const float* x, int n) {
      extern __shared__ float s[];
      auto block = cooperative_groups::this_thread_block();
      cooperative_groups::memcpy_async(block, s, x + blockIdx.x * n, sizeof(float) * n);
      cooperative_groups::wait(block);
      if (threadIdx.x < n) out[blockIdx.x * n + threadIdx.x] = s[n - 1 - threadIdx.x];
    }
    """
    done = run(
        text, grid=2, block=64, out=np.zeros(100, np.float32), x=X[:100], n=50, shared_bytes=200,
        steps=STEPS,
    )  # fmt: skip
    assert np.array_equal(done.outputs["out"], X[:100].reshape(2, 50)[:, ::-1].reshape(-1))


def test_copies_lift_as_loads_and_stores() -> None:
    agrees(stages(0, 1), out=np.zeros(32, np.float32), x=X, n=0)
