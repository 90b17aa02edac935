"""What lint says at sizes that nothing in the text tells: nothing that is a matter of them."""

from __future__ import annotations

import textwrap

import pytest

from migrate.api import lint_text
from tests.pipeline.pairs import HEAD

COLUMNS = '''
@nki.jit
def kernel(x):
    """Args:
        x: a tensor of shape [{shape}]
    """
    rows, cols = x.shape
    out = nl.ndarray((rows, cols), dtype=nl.float32, buffer=nl.shared_hbm)
    for start in range(0, rows, 128):
        for n in range(64):
            t = nl.ndarray((128, {width}), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=t, src=x[start : start + 128, 0 : {width}])
            nisa.dma_copy(dst=out[start : start + 128, 0 : {width}], src=t)
    return out
'''

WIDE = '''
@nki.jit
def kernel(x):
    """Args:
        x: a tensor of shape [{shape}]
    """
    rows, cols = x.shape
    out = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((rows, cols, {factor}), dtype=nl.float32, buffer=nl.sbuf)
    u = nl.ndarray((rows, cols, {factor}), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=t, value=0.0)
    nisa.tensor_copy(dst=u, src=t)
    nisa.dma_copy(dst=out, src=u[:, :, 0])
    return out
'''


def rules(text: str) -> set[str]:
    (kernel,) = lint_text(HEAD + textwrap.dedent(text)).kernels
    assert kernel.complete, kernel.reasons
    return {finding.rule for finding in kernel.findings}


@pytest.mark.parametrize(
    ("shape", "width", "told"),
    [
        ("rows, cols", "cols", False),
        ("rows, 512", "4", True),
        ("rows=1024, cols=512", "cols // 128", True),
    ],
)
def test_pieces_whose_length_is_guessed_are_not_told(shape: str, width: str, told: bool) -> None:
    assert ("PERF601" in rules(COLUMNS.format(shape=shape, width=width))) is told


@pytest.mark.parametrize(
    ("shape", "factor", "told"),
    [
        ("rows, cols", "256", False),
        ("rows=128, cols=128", "256", True),
        ("rows, 128", "256", True),
    ],
)
def test_bytes_that_are_guessed_are_not_told(shape: str, factor: str, told: bool) -> None:
    assert ("HW205" in rules(WIDE.format(shape=shape, factor=factor))) is told


RANKED = """
from neuronxcc import nki
from neuronxcc.nki import language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(x.shape[0]):
        t = nl.load(x[{index}])
        nl.store(out[{index}], t)
    return out
"""


@pytest.mark.parametrize(("index", "told"), [("i", False), ("i, 0:128", True)])
def test_a_tensor_whose_rank_is_guessed_is_not_told(index: str, told: bool) -> None:
    (kernel,) = lint_text(RANKED.format(index=index)).kernels
    assert kernel.complete, kernel.reasons
    assert ("PERF601" in {finding.rule for finding in kernel.findings}) is told
