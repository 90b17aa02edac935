"""`quantize_mx` and `nc_matmul_mx`: numbers packed by four with a scale for 32 of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from migrate.nki import microscaling
from migrate.nki.simulate import simulate
from migrate.numerics.bounded import Bounded
from migrate.numerics.dtypes import DType
from migrate.numerics.rounded import Rounded
from tests.nki.kernels import kernel, module
from tests.nki.running import lifted, opaque

RNG = np.random.default_rng(17)

VECTORS = json.loads(
    (Path(__file__).parents[1] / "numerics" / "vectors.json").read_text(encoding="utf-8")
)["mx"]

QUANTIZE = """
rows, columns = x.shape
src = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
made = nl.ndarray((rows, columns // 4), dtype=nl.float8_{fmt}_x4, buffer=nl.sbuf)
scale = nl.ndarray((rows if rows > 32 else 4, columns // 4), dtype=nl.{scale}, buffer=nl.sbuf)
nisa.memset(dst=scale, value=0)
nisa.dma_copy(dst=src, src=x)
nisa.quantize_mx(dst=made, src=src, dst_scale=scale)
out = nl.ndarray((rows, columns), dtype=nl.uint8, buffer=nl.shared_hbm)
scales = nl.ndarray(scale.shape, dtype=nl.uint8, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=made.view(nl.uint8))
nisa.dma_copy(dst=scales, src=scale.view(nl.uint8))
return out, scales
"""

PRODUCT = """
k, m = left.shape
_, n = right.shape
a = nl.ndarray((k, m), dtype=nl.{left}_x4, buffer=nl.sbuf)
b = nl.ndarray((k, n), dtype=nl.{right}_x4, buffer=nl.sbuf)
scales = nl.ndarray((128, n), dtype=nl.float8_e8m0fnu, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=left.view(nl.{left}_x4))
nisa.dma_copy(dst=b, src=right.view(nl.{right}_x4))
for quadrant in range(k // 32):
    rows = nl.ds(4 * quadrant, 4)
    for first, given in ((0, left_scale), (4, right_scale)):
        place = scales[nl.ds(32 * quadrant + first, 4), 0 : given.shape[1]]
        nisa.dma_copy(dst=place, src=given[rows, :].view(nl.float8_e8m0fnu))
out = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
total = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.psum)
for turn in range(turns):
    nisa.nc_matmul_mx(
        dst=total, stationary=a, moving=b,
        stationary_scale=scales[0:, 0:m], moving_scale=scales[4:, :],
    )
done = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_copy(dst=done, src=total)
nisa.dma_copy(dst=out, src=done)
return out
"""


def quantized(x: Any, fmt: str = "e4m3fn", scale: str = "uint8") -> Any:
    text = kernel(QUANTIZE.format(fmt=fmt, scale=scale), "x")
    found = simulate(module(text), "k", [x], domain=Rounded(), target="trn3")
    assert found.complete, (found.happenings, found.specialization.events)
    assert found.happenings == ()
    return found.outputs


def numbers(bits: Any, fmt: str) -> Any:
    return bits.view(getattr(ml_dtypes, f"float8_{fmt}")).astype(np.float64)


@pytest.mark.parametrize("row", VECTORS, ids=[f"{r['fmt']}-{r['amax']}" for r in VECTORS])
def test_known_answers(row: dict[str, Any]) -> None:
    # Some of the numbers are of no format that the instruction takes.
    x = np.zeros((32, 4), np.float32)
    x[3, 2] = row["amax"]
    domain = Rounded()
    made, (scales,) = microscaling.quantized(domain, x, DType.named(f"float8_{row['fmt']}_x4"))
    bits = made.view(np.uint8)
    assert scales[0, 0] == int(row["nki05_scale_byte"], 16)
    assert bits[3, 2] == int(row["nki05_elem"], 16)
    found = numbers(bits, row["fmt"])[3, 2] * 2.0 ** (int(scales[0, 0]) - 127)
    assert found == row["nki05_deq"]
    assert np.count_nonzero(bits) == (row["amax"] != 0)


@pytest.mark.parametrize("fmt", ["e4m3fn", "e5m2"])
@pytest.mark.parametrize("rows", [32, 64, 128])
@pytest.mark.parametrize("scale", ["uint8", "float8_e8m0fnu"])
def test_groups_of_eight_partitions_of_four(fmt: str, rows: int, scale: str) -> None:
    x = (RNG.normal(size=(rows, 24)) * 2.0 ** RNG.integers(-9, 9, (rows, 1))).astype(
        ml_dtypes.bfloat16
    )
    bits, scales = quantized(x, fmt, scale)
    groups = np.abs(x.astype(np.float64)).reshape(rows // 8, 8, 6, 4).max(axis=(1, 3))
    used = [32 * (k // 4) + k % 4 for k in range(rows // 8)]
    exponent = np.floor(np.log2(groups)) - ({"e4m3fn": 8, "e5m2": 15}[fmt] - 1)
    np.testing.assert_array_equal(scales[used].astype(int) - 127, exponent)
    rest = np.delete(scales, used, axis=0)
    assert not rest.any()
    spread = np.repeat(np.repeat(2.0**exponent, 8, axis=0), 4, axis=1)
    wanted = (x.astype(np.float64) / spread).astype(np.float32)
    narrow = wanted.astype(getattr(ml_dtypes, f"float8_{fmt}"))
    np.testing.assert_array_equal(numbers(bits, fmt), narrow.astype(np.float64))
    assert np.isfinite(numbers(bits, fmt)).all()


def test_what_is_no_finite_number_is_not_known() -> None:
    x = np.ones((32, 4), ml_dtypes.bfloat16)
    x[0, 0] = np.inf
    text = kernel(QUANTIZE.format(fmt="e5m2", scale="uint8"), "x")
    found = simulate(module(text), "k", [x], domain=Rounded(), target="trn3")
    assert not found.complete
    assert "no finite number" in found.happenings[0].message


def packed(rows: int, columns: int, fmt: str) -> tuple[Any, Any, Any]:
    """Packed numbers, the scales of their groups, and what they stand for."""
    narrow = getattr(ml_dtypes, fmt)
    x = RNG.normal(size=(rows, columns, 4)).astype(np.float32).astype(narrow)
    scales = RNG.integers(120, 130, (rows // 8, columns)).astype(np.uint8)
    bits = x.view(np.uint8).astype(np.uint32)
    width = 4 if fmt == "float4_e2m1fn" else 8
    whole = sum(bits[..., k] << np.uint32(width * k) for k in range(4))
    spread = np.repeat(2.0 ** (scales.astype(float) - 127), 8, axis=0)
    store = np.uint16 if width == 4 else np.uint32
    return whole.astype(store), scales, x.astype(np.float64) * spread[..., None]


@pytest.mark.parametrize("left", ["float8_e4m3fn", "float4_e2m1fn"])
@pytest.mark.parametrize("right", ["float8_e5m2", "float4_e2m1fn"])
@pytest.mark.parametrize("k", [32, 128])
def test_products_contract_partitions_and_the_four(left: str, right: str, k: int) -> None:
    a, a_scale, a_numbers = packed(k, 16, left)
    b, b_scale, b_numbers = packed(k, 24, right)
    text = kernel(
        PRODUCT.format(left=left, right=right), "left, right, left_scale, right_scale, turns"
    )
    wanted = np.einsum("kmq,knq->mn", a_numbers, b_numbers)
    for turns in (1, 3):
        found = simulate(
            module(text), "k", [a, b, a_scale, b_scale, turns], domain=Rounded(), target="trn3"
        )
        assert found.complete, (found.happenings, found.specialization.events)
        assert found.happenings == ()
        assert found.specialization.problems == ()
        np.testing.assert_allclose(found.outputs[0], turns * wanted, rtol=1e-5, atol=1e-5)
    bounded = simulate(
        module(text), "k", [a, b, a_scale, b_scale, 1], domain=Bounded(), target="trn3"
    )
    np.testing.assert_allclose(bounded.outputs[0].value, wanted, rtol=1e-12, atol=1e-12)


def test_packed_numbers_have_no_ir() -> None:
    x = np.ones((32, 4), ml_dtypes.bfloat16)
    text = kernel(QUANTIZE.format(fmt="e5m2", scale="uint8"), "x")
    assert any("packed by four" in reason for reason in opaque(lifted(text, target="trn3", x=x)))
