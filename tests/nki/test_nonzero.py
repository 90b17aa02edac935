"""Positions of what is not zero, in every 16th partition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from migrate.nki.simulate import simulate
from migrate.numerics.rounded import Rounded
from tests.nki.kernels import kernel, module

RNG = np.random.default_rng(41)


@pytest.mark.parametrize("shape", ["(33, 13)", "(33, 1, 13)"])
def test_positions_padding_and_count(shape: str) -> None:
    text = kernel(
        f"""
tile = nl.ndarray((33, 12), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x)
found = nl.ndarray({shape}, dtype=nl.int32, buffer=nl.sbuf)
nisa.memset(dst=found, value=7)
nisa.nonzero_with_count(dst=found, src=tile, index_offset=100, padding_val=-1)
out = nl.ndarray({shape}, dtype=nl.int32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=found)
return out
"""
    )
    x: Any = (RNG.random((33, 12)) < 0.4).astype(np.float32)
    x[16] = 0
    wanted = np.full((33, 13), 7)
    for row in (0, 16, 32):
        places = np.nonzero(x[row])[0]
        wanted[row] = [*(100 + places), *[-1] * (12 - len(places)), len(places)]
    found = simulate(module(text), "k", (x,), domain=Rounded())
    assert found.complete, (found.happenings, found.specialization.events)
    np.testing.assert_array_equal(found.outputs[0].reshape(33, 13), wanted)
