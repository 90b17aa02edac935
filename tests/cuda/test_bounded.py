"""The reference run: real values with bounds that hold what a rounding run gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from migrate.numerics.bounded import Bounded
from tests.cuda.running import run
from tests.cuda.test_execute import MATMUL, SOFTMAX

RNG = np.random.default_rng(3)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def enclosed(text: str, name: str = "y", **options: Any) -> tuple[Any, np.ndarray]:
    """The bounded output and its limits, which hold the output of the rounding run."""
    for fma in (False, True):
        reference = run(text, domain=Bounded(), fma=fma, **options).outputs[name]
        limit = np.asarray(reference.limit())
        rounded = np.asarray(run(text, fma=fma, **options).outputs[name], np.float64)
        assert (np.abs(rounded - reference.value) <= limit).all()
    return reference, limit


def body(text: str) -> str:
    return f"""
    __global__ void k(const float* x, float* y, int n) {{
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) {{ {text} }}
    }}
    """


def test_tight_where_nothing_is_in_doubt() -> None:
    x = floats(64)
    text = body("float v = x[i] * 0.3f + 1.0f; if (x[i] > 0.0f) v = expf(v); y[i] = v;")
    reference, limit = enclosed(text, block=64, x=x, y=np.zeros_like(x), n=64)
    assert (limit <= 1e-5 * np.maximum(np.abs(reference.value), 1)).all()
    assert reference.ambiguous is None or not reference.ambiguous.any()


def test_softmax_and_matmul() -> None:
    x = floats(4, 90)
    _, limit = enclosed(SOFTMAX, grid=4, block=64, x=x, y=np.zeros_like(x), cols=90)
    assert limit.max() < 1e-5
    a, b = floats(9, 12), floats(12, 10)
    _, limit = enclosed(
        MATMUL, name="c", grid=(2, 2, 1), block=(8, 8, 1), template={"T": 8},
        a=a, b=b, c=np.zeros((9, 10), np.float32), m=9, n=10, depth=12,
    )  # fmt: skip
    assert limit.max() < 1e-4


# v is 0.3 x - 0.1 (3 x), which rounding makes a little more or less than its real 0 or tiny
# value: every comparison with 0 is in doubt.
DOUBT = "float v = x[i] * 0.3f - (x[i] * 3.0f) * 0.1f;"


@pytest.mark.parametrize(
    "statements",
    [
        "if (v > 0.0f) y[i] = 1.0f; else y[i] = -1.0f;",
        "if (v > 0.0f) y[i] = 1.0f;",
        "y[i] = v > 0.0f ? 1.0f : -1.0f;",
        "float w = 5.0f; if (v > 0.0f) w = 7.0f; y[i] = w;",
        "if (v > 0.0f) return; y[i] = 3.0f;",
        "y[i] = pick(v);",
        "float s = 0; for (int j = 0; j < 4; ++j) { if (v > 0.0f) continue; s += 1.0f; } y[i] = s;",
        "float s = 0; for (int j = 0; j < 4; ++j) { if (v > 0.0f) break; s += 1.0f; } y[i] = s;",
        "float s = 0.0f; while (v > 0.0f) { s += 1.0f; v -= 1.0f; } y[i] = s;",
        "if (v > 0.0f) { if (i % 2) y[i] = 1.0f; else y[i] = 2.0f; }",
        "if (v > 0.0f && x[i] > 0.0f) y[i] = 1.0f; else y[i] = 2.0f;",
        "if (v > 0.0f) atomicAdd(y + i, 1.0f);",
    ],
)
def test_a_decision_in_doubt_reaches_both_ways(statements: str) -> None:
    helper = "__device__ float pick(float v) { if (v > 0.0f) return 1.0f; return -1.0f; }"
    x, y = floats(64), np.full(64, 9, np.float32)
    text = helper + body(f"{DOUBT} {statements}")
    _, limit = enclosed(text, block=64, x=x, y=y, n=64)
    assert (limit >= 1).any()


def test_a_maximum_by_comparison_stays_tight() -> None:
    text = body(
        "float m = -1e30f; for (int j = 0; j < n; ++j) { float v = x[j] * 0.1f;"
        " if (v > m) m = v; } y[i] = m;"
    )
    x = np.repeat(floats(20), 3)
    reference, limit = enclosed(text, block=64, x=x, y=np.zeros_like(x), n=60)
    assert limit[:60].max() < 1e-6
    assert reference.ambiguous is None or not reference.ambiguous.any()


def test_lanes_that_go_along_touch_nothing_they_should_not() -> None:
    # Where v is not positive the index is outside: only a lane that is there may say so.
    text = body(f"{DOUBT} if (v > 1.0f) y[i + 1000] = 1.0f; y[i] = v;")
    x = floats(64)
    enclosed(text, block=64, x=x, y=np.zeros_like(x), n=64)
    text = body(f"{DOUBT} if (v > 0.0f && i < 0) y[i + 1000] = x[i - 1]; y[i] = v;")
    enclosed(text, block=64, x=x, y=np.zeros_like(x), n=64)
