"""The same bytes as elements of another dtype."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from migrate.nki.simulate import simulate
from migrate.numerics.rounded import Rounded
from tests.nki.kernels import kernel, module
from tests.nki.running import lifted, opaque, run

RNG = np.random.default_rng(9)


def viewed(dtype: str, width: int) -> str:
    """x, loaded into a tile and read from there as another dtype."""
    return kernel(
        f"""
rows, columns = x.shape
tile = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x)
part = tile.view({dtype})
assert part.shape == (rows, {width})
out = nl.ndarray((rows, {width}), dtype={dtype}, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=part)
return out
"""
    )


PAIRS: list[tuple[Any, str, Any]] = [
    (np.float32, "nl.int32", np.int32),
    (np.float32, "nl.uint32", np.uint32),
    (np.int32, "nl.float32", np.float32),
    (np.float32, "nl.uint16", np.uint16),
    (np.float32, "nl.uint8", np.uint8),
    (np.float32, "nl.bfloat16", ml_dtypes.bfloat16),
    (np.uint16, "nl.uint32", np.uint32),
    (np.uint8, "nl.float32", np.float32),
    (ml_dtypes.bfloat16, "nl.uint8", np.uint8),
    (np.int8, "nl.int32", np.int32),
]


@pytest.mark.parametrize(("held", "name", "wanted"), PAIRS)
def test_a_tile_read_as_another_dtype(held: Any, name: str, wanted: Any) -> None:
    x = RNG.integers(0, 255, size=(4, 8 * np.dtype(held).itemsize)).astype(np.uint8).view(held)
    want = x.view(wanted)
    found = run(viewed(name, want.shape[1]), x).outputs[0]
    assert found.dtype == want.dtype
    same = np.uint8
    np.testing.assert_array_equal(found.view(same), want.view(same))


def test_a_tile_written_as_another_dtype() -> None:
    text = kernel(
        """
rows, columns = x.shape
tile = nl.ndarray((rows, columns // 2), dtype=nl.uint32, buffer=nl.sbuf)
nisa.dma_copy(dst=tile.view(nl.uint16), src=x)
out = nl.ndarray((rows, columns // 2), dtype=nl.uint32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=tile)
return out
"""
    )
    x = RNG.integers(0, 65535, size=(4, 8)).astype(np.uint16)
    np.testing.assert_array_equal(run(text, x).outputs[0], x.view(np.uint32))


def test_half_of_each_element_written() -> None:
    text = kernel(
        """
rows, columns = x.shape
tile = nl.ndarray((rows, columns), dtype=nl.uint32, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x)
halves = tile.view(nl.uint16)
nisa.memset(dst=halves[:, 0::2], value=0)
out = nl.ndarray((rows, columns), dtype=nl.uint32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=tile)
return out
"""
    )
    x = RNG.integers(0, 2**32 - 1, size=(4, 8)).astype(np.uint32)
    np.testing.assert_array_equal(run(text, x).outputs[0], x & np.uint32(0xFFFF0000))


def test_an_access_pattern_in_another_dtype() -> None:
    text = kernel(
        """
rows, columns = x.shape
tile = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x)
out = nl.ndarray((rows, columns), dtype=nl.uint16, buffer=nl.shared_hbm)
high = tile.ap([[columns * 2, rows], [2, columns]], offset=1, dtype=nl.uint16)
nisa.dma_copy(dst=out, src=high)
return out
"""
    )
    x = RNG.normal(size=(4, 6)).astype(np.float32)
    want = x.view(np.uint16)[:, 1::2]
    np.testing.assert_array_equal(run(text, x).outputs[0], want)


def test_a_part_of_a_view_of_a_part() -> None:
    text = kernel(
        """
rows, columns = x.shape
tile = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x)
part = tile[1:3, 4:8].view(nl.uint8)[:, 2:6]
out = nl.ndarray((2, 4), dtype=nl.uint8, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=part)
return out
"""
    )
    x = RNG.normal(size=(4, 8)).astype(np.float32)
    want = x[1:3, 4:8].copy().view(np.uint8)[:, 2:6]
    np.testing.assert_array_equal(run(text, x).outputs[0], want)


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        ("tile[:, 0::2].view(nl.uint8)", "not contiguous"),
        ("tile[:, 0:3].view(nl.uint8).view(nl.float32)[:, 1:2].view(4)", "dtype is needed"),
        ("tile.view(nl.uint16)[:, 0:3].view(nl.float32)", "are no float32"),
        ("tile.view(4)", "dtype is needed"),
    ],
)
def test_what_cannot_be_viewed(view: str, reason: str) -> None:
    text = kernel(
        f"""
tile = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x)
out = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.shared_hbm)
part = {view}
nisa.dma_copy(dst=out, src=part)
return out
"""
    )
    found = simulate(module(text), "k", (np.zeros((4, 8), np.float32),), domain=Rounded())
    assert not found.complete
    messages = [event.message for event in found.specialization.events]
    assert any(reason in message for message in messages), messages


@pytest.mark.parametrize(("held", "name", "wanted"), PAIRS)
def test_other_bytes_have_no_ir(held: Any, name: str, wanted: Any) -> None:
    x = np.zeros((4, 8 * np.dtype(held).itemsize), np.uint8).view(held)
    reasons = opaque(lifted(viewed(name, x.view(wanted).shape[1]), x=x))
    assert len(reasons) == 1
    assert reasons[0].startswith("the bytes of")
