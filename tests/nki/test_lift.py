"""The IR of a kernel computes what the kernel computes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.ir.evaluate import evaluate
from migrate.ir.nodes import (
    AxisKind,
    Fold,
    Guard,
    Kernel,
    Load,
    Opaque,
    Parallel,
    Reduce,
    Space,
    walk,
)
from migrate.ir.reals import Reals
from migrate.ir.text import render
from migrate.ir.validate import problems
from migrate.nki.lift import lift
from migrate.nki.simulate import simulate
from migrate.nki.symbols import binary as number
from migrate.nki.symbols import size
from migrate.nki.values import TensorSpec
from migrate.numerics.bounded import Bounded
from migrate.numerics.dtypes import DType
from tests.nki.kernels import (
    HEADER,
    MATMUL,
    ROWS,
    SOFTMAX,
    TILED_MATMUL,
    VECTOR_ADD,
    kernel,
    module,
    tensor,
)

RNG = np.random.default_rng(11)


def normal(*shape: int, dtype: Any = np.float32) -> Any:
    return RNG.normal(size=shape).astype(dtype)


def lifted(text: str, name: str = "k", grid: tuple[int, ...] = (), **args: Any) -> Kernel:
    """The IR, checked to be well formed and to agree with a run."""
    arrays = {n: a for n, a in args.items() if isinstance(a, np.ndarray)}
    plain = {n: a for n, a in args.items() if n not in arrays}
    specs = {n: tensor(n, *a.shape, dtype=DType.of(a.dtype)) for n, a in arrays.items()}
    found = lift(module(text), name, {**specs, **plain}, grid=grid)
    assert found.kernel is not None, found.specialization.events
    assert problems(found.kernel) == ()
    domain = Bounded()
    run = simulate(module(text), name, args, domain=domain, grid=grid)
    assert run.complete, (run.happenings, run.specialization.events)
    sizes = {f"{n}{k}": size for n, a in arrays.items() for k, size in enumerate(a.shape)}
    reals = {n: a.astype(np.float64) for n, a in arrays.items()}
    values = evaluate(found.kernel, sizes, Reals(reals))
    assert values.trouble == ()
    assert found.kernel.outputs
    for output in found.kernel.outputs:
        if output.position is not None:
            wanted = run.outputs[output.position]
        else:
            wanted = run.inputs_after[output.version.buffer]
        np.testing.assert_allclose(
            values.outputs[output.version.buffer],
            domain.to_array(wanted).reshape(-1),
            rtol=1e-9,
            atol=1e-9,
        )
    return found.kernel


def loops(found: Kernel) -> list[str]:
    """The loops around tiles, as `parallel i` or `fold i`."""
    shown: list[str] = []
    for op in walk(found.body):
        if isinstance(op, Parallel | Fold) and op.axes[0].kind.value in {"tile", "sequential"}:
            kind = "fold" if isinstance(op, Fold) else "parallel"
            shown.append(f"{kind} {op.axes[0].name}")
    return shown


VECTOR_ADD_IR = """\
kernel vector_add (nki)
  sizes a0, b0
  read at a0 = 2248, b0 = 2248
  buffer a[a0] float32 hbm in
  buffer b[b0] float32 hbm in
  buffer out[a0] float32 hbm out
  buffer x[2, 128, 8] float32 onchip scratch
  buffer y[2, 128, 8] float32 onchip scratch
  buffer x_2[2, 128, 1] float32 onchip scratch
  buffer y_2[2, 128, 1] float32 onchip scratch
  parallel i<a0 // 1024 (tile)
    parallel p<128 (partition), f<8 (free)
      %v1:float32 = load a.0[f + 1024*i + 8*p]
      x.1 = store x.0[i, p, f] <- %v1
    parallel p<128 (partition), f<8 (free)
      %v2:float32 = load b.0[f + 1024*i + 8*p]
      y.1 = store y.0[i, p, f] <- %v2
    parallel p<128 (partition), f<8 (free)
      %v3:float32 = load x.1[i, p, f]
      %v4:float32 = load y.1[i, p, f]
      %v5:float32 = add %v3, %v4
      x.2 = store x.1[i, p, f] <- %v5
    parallel p<128 (partition), f<8 (free)
      %v6:float32 = load x.2[i, p, f]
      out.1 = store out.0[f + 1024*i + 8*p] <- %v6
  parallel j<(a0 + 127) // 128 - 8*(a0 // 1024) (tile)
    parallel p<min(128, a0 % 1024 - 128*j) (partition)
      %v7:float32 = load a.0[1024*(a0 // 1024) + 128*j + p]
      x_2.1 = store x_2.0[j, p, 0] <- %v7
    parallel p<min(128, a0 % 1024 - 128*j) (partition)
      %v8:float32 = load b.0[1024*(a0 // 1024) + 128*j + p]
      y_2.1 = store y_2.0[j, p, 0] <- %v8
    parallel p<min(128, a0 % 1024 - 128*j) (partition)
      %v9:float32 = load x_2.1[j, p, 0]
      %v10:float32 = load y_2.1[j, p, 0]
      %v11:float32 = add %v9, %v10
      x_2.2 = store x_2.1[j, p, 0] <- %v11
    parallel p<min(128, a0 % 1024 - 128*j) (partition)
      %v12:float32 = load x_2.2[j, p, 0]
      out.2 = store out.1[1024*(a0 // 1024) + 128*j + p] <- %v12
  output out.2 (result 0)
  understood 24 of 24 statements
"""

MATMUL_IR = """\
kernel k (nki)
  sizes x0, x1, y0, y1
  read at x0 = 384, x1 = 64, y0 = 384, y1 = 40
  buffer x[x0, x1] float32 hbm in
  buffer y[y0, y1] float32 hbm in
  buffer p[x1, y1] float32 accumulator scratch
  buffer a[3, 128, x1] float32 onchip scratch
  buffer b[3, 128, y1] float32 onchip scratch
  buffer s[x1, y1] float32 onchip scratch
  buffer z[x1, y1] float32 hbm out
  parallel p<x1 (partition), f<y1 (free)
    %v1:float32 = 0.0
    p.1 = store p.0[p, f] <- %v1
  fold i<x0 // 128 (sequential)
    carry a.1 = a.0 then a.2 -> a.3
    carry b.1 = b.0 then b.2 -> b.3
    carry p.2 = p.1 then p.3 -> p.4
    parallel p<128 (partition), f<x1 (free)
      %v2:float32 = load x.0[128*i + p, f]
      a.2 = store a.1[i, p, f] <- %v2
    parallel p<128 (partition), f<y1 (free)
      %v3:float32 = load y.0[128*i + p, f]
      b.2 = store b.1[i, p, f] <- %v3
    parallel p<x1 (partition), f<y1 (free)
      %v4:float32 = load p.2[p, f]
      %v7:float32 = contract %v5, %v6 over k<128 (partition)
        %v5:float32 = load a.2[i, k, p]
        %v6:float32 = load b.2[i, k, f]
      %v8:float32 = add %v4, %v7
      p.3 = store p.2[p, f] <- %v8
  parallel p<x1 (partition), f<y1 (free)
    %v9:float32 = load p.4[p, f]
    s.1 = store s.0[p, f] <- %v9
  parallel p<x1 (partition), f<y1 (free)
    %v10:float32 = load s.1[p, f]
    z.1 = store z.0[p, f] <- %v10
  output z.1 (result 0)
  understood 14 of 14 statements
"""


def test_vector_add_with_remainder() -> None:
    found = lifted(VECTOR_ADD, "vector_add", a=normal(2248), b=normal(2248))
    assert render(found) == VECTOR_ADD_IR


def test_a_tiled_matmul_is_a_sum_from_zeros() -> None:
    found = lifted(MATMUL, x=normal(384, 64), y=normal(384, 40))
    assert render(found) == MATMUL_IR


@pytest.mark.parametrize("n", [1, 128, 1024, 1300])
def test_vector_add_at_other_lengths(n: int) -> None:
    lifted(VECTOR_ADD, "vector_add", a=normal(n), b=normal(n))


@pytest.mark.parametrize(("r", "c"), [(1, 3), (128, 3), (129, 7), (300, 5)])
def test_rows_with_a_remainder_in_the_last_tile(r: int, c: int) -> None:
    found = lifted(ROWS, "rows", x=normal(r, c))
    assert loops(found) == ["parallel i"]


@pytest.mark.parametrize(("r", "c"), [(128, 5), (200, 16)])
def test_softmax_by_rows(r: int, c: int) -> None:
    found = lifted(SOFTMAX, x=normal(r, c))
    assert loops(found) == ["parallel i"]
    reductions = [op for op in walk(found.body) if isinstance(op, Reduce)]
    assert [op.operator for op in reductions] == ["maximum", "add"]


@pytest.mark.parametrize(("m", "n", "k"), [(16, 32, 8), (40, 70, 20)])
def test_a_tiled_matmul_with_remainders_everywhere(m: int, n: int, k: int) -> None:
    found = lifted(TILED_MATMUL, lhs=normal(k, m), rhs=normal(k, n), tm=16, tn=32, tk=8)
    assert loops(found)[:2] == ["parallel i", "parallel j"]
    assert loops(found)[2] in {"fold t", "parallel t"}


def test_spans_point_at_the_calls() -> None:
    text = module(VECTOR_ADD).source
    found = lifted(VECTOR_ADD, "vector_add", a=normal(2248), b=normal(2248))
    shown = {text.excerpt(op.span).partition("(")[0] for op in walk(found.body)}
    assert shown == {
        "nisa.dma_copy",
        "nisa.tensor_tensor",
        "for i in nl.affine_range",
        "for j in range",
    }
    axis = next(op.axes[0] for op in walk(found.body) if isinstance(op, Parallel))
    assert [text.excerpt(span) for span in axis.sources[:3]] == ["n // step", "n", "rows * WIDTH"]


def binary(line: str, out: str = "nl.float32") -> str:
    return kernel(
        f"""
p, f = x.shape
a = nl.ndarray((p, f), dtype=x.dtype, buffer=nl.sbuf)
b = nl.ndarray((p, f), dtype=y.dtype, buffer=nl.sbuf)
c = nl.ndarray((p, f), dtype={out}, buffer=nl.sbuf)
v = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.sbuf)
s = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x)
nisa.dma_copy(dst=b, src=y)
nisa.dma_copy(dst=v, src=x[:, 0:1])
m = nl.ndarray((p, f), dtype=nl.uint8, buffer=nl.sbuf)
nisa.memset(s, 0.0)
{line}
z = nl.ndarray((p, f), dtype={out}, buffer=nl.shared_hbm)
w = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=z, src=c)
nisa.dma_copy(dst=w, src=s)
return z, w
""",
        "x, y",
    )


@pytest.mark.parametrize(
    "line",
    [
        "nisa.tensor_tensor(c, a, b, nl.subtract)",
        "nisa.tensor_tensor(c, a, b, nl.less)",
        "nisa.tensor_tensor(c, a, b, nl.maximum)",
        "nisa.tensor_scalar(c, a, nl.subtract, v, True, nl.multiply, 3.0)",
        "nisa.tensor_scalar(c, a, nl.add, 1, op1=nl.maximum, operand1=v)",
        "nisa.scalar_tensor_tensor(c, a, nl.multiply, v, nl.add, b)",
        "nisa.activation(c, nl.tanh, a, bias=v, scale=0.5)",
        "nisa.activation(c, nl.copy, a, scale=v)",
        "nisa.activation_reduce(c, nl.exp, a, nl.add, s)",
        "nisa.reciprocal(c, a)",
        "nisa.tensor_copy(c, a)\nnisa.tensor_reduce(s, nl.maximum, a, axis=(1,))",
        "nisa.tensor_copy(c, a)\nnisa.tensor_reduce(s, nl.add, a, axis=1, negate=True)",
        "nisa.iota(c, pattern=[[10, 2], [1, 4]], offset=5, channel_multiplier=100)",
        "nisa.affine_select(c, [[-1, 8]], 1, a, -9.0, nl.greater_equal, offset=2)",
        "nisa.affine_select(c, [[2, 4], [1, 2]], -1, a, 0.0, cmp_op=nl.less)",
        "nisa.range_select(c, a, nl.greater_equal, nl.less, s, v, range_start=-2)",
        (
            "nisa.tensor_scalar(m, b, nl.less, 0.0)\n"
            "nisa.select_reduce(c, m, a, -5.0, s, nisa.reduce_cmd.reset_reduce)"
        ),
        "nisa.tensor_scalar(m, b, nl.less, 0.0)\nnisa.select_reduce(c, m, a, v, reverse_pred=True)",
        (
            "nisa.tensor_copy(c, b)\nnisa.tensor_scalar(m, a, nl.less, 0.0)\n"
            "nisa.tensor_copy_predicated(c, a, m)"
        ),
        "nisa.memset(c, 1.5)\nnisa.memset(c[4:6, 2:5], -1.0)",
        "nisa.tensor_copy(c.reshape((16, 2, 4)), a.reshape((16, 4, 2)))",
        "nisa.tensor_copy(c[:, ::2], a[:, 0:4])\nnisa.tensor_copy(c[:, 1::2], b[:, 4:8])",
        "nisa.tensor_copy(c, a.ap([[8, 16], [2, 4], [1, 2]]))",
        "nisa.tensor_copy(c, v.broadcast(1, 8))",
        "nisa.tensor_copy(c.reshape((16, 4, 2)), a.reshape((16, 2, 4)).permute((0, 2, 1)))",
    ],
)
def test_instructions(line: str) -> None:
    lifted(binary(line), x=normal(16, 8), y=normal(16, 8))


def test_stores_round_where_the_tile_is_narrow() -> None:
    found = lifted(
        binary("nisa.tensor_tensor(c, a, b, nl.add)", "nl.bfloat16"),
        x=np.ones((16, 8), np.float32),
        y=np.ones((16, 8), np.float32),
    )
    assert " cast %" in render(found)
    bits = binary("nisa.tensor_scalar(c, a, nl.right_shift, 3)", "nl.int32")
    lifted(bits, x=np.arange(128, dtype=np.int32).reshape(16, 8), y=normal(16, 8))


def test_low_precision_matmuls_widen_their_operands() -> None:
    x, y = normal(256, 8, dtype=ml_dtypes.bfloat16), normal(256, 4, dtype=ml_dtypes.bfloat16)
    assert "cast" in render(lifted(MATMUL, x=x, y=y))


TILED = """
k, m = x.shape
_, n = y.shape
z = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
for i in range(m // 16):
    for j in range(n // 8):
        {hoisted}
        for t in range(k // 32):
            a = nl.ndarray((32, 16), dtype=x.dtype, buffer=nl.sbuf)
            b = nl.ndarray((32, 8), dtype=y.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=a, src=x[t * 32 : t * 32 + 32, i * 16 : i * 16 + 16])
            nisa.dma_copy(dst=b, src=y[nl.ds(t * 32, 32), nl.ds(j * 8, 8)])
            nisa.nc_matmul(dst=p, stationary=a, moving=b{accumulate})
        s = nl.ndarray((16, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=s, src=p)
        nisa.dma_copy(dst=z[i * 16 : i * 16 + 16, j * 8 : j * 8 + 8], src=s)
return z
"""
PSUM = "p = nl.ndarray((16, 8), dtype=nl.float32, buffer=nl.psum)"


@pytest.mark.parametrize("accumulate", ["", ", accumulate=t > 0"])
def test_output_tiles_are_parallel_and_the_contraction_is_not(accumulate: str) -> None:
    text = kernel(TILED.format(hoisted=PSUM, accumulate=accumulate), "x, y")
    found = lifted(text, x=normal(96, 32), y=normal(96, 24))
    assert loops(found) == ["parallel i", "parallel j", "fold t"]
    accumulator = next(b for b in found.buffers if b.space is Space.ACCUMULATOR)
    assert [str(n) for n in accumulator.shape] == ["2", "3", "16", "8"]


def test_a_sum_hoisted_out_of_the_output_loops_goes_on() -> None:
    body = PSUM + "\n" + TILED.format(hoisted="pass", accumulate="")
    found = lifted(kernel(body, "x, y"), x=normal(64, 32), y=normal(64, 16))
    assert loops(found) == ["fold i", "fold j", "fold t"]


def test_tiles_kept_in_a_list_are_found_again() -> None:
    found = lifted(
        kernel(
            """
r, c = x.shape
tiles = []
for i in range(r // 16):
    t = nl.ndarray((16, c), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x[i * 16 : i * 16 + 16, :])
    tiles.append(t)
y = nl.ndarray((r, c), dtype=x.dtype, buffer=nl.shared_hbm)
for j in range(len(tiles)):
    nisa.dma_copy(dst=y[j * 16 : j * 16 + 16, :], src=tiles[len(tiles) - 1 - j])
return y
"""
        ),
        x=normal(64, 3),
    )
    assert loops(found) == ["parallel i", "parallel j"]


def test_loops_over_lists_and_while_loops_are_unrolled() -> None:
    found = lifted(
        kernel(
            """
y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=t, src=x)
for scale in (0.5, 3.0, -1.0):
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=scale)
at = 0
while at < x.shape[1]:
    width = min(3, x.shape[1] - at)
    nisa.dma_copy(dst=y[:, at : at + width], src=t[:, at : at + width])
    at += width
return y
"""
        ),
        x=normal(16, 8),
    )
    assert loops(found) == []


def test_counters_carried_round_a_loop_are_recovered() -> None:
    found = lifted(
        kernel(
            """
y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
at = 0
for i in range(x.shape[0] // 4):
    t = nl.ndarray((4, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x[at : at + 4, :])
    nisa.dma_copy(dst=y[at : at + 4, :], src=t)
    at += 4
return y
"""
        ),
        x=normal(600, 2),
    )
    assert loops(found) == ["parallel i"]
    assert "load x.0[4*i + p, f]" in render(found)


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ("i == 0", "i == 0"),
        ("i > 0", "i - 1 >= 0"),
        ("i < n - 1", "i"),
        ("i == n - 1", "i"),
        ("i % 2 == 1", "i"),
        ("2 <= i < 4", "i"),
        ("i in (0, 3)", "i"),
    ],
)
def test_what_runs_in_some_iterations_is_guarded(condition: str, shown: str) -> None:
    found = lifted(
        kernel(
            f"""
n = x.shape[0] // 4
y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
for i in range(n):
    t = nl.ndarray((4, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x[i * 4 : i * 4 + 4, :])
    if {condition}:
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=100.0)
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=y[i * 4 : i * 4 + 4, :], src=t)
return y
"""
        ),
        x=normal(24, 2),
    )
    (guard,) = [op for op in walk(found.body) if isinstance(op, Guard)]
    assert len(guard.body) == 2
    assert shown in str(guard.condition)


def test_triangular_loops_have_an_extent_that_follows() -> None:
    found = lifted(
        kernel(
            """
n = x.shape[0]
y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
t = nl.ndarray((1, n), dtype=x.dtype, buffer=nl.sbuf)
nisa.memset(t, 0.0)
for i in range(n):
    nisa.dma_copy(dst=y[i : i + 1, :], src=t)
for i in range(n):
    for j in range(i + 1):
        nisa.dma_copy(dst=y[i : i + 1, j : j + 1], src=x[i : i + 1, j : j + 1])
return y
"""
        ),
        x=normal(5, 5),
    )
    assert loops(found) == ["parallel i", "parallel i_2", "parallel j"]
    assert "parallel j<i_2 + 1" in render(found)


def test_iterations_that_read_what_another_wrote_stay_in_order() -> None:
    found = lifted(
        kernel(
            """
n, c = x.shape
y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
t = nl.ndarray((1, c), dtype=x.dtype, buffer=nl.sbuf)
u = nl.ndarray((1, c), dtype=x.dtype, buffer=nl.sbuf)
nisa.memset(t, 0.0)
for i in nl.affine_range(n):
    nisa.dma_copy(dst=u, src=x[i : i + 1, :])
    nisa.tensor_tensor(dst=t, data1=t, data2=u, op=nl.add)
    nisa.dma_copy(dst=y[i : i + 1, :], src=t)
return y
"""
        ),
        x=normal(6, 3),
    )
    assert loops(found) == ["fold i"]


def test_helpers_and_nested_loops_keep_apart() -> None:
    found = lifted(
        kernel(
            """
def scaled(dst, src, rows):
    for i in range(2):
        t = nl.ndarray((rows, src.shape[1]), dtype=src.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=src[i * rows : i * rows + rows, :])
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=float(rows))
        nisa.dma_copy(dst=dst[i * rows : i * rows + rows, :], src=t)

y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
z = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
half = x.shape[0] // 2
scaled(y, x, half)
scaled(z, y, half)
return z, y
"""
        ),
        x=normal(8, 3),
    )
    assert loops(found) == ["parallel i", "parallel i_2"]
    assert [output.position for output in found.outputs] == [0, 1]
    assert found.statements.total == 12
    assert found.statements.opaque == 0


def test_in_place_results_and_parts_returned() -> None:
    found = lifted(
        kernel(
            """
t = nl.ndarray((8, 4), dtype=x.dtype, buffer=nl.sbuf)
nisa.memset(t, 2.0)
nisa.dma_copy(dst=x[0:8, :], src=t)
return x[4:12, 1:3]
"""
        ),
        x=normal(16, 4),
    )
    assert [(o.version.buffer, o.position) for o in found.outputs] == [
        ("x_returned", 0),
        ("x", None),
    ]
    assert found.buffer("x").role == "inout"


def test_what_is_not_understood_is_opaque_with_its_text() -> None:
    text = kernel(
        """
t = nl.ndarray((16, 8), dtype=x.dtype, buffer=nl.sbuf)
m = nl.ndarray((16, 8), dtype=x.dtype, buffer=nl.sbuf)
n = nl.ndarray((16, 8), dtype=nl.uint32, buffer=nl.sbuf)
nisa.dma_copy(dst=t, src=x)
nisa.topk(val_dst=m, idx_dst=n, src=t, n=8)
y = nl.ndarray((16, 8), dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=y, src=m)
return y
"""
    )
    found = lift(module(text), "k", {"x": tensor("x", 16, 8)}).kernel
    assert found is not None
    assert problems(found) == ()
    (opaque,) = [op for op in walk(found.body) if isinstance(op, Opaque)]
    assert opaque.text == "nisa.topk(val_dst=m, idx_dst=n, src=t, n=8)"
    assert opaque.reason.startswith("the instruction topk: ")
    assert {version.buffer for version in opaque.args} == {"m", "n", "t"}
    assert (found.statements.total, found.statements.opaque) == (8, 1)


def test_a_kernel_that_fails_has_no_ir() -> None:
    found = lift(module(kernel("assert x.shape[0] == 1\nreturn x")), "k", {"x": tensor("x", 2)})
    assert found.kernel is None
    assert found.specialization.events[0].kind == "assert"


@settings(max_examples=60)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(2, 9), st.integers(2, 9))
def test_any_size_and_tile(rows: int, columns: int, height: int, width: int) -> None:
    text = kernel(
        f"""
r, c = x.shape
y = nl.ndarray((c, r), dtype=x.dtype, buffer=nl.shared_hbm)
for i in range(math.ceil(r / {height})):
    m = min({height}, r - i * {height})
    for j in range(0, c, {width}):
        n = min({width}, c - j)
        t = nl.ndarray(({height}, {width}), dtype=x.dtype, buffer=nl.sbuf)
        u = nl.ndarray(({width}, {height}), dtype=x.dtype, buffer=nl.psum)
        s = nl.ndarray(({width}, {height}), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t[:m, :n], src=x[nl.ds(i * {height}, m), j : j + n])
        if i == 0 and j > 0:
            nisa.tensor_scalar(t[:m, :n], t[:m, :n], nl.multiply, 2.0)
        nisa.nc_transpose(u[:n, :m], t[:m, :n])
        nisa.tensor_copy(s[:n, :m], u[:n, :m])
        nisa.dma_copy(dst=y[j : j + n, i * {height} : i * {height} + m], src=s[:n, :m])
return y
"""
    )
    assert loops(lifted(text, x=normal(rows, columns))) == ["parallel i", "parallel j"]


HOISTED_SUM = """
k, m = x.shape
_, n = y.shape
z = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
bank = nl.ndarray((m, 8), dtype=nl.float32, buffer=nl.psum)
for j in range(0, n, 8):
    width = min(8, n - j)
    p = bank[:, 0:width]
    for t in {steps}:
        a = nl.ndarray((32, m), dtype=x.dtype, buffer=nl.sbuf)
        b = nl.ndarray((32, width), dtype=y.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=x[t * 32 : t * 32 + 32, :])
        nisa.dma_copy(dst=b, src=y[t * 32 : t * 32 + 32, j : j + width])
        nisa.nc_matmul(dst=p, stationary=a, moving=b)
    s = nl.ndarray((m, width), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=s, src=p)
    nisa.dma_copy(dst=z[:, j : j + width], src=s)
return z
"""


@pytest.mark.parametrize("steps", ["range(k // 32)", "[0, 1]"])
def test_a_hoisted_sum_of_tiles_that_change_size_goes_on(steps: str) -> None:
    text = kernel(HOISTED_SUM.format(steps=steps), "x, y")
    lifted(text, x=normal(64, 5), y=normal(64, 20))
    found = lift(module(text), "k", {"x": tensor("x", 64, 5), "y": tensor("y", 64, 20)})
    (event,) = found.specialization.events
    assert event.kind == "ambiguous"
    assert event.span is not None
    assert text.split("\n")[event.span.start_line - 1].lstrip().startswith("nisa.nc_matmul")
    assert found.specialization.complete


def test_a_sum_that_is_read_before_its_loop_starts_it() -> None:
    text = kernel(
        """
k, m = x.shape
_, n = y.shape
z = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
p = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.psum)
nisa.memset(p, 5.0)
for t in range(k // 32):
    a = nl.ndarray((32, m), dtype=x.dtype, buffer=nl.sbuf)
    b = nl.ndarray((32, n), dtype=y.dtype, buffer=nl.sbuf)
    s = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=x[t * 32 : t * 32 + 32, :])
    nisa.dma_copy(dst=b, src=y[t * 32 : t * 32 + 32, :])
    nisa.tensor_copy(dst=s, src=p)
    nisa.dma_copy(dst=z, src=s)
    nisa.nc_matmul(dst=p, stationary=a, moving=b)
return z
""",
        "x, y",
    )
    lifted(text, x=normal(32, 5), y=normal(32, 4))
    lifted(text, x=normal(96, 5), y=normal(96, 4))


def test_a_sum_is_not_cleared_where_its_loop_does_not_run() -> None:
    text = kernel(
        """
z = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
a = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
p = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.psum)
s = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x)
nisa.memset(p, 5.0)
for i in range(3):
    for j in range(i % 2):
        nisa.nc_matmul(dst=p, stationary=a, moving=a, accumulate=j > 0)
nisa.tensor_copy(dst=s, src=p)
nisa.dma_copy(dst=z, src=s)
return z
"""
    )
    lifted(text, x=normal(6, 6))


def test_loads_name_every_place_that_decides_where_they_are() -> None:
    text = HEADER + (
        """
STEP = 4


def load(src, at, rows, left):
    tile = nl.ndarray((rows, 2), dtype=src.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=src[at : at + rows, left : left + 2])
    return tile


@nki.jit
def k(x, shift):
    n, c = x.shape
    y = nl.ndarray((n, 2), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(n // STEP):
        top = i * STEP
        edge = shift
        tile = load(x, top, STEP, edge)
        first = load(x, 0, STEP, left=1)
        nisa.tensor_tensor(dst=tile, data1=tile, data2=first, op=nl.add)
        nisa.dma_copy(dst=y[top : top + STEP, :], src=tile)
    return y
"""
    )
    source = module(text).source
    found = lifted(text, x=normal(8, 5), shift=2)
    loads = [op for op in walk(found.body) if isinstance(op, Load) and op.source.buffer == "x"]
    shown = [[source.excerpt(span) for span in op.sources] for op in loads]
    header = "for i in range(n // STEP)"
    assert shown[0][:4] == ["top", "edge", "i * STEP", "shift"]
    assert shown[0][4:] == [header, "4"]
    assert shown[1] == ["0", "1"]


GRID = """
n, c = x.shape
y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
rows = n // nl.num_programs(0)
top = nl.program_id(0) * rows
for i in range(rows):
    t = nl.ndarray((1, c), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x[top + i : top + i + 1, :])
    if nl.program_id(axis=0) == 1:
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=3.0)
    nisa.dma_copy(dst=y[top + i : top + i + 1, :], src=t)
return y
"""


def test_programs_of_a_grid_are_a_loop_around_the_kernel() -> None:
    found = lifted(kernel(GRID), grid=(2,), x=normal(6, 3))
    axes = [op.axes[0] for op in walk(found.body) if isinstance(op, Parallel)]
    assert (axes[0].name, axes[0].kind) == ("program", AxisKind.GRID)
    assert str(axes[0].extent) == "2"
    assert loops(lifted(kernel(GRID), x=normal(6, 3))) == ["parallel i"]


def test_a_grid_may_have_several_axes() -> None:
    text = kernel(
        """
y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
t = nl.ndarray((1, 1), dtype=x.dtype, buffer=nl.sbuf)
i, j = nl.program_id(0), nl.program_id(1)
nisa.dma_copy(dst=t, src=x[i : i + 1, j : j + 1])
nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=float(nl.program_ndim()))
nisa.dma_copy(dst=y[i : i + 1, j : j + 1], src=t)
return y
"""
    )
    lifted(text, grid=(2, 3), x=normal(2, 3))


@pytest.mark.parametrize(
    "body",
    [
        "return nl.ndarray((nl.program_id(0) + 1, 2), dtype=x.dtype, buffer=nl.shared_hbm)",
        "return nl.ndarray((2, 2), dtype=x.dtype, buffer=nl.hbm)",
        "return nl.ndarray((2, nl.program_id(1)), dtype=x.dtype, buffer=nl.shared_hbm)",
    ],
)
def test_programs_that_do_not_fit_together_are_a_gap(body: str) -> None:
    found = lift(module(kernel(body)), "k", {"x": tensor("x", 2)}, grid=(2,))
    assert [event.kind for event in found.specialization.events] == ["unsupported"]
    assert not found.specialization.complete


def test_tiles_made_in_a_loop_can_be_returned() -> None:
    found = lifted(
        kernel(
            """
n, c = x.shape
tiles = []
for i in range(0, n, 2):
    rows = min(2, n - i)
    t = nl.ndarray((rows, c), dtype=x.dtype, buffer=nl.hbm)
    nisa.dma_copy(dst=t, src=x[i : i + rows, :])
    tiles.append(t)
return tiles[0], tiles[-1], tiles[1][:, 1:2], t.reshape((rows * c,))
"""
        ),
        x=normal(5, 3),
    )
    assert [output.position for output in found.outputs] == [0, 1, 2, 3]


def test_tiles_of_a_list_that_change_size_are_reshaped_each_by_its_own() -> None:
    lifted(
        kernel(
            """
n, c = x.shape
y = nl.ndarray((c, n), dtype=x.dtype, buffer=nl.shared_hbm)
tiles = []
for i in range(0, n, 4):
    rows = min(4, n - i)
    t = nl.ndarray((c, 2, rows // 2), dtype=x.dtype, buffer=nl.sbuf)
    for p in range(c):
        nisa.dma_copy(dst=t[p : p + 1].reshape((1, rows)), src=x[i : i + rows, p : p + 1])
    tiles.append(t)
for j in range(len(tiles)):
    width = min(4, n - j * 4)
    nisa.dma_copy(dst=y[:, j * 4 : j * 4 + width], src=tiles[j].reshape((c, width)))
return y
"""
        ),
        x=normal(10, 3),
    )


@pytest.mark.parametrize("rows", [16, 32])
def test_a_sum_of_no_rows_is_no_gap(rows: int) -> None:
    text = TILED_MATMUL.replace("(m + tm - 1) // tm", "m // tm + 1")
    found = lifted(text, lhs=normal(16, rows), rhs=normal(16, 33), tm=16, tn=32, tk=8)
    assert not any(isinstance(op, Opaque) for op in walk(found.body))


def test_sizes_that_occur_in_products_only() -> None:
    text = kernel(
        """
rows, columns = x.shape
y = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
tile = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x)
nisa.dma_copy(dst=y, src=tile)
return y
"""
    )
    product = number("*", size("heads", 4), size("width", 8))
    specs = {"x": TensorSpec((product, size("columns", 5)), DType.FLOAT32)}
    found = lift(module(text), "k", specs)
    assert found.kernel is not None
    assert problems(found.kernel) == ()
    x = normal(32, 5)
    reals = Reals({"x": x.astype(np.float64)})
    values = evaluate(found.kernel, {"heads": 4, "width": 8, "columns": 5}, reals)
    (output,) = found.kernel.outputs
    np.testing.assert_array_equal(values.outputs[output.version.buffer], x.reshape(-1))
