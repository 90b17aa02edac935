"""Functions of cuda_fp16.h and cuda_bf16.h against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from migrate.cuda.check import function
from migrate.cuda.parse import parse
from migrate.source import Source
from tests.cuda.lifting import agrees
from tests.cuda.running import run

PAIRS = {"__half2": np.float16, "__nv_bfloat162": ml_dtypes.bfloat16}
RNG = np.random.default_rng(7)
STEPS = 10_000_000


def values(kind: str) -> tuple[np.ndarray, np.ndarray]:
    x = RNG.uniform(0.1, 2.0, size=64)
    y = RNG.normal(size=64)
    return x.astype(PAIRS[kind]), y.astype(PAIRS[kind])


def pairs(kind: str, expression: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A function of pairs for 32 threads; both arrays hold 64 numbers."""
    text = f"""
    __global__ void k({kind}* out, const {kind}* px, const {kind}* py) {{
      {kind} x = px[threadIdx.x], y = py[threadIdx.x];
      out[threadIdx.x] = {expression};
    }}
    """
    done = run(text, out=np.zeros_like(x), px=x, py=y, steps=STEPS)
    return np.asarray(done.outputs["out"]).astype(np.float64)


CASES: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("__hadd2(x, y)", lambda x, y: x + y),
    ("__hsub2(x, y)", lambda x, y: x - y),
    ("__hmul2(x, y)", lambda x, y: x * y),
    ("__h2div(y, x)", lambda x, y: y / x),
    ("__hfma2(x, y, x)", lambda x, y: x * y + x),
    ("__hmax2(x, y)", np.maximum),
    ("__hmin2(x, y)", np.minimum),
    ("__hneg2(x)", lambda x, y: -x),
    ("__habs2(y)", lambda x, y: np.abs(y)),
    ("h2exp(y)", lambda x, y: np.exp(y)),
    ("h2log(x)", lambda x, y: np.log(x)),
    ("h2sqrt(x)", lambda x, y: np.sqrt(x)),
    ("h2rsqrt(x)", lambda x, y: 1 / np.sqrt(x)),
    ("h2rcp(x)", lambda x, y: 1 / x),
    ("h2tanh(y)", lambda x, y: np.tanh(y)),
    ("h2floor(y)", lambda x, y: np.floor(y)),
    ("__hgt2(x, y)", lambda x, y: (x > y) * 1.0),
    ("__hadd2_sat(x, y)", lambda x, y: np.clip(x + y, 0, 1)),
    ("__hfma2_relu(x, y, y)", lambda x, y: np.maximum(x * y + y, 0)),
]


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize(("expression", "expected"), CASES)
def test_functions_of_pairs_round_once(
    kind: str, expression: str, expected: Callable[[Any, Any], Any]
) -> None:
    x, y = values(kind)
    found = pairs(kind, expression, x, y)
    exact = expected(x.astype(np.float64), y.astype(np.float64))
    assert np.array_equal(found, exact.astype(PAIRS[kind]).astype(np.float64))


@pytest.mark.parametrize("kind", PAIRS)
def test_functions_of_pairs_nest_with_a_rounding_each(kind: str) -> None:
    x, y = values(kind)
    dtype = PAIRS[kind]
    a, b = x.astype(np.float64), y.astype(np.float64)
    product = (a * b).astype(dtype).astype(np.float64)
    rest = (b - a).astype(dtype).astype(np.float64)
    found = pairs(kind, "__hadd2(__hmul2(x, y), __hsub2(y, x))", x, y)
    assert np.array_equal(found, (product + rest).astype(dtype).astype(np.float64))


