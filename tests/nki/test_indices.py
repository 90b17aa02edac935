"""Index tensors, masks and block dimensions: what is read, run and lifted agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from migrate.ir.evaluate import evaluate
from migrate.ir.nodes import Guard, Kernel, Opaque, walk
from migrate.ir.reals import Reals
from migrate.ir.text import render
from migrate.ir.validate import problems
from migrate.nki.lift import lift
from migrate.nki.simulate import Execution, simulate
from migrate.nki.values import View
from migrate.numerics.bounded import Bounded
from migrate.numerics.dtypes import DType
from tests.nki.kernels import kernel, module, stream, tensor

RNG = np.random.default_rng(5)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def ran(text: str, *arrays: Any) -> tuple[Any, Execution[Any]]:
    domain = Bounded()
    found = simulate(module(text), "k", arrays, domain=domain)
    assert found.complete, (found.happenings, found.specialization.events)
    return domain.to_array(found.outputs[0]), found


def both(text: str, **arrays: Any) -> tuple[Any, Kernel]:
    """The output of a run, and the IR, which must give the same."""
    result, run = ran(text, *arrays.values())
    specs = {n: tensor(n, *a.shape, dtype=DType.of(a.dtype)) for n, a in arrays.items()}
    found = lift(module(text), "k", specs)
    assert found.kernel is not None, found.specialization.events
    assert problems(found.kernel) == ()
    assert not [op for op in walk(found.kernel.body) if isinstance(op, Opaque)]
    sizes = {f"{n}{k}": size for n, a in arrays.items() for k, size in enumerate(a.shape)}
    reals = {n: a.astype(np.float64) for n, a in arrays.items()}
    values = evaluate(found.kernel, sizes, Reals(reals))
    (output,) = found.kernel.outputs
    written = run.written[0].reshape(-1)
    np.testing.assert_allclose(
        values.outputs[output.version.buffer][written], result.reshape(-1)[written], atol=1e-9
    )
    return result, found.kernel


def whole(found: Kernel) -> list[Guard]:
    return [op for op in walk(found.body) if isinstance(op, Guard)]


def operands(text: str, **shapes: tuple[int, ...]) -> list[dict[str, View]]:
    found, _ = stream(text, {n: tensor(n, *shape) for n, shape in shapes.items()})
    return [{name: view for name, view in i.operands if isinstance(view, View)} for i in found]


def printed(body: str) -> list[str]:
    _, result = stream(kernel(body), {"x": tensor("x", 128, 512)})
    errors = [e for e in result.events if e.kind in ("error", "unsupported")]
    assert not errors, errors
    return [event.message for event in result.events if event.kind == "print"]


def reasons(body: str, *shape: int) -> list[str]:
    _, result = stream(kernel(body), {"x": tensor("x", *(shape or (128, 512)))})
    return [e.message for e in result.events if e.kind in ("error", "unsupported")]


COPY = """
rows, cols = x.shape
y = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
i_p = nl.arange(128)[:, None]
i_f = nl.arange(64)[None, :]
for k in nl.affine_range(math.ceil(rows / 128)):
    for j in nl.affine_range(cols // 64):
        t = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t[i_p, i_f], src=x[i_p + 128 * k, i_f + 64 * j]{mask})
        nisa.activation(dst=t[i_p, i_f], op=nl.exp, data=t[i_p, i_f]{mask})
        nisa.dma_copy(dst=y[128 * k + i_p, j * 64 + i_f], src=t[i_p, i_f]{mask})
return y
"""


def test_index_tensors_are_windows() -> None:
    x = normal(256, 128)
    result, found = both(kernel(COPY.replace("{mask}", "")), x=x)
    np.testing.assert_allclose(result, np.exp(x), rtol=1e-6)
    assert "load x.0[128*k + p, f + 64*j]" in render(found)


def test_a_mask_on_one_axis_makes_the_views_smaller() -> None:
    x = normal(200, 128)
    text = kernel(COPY.replace("{mask}", ", mask=(i_p + 128 * k < rows)"))
    result, found = both(text, x=x)
    np.testing.assert_allclose(result, np.exp(x), rtol=1e-6)
    assert not whole(found)
    assert "p<min(-128*k + x0, 128)" in render(found)


def test_what_a_mask_leaves_out_is_in_bounds() -> None:
    text = kernel(COPY.replace("{mask}", ", mask=(i_p + 128 * k < rows)"))
    _, result = stream(text, {"x": tensor("x", 200, 128)})
    assert not result.problems
    _, result = stream(kernel(COPY.replace("{mask}", "")), {"x": tensor("x", 200, 128)})
    (problem, *_) = [p for p in result.problems if p.code == "out-of-bounds"]
    assert dict(problem.numbers) == {"axis": 0, "first": 128, "last": 255, "size": 200}


def test_a_mask_that_lets_too_much_through_is_out_of_bounds() -> None:
    text = kernel(COPY.replace("{mask}", ", mask=(i_p + 128 * k < rows + 1)"))
    _, result = stream(text, {"x": tensor("x", 200, 128)})
    (problem, *_) = [p for p in result.problems if p.code == "out-of-bounds"]
    assert dict(problem.numbers)["last"] == 200


@pytest.mark.parametrize("rows", [127, 128, 129, 300])
def test_rows_that_a_mask_leaves_out_altogether(rows: int) -> None:
    body = """
