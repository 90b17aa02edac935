"""What the compiler refuses is recorded on the instruction, with figures."""

from __future__ import annotations

import pytest

from migrate.nki.values import Problem
from tests.nki.kernels import BODY_LINE, kernel, module, stream, tensor

TILES = """
s = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
h = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.sbuf)
q = nl.ndarray((128, 64), dtype=nl.int32, buffer=nl.sbuf)
p = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.psum)
r = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.psum)
c = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
"""


def problems(line: str, target: str = "trn2") -> list[Problem]:
    _, result = stream(
        kernel(TILES + line + "\nreturn x"), {"x": tensor("x", 200, 64)}, target=target
    )
    assert result.complete, result.events
    return list(result.problems)


@pytest.mark.parametrize(
    "line",
    [
        "nisa.dma_copy(dst=s, src=x[0:128, :])",
        "nisa.tensor_copy(dst=s, src=p)",
        "nisa.tensor_tensor(dst=s, data1=s, data2=p, op=nl.add)",
        "nisa.tensor_scalar(dst=s, data=s, op0=nl.multiply, operand0=c, op1=nl.add, operand1=1.0)",
        "nisa.activation(dst=s, op=nl.exp, data=s, bias=c, scale=2.0)",
        "nisa.nc_matmul(dst=p[0:64, :], stationary=s, moving=s)",
        "nisa.tensor_reduce(dst=c, op=nl.add, data=s, axis=1)",
        "nisa.memset(s[64:128, :], 0.0)",
        "nisa.iota(dst=q, pattern=[[1, 64]], offset=0, channel_multiplier=64)",
    ],
)
def test_what_is_right_has_no_problems(line: str) -> None:
    assert problems(line) == []


@pytest.mark.parametrize(
    ("line", "code", "numbers"),
    [
        ("nisa.dma_copy(dst=s, src=x[128:256, :])", "out-of-bounds", (128, 255, 200)),
        ("nisa.dma_copy(dst=s, src=x[0:64, :])", "size-mismatch", (8192, 4096)),
        ("nisa.dma_copy(dst=p, src=x[0:128, :])", "memory", ()),
        ("nisa.tensor_copy(dst=s, src=h)", "partition-mismatch", (128, 64)),
        ("nisa.tensor_tensor(dst=s, data1=s, data2=c, op=nl.add)", "size-mismatch", (64, 1)),
        ("nisa.tensor_tensor(dst=s, data1=p, data2=r, op=nl.add)", "both-psum", ()),
        ("nisa.tensor_tensor(dst=s, data1=s, data2=s, op=nl.divide)", "operator", ()),
        ("nisa.tensor_tensor(dst=s, data1=s, data2=s, op=nl.exp)", "operator", ()),
        ("nisa.tensor_tensor(dst=q, data1=s, data2=q, op=nl.bitwise_and)", "dtype", ()),
        ("nisa.tensor_tensor(dst=s, data1=s, data2=p, op=nl.power)", "gpsimd-psum", ()),
        (
            "nisa.tensor_scalar(dst=s, data=s, op0=nl.add, operand0=h[:, 0:1])",
            "not-a-column",
            (64, 1),
        ),
        (
            "nisa.tensor_scalar(q, q, nl.bitwise_and, 7, op1=nl.add, operand1=1)",
            "mixed-operators",
            (),
        ),
        ("nisa.activation(dst=s, op=nl.add, data=s)", "operator", ()),
        ("nisa.memset(q, 0.5)", "literal-dtype", ()),
        ("nisa.tensor_copy(dst=s, src=p, dtype=nl.float32)", "argument", ()),
        ("nisa.nc_matmul(dst=s[0:64, :], stationary=s, moving=s)", "tile-memory", ()),
        (
            "nisa.nc_matmul(dst=p[0:64, :], stationary=h, moving=s)",
            "contraction-mismatch",
            (64, 128),
        ),
        ("nisa.nc_matmul(dst=p, stationary=s, moving=s)", "size-mismatch", (128, 64)),
        ("nisa.nc_matmul(dst=p[0:64, :], stationary=q, moving=s)", "dtype", ()),
        ("nisa.tensor_reduce(dst=c, op=nl.add, data=s, axis=0)", "partition-axis", ()),
        ("nisa.tensor_reduce(dst=s, op=nl.add, data=s, axis=1)", "size-mismatch", (64, 1)),
        ("nisa.memset(s[16:48, :], 0.0)", "partition-start", (16, 32)),
        ("nisa.memset(s[0:0, :], 0.0)", "empty-slice", (0, 0, -1, 128)),
        ("z = nl.ndarray((256, 4), dtype=nl.float32)", "partitions", (256,)),
        ("z = nl.ndarray((64,), dtype=nl.float32)", "tile-rank", ()),
        (
            "z = nl.ndarray((128, 8192), dtype=nl.float32, buffer=nl.psum)",
            "tile-bytes",
            (32768, 16384),
        ),
    ],
)
def test_what_is_refused_is_recorded(line: str, code: str, numbers: tuple[int, ...]) -> None:
    found = problems(line)
    assert [problem.code for problem in found][:1] == [code]
    figures = tuple(value for _, value in found[0].numbers)
    assert figures[-len(numbers) :] == numbers if numbers else True
    assert found[0].span.start_line > BODY_LINE


def test_figures_lead_to_the_line_that_decides_them() -> None:
    found = problems("width = 70\nnisa.memset(s[:, 0:width], 0.0)")
    assert found[0].code == "out-of-bounds"
    lines = {span.start_line for span in found[0].sources}
    assert BODY_LINE + len(TILES.strip().split("\n")) in lines


def test_an_immediate_bias_needs_trn2() -> None:
    line = "nisa.activation(dst=s, op=nl.exp, data=s, bias=1.0)"
    assert problems(line) == []
    assert [p.code for p in problems(line, "trn1")] == ["immediate"]


@pytest.mark.parametrize(
    ("line", "allocated"),
    [
        ("nisa.nc_matmul(dst=s[0:64, :], stationary=s, moving=s)", ["s = nl.ndarray"]),
        ("nisa.dma_copy(dst=p, src=x[0:128, :])", ["p = nl.ndarray"]),
        ("nisa.tensor_tensor(dst=s, data1=p, data2=r, op=nl.add)", ["r = nl.", "p = nl."]),
        ("nisa.nc_matmul(dst=p[0:64, :], stationary=q, moving=s)", ["q = nl.ndarray"]),
        ("nisa.tensor_copy(dst=s, src=h)", ["h = nl.ndarray", "s = nl.ndarray"]),
        ("nisa.dma_copy(dst=s, src=x[128:256, :])", ["def k(x)"]),
    ],
)
def test_problems_lead_to_the_allocations_concerned(line: str, allocated: list[str]) -> None:
    text = kernel(TILES + line + "\nreturn x")
    source = module(text).source
    (found, *_) = problems(line)
    lines = [
        text.split("\n")[span.start_line - 1].strip()
        for span in found.sources
        if source.excerpt(span).startswith("nl.ndarray") or source.excerpt(span) == "x"
    ]
    assert len(lines) == len(allocated)
    for shown, start in zip(lines, allocated, strict=True):
        assert shown.startswith(start)
