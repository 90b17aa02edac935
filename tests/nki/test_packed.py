"""Formats of which an element is four numbers: moved and looked at as bytes, no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from migrate.nki.simulate import Execution, simulate
from migrate.nki.specialize import specialize
from migrate.numerics.dtypes import DType
from migrate.numerics.rounded import Rounded
from tests.nki.kernels import kernel, module, tensor

RNG = np.random.default_rng(13)

COPY = """
rows, columns = x.shape
tile = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x)
{step}
out = nl.ndarray({shape}, dtype={dtype}, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src={src})
return out
"""

BYTES = {"shape": "(rows, columns * width)", "dtype": "nl.uint8", "src": "tile.view(nl.uint8)"}


def ran(step: str, packed: DType, x: Any, **out: str) -> Execution[Any]:
    text = kernel(COPY.format(step=step, **out), "x, width")
    return simulate(
        module(text),
        "k",
        {"x": x, "width": packed.bytes},
        domain=Rounded(),
        formats={"x": packed},
        target="trn3",
    )


@pytest.mark.parametrize(
    "packed", [DType.FLOAT8_E5M2_X4, DType.FLOAT8_E4M3FN_X4, DType.FLOAT4_E2M1FN_X4]
)
def test_the_bytes_of_packed_numbers(packed: DType) -> None:
    x = RNG.integers(0, 1 << packed.bits, size=(4, 6)).astype(packed.numpy)
    found = ran("", packed, x, **BYTES)
    assert found.complete, (found.happenings, found.specialization.events)
    np.testing.assert_array_equal(found.outputs[0], x.view(np.uint8))


def test_packed_numbers_copied() -> None:
    packed = DType.FLOAT8_E4M3FN_X4
    x = RNG.integers(0, 1 << 32, size=(4, 6)).astype(np.uint32)
    found = ran("", packed, x, shape="(rows, columns)", dtype="nl.float8_e4m3fn_x4", src="tile")
    assert found.complete
    np.testing.assert_array_equal(found.outputs[0], x)


def test_only_zero_is_put_there() -> None:
    packed = DType.FLOAT4_E2M1FN_X4
    x = np.full((4, 6), 7, np.uint16)
    found = ran("nisa.memset(dst=tile[:, 0:2], value=0)", packed, x, **BYTES)
    assert found.complete
    assert found.outputs[0][:, :4].max() == 0
    assert found.outputs[0][:, 4::2].min() == 7
    assert not ran("nisa.memset(dst=tile, value=3)", packed, x, **BYTES).complete


@pytest.mark.parametrize(
    "step",
    [
        "nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)",
        "nisa.tensor_copy(dst=nl.ndarray((rows, columns), nl.float32, nl.sbuf), src=tile)",
    ],
)
def test_nothing_is_computed_with_them(step: str) -> None:
    found = ran(step, DType.FLOAT8_E5M2_X4, np.zeros((4, 6), np.uint32), **BYTES)
    assert not found.complete
    assert any("packed" in happening.message for happening in found.happenings)


def test_a_matmul_of_packed_numbers_takes_no_others() -> None:
    text = kernel(
        """
left = nl.ndarray((128, 128), dtype=dtype, buffer=nl.sbuf)
nisa.memset(dst=left, value=0)
right = nl.ndarray((128, 512), dtype=dtype, buffer=nl.sbuf)
nisa.memset(dst=right, value=0)
scale = nl.ndarray((128, 512), dtype=nl.uint8, buffer=nl.sbuf)
nisa.memset(dst=scale, value=127)
total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
nisa.nc_matmul_mx(
    dst=total, stationary=left, moving=right,
    stationary_scale=scale[:, 0:128], moving_scale=scale,
)
""",
        "dtype",
    )

    def told(dtype: DType) -> set[str]:
        return {
            problem.code
            for problem in specialize(module(text), "k", {"dtype": dtype}, target="trn3").problems
        }

    assert "dtype" not in told(DType.FLOAT8_E4M3FN_X4)
    assert "dtype" in told(DType.UINT32)


def test_scales_of_two_tensors_share_a_tile() -> None:
    text = kernel(
        """
x = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
nisa.memset(dst=x, value=1.0)
numbers = nl.ndarray((128, 128), dtype=nl.float8_e4m3fn_x4, buffer=nl.sbuf)
scales = nl.ndarray((128, 128), dtype=nl.uint8, buffer=nl.sbuf)
nisa.quantize_mx(dst=numbers, src=x, dst_scale=scales[0:, :])
nisa.quantize_mx(dst=numbers, src=x, dst_scale=scales[4:, :])
""",
        "n",
    )
    assert specialize(module(text), "k", {"n": 1}, target="trn3").problems == ()


def test_a_dtype_in_a_table_of_the_module() -> None:
    text = kernel(
        """
out = nl.ndarray((4, 4), dtype=nl.uint8, buffer=nl.shared_hbm)
tile = nl.ndarray((4, 4 // PER[nl.float8_e5m2_x4]), dtype=nl.float8_e5m2_x4, buffer=nl.sbuf)
nisa.dma_copy(dst=tile.view(nl.uint8), src=x)
nisa.dma_copy(dst=out, src=tile.view(nl.uint8))
return out
"""
    ).replace("@nki.jit", "PER = {nl.float8_e5m2_x4: 4, nl.float4_e2m1fn_x4: 2}\n\n\n@nki.jit")
    found = specialize(module(text), "k", {"x": tensor("x", 4, 4, dtype=DType.UINT8)})
    assert found.complete, found.events