rows, cols = x.shape
y = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
i = nl.mgrid[0:128, 0:64]
for k in nl.affine_range(4):
    t = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    ok = (k * 128 + i.p < rows) & (i.x < cols)
    nisa.dma_copy(dst=t[i.p, i.x], src=x[k * 128 + i.p, i.x], mask=ok)
    nisa.dma_copy(dst=y[k * 128 + i.p, i.x], src=t[i], mask=ok)
return y
"""
    x = normal(rows, 40)
    result, _ = both(kernel(body), x=x)
    np.testing.assert_array_equal(result, x)


def test_a_mask_on_two_axes_stays_with_the_instruction() -> None:
    body = """
n = x.shape[0]
y = nl.ndarray((n,), dtype=x.dtype, buffer=nl.shared_hbm)
i_p = nl.arange(128)[:, None]
i_f = nl.arange(16)[None, :]
for k in nl.affine_range(math.ceil(n / 2048)):
    t = nl.ndarray((128, 16), dtype=x.dtype, buffer=nl.sbuf)
    at = k * 2048 + i_p * 16 + i_f
    nisa.dma_copy(dst=t[i_p, i_f], src=x[at], mask=at < n)
    u = t[i_p, i_f]
    nisa.tensor_scalar(dst=u, data=u, op0=nl.multiply, operand0=2.0, mask=at < n)
    nisa.dma_copy(dst=y[at], src=t[i_p, i_f], mask=at < n)
return y
"""
    x = normal(5000)
    result, found = both(kernel(body), x=x)
    np.testing.assert_allclose(result, x * 2, rtol=1e-6)
    assert len(whole(found)) == 3
    _, specialised = stream(kernel(body), {"x": tensor("x", 5000)})
    assert not specialised.problems


def test_a_triangle_leaves_the_rest_as_it_was() -> None:
    body = """
y = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.shared_hbm)
p = nl.arange(128)[:, None]
f = nl.arange(128)[None, :]
t = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
nisa.memset(dst=t, value=0.0)
nisa.tensor_copy(dst=t, src=t)
u = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=u, src=x)
nisa.tensor_copy(dst=t[p, f], src=u[p, f], mask=(p >= f))
nisa.dma_copy(dst=y, src=t)
return y
"""
    x = normal(128, 128)
    result, _ = both(kernel(body), x=x)
    np.testing.assert_array_equal(result, np.tril(x))


def test_what_a_mask_left_out_is_uninitialised() -> None:
    body = """
y = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.shared_hbm)
p = nl.arange(128)[:, None]
f = nl.arange(128)[None, :]
t = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=t[p, f], src=x[p, f], mask={mask})
nisa.dma_copy(dst=y, src=t)
return y
"""
    for mask, missing in (("f < 100", 28 * 128), ("p >= f", 127 * 64), ("f == 3", 127 * 128)):
        _, run = ran(kernel(body.replace("{mask}", mask)), normal(128, 128))
        (found,) = [h for h in run.happenings if h.code == "uninitialised"]
        assert found.count == missing, mask


@pytest.mark.parametrize(
    ("mask", "kept"),
    [
        ("f > 5", np.s_[6:]),
        ("f >= 5", np.s_[5:]),
        ("f * 3 >= 10", np.s_[4:]),
        ("3 * f <= 10", np.s_[:4]),
        ("10 > f", np.s_[:10]),
        ("3 < f < 9", np.s_[4:9]),
        ("f == 7", np.s_[7:8]),
        ("~(f < 30)", np.s_[30:]),
        ("not f < 30", np.s_[30:]),
        ("f < 12.5", np.s_[:13]),
        ("(f < 20) and (f > 3)", np.s_[4:20]),
        ("(f < 20) & True", np.s_[:20]),
        ("(f < 20) | (f < -1)", np.s_[:20]),
        ("(f < 20) | (f < 7)", np.s_[:20]),
        ("f % 2 == 0", np.s_[::2]),
        ("f % 4 < 1", np.s_[::4]),
        ("f // 8 == 1", np.s_[8:16]),
        ("True", np.s_[:]),
        ("None", np.s_[:]),
        ("x.shape[0] > 5", np.s_[:]),
    ],
)
def test_conditions(mask: str, kept: Any) -> None:
    body = f"""
