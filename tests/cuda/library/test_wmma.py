"""Warp matrix functions against NumPy's product."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from migrate.cuda.check import function
from migrate.cuda.parse import parse
from migrate.cuda.runtime import Unsupported
from migrate.numerics.bounded import Bounded
from migrate.source import Source
from tests.cuda.lifting import agrees
from tests.cuda.running import run

RNG = np.random.default_rng(11)
STEPS = 20_000_000

PRODUCT = """
using namespace nvcuda;
template <int M, int N, int K>
__global__ void k(const half* a, const half* b, float* c, int ldc) {
  wmma::fragment<wmma::matrix_a, M, N, K, half, wmma::row_major> fa[2];
  wmma::fragment<wmma::matrix_b, M, N, K, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, M, N, K, float> fc;
  wmma::fill_fragment(fc, 1.0f);
  int warp = threadIdx.x / 32, depth = 3 * K;
  for (int s = 0; s < 3; s++) {
    wmma::load_matrix_sync(fa[s & 1], a + warp * M * depth + s * K, depth);
    wmma::load_matrix_sync(fb, b + s * K, depth);
    wmma::mma_sync(fc, fa[s & 1], fb, fc);
  }
  for (int i = 0; i < fc.num_elements; i++) fc.x[i] = fc.x[i] * 2.0f;
  wmma::store_matrix_sync(c + warp * M * ldc, fc, ldc, wmma::mem_row_major);
}
"""


def operands(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    a = RNG.integers(-4, 5, size=(2 * m, 3 * k)).astype(np.float16)
    b = RNG.integers(-4, 5, size=(n, 3 * k)).astype(np.float16)
    return a, b


@pytest.mark.parametrize("shape", [(16, 16, 16), (32, 8, 16), (8, 32, 16)])
def test_a_product_in_steps(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = operands(*shape)
    done = run(
        PRODUCT, block=64, a=a, b=b, c=np.zeros((2 * m, n + 4), np.float32), steps=STEPS,
        template={"M": m, "N": n, "K": k}, ldc=n + 4,
    )  # fmt: skip
    found = np.asarray(done.outputs["c"]).reshape(2 * m, n + 4)
    assert np.array_equal(found[:, :n], 2 * (a.astype(np.float64) @ b.T + 1))
    assert not found[:, n:].any()
    assert done.events == ()


def test_the_bound_of_a_product_covers_the_order_of_its_sum() -> None:
    a = RNG.normal(size=(32, 48)).astype(np.float16)
    b = RNG.normal(size=(16, 48)).astype(np.float16)
    given: dict[str, Any] = {"a": a, "b": b, "c": np.zeros((32, 16), np.float32), "ldc": 16}
    template = {"M": 16, "N": 16, "K": 16}
    done = run(PRODUCT, block=64, domain=Bounded(), template=template, steps=STEPS, **given)
    value = done.outputs["c"]
    exact = 2 * (a.astype(np.float64) @ b.T.astype(np.float64) + 1)
    assert np.allclose(value.value.reshape(32, 16), exact)
    rounded = run(PRODUCT, block=64, template=template, steps=STEPS, **given).outputs["c"]
    assert (np.abs(np.asarray(rounded) - exact.reshape(-1)) <= value.allowance()).all()
    assert 0 < value.allowance().max() < 1e-3


@pytest.mark.parametrize("layout", ["row", "col"])
@pytest.mark.parametrize(
    ("kind", "dtype"), [("half", np.float16), ("__nv_bfloat16", ml_dtypes.bfloat16)]
)
def test_layouts_in_memory(layout: str, kind: str, dtype: Any) -> None:
    text = f"""
    __global__ void k(const {kind}* a, const {kind}* b, float* c) {{
      nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, {kind},
                             nvcuda::wmma::{layout}_major> fa;
      nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, {kind},
                             nvcuda::wmma::{layout}_major> fb;
      nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> fc;
      nvcuda::wmma::load_matrix_sync(fa, a, 16);
      nvcuda::wmma::load_matrix_sync(fb, b, 16);
      nvcuda::wmma::load_matrix_sync(fc, c, 16, nvcuda::wmma::mem_{layout}_major);
      nvcuda::wmma::mma_sync(fc, fa, fb, fc);
      nvcuda::wmma::store_matrix_sync(c, fc, 16, nvcuda::wmma::mem_{layout}_major);
    }}
    """
    a, b = (RNG.integers(-4, 5, size=(16, 16)) for _ in range(2))
    c = RNG.integers(-4, 5, size=(16, 16)).astype(np.float32)
    done = run(text, a=a.astype(dtype), b=b.astype(dtype), c=c, steps=STEPS)
    found = np.asarray(done.outputs["c"]).reshape(16, 16)
    expected = c + a @ b if layout == "row" else (c.T + a.T @ b.T).T
    assert np.array_equal(found, expected)


def test_tf32_loses_the_low_bits_of_floats() -> None:
    text = """
    using namespace nvcuda;
    __global__ void k(const float* a, const float* b, float* c) {
      wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
      wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fb;
      wmma::fragment<wmma::accumulator, 16, 16, 8, float> fc;
      wmma::load_matrix_sync(fa, a, 8);
      wmma::load_matrix_sync(fb, b, 16);
      for (int t = 0; t < fa.num_elements; t++) fa.x[t] = wmma::__float_to_tf32(fa.x[t]);
      wmma::fill_fragment(fc, 0.0f);
      wmma::mma_sync(fc, fa, fb, fc);
      wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
    }
    """
    # 1 + 2^-11 is a tie of tf32: rounded away from zero where it is rounded, cut off where not.
    tie = np.float32(1 + 2**-11)
    a = np.full((16, 8), tie)
    b = np.eye(8, 16, dtype=np.float32) * tie
    done = run(text, a=a, b=b, c=np.zeros((16, 16), np.float32), steps=STEPS)
    found = np.asarray(done.outputs["c"]).reshape(16, 16)
    assert np.array_equal(found[:, :8], np.full((16, 8), np.float32(1 + 2**-10)))


def test_a_part_of_a_warp_cannot_multiply() -> None:
    text = PRODUCT.replace(
        "wmma::fill_fragment(fc", "if (threadIdx.x < 8) return; wmma::fill_fragment(fc"
    )
    a, b = operands(16, 16, 16)
    with pytest.raises(Unsupported, match="part of a warp"):
        run(
            text, block=64, a=a, b=b, c=np.zeros((32, 16), np.float32), steps=STEPS,
            template={"M": 16, "N": 16, "K": 16}, ldc=16,
        )  # fmt: skip


def reasons(body: str) -> list[str]:
    text = f"""
    __global__ void k(half* a, float* c) {{
      wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
      {body}
    }}
    """
    made = function(parse(Source.of(text, "kernel.cu")), "k")
    return [issue.reason for issue in made.issues]


@pytest.mark.parametrize(
    "body",
    [
        "c[0] = fc.x[0];",
        "for (int i = 0; i < 8; i++) fc.x[i] += i;",
        "for (int i = 0; i < 8; i++) c[i] = fc.x[i];",
        "fc.x[threadIdx.x % 8] = 1.f;",
    ],
)
def test_what_hangs_on_the_layout_is_refused(body: str) -> None:
    assert any("is not specified" in reason for reason in reasons(body))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("wmma::store_matrix_sync(c, fc, 16);", "needs a layout"),
        ("wmma::mma_sync(fc, fa, fa, fc);", "of these fragments"),
        (
            "wmma::fragment<wmma::matrix_a, 16, 16, 4, half, wmma::row_major> f;",
            "is not understood",
        ),
    ],
)
def test_what_is_not_understood_says_why(body: str, reason: str) -> None:
    assert any(reason in one for one in reasons(body)), reasons(body)


def test_a_product_lifts() -> None:
    a, b = operands(16, 16, 16)
    made = agrees(
        PRODUCT, grid=1, block=64, a=a, b=b, c=np.zeros((32, 16), np.float32), ldc=16,
        template={"M": 16, "N": 16, "K": 16},
    )  # fmt: skip
    assert "Contract" in {type(op).__name__ for op in _every(made.body)}


def _every(ops: Any) -> list[Any]:
    found = []
    for op in ops:
        found.append(op)
        found += _every(getattr(op, "body", ()))
    return found
