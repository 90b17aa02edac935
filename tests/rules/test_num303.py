"""NUM303: what is the same over the reals, and overflows for large inputs."""

import pytest

from tests.rules.judged import by, compared, line

LOADED = """
t = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=t, src=x)
m = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
e = nl.ndarray((rows, cols), dtype=nl.float32, buffer=nl.sbuf)
s = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
"""

SOFTMAX = (
    LOADED
    + """
nisa.tensor_reduce(dst=m, op={extreme}, data={part}, axis=1, negate=True)
nisa.activation_reduce(dst=e, op=nl.exp, data=t, reduce_op=nl.add, reduce_res=s, bias={bias})
nisa.reciprocal(dst=s, data=s)
nisa.tensor_scalar(dst=e, data=e, op0=nl.multiply, operand0=s)
nisa.dma_copy(dst=y, src=e)
"""
)

SAFE = """
float m = x[0], s = 0.0f;
for (int i = 1; i < cols; ++i) m = fmaxf(m, x[i]);
for (int i = 0; i < cols; ++i) s += expf(x[i] - m);
for (int i = 0; i < cols; ++i) y[i] = expf(x[i] - m) / s;
"""

PLAIN = """
float s = 0.0f;
for (int i = 0; i < cols; ++i) s += expf(x[i]);
for (int i = 0; i < cols; ++i) y[i] = expf(x[i]) / s;
"""


def softmax(extreme: str = "nl.maximum", part: str = "t", bias: str = "m") -> str:
    return SOFTMAX.format(extreme=extreme, part=part, bias=bias)


@pytest.mark.parametrize(
    ("nki", "place"),
    [
        (softmax(bias="0.0"), 8),
        (softmax(extreme="nl.minimum"), 7),
        (softmax(part="t[:, 0:3]"), 7),
    ],
)
def test_a_softmax_without_the_maximum_of_its_row(nki: str, place: int) -> None:
    result = compared(SAFE, nki, 5, 9)
    (finding,) = by(result, "NUM303")
    assert line(finding) == place
    assert finding.witness is not None
    assert finding.witness.nki == "nan"
    assert (result.verdict, finding.effect) == ("not-faithful", "wrong")
    assert {f.family for f in result.findings} == {"numerics"}


@pytest.mark.parametrize(
    ("cuda", "nki"),
    [
        (SAFE, softmax()),
        # The original overflows as well.
        (PLAIN, softmax(bias="0.0")),
        # More careful than the original.
        (PLAIN, softmax()),
    ],
)
def test_a_softmax_as_good_as_the_original(cuda: str, nki: str) -> None:
    assert by(compared(cuda, nki, 5, 9), "NUM303") == []
