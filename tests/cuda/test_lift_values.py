"""Votes, structs, references and views in the IR."""

from __future__ import annotations

import numpy as np
import pytest

from migrate.ir.nodes import Opaque, walk
from tests.cuda.lifting import agrees

RNG = np.random.default_rng(29)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def check(text: str, **args: object) -> None:
    made = agrees(text, **args)  # type: ignore[arg-type]
    assert [op.reason for op in walk(made.body) if isinstance(op, Opaque)] == []


@pytest.mark.parametrize("block", [64, 40])
@pytest.mark.parametrize(
    "vote",
    [
        "__any_sync(0xffffffff, x[i] > 1.5f) ? 1.0f : 2.0f",
        "__all_sync(0xffffffff, x[i] > -2.5f) ? 1.0f : 2.0f",
        "(float)(__ballot_sync(0xffffffff, x[i] > 0.0f) >> 4 & 255u)",
    ],
)
def test_votes_of_a_warp(vote: str, block: int) -> None:
    text = f"""
    __global__ void k(const float* x, float* y) {{
      int i = threadIdx.x;
      y[i] = {vote};
    }}
    """
    check(text, block=block, x=floats(64), y=np.zeros(64, np.float32))


@pytest.mark.parametrize(
    "statements",
    [
        # What a reference names is settled when it is made.
        "int j = i; float& r = y[j]; j += 1; r = x[j];",
        "float a = x[i], b = x[i + 1]; float& r = a; r += b; y[i] = a;",
        # A variable whose address is taken.
        (
            "float4 v = make_float4(x[i], x[i + 1], x[i + 2], x[i + 3]); float s = 0.0f;"
            "for (int j = 0; j < 4; ++j) s = s * 0.5f + reinterpret_cast<float*>(&v)[j]; y[i] = s;"
        ),
        "float a = x[i]; float* p = &a; *p += 1.0f; y[i] = a * 2.0f;",
        # A pointer that a condition or a loop moves, within its array.
        "const float* p = x; if (x[i] > 0.0f) p += 3; y[i] = p[i];",
        "const float* p = x; for (int j = 0; j < i; ++j) { if (x[j] > 0.0f) p += 1; } y[i] = *p;",
        # Whether a wider access may be made: arrays begin where one may.
        "y[i] = ((uint64_t)(x + 4) % 16 == 0 && ((size_t)(x + i) & 15) != 0) ? x[i] : -x[i];",
        # Memory copied through a view of another type.
        "reinterpret_cast<int4*>(y)[i] = reinterpret_cast<const int4*>(x)[i];",
    ],
)
def test_places(statements: str) -> None:
    text = f"""
    __global__ void k(const float* x, float* y) {{
      int i = threadIdx.x;
      {statements}
    }}
    """
    check(text, block=8, x=floats(64), y=np.zeros(64, np.float32))


def test_shared_memory_given_in_bytes() -> None:
    text = """
    __global__ void k(const float* x, float* y, int n) {
      extern __shared__ unsigned char memory[];
      float* first = reinterpret_cast<float*>(memory);
      float* second = reinterpret_cast<float*>(memory + n * sizeof(float));
      int i = threadIdx.x;
      first[i] = x[i];
      second[i] = 2.0f * x[i];
      __syncthreads();
      y[i] = first[n - 1 - i] + second[i ^ 1];
    }
    """
    check(text, block=8, shared_bytes=64, x=floats(8), y=np.zeros(8, np.float32), n=8)


def test_remainders_are_not_negative() -> None:
    text = """
    __global__ void k(const float* x, float* y, unsigned int n) {
      unsigned int t = threadIdx.x;
      y[(t % 2 * 4 + 1) * 8 + t / 2] = x[t % n * 2];
    }
    """
    check(text, block=16, x=floats(64), y=np.zeros(64, np.float32), n=5)
