from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from migrate.budget import Budget, Meter
from migrate.nki.simulate import Execution, simulate
from migrate.numerics.bounded import Bounded
from migrate.numerics.rounded import Rounded
from tests.nki.kernels import (
    BODY_LINE,
    MATMUL,
    ROWS,
    SOFTMAX,
    TILED_MATMUL,
    VECTOR_ADD,
    kernel,
    module,
)

RNG = np.random.default_rng(7)


def run(text: str, *args: Any, name: str = "k", **options: Any) -> Execution[Any]:
    return simulate(module(text), name, args, domain=Rounded(), **options)


def normal(*shape: int, dtype: Any = np.float32) -> Any:
    return RNG.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("n", [1, 127, 128, 1024, 1025, 2048 + 300])
def test_vector_add_at_any_length(n: int) -> None:
    a, b = normal(n), normal(n)
    found = run(VECTOR_ADD, a, b, name="vector_add")
    assert found.complete
    assert found.happenings == ()
    np.testing.assert_array_equal(found.outputs[0], a + b)
    np.testing.assert_array_equal(found.inputs_after["a"], a)


def test_bounded_agrees_with_rounded() -> None:
    x = normal(200, 5)
    rounded = run(ROWS, x, name="rows").outputs[0]
    bounded = simulate(module(ROWS), "rows", {"x": x}, domain=Bounded())
    assert bounded.complete
    real = Bounded().to_array(bounded.outputs[0])
    np.testing.assert_allclose(real, np.exp(x.astype(np.float64) * 0.5), rtol=1e-12)
    np.testing.assert_allclose(rounded, real, rtol=1e-6)


