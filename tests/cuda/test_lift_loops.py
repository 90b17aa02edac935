"""Loops in the IR: how often they run, and the ways out of them."""

from __future__ import annotations

import numpy as np
import pytest

from migrate.ir.nodes import Fold, Opaque, walk
from tests.cuda.lifting import agrees, lifted

RNG = np.random.default_rng(23)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def body(statements: str, parameters: str = "const float* x, float* y, int n") -> str:
    return f"""
    __global__ void k({parameters}) {{
      int i = threadIdx.x;
      {statements}
    }}
    """


@pytest.mark.parametrize(
    "statements",
    [
        # A counter with something added, and what is left over.
        (
            "float s = 0.0f; int j = i;"
            "for (; j + 3 * 8 < n; j += 4 * 8) { s += x[j] + x[j + 8] + x[j + 16] + x[j + 24]; }"
            "for (; j < n; j += 8) { s += x[j]; } y[i] = s;"
        ),
        "float s = 0.0f; for (int j = 2 * i; j + 1 < n; j += 16) s += x[j] * x[j + 1]; y[i] = s;",
        (
            "float s = 0.0f; for (int j = 0, m = 40; j < n && m > 3; ++j, m -= 2) s += x[j] * m;"
            "y[i] = s;"
        ),
        "float s = 0.0f; for (int j = n; 3 <= j - i; j -= 2) s += x[j - 1]; y[i] = s;",
        # Left by break.
        "y[i] = -1.0f; for (int j = i; j < n; ++j) { if (x[j] > 0.5f) break; y[i] = x[j]; }",
        "int j; for (j = i; j < n; ++j) { if (x[j] > 0.5f) break; } y[i] = (float)j;",
        "int j = i; while (j < n) { if (x[j] > 0.5f) { y[i] = x[j]; break; } j += 2; } y[i] -= j;",
        (
            "float s = 0.0f; for (int j = 0; j < n; ++j) { if (j == 3 + i) break; "
            "s += x[j]; } y[i] = s;"
        ),
        (
            "float s = 0.0f; for (int j = 0; j < n; ++j) { for (int l = 0; l < 3; ++l) {"
            "if (x[j] > 0.2f) break; s += x[j] * l; } if (s < -1.0f) break; } y[i] = s;"
        ),
        (
            "float s = 0.0f; for (int j = 0; j < n; ++j) { if (x[j] < 0.0f) continue;"
            "if (s > 2.0f) break; s += x[j]; } y[i] = s;"
        ),
        # Left by return.
        (
            "y[i] = 0.0f; for (int j = 0; j < n; "
            "++j) { if (x[j] > 0.3f * i) return; y[i] += x[j]; }"
            "y[i] = -y[i];"
        ),
        "for (int j = 0; j < n; ++j) { int t = 5 - j + i; if (t < 0) return; y[i] += x[t]; }",
        (
            "for (int j = 0; j < 4; ++j) { for (int l = 0; l < n; ++l) {"
            "if (x[l] * j > 0.7f + 0.2f * i) { y[i] = l; return; } } y[i] += 1.0f; } y[i] += 2.0f;"
        ),
        (
            "if (i < 5) { for (int j = 0; j < n; ++j) { if (x[j] > 1.0f) return; } y[i] = 3.0f; }"
            "y[i] += 1.0f;"
        ),
        # Nothing but an exchange of variables.
        (
            "float a = x[i], b = x[i + 8]; for (int j = 0; j < i; "
            "++j) { float t = a; a = b; b = t; }"
            "y[i] = a - 2.0f * b;"
        ),
        # Rounds that constants decide.
        "float s = 0.0f; for (int d = 16; d > 0; d >>= 1) { s += x[d] * d; } y[i] = s;",
        (
            "float s = 0.0f; for (int d = 1; d <= 16; d *= 2) { if (s > 1.0f) break;"
            "s += x[d + i]; } y[i] = s;"
        ),
        # Switch.
        (
            "switch (i % 4) { case 0: y[i] = x[i]; break; case 1: case 2: y[i] = 2.0f; break;"
            "default: y[i] = -x[i]; }"
        ),
        "float s = 1.0f; switch (n - i) { case 37: s = 2.0f; case 36: s += x[i]; break; }y[i] = s;",
        (
            "float s = 0.0f; for (int j = 0; j < n; ++j) { switch (j % 3) { case 0: continue;"
            "case 1: s += x[j]; break; default: s -= 1.0f; } s *= 0.5f; } y[i] = s;"
        ),
    ],
)
def test_loops_and_ways_out(statements: str) -> None:
    made = agrees(body(statements), block=8, x=floats(64), y=zeros(8), n=37)
    assert not any(isinstance(op, Opaque) for op in walk(made.body))


def test_a_function_that_returns_from_inside_a_loop() -> None:
    text = """
    __device__ int first(const float* x, int n, float bound) {
      for (int j = 0; j < n; ++j) {
        if (x[j] > bound) return j;
      }
      return -1;
    }
    __global__ void k(const float* x, float* y, int n) {
      int i = threadIdx.x;
      y[i] = (float)first(x, n, 0.5f * i);
    }
    """
    made = agrees(text, block=8, x=floats(50), y=zeros(8), n=50)
    assert not any(isinstance(op, Opaque) for op in walk(made.body))


def test_a_grid_stride_loop_counts_for_any_launch() -> None:
    from migrate.ir.index import Index

    text = """
    __global__ void k(const float* x, float* y, size_t n) {
      size_t stride = blockDim.x * gridDim.x;
      for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) y[i] = x[i];
    }
    """
    made = lifted(text, (Index.size("blocks") // Index.size("parts"),), (Index.size("threads"),))
    assert [op for op in walk(made.body) if isinstance(op, Opaque)] == []
    assert sum(isinstance(op, Fold) for op in walk(made.body)) == 1


def test_branches_that_nest_too_deeply_are_opaque() -> None:
    deep = "if (n > 1) { " * 100 + "y[0] = 1;" + "}" * 100
    made = lifted(f"__global__ void k(float* y, int n) {{ {deep} y[1] = 2; }}", (1,), (1,))
    reasons = [op.reason for op in walk(made.body) if isinstance(op, Opaque)]
    assert reasons == ["statements nest deeper than 72 levels"]


def test_loops_without_end_that_nest_are_opaque_once_a_round() -> None:
    deep = "do " * 100 + "y[0] = 1;" + "while (1);" * 100
    made = lifted(f"__global__ void k(float* y) {{ {deep} y[1] = 2; }}", (1,), (1,))
    assert any(isinstance(op, Opaque) for op in walk(made.body))
