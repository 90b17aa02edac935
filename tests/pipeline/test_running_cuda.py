"""CUDA kernels called from Python: what only an execution sees, and fused products."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import migrate
from migrate.api import ran_cuda
from migrate.pipeline.running import Options, RunFault, UnwrittenRead

SHIFTED = """
extern "C" __global__ void shifted(const float* x, float* y) {
  __shared__ float t[64];
  t[threadIdx.x] = x[threadIdx.x];
  %s
  y[threadIdx.x] = t[(threadIdx.x + 1) %% 64];
}
extern "C" __global__ void half_filled(const float* x, float* y) {
  __shared__ float t[64];
  if (threadIdx.x < 32) t[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = t[threadIdx.x];
}
extern "C" __global__ void line(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x] * x[threadIdx.x] - 1.0f;
}
"""


@pytest.fixture
def x():
    return np.random.default_rng(0).random(64, np.float32)


def written(folder, barrier):
    path = folder / "k.cu"
    path.write_text(SHIFTED % barrier)
    return str(path)


def test_a_race_is_a_warning_with_its_place(tmp_path, x):
    y = np.zeros_like(x)
    with pytest.warns(RunFault, match=r"k\.cu:6:20: .*\(line 4\).*\(first in block 0, thread 31\)"):
        migrate.run(written(tmp_path, ""), "shifted", x, y, grid=1, block=64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        migrate.run(written(tmp_path, "__syncthreads();"), "shifted", x, y, grid=1, block=64)
    np.testing.assert_array_equal(y, np.roll(x, -1))


def test_reading_what_nothing_wrote_is_a_warning(tmp_path, x):
    with pytest.warns(UnwrittenRead, match=r"k\.cu:\d+"):
        migrate.run(written(tmp_path, ""), "half_filled", x, np.zeros_like(x), grid=1, block=64)


def test_warnings_stand_in_the_document(tmp_path, x):
    ran = ran_cuda(
        written(tmp_path, ""),
        "shifted",
        {"x": x, "y": np.zeros_like(x)},
        grid=(1, 1, 1),
        block=(64, 1, 1),
    )
    (told,) = ran.document.warnings
    assert told.code == "shared-race"
    assert told.span is not None
    assert told.span.start_line == 6


def test_products_are_fused_unless_asked(tmp_path, x):
    fused, apart = np.zeros_like(x), np.zeros_like(x)
    file = written(tmp_path, "")
    migrate.run(file, "line", x, fused, grid=1, block=64)
    migrate.run(file, "line", x, apart, grid=1, block=64, fma=False)
    np.testing.assert_array_equal(apart, x * x - np.float32(1))
    exact = x.astype(np.float64) ** 2 - 1
    np.testing.assert_array_equal(fused, exact.astype(np.float32))
    assert (fused != apart).any()
    assert Options().fma
