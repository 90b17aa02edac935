"""Kernels that several tests read, and helpers to run them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from migrate.nki.frames import Instruction
from migrate.nki.parse import Module, parse
from migrate.nki.specialize import Specialization, specialize
from migrate.nki.symbols import size
from migrate.nki.values import TensorSpec
from migrate.numerics.dtypes import DType
from migrate.source import Source

HEADER = """\
import math
import nki
import nki.isa as nisa
import nki.language as nl
"""

VECTOR_ADD = (
    HEADER
    + """
WIDTH = 8


@nki.jit
def vector_add(a, b):
    (n,) = a.shape
    rows = nl.tile_size.pmax
    step = rows * WIDTH
    out = nl.ndarray((n,), dtype=a.dtype, buffer=nl.shared_hbm)
    whole = n // step
    for i in nl.affine_range(whole):
        at = i * step
        x = nl.ndarray((rows, WIDTH), dtype=a.dtype, buffer=nl.sbuf)
        y = nl.ndarray((rows, WIDTH), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x, src=a[at : at + step].reshape((rows, WIDTH)))
        nisa.dma_copy(dst=y, src=b[nl.ds(at, step)].reshape((rows, WIDTH)))
        nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
        nisa.dma_copy(dst=out[at : at + step].reshape((rows, WIDTH)), src=x)
    done = whole * step
    for j in range(math.ceil((n - done) / rows)):
        at = done + j * rows
        count = min(rows, n - at)
        x = nl.ndarray((rows, 1), dtype=a.dtype, buffer=nl.sbuf)
        y = nl.ndarray((rows, 1), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x[0:count], src=a[at : at + count].reshape((count, 1)))
        nisa.dma_copy(dst=y[0:count], src=b[at : at + count].reshape((count, 1)))
        nisa.tensor_tensor(dst=x[0:count], data1=x[0:count], data2=y[0:count], op=nl.add)
        nisa.dma_copy(dst=out[at : at + count].reshape((count, 1)), src=x[0:count])
    return out
"""
)

ROWS = (
    HEADER
    + """

@nki.jit
def rows(x):
    r, c = x.shape
    y = nl.ndarray((r, c), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(math.ceil(r / 128)):
        count = min(128, r - i * 128)
        tile = nl.ndarray((128, c), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[0:count, :], src=x[i * 128 : i * 128 + count, :])
        nisa.activation(dst=tile[0:count, :], op=nl.exp, data=tile[0:count, :], scale=0.5)
        nisa.dma_copy(dst=y[i * 128 : i * 128 + count, :], src=tile[0:count, :])
    return y
"""
)


BODY_LINE = 9
"""The line of the first statement of `kernel`'s body."""


def module(text: str) -> Module:
    return parse(Source.of(text, "kernel.py"))


def kernel(body: str, parameters: str = "x") -> str:
    """A module with one kernel `k` whose body is given (indented by four)."""
    lines = "\n".join("    " + line if line else "" for line in body.strip("\n").split("\n"))
    return f"{HEADER}\n\n@nki.jit\ndef k({parameters}):\n{lines}\n"


MATMUL = kernel(
    """
k, m = x.shape
_, n = y.shape
p = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.psum)
for i in range(k // 128):
    a = nl.ndarray((128, m), dtype=x.dtype, buffer=nl.sbuf)
    b = nl.ndarray((128, n), dtype=y.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=x[i * 128 : (i + 1) * 128, :])
    nisa.dma_copy(dst=b, src=y[i * 128 : (i + 1) * 128, :])
    nisa.nc_matmul(dst=p, stationary=a, moving=b)
s = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_copy(dst=s, src=p)
z = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=z, src=s)
return z
""",
    "x, y",
)


def tensor(name: str, *shape: int, dtype: DType = DType.FLOAT32) -> TensorSpec:
    return TensorSpec(tuple(size(f"{name}{k}", n) for k, n in enumerate(shape)), dtype)


def stream(
    text: str, args: Mapping[str, Any], name: str = "k", **options: Any
) -> tuple[list[Instruction], Specialization]:
    """Every instruction of a kernel, and the result."""
    found: list[Instruction] = []
    result = specialize(module(text), name, args, on_instruction=found.append, **options)
    return found, result


SOFTMAX = kernel(
    """
rows, cols = x.shape
y = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
for i in nl.affine_range(math.ceil(rows / 128)):
    at = i * 128
    count = min(128, rows - at)
    tile = nl.ndarray((128, cols), dtype=nl.float32, buffer=nl.sbuf)
    top = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[0:count, :], src=x[at : at + count, :])
    nisa.tensor_reduce(
        dst=top[0:count, :], op=nl.maximum, data=tile[0:count, :], axis=1, negate=True
    )
    nisa.activation(
        dst=tile[0:count, :],
        op=nl.exp,
        data=tile[0:count, :],
        bias=top[0:count, :],
        reduce_op=nl.add,
        reduce_res=total[0:count, :],
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )
    nisa.reciprocal(dst=total[0:count, :], data=total[0:count, :])
    nisa.tensor_scalar(
        dst=tile[0:count, :],
        data=tile[0:count, :],
        op0=nl.multiply,
        operand0=total[0:count, :],
    )
    nisa.dma_copy(dst=y[at : at + count, :], src=tile[0:count, :])
return y
"""
)

TILED_MATMUL = kernel(
    """
k, m = lhs.shape
_, n = rhs.shape
out = nl.ndarray((m, n), dtype=lhs.dtype, buffer=nl.shared_hbm)
for i in nl.affine_range((m + tm - 1) // tm):
    rows = min(tm, m - i * tm)
    for j in nl.affine_range((n + tn - 1) // tn):
        cols = min(tn, n - j * tn)
        acc = nl.ndarray((tm, tn), dtype=nl.float32, buffer=nl.psum)
        for t in nl.affine_range((k + tk - 1) // tk):
            depth = min(tk, k - t * tk)
            a = nl.ndarray((tk, tm), dtype=lhs.dtype, buffer=nl.sbuf)
            b = nl.ndarray((tk, tn), dtype=rhs.dtype, buffer=nl.sbuf)
            nisa.dma_copy(
                dst=a[0:depth, 0:rows],
                src=lhs[t * tk : t * tk + depth, i * tm : i * tm + rows],
            )
            nisa.dma_copy(
                dst=b[0:depth, 0:cols],
                src=rhs[t * tk : t * tk + depth, j * tn : j * tn + cols],
            )
            nisa.nc_matmul(
                dst=acc[0:rows, 0:cols], stationary=a[0:depth, 0:rows], moving=b[0:depth, 0:cols]
            )
        s = nl.ndarray((tm, tn), dtype=out.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=s[0:rows, 0:cols], src=acc[0:rows, 0:cols])
        nisa.dma_copy(
            dst=out[i * tm : i * tm + rows, j * tn : j * tn + cols], src=s[0:rows, 0:cols]
        )
return out
""",
    "lhs, rhs, tm=128, tn=512, tk=128",
)