y = nl.ndarray((128, 40), dtype=x.dtype, buffer=nl.shared_hbm)
p = nl.arange(128)[:, None]
f = nl.arange(40)[None, :]
t = nl.ndarray((128, 40), dtype=x.dtype, buffer=nl.sbuf)
nisa.memset(dst=t, value=0.0)
nisa.dma_copy(dst=t[p, f], src=x[p, f], mask={mask})
nisa.dma_copy(dst=y, src=t)
return y
"""
    x = normal(128, 40)
    result, _ = both(kernel(body), x=x)
    wanted = np.zeros_like(x)
    wanted[:, kept] = x[:, kept]
    np.testing.assert_array_equal(result, wanted)


def test_a_false_mask_skips_the_instruction() -> None:
    body = """
y = nl.ndarray((4, 128, 8), dtype=x.dtype, buffer=nl.shared_hbm)
t = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.sbuf)
nisa.memset(dst=t, value=1.0)
for k in nl.affine_range(4):
    nisa.dma_copy(dst=t, src=x[k], mask=k + 1 < 3)
    nisa.dma_copy(dst=y[k], src=t)
return y
"""
    x = normal(4, 128, 8)
    result, _ = both(kernel(body), x=x)
    np.testing.assert_array_equal(result, x[[0, 1, 1, 1]])


@pytest.mark.parametrize(
    ("mask", "reason"),
    [
        ("(f < 3) | (f > 20)", "joins comparisons with |"),
        ("~((f < 30) & (p < 3))", "opposite of several"),
        ("f * p < 3", "product of two index tensors"),
        ("f", "as a mask"),
        ("f < x", "what a tile holds"),
    ],
)
def test_masks_that_are_not_read(mask: str, reason: str) -> None:
    body = f"""
p = nl.arange(128)[:, None]
f = nl.arange(40)[None, :]
t = nl.ndarray((128, 40), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=t[p, f], src=x[p, f], mask={mask})
"""
    (found,) = reasons(body, 128, 40)
    assert reason in found


def test_a_mask_decides_no_branch() -> None:
    (found,) = reasons("if nl.arange(4)[:, None] < 3:\n    pass")
    assert "branch" in found


def test_quotients_and_remainders() -> None:
    body = """
y = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
p = nl.arange(128)[:, None]
f = nl.arange(64)[None, :]
t = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=t[p, (f % 8) * 8 + f // 8], src=x[p // 2, 64 * (p % 2) + f])
nisa.dma_copy(dst=y[p, f], src=t[p, f])
return y
"""
    x = normal(64, 128)
    result, _ = both(kernel(body), x=x)
    wanted = x.reshape(128, 8, 8).transpose(0, 2, 1).reshape(128, 64)
    np.testing.assert_array_equal(result, wanted)


def test_quotients_that_come_out_whole_leave_strides() -> None:
    body = """
i = nl.arange(8)[:, None, None] * 16 + nl.arange(16)[None, :, None]
t = nl.ndarray((8, 16, 4), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=t, src=x[i // 16, i % 16, nl.arange(4)[None, None, :]])
"""
    ((views),) = operands(kernel(body), x=(8, 16, 4))
    assert views["src"].strided
    assert views["src"].strides == (64, 4, 1)


def test_a_remainder_that_may_leave_its_tensor_is_looked_at() -> None:
    body = """
f = nl.arange(64)[None, :]
t = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=t, src=x[nl.arange(128)[:, None], f - f % {by}])
"""
    for by, last in ((4, 60), (8, 56)):
        text = kernel(body.replace("{by}", str(by)))
        for columns, wanted in ((last + 1, []), (last, [last])):
            _, result = stream(text, {"x": tensor("x", 128, columns)})
            found = [dict(p.numbers)["last"] for p in result.problems if p.code == "out-of-bounds"]
            assert found == wanted


def test_slices_and_missing_axes_beside_index_tensors() -> None:
    body = """
p = nl.arange(128)[:, None]
f = nl.arange(8)[None, :]
t = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=t[...], src=x[1, p, f])
nisa.dma_copy(dst=t[p, f], src=x[0, p, nl.ds(4, 8)])
nisa.dma_copy(dst=t[p], src=x[1, p])
nisa.dma_copy(dst=t, src=x[1:2, 0:128, nl.arange(8)])
"""
    found = operands(kernel(body), x=(2, 128, 8))
    assert [v["src"].sizes for v in found] == [(128, 8), (128, 1, 8), (128, 1, 8), (1, 128, 8)]
    assert found[1]["src"].offset == 4


def test_slices_between_index_tensors_are_not_read() -> None:
    (found,) = reasons("t = x[nl.arange(2)[:, None], 0:128, nl.arange(8)[None, :]]", 2, 128, 8)
    assert "slices between" in found


def test_an_axis_of_one_repeats() -> None:
    body = """
t = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
one = nl.arange(1)[None, :]
nisa.dma_copy(dst=t, src=x[nl.arange(128)[:, None], one + nl.arange(512)[None, :]])
"""
    (views,) = operands(kernel(body), x=(128, 512))
    assert views["src"].strides == (512, 1)


def test_index_tensors_on_the_host() -> None:
    assert printed(
        """
i = nl.arange(2, 12, 3)
print(i.shape, i[1], [k for k in i])
g = nl.mgrid[0:4, 8:10]
p, f = g
print(p.shape, g.x[3, 1], (i + 1)[2])
print(nl.arange(12)[2:9:2][1], i[None, :].shape)
print(i is None, (i < 3) is not None, (i < 3) == None, i != None)
"""
    ) == ["(4,) 5 [2, 5, 8, 11]", "(4, 2) 9 9", "4 (1, 4)", "False True False True"]


BLOCKS = """
blocks = x.shape[0] // 128
y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
t = nl.ndarray((blocks, nl.par_dim(128), 64), dtype=x.dtype, buffer=nl.sbuf)
p = nl.arange(128)[:, None]
f = nl.arange(64)[None, :]
for k in nl.affine_range(blocks):
    nisa.dma_copy(dst=t[k, p, f], src=x[k * 128 + p, f])
for k in nl.affine_range(blocks):
    nisa.tensor_tensor(
        dst=t[k], data1=t[k, p, f], data2=t[k, 0:128, 0:64], op=nl.add
    )
    nisa.dma_copy(dst=y[k * 128 + p, f], src=t[k, :, :])
return y
"""


def test_blocks_before_the_partitions() -> None:
    x = normal(384, 64)
    result, _ = both(kernel(BLOCKS), x=x)
    np.testing.assert_allclose(result, 2 * x, rtol=1e-6)
    _, found = stream(kernel(BLOCKS), {"x": tensor("x", 384, 64)})
    assert not found.problems


def test_all_blocks_at_once() -> None:
    body = """
t = nl.zeros((3, nl.par_dim(64), 8), dtype=x.dtype, buffer=nl.sbuf)
y = nl.ndarray((3, 64, 8), dtype=x.dtype, buffer=nl.shared_hbm)
u = nl.ndarray((3, nl.par_dim(64), 8), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=u, src=x)
nisa.tensor_tensor(dst=t, data1=t, data2=u, op=nl.add)
nisa.dma_copy(dst=y, src=t)
return y
"""
    x = normal(3, 64, 8)
    result, _ = both(kernel(body), x=x)
    np.testing.assert_allclose(result, x, rtol=1e-6)
    _, found = stream(kernel(body), {"x": tensor("x", 3, 64, 8)})
    assert not found.problems
    (memset, *_) = operands(kernel(body), x=(3, 64, 8))
    assert memset["dst"].sizes == (64, 3, 8)


def test_limits_of_a_tensor_with_blocks_are_those_of_its_partitions() -> None:
    body = "t = nl.ndarray((4, nl.par_dim({rows}), 64), dtype=x.dtype, buffer=nl.sbuf)"
    for rows, wanted in ((128, []), (256, ["partitions"])):
        text = kernel(body.replace("{rows}", str(rows)))
        _, found = stream(text, {"x": tensor("x", 128, 64)})
        assert [problem.code for problem in found.problems] == wanted


def test_a_masked_reduction_reads_less() -> None:
    body = """
rows, cols = x.shape
y = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.shared_hbm)
p = nl.arange(128)[:, None]
f = nl.arange(64)[None, :]
t = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
s = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=t[p, f], src=x[p, f], mask=(p < rows) & (f < cols))
nisa.memset(dst=s, value=0.0)
nisa.tensor_reduce(dst=s, op=nl.add, data=t[p, f], axis=1, mask=(p < rows) & (f < cols))
nisa.dma_copy(dst=y, src=s)
return y
"""
    x = normal(100, 50)
    result, _ = both(kernel(body), x=x)
    np.testing.assert_allclose(result[:100, 0], x.sum(1), rtol=1e-5)
    assert not result[100:].any()


@pytest.mark.parametrize(
    ("mask", "kept"),
    [("k < 100", "k"), ("n < 200", "n"), ("m < 50", "m"), ("(k < 64) & (n > 7)", "kn")],
)
def test_a_masked_matmul(mask: str, kept: str) -> None:
    body = f"""
