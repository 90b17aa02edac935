"""HW204: operands in a memory that the instruction does not reach."""

import pytest

from tests.rules.judged import by, compared, line

CUDA = "for (int i = 0; i < cols; ++i) y[i] = x[i];"

MATMUL = """
a = nl.ndarray((rows, rows), dtype=x.dtype, buffer=nl.sbuf)
b = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.sbuf)
nisa.memset(dst=a, value=1.0)
nisa.dma_copy(dst=b, src=x)
p = nl.ndarray((rows, cols), dtype=nl.float32, buffer={memory})
nisa.nc_matmul(dst=p, stationary=a, moving=b)
t = nl.ndarray((rows, cols), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_copy(dst=t, src=p)
nisa.dma_copy(dst=y, src={source})
"""


@pytest.mark.parametrize(
    ("memory", "source", "places"),
    [
        ("nl.psum", "t", []),
        # What only PSUM can take was made in the wrong memory.
        ("nl.sbuf", "t", [5]),
        # What is rightly in PSUM was not copied before DMA reads it.
        ("nl.psum", "p", [9]),
    ],
)
def test_the_place_is_the_tile_or_the_instruction(
    memory: str, source: str, places: list[int]
) -> None:
    result = compared(CUDA, MATMUL.format(memory=memory, source=source), 8, 4)
    found = by(result, "HW204")
    assert [line(finding) for finding in found] == places
    assert all(finding.effect == "rejects" for finding in found)


def test_engines_do_not_compute_in_device_memory() -> None:
    direct = "nisa.tensor_scalar(dst=y, data=x, op0=nl.multiply, operand0=1.0)"
    assert {line(finding) for finding in by(compared(CUDA, direct, 8, 4), "HW204")} == {1}