def test_making_pairs_and_taking_them_apart() -> None:
    text = """
    __global__ void k(float* out, const float* x) {
      half2 a = __floats2half2_rn(x[0], x[1]);
      half2 b = __float22half2_rn(make_float2(x[2], x[3]));
      float2 f = __half22float2(__lows2half2(a, b));
      out[0] = f.x;
      out[1] = f.y;
      out[2] = __low2float(__lowhigh2highlow(a));
      out[3] = __half2float(__high2half(b));
      out[4] = __high2float(__float2half2_rn(x[0]));
      out[5] = __low2float(__high2half2(b));
      out[6] = __low2float(__halves2half2(__float2half(x[3]), __float2half(x[2])));
      __nv_bfloat162 c = __floats2bfloat162_rn(x[0], x[1]);
      out[7] = __bfloat1622float2(c).y;
      out[8] = __bfloat162float(__low2bfloat16(c));
    }
    """
    x = np.asarray([1.1, -2.3, 3.7, 0.01], np.float32)
    done = run(text, block=1, out=np.zeros(9, np.float32), x=x, steps=STEPS)
    h = x.astype(np.float16).astype(np.float32)
    b = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    expected = [h[0], h[2], h[1], h[3], h[0], h[3], h[3], b[1], b[0]]
    assert np.array_equal(done.outputs["out"], np.asarray(expected, np.float32))


def test_conversions_to_integers_round_as_named() -> None:
    text = """
    __global__ void k(int* out, const half* x) {
      half v = x[threadIdx.x];
      int* o = out + 4 * threadIdx.x;
      o[0] = __half2int_rn(v); o[1] = __half2int_rz(v);
      o[2] = __half2int_rd(v); o[3] = __half2int_ru(v);
    }
    """
    x = np.asarray([2.5, -2.5, 3.25, -0.75], np.float16)
    done = run(text, block=4, out=np.zeros(16, np.int32), x=x, steps=STEPS)
    expected = np.stack([np.rint(x), np.trunc(x), np.floor(x), np.ceil(x)], axis=1)
    assert np.array_equal(done.outputs["out"], expected.reshape(-1))


def test_comparisons_that_hold_for_both() -> None:
    text = """
    __global__ void k(int* out, const half2* x) {
      half2 one = __float2half2_rn(1.f);
      out[threadIdx.x] = __hbgt2(x[threadIdx.x], one) + 10 * __hble2(x[threadIdx.x], one);
    }
    """
    x = np.asarray([2, 3, 2, 0, 0, 1, np.nan, 5], np.float16)
    done = run(text, block=4, out=np.zeros(4, np.int32), x=x, steps=STEPS)
    assert np.array_equal(done.outputs["out"], [1, 0, 10, 0])


def test_pairs_are_exchanged_in_a_warp() -> None:
    text = """
    __global__ void k(half2* out, const half2* x) {
      half2 v = x[threadIdx.x];
      for (int d = 16; d > 0; d /= 2) v = __hadd2(v, __shfl_xor_sync(0xffffffff, v, d));
      out[threadIdx.x] = v;
    }
    """
    x = RNG.integers(-4, 5, size=64).astype(np.float16)
    done = run(text, out=np.zeros(64, np.float16), x=x, steps=STEPS)
    assert np.array_equal(done.outputs["out"], np.tile(x.reshape(32, 2).sum(axis=0), 32))


def test_a_rounding_direction_that_is_not_modelled_is_refused() -> None:
    text = "__global__ void k(half* o, float x) { o[0] = __float2half_rd(x); }"
    made = function(parse(Source.of(text, "kernel.cu")), "k")
    assert ["rounds in one direction" in issue.reason for issue in made.issues] == [True]


def test_functions_of_pairs_lift() -> None:
    text = """
    __global__ void k(float2* out, const half2* x, const half2* y) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      out[i] = __half22float2(__hmax2(__hfma2(x[i], y[i], x[i]), __float2half2_rn(0.f)));
    }
    """
    x, y = (RNG.integers(-4, 5, size=128).astype(np.float16) for _ in range(2))
    agrees(text, grid=2, block=32, out=np.zeros(128, np.float32), x=x, y=y)