@pytest.mark.parametrize("r", [1, 128, 200])
def test_softmax_by_rows(r: int) -> None:
    x = normal(r, 24)
    found = run(SOFTMAX, x)
    assert found.happenings == ()
    assert found.specialization.problems == ()
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(found.outputs[0], e / e.sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize(("m", "n", "k"), [(128, 512, 256), (200, 520, 300), (3, 5, 7)])
def test_a_tiled_matmul_with_remainders(m: int, n: int, k: int) -> None:
    a, b = normal(k, m), normal(k, n)
    found = run(TILED_MATMUL, a, b)
    assert found.happenings == ()
    assert found.specialization.problems == ()
    wanted = a.astype(np.float64).T @ b.astype(np.float64)
    np.testing.assert_allclose(found.outputs[0], wanted, rtol=1e-4, atol=1e-3)


def binary(op: str, dtype: str = "nl.float32", out: str = "nl.float32") -> str:
    return kernel(
        f"""
p, f = x.shape
a = nl.ndarray((p, f), dtype={dtype}, buffer=nl.sbuf)
b = nl.ndarray((p, f), dtype={dtype}, buffer=nl.sbuf)
c = nl.ndarray((p, f), dtype={out}, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x)
nisa.dma_copy(dst=b, src=y)
nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.{op})
z = nl.ndarray((p, f), dtype={out}, buffer=nl.shared_hbm)
nisa.dma_copy(dst=z, src=c)
return z
""",
        "x, y",
    )


@pytest.mark.parametrize(
    ("op", "reference"),
    [
        ("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply),
        ("maximum", np.maximum), ("minimum", np.minimum), ("less", np.less),
        ("greater_equal", np.greater_equal), ("equal", np.equal), ("logical_and", np.logical_and),
    ],
)  # fmt: skip
def test_tensor_tensor(op: str, reference: Any) -> None:
    x, y = normal(128, 6), normal(128, 6)
    y[:, 0] = x[:, 0]
    out = run(binary(op), x, y).outputs[0]
    np.testing.assert_array_equal(out, reference(x, y).astype(np.float32))


def test_results_are_rounded_once_at_the_store() -> None:
    x, y = normal(128, 64), normal(128, 64)
    out = run(binary("multiply", out="nl.bfloat16"), x, y).outputs[0]
    np.testing.assert_array_equal(out, (x * y).astype(ml_dtypes.bfloat16))
    out = run(binary("add", out="nl.int32"), x * 100, y).outputs[0]
    np.testing.assert_array_equal(out, np.rint(x * 100 + y).astype(np.int32))


def test_32_bit_integers_are_exact_in_sbuf_and_not_through_fp32() -> None:
    x = np.full((128, 2), 2**24 + 1, np.int32)
    y = np.full((128, 2), 2, np.int32)
    assert run(binary("add", "nl.int32", "nl.int32"), x, y).outputs[0][0, 0] == 2**24 + 3
    # Comparisons have no native path: 2^24 + 1 reads as 2^24.
    z = np.full((128, 2), 2**24, np.int32)
    assert run(binary("equal", "nl.int32", "nl.int32"), x, z).outputs[0][0, 0] == 1


def unary(line: str, out: str = "nl.float32") -> str:
    return kernel(
        f"""
p, f = x.shape
a = nl.ndarray((p, f), dtype=x.dtype, buffer=nl.sbuf)
c = nl.ndarray((p, f), dtype={out}, buffer=nl.sbuf)
v = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.sbuf)
s = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x)
nisa.dma_copy(dst=v, src=x[:, 0:1])
m = nl.ndarray((p, f), dtype=nl.uint8, buffer=nl.sbuf)
nisa.memset(s, 0.0)
{line}
z = nl.ndarray((p, f), dtype={out}, buffer=nl.shared_hbm)
w = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=z, src=c)
nisa.dma_copy(dst=w, src=s)
return z, w
"""
    )


def test_tensor_scalar_applies_two_operators_and_their_order() -> None:
    x = normal(100, 8)
    line = "nisa.tensor_scalar(c, a, nl.subtract, v, True, nl.multiply, 3.0)"
    out = run(unary(line), x).outputs[0]
    np.testing.assert_array_equal(out, (x[:, 0:1] - x) * np.float32(3.0))
    line = "nisa.tensor_scalar(dst=c, data=a, op0=nl.subtract, operand0=0.1)"
    np.testing.assert_array_equal(run(unary(line), x).outputs[0], x - np.float32(0.1))


def test_bit_operators_work_on_patterns() -> None:
    x = np.arange(-8, 8, dtype=np.int32).reshape(4, 4)
    line = "nisa.tensor_scalar(c, a, nl.right_shift, 1, op1=nl.bitwise_and, operand1=255)"
    out = run(unary(line, "nl.int32"), x).outputs[0]
    np.testing.assert_array_equal(out, (x.view(np.uint32) >> 1 & 255).astype(np.int32))


def test_activation_scales_adds_and_sums() -> None:
    x = normal(128, 16)
    line = (
        "nisa.activation(dst=c, op=nl.exp, data=a, bias=v, scale=0.5, reduce_op=nl.add,"
        " reduce_res=s, reduce_cmd=nisa.reduce_cmd.reset_reduce)"
    )
    out, total = run(unary(line), x).outputs
    wanted = np.exp(x * np.float32(0.5) + x[:, 0:1])
    np.testing.assert_allclose(out, wanted, rtol=1e-6)
    np.testing.assert_allclose(total[:, 0], wanted.sum(axis=1), rtol=1e-6)


def test_reductions_along_the_free_axes() -> None:
    x = normal(64, 33)
    found = run(unary("nisa.tensor_copy(c, a)\nnisa.tensor_reduce(s, nl.maximum, a, axis=(1,))"), x)
    np.testing.assert_array_equal(found.outputs[1][:, 0], x.max(axis=1))
    found = run(
        unary("nisa.tensor_copy(c, a)\nnisa.tensor_reduce(s, nl.add, a, axis=1, negate=True)"), x
    )
    np.testing.assert_allclose(found.outputs[1][:, 0], -x.sum(axis=1), rtol=1e-5, atol=1e-5)


def test_iota_counts_partitions_and_positions() -> None:
    line = "nisa.iota(dst=c, pattern=[[10, 2], [1, 4]], offset=5, channel_multiplier=100)"
    out = run(unary(line, "nl.int32"), normal(3, 8)).outputs[0]
    p, i, j = np.ogrid[0:3, 0:2, 0:4]
    np.testing.assert_array_equal(out, (5 + 100 * p + 10 * i + j).reshape(3, 8))


def test_selections_by_position_bounds_and_data() -> None:
    x = normal(16, 8)
    p, f = np.ogrid[0:16, 0:8]
    line = "nisa.affine_select(c, [[-1, 8]], 1, a, -9.0, nl.greater_equal, offset=2)"
    out = run(unary(line), x).outputs[0]
    np.testing.assert_array_equal(out, np.where(2 + p - f >= 0, x, np.float32(-9)))
    line = "nisa.range_select(c, a, nl.greater_equal, nl.less, s, 5.0, range_start=-2)"
    out = run(unary(line), x).outputs[0]
    lowest = np.finfo(np.float32).min
    np.testing.assert_array_equal(out, np.where((f - 2 >= 0) & (f - 2 < 5), x, lowest))
    line = (
        "nisa.tensor_scalar(m, a, nl.less, 0.0)\n"
        "nisa.select_reduce(c, m, a, -5.0, s, nisa.reduce_cmd.reset_reduce)"
    )
    out, top = run(unary(line), x).outputs
    wanted = np.where(x < 0, x, np.float32(-5))
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(top[:, 0], wanted.max(axis=1))
    line = (
        "nisa.memset(c, 7.0)\nnisa.tensor_scalar(m, a, nl.less, 0.0)\n"
        "nisa.tensor_copy_predicated(c, a, m, reverse_pred=True)"
    )
    out = run(unary(line), x).outputs[0]
    np.testing.assert_array_equal(out, np.where(x < 0, np.float32(7), x))


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_matmuls_accumulate_after_the_first(dtype: Any) -> None:
    x, y = normal(384, 64, dtype=dtype), normal(384, 40, dtype=dtype)
    found = run(MATMUL, x, y)
    assert found.happenings == ()
    wanted = x.astype(np.float64).T @ y.astype(np.float64)
    np.testing.assert_allclose(found.outputs[0], wanted, rtol=1e-4, atol=1e-4)


def test_adding_to_a_sum_that_was_read_is_ambiguous() -> None:
    text = MATMUL.replace(
        "        nisa.nc_matmul(dst=p, stationary=a, moving=b)\n",
        "        nisa.nc_matmul(dst=p, stationary=a, moving=b)\n"
        "        s = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.sbuf)\n"
        "        nisa.tensor_copy(dst=s, src=p)\n",
    )
    codes = [h.code for h in run(text, normal(256, 8), normal(256, 8)).happenings]
    assert codes == ["ambiguous-accumulation"]


def test_a_dma_transposes_too() -> None:
    text = kernel(
        """
t = nl.ndarray((12, 16), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_transpose(dst=t, src=x)
z = nl.ndarray((12, 16), dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=z, src=t)
return z
"""
    )
    x = normal(16, 12)
    np.testing.assert_array_equal(run(text, x).outputs[0], x.T)


def test_transposes_swap_partitions_and_free_elements() -> None:
    text = kernel(
        """
t = nl.ndarray((96, 128), dtype=x.dtype, buffer=nl.sbuf)
p = nl.ndarray((128, 96), dtype=x.dtype, buffer=nl.psum)
s = nl.ndarray((128, 96), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=t, src=x)
nisa.nc_transpose(dst=p, data=t)
nisa.tensor_copy(dst=s, src=p)
z = nl.ndarray((128, 96), dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=z, src=s)
return z
"""
    )
    x = normal(96, 128)
    np.testing.assert_array_equal(run(text, x).outputs[0], x.T)


def test_wrappers_of_the_language_are_instructions() -> None:
    text = kernel(
        """
t = nl.load(x)
z = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
nl.store(z, nl.multiply(nl.add(t, t), nl.exp(nl.subtract(1.0, t))))
return z
"""
    )
    x = normal(16, 16)
    np.testing.assert_allclose(
        run(text, x).outputs[0], (x + x) * np.exp(np.float32(1) - x), rtol=1e-6
    )


def test_in_place_kernels_change_their_inputs() -> None:
    text = kernel(
        """
t = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.sbuf)
nisa.memset(t, 2.0)
nisa.dma_copy(dst=x[0:128, :], src=t)
"""
    )
    x = normal(200, 4)
    found = run(text, x)
    assert found.outputs == ()
    np.testing.assert_array_equal(found.inputs_after["x"][:128], np.full((128, 4), 2.0))
    np.testing.assert_array_equal(found.inputs_after["x"][128:], x[128:])


def test_reading_what_was_never_written_is_reported_with_both_places() -> None:
    text = kernel(
        """
t = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=t[0:100, :], src=x[0:100, :])
z = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=z, src=t)
return z
"""
    )
    found = run(text, normal(128, 4))
    (happening,) = found.happenings
    assert (happening.code, happening.count) == ("uninitialised", 28 * 4)
    assert happening.span.start_line == BODY_LINE + 3
    assert happening.related is not None
    assert happening.related.start_line == BODY_LINE
    assert np.isnan(found.outputs[0][100:]).all()


def test_outputs_that_are_not_written_are_reported() -> None:
    text = VECTOR_ADD.replace("math.ceil((n - done) / rows)", "(n - done) // rows")
    found = run(text, normal(1300), normal(1300), name="vector_add")
    (happening,) = found.happenings
    assert (happening.code, happening.count) == ("unwritten-output", 1300 - 1024 - 256)


def test_elements_outside_a_tensor_are_garbage_and_reported() -> None:
    text = VECTOR_ADD.replace("min(rows, n - at)", "rows")
    n = 1024 + 100
    a, b = normal(n), normal(n)
    found = run(text, a, b, name="vector_add")
    assert {h.code for h in found.happenings} == {"out-of-bounds"}
    np.testing.assert_array_equal(found.outputs[0], a + b)


def test_dropped_tiles_are_freed() -> None:
    text = kernel(
        """
for i in range(100):
    t = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(t, 0.0)
return x
"""
    )
    meter = Meter(Budget(bytes=4 * 1024 * 1024))
    assert run(text, normal(4), meter=meter).complete


def test_a_byte_budget_is_a_result() -> None:
    meter = Meter(Budget(bytes=100_000))
    text = kernel("t = nl.ndarray((128, 1024), dtype=nl.float32)\nnisa.memset(t, 0.0)\nreturn x")
    found = run(text, normal(4), meter=meter)
    assert not found.complete
    assert found.specialization.events[0].kind == "stopped"


def test_what_is_not_understood_is_not_computed() -> None:
    text = kernel(
        """
t = nl.ndarray((128, 8), dtype=nl.float32)
nisa.topk(val_dst=t, idx_dst=t, src=t, n=8)
return x
"""
    )
    found = run(text, normal(4))
    assert not found.complete
    assert any(h.code == "unsupported" for h in found.happenings)


@pytest.mark.parametrize(
    "body",
    [
        "nisa.tensor_copy(dst=t, src=t[:, 0 : 10**15])",
        "nisa.tensor_copy(dst=t, src=t[:, 0:1].broadcast(1, 10**15))",
        "nisa.iota(dst=t, pattern=[[1, 10**15]], offset=0)",
        "u = nl.ndarray((128, 10**15), dtype=nl.float32)\nnisa.memset(u, 0.0)",
        (
            "u = nl.ndarray((10**9, 10**9), dtype=nl.float32, buffer=nl.hbm)\n"
            "nisa.dma_copy(dst=u, src=u)"
        ),
        "for i in range(10**18):\n    nisa.memset(t, 0.0)",
    ],
)
def test_absurd_sizes_are_refused_before_they_are_allocated(body: str) -> None:
    head = "t = nl.ndarray((128, 4), dtype=nl.float32)\nnisa.memset(t, 0.0)\n"
    meter = Meter(Budget(steps=100_000, bytes=2**24))
    found = run(kernel(head + body + "\nreturn x"), normal(4), meter=meter)
    assert not found.complete
    assert meter.bytes <= 2**24
