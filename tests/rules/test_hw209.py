"""HW209 where the sizes are those that were tried."""

from __future__ import annotations

import migrate

KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(x, block=256):
    rows, cols = x.shape
    out = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range({trips}):
        t = nl.ndarray((128, cols), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x[start * 128 : start * 128 + 128, :])
        {last}
    t = nl.ndarray((1, cols), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=t, value=0.0)
    return out
"""
STORE = "nisa.dma_copy(dst=out[start * 128 : start * 128 + 128, :], src=t)"


def _rules(trips: str, last: str) -> set[str]:
    document = migrate.lint_text(KERNEL.format(trips=trips, last=last))
    return {finding.rule for kernel in document.kernels for finding in kernel.findings}


def test_a_loop_without_trips_at_tried_sizes_concludes_nothing() -> None:
    assert "HW209" not in _rules("rows // 100_000", STORE)


def test_a_loop_that_runs_and_stores_nothing_is_told() -> None:
    assert "HW209" in _rules("1", "nisa.tensor_copy(dst=t, src=t)")