y = nl.ndarray((96, 256), dtype=nl.float32, buffer=nl.shared_hbm)
k = nl.arange(128)[:, None]
m = nl.arange(96)[:, None]
n = nl.arange(256)[None, :]
a = nl.ndarray((128, 96), dtype=x.dtype, buffer=nl.sbuf)
b = nl.ndarray((128, 256), dtype=x.dtype, buffer=nl.sbuf)
c = nl.ndarray((96, 256), dtype=nl.float32, buffer=nl.psum)
d = nl.ndarray((96, 256), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x)
nisa.dma_copy(dst=b, src=w)
nisa.memset(dst=c, value=0.0)
nisa.nc_matmul(dst=c, stationary=a, moving=b, mask={mask})
nisa.tensor_copy(dst=d, src=c)
nisa.dma_copy(dst=y, src=d)
return y
"""
    x, w = normal(128, 96), normal(128, 256)
    result, _ = both(kernel(body, "x, w"), x=x, w=w)
    k, m, n = (np.arange(size) for size in (128, 96, 256))
    rows = {"k": k < 100, "kn": k < 64}.get(kept, k >= 0)
    wanted = (x * rows[:, None]).T.astype(np.float64) @ w
    if "m" in kept:
        wanted[m >= 50] = 0
    if kept == "n":
        wanted[:, n >= 200] = 0
    if kept == "kn":
        wanted[:, n <= 7] = 0
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


def test_a_masked_transpose() -> None:
    body = """
rows, cols = x.shape
y = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.shared_hbm)
p = nl.arange(128)[:, None]
f = nl.arange(64)[None, :]
t = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
u = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.psum)
v = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.sbuf)
nisa.memset(dst=v, value=0.0)
nisa.memset(dst=u, value=0.0)
nisa.dma_copy(dst=t[p, f], src=x[p, f], mask=(p < rows) & (f < cols))
nisa.nc_transpose(dst=u, data=t[p, f], mask=(p < rows) & (f < cols))
nisa.tensor_copy(dst=v, src=u)
nisa.dma_copy(dst=y, src=v)
return y
"""
    x = normal(100, 50)
    result, _ = both(kernel(body), x=x)
    np.testing.assert_array_equal(result[:50, :100], x.T)


def test_operands_indexed_with_masks() -> None:
    body = """
rows, cols = w.shape
y = nl.ndarray((96, 4, 64), dtype=nl.float32, buffer=nl.shared_hbm)
k, m = nl.arange(128)[:, None], nl.arange(96)[None, :]
kk = nl.arange(128)[:, None, None]
h = nl.arange(4)[None, :, None]
n = nl.arange(64)[None, None, :]
a = nl.ndarray((128, 96), dtype=x.dtype, buffer=nl.sbuf)
b = nl.ndarray((128, 4, 64), dtype=x.dtype, buffer=nl.sbuf)
c = nl.ndarray((96, 4, 64), dtype=nl.float32, buffer=nl.psum)
d = nl.ndarray((96, 4, 64), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x)
nisa.dma_copy(dst=b, src=w.reshape((128, 4, 64)))
nisa.memset(dst=c, value=0.0)
for i in nl.affine_range(3):
    nisa.nc_matmul(
        dst=c, stationary=a[k, m][m + 48 * i < 70], moving=b[kk, h, n][h < 3][n < 50][i < 1]
    )
