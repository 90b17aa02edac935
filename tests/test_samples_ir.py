"""What is read of each sample, both sides, as text: `UPDATE_GOLDEN=1` writes it anew.

The CUDA side holds for all sizes; the NKI side is read at the last sizes of the case, which
leave a remainder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from migrate.align.binding import bind
from migrate.budget import Budget, Meter
from migrate.ir.text import render
from migrate.pipeline.completion import completed
from migrate.pipeline.kernels import open_pair
from migrate.pipeline.sides import read_cuda, read_nki
from tests.goldens import check
from tests.test_samples import SAMPLES, named


@pytest.mark.parametrize("side", ["cuda", "nki"])
@pytest.mark.parametrize("path", SAMPLES, ids=named)
def test_the_ir_of_a_sample(path: Path, side: Literal["cuda", "nki"], checkout: Path) -> None:
    pair = completed(open_pair(None, None, str(path)))
    binding = bind(pair.case, pair.case.runs()[-1])
    meter = Meter(Budget(), "reading a sample")
    read = read_cuda if side == "cuda" else read_nki
    reading = read(pair, binding, meter)
    assert reading.gaps == ()
    kernel = reading.kernel
    assert kernel is not None
    golden = checkout / "tests" / "golden" / "samples" / f"{named(path)}.{side}.txt"
    check(golden, render(kernel, spans=True))


def test_every_text_is_of_a_sample(checkout: Path) -> None:
    found = {path.name for path in (checkout / "tests" / "golden" / "samples").iterdir()}
    assert found == {f"{named(path)}.{side}.txt" for path in SAMPLES for side in ("cuda", "nki")}