nisa.tensor_copy(dst=d, src=c)
nisa.dma_copy(dst=y, src=d)
return y
"""
    x, w = normal(128, 96), normal(128, 256)
    result, _ = both(kernel(body, "x, w"), x=x, w=w)
    wanted = (x.T.astype(np.float64) @ w).reshape(96, 4, 64)
    wanted[70:] = wanted[:, 3:] = wanted[:, :, 50:] = 0
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


def test_a_copy_into_what_a_mask_leaves() -> None:
    body = """
y = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
p, f = nl.arange(128)[:, None], nl.arange(512)[None, :]
t = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.memset(dst=t, value=0.0)
nisa.dma_copy(dst=t[p, f][f + p < 300], src=x[p, f])
nisa.dma_copy(dst=y, src=t)
return y
"""
    x = normal(128, 512)
    result, _ = both(kernel(body), x=x)
    p, f = np.arange(128)[:, None], np.arange(512)[None, :]
    np.testing.assert_array_equal(result, np.where(f + p < 300, x, 0))


@pytest.mark.parametrize("rows", [128, 129, 300])
def test_index_tensors_whose_extent_changes_in_a_loop(rows: int) -> None:
    body = """
rows, cols = x.shape
y = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
for k in nl.affine_range((rows + 127) // 128):
    p = nl.arange(min(128, rows - k * 128))[:, None]
    f = nl.arange(cols)[None, :]
    t = nl.ndarray((128, cols), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t[p, f], src=x[k * 128 + p, f])
    nisa.dma_copy(dst=y[k * 128 + p, f], src=t[p, f])
return y
"""
    x = normal(rows, 16)
    result, found = both(kernel(body), x=x)
    np.testing.assert_array_equal(result, x)
    assert render(found).count("p<min(-128*k + x0, 128)") == 2


def test_a_mask_that_cuts_the_start_and_the_end() -> None:
    body = """
n = x.shape[1]
y = nl.ndarray((128, n), dtype=x.dtype, buffer=nl.shared_hbm)
p = nl.arange(128)[:, None]
f = nl.arange(64)[None, :]
for k in nl.affine_range((n + 63) // 64):
    t = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    at = k * 64 + f - 3
    nisa.memset(dst=t, value=0.0)
    nisa.dma_copy(dst=t[p, f], src=x[p, at], mask=(at >= 0) & (at < n))
    nisa.dma_copy(dst=y[p, at + 3], src=t[p, f], mask=at + 3 < n)
return y
"""
    x = normal(128, 200)
    result, _ = both(kernel(body), x=x)
    np.testing.assert_array_equal(result[:, 3:], x[:, :-3])
    assert not result[:, :3].any()


def test_quotients_over_a_loop() -> None:
    body = """
y = nl.ndarray((128, 256), dtype=x.dtype, buffer=nl.shared_hbm)
p = nl.arange(128)[:, None]
for k in nl.affine_range(4):
    i = k * 64 + nl.arange(64)[None, :]
    t = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x[p, (i % 16) * 16 + i // 16])
    nisa.dma_copy(dst=y[p, i], src=t)
return y
"""
    x = normal(128, 256)
    result, found = both(kernel(body), x=x)
    wanted = x.reshape(128, 16, 16).transpose(0, 2, 1).reshape(128, 256)
    np.testing.assert_array_equal(result, wanted)
    assert "parallel k<4" in render(found)


def test_blocks_under_another_shape() -> None:
    body = """
y = nl.ndarray((6, 64, 8), dtype=x.dtype, buffer=nl.shared_hbm)
t = nl.ndarray((6, nl.par_dim(64), 8), dtype=x.dtype, buffer=nl.sbuf)
u = t.reshape((2, 3, 64, 2, 4))
for i in nl.affine_range(2):
    for j in nl.affine_range(3):
        nisa.dma_copy(dst=u[i, j].reshape((64, 8)), src=x[3 * i + j])
        nisa.tensor_tensor(dst=u[i, j], data1=u[i, j], data2=u[i, j], op=nl.add)
nisa.dma_copy(dst=y, src=u.reshape((6, 64, 8)))
return y
"""
    x = normal(6, 64, 8)
    result, _ = both(kernel(body), x=x)
    np.testing.assert_allclose(result, 2 * x)
    (reason,) = reasons(
        "t = nl.ndarray((6, nl.par_dim(64), 8), dtype=x.dtype).reshape((6, 32, 16))"
    )
    assert "partition axis" in reason
