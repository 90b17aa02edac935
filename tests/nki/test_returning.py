"""NKI 0.1: calls that return tiles, masks, index tensors, assignments that accumulate."""

from __future__ import annotations

import textwrap
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from migrate.nki.frames import Instruction
from migrate.nki.parse import parse
from migrate.nki.simulate import Execution, simulate
from migrate.nki.specialize import specialize
from migrate.nki.symbols import size
from migrate.nki.values import TensorSpec
from migrate.numerics.dtypes import DType
from migrate.numerics.rounded import Rounded
from migrate.source import Source

HEADER = """
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def k({parameters}):
{body}
"""


def kernel(body: str, parameters: str = "x") -> str:
    return HEADER.format(
        parameters=parameters, body=textwrap.indent(textwrap.dedent(body).strip(), "    ")
    )


def run(text: str, *args: Any, **options: Any) -> Execution[Any]:
    found = simulate(parse(Source.of(text, "k.py")), "k", args, domain=Rounded(), **options)
    problems = [event.message for event in found.specialization.events]
    assert found.complete, (problems, found.happenings)
    return found


def output(body: str, *args: Any, parameters: str = "x", **options: Any) -> np.ndarray:
    found = run(kernel(body, parameters), *args, **options)
    assert not found.happenings, found.happenings
    return np.asarray(found.outputs[0])


def stream(body: str, parameters: str = "x", **shapes: tuple[int, ...]) -> list[Instruction]:
    found: list[Instruction] = []
    args = {
        name: TensorSpec(tuple(size(f"{name}_{k}", n) for k, n in enumerate(shape)), DType.FLOAT32)
        for name, shape in shapes.items()
    }
    text = kernel(body, parameters)
    specialize(parse(Source.of(text, "k.py")), "k", args, on_instruction=found.append)
    return found


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


STORE = """
y = nl.ndarray({shape}, dtype=nl.float32, buffer=nl.shared_hbm)
nl.store(y, {value})
return y
"""


def elementwise(expression: str, *args: np.ndarray, parameters: str = "a") -> np.ndarray:
    """What an expression of loaded tiles gives, of the shape of the first."""
    names = [name.strip() for name in parameters.split(",")]
    loads = "\n".join(f"{name} = nl.load(g_{name})" for name in names)
    body = f"{loads}\nr = {expression}\n" + STORE.format(shape="r.shape", value="r")
    return output(body, *args, parameters=", ".join(f"g_{name}" for name in names))


@pytest.mark.parametrize(
    ("expression", "reference"),
    [
        ("a + b", lambda a, b: a + b),
        ("a - b", lambda a, b: a - b),
        ("a * b", lambda a, b: a * b),
        ("a * 2.0", lambda a, b: a * 2),
        ("3.0 - a", lambda a, b: 3 - a),
        ("-a", lambda a, b: -a),
        ("nl.add(a, b)", lambda a, b: a + b),
        ("nl.subtract(1.0, b)", lambda a, b: 1 - b),
        ("nl.maximum(a, b)", np.maximum),
        ("nl.minimum(a, 0.25)", lambda a, b: np.minimum(a, np.float32(0.25))),
        ("nl.exp(a)", lambda a, b: np.exp(a)),
        ("nl.square(a)", lambda a, b: a * a),
        ("nl.copy(a)", lambda a, b: a),
        ("nl.where(a > b, a, b)", np.maximum),
        ("nl.where(nl.less(a, 0.0), 0.0, a)", lambda a, b: np.where(a < 0, 0, a)),
        ("nl.where(a > 0.0, 1.0, -1.0)", lambda a, b: np.where(a > 0, 1, -1)),
        ("nisa.tensor_tensor(a, b, op=np.add)", lambda a, b: a + b),
        ("nisa.tensor_scalar(a, np.multiply, 2.0, False, np.add, 1.0)", lambda a, b: a * 2 + 1),
        ("nisa.activation(np.exp, a, scale=0.5)", lambda a, b: np.exp(a * np.float32(0.5))),
        ("nisa.tensor_copy(a)", lambda a, b: a),
    ],
)
def test_functions_of_tiles(expression: str, reference: Any) -> None:
    a, b = normal(8, 12), normal(8, 12, seed=1)
    assert np.allclose(
        elementwise(expression, a, b, parameters="a, b"), reference(a, b), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize(
    ("expression", "reference"),
    [
        ("a / 4.0", lambda a, b: a / 4),
        ("1.0 / a", lambda a, b: 1 / a),
        ("a / b", lambda a, b: a / b),
        ("nl.divide(a, b)", lambda a, b: a / b),
    ],
)
def test_quotients_are_reciprocals_and_products(expression: str, reference: Any) -> None:
    a, b = normal(8, 12), 2 + np.abs(normal(8, 12, seed=1))
    found = elementwise(expression, a, b, parameters="a, b")
    assert np.allclose(found, reference(a, b), rtol=3e-7)


def test_a_column_is_an_operand_of_its_own() -> None:
    body = "a = nl.load(x)\nc = nl.load(w)\nr = a * c\n"
    opcodes = [i.opcode for i in stream(body, "x, w", x=(8, 12), w=(8, 1))]
    assert opcodes == ["dma_copy", "dma_copy", "tensor_scalar"]
    a, c = normal(8, 12), normal(8, 1, seed=1)
    assert np.allclose(elementwise("c - a", a, c, parameters="a, c"), c - a)


def test_one_partition_is_spread_by_a_product_with_ones() -> None:
    a, w = normal(8, 12), normal(1, 12, seed=1)
    assert np.allclose(elementwise("a * w.broadcast_to((8, 12))", a, w, parameters="a, w"), a * w)
    assert np.allclose(elementwise("a + w", a, w, parameters="a, w"), a + w)
    body = "w = nl.load(x)\nr = nl.broadcast_to(w, shape=(8, 12))\n"
    assert [i.opcode for i in stream(body, x=(1, 12))][-2:] == ["nc_matmul", "tensor_copy"]


@pytest.mark.parametrize(
    ("expression", "reference"),
    [
        ("nl.sum(a, axis=1)", lambda a: a.sum(1, keepdims=True)),
        ("nl.sum(a, axis=[1])", lambda a: a.sum(1, keepdims=True)),
        ("nl.max(a, axis=-1, keepdims=True)", lambda a: a.max(1, keepdims=True)),
        ("nl.min(a, axis=1)", lambda a: a.min(1, keepdims=True)),
        ("nl.mean(a, axis=1)", lambda a: a.mean(1, keepdims=True)),
        ("nl.var(a, axis=1)", lambda a: a.var(1, keepdims=True)),
        ("nisa.tensor_reduce(np.add, a, axis=[1])", lambda a: a.sum(1, keepdims=True)),
        ("nisa.tensor_reduce(np.max, a, axis=1, negate=True)", lambda a: -a.max(1, keepdims=True)),
        ("nl.softmax(a, axis=1)", lambda a: np.exp(a) / np.exp(a).sum(1, keepdims=True)),
        ("nl.rms_norm(a, None, 1, 12)", lambda a: a / np.sqrt((a * a).mean(1)[:, None] + 1e-6)),
    ],
)  # fmt: skip
def test_reductions(expression: str, reference: Any) -> None:
    a = normal(8, 12)
    assert np.allclose(elementwise(expression, a), reference(a), rtol=1e-5, atol=1e-6)


def test_axes_that_are_not_the_last_are_read_last() -> None:
    a = normal(4, 3, 5)
    body = "a = nl.load(x)\nr = nl.sum(a, axis=1)\n" + STORE.format(shape="(4, 5)", value="r")
    assert np.allclose(output(body, a), a.sum(1), rtol=1e-6)


def test_the_partition_axis_is_not_reduced() -> None:
    found = specialize(
        parse(Source.of(kernel("a = nl.load(x)\nreturn nl.sum(a, axis=0)"), "k.py")),
        "k",
        {"x": TensorSpec((size("m", 8), size("n", 4)), DType.FLOAT32)},
    )
    assert [event.kind for event in found.events] == ["error"]
    assert "partition axis" in found.events[0].message


def test_one_statement_is_one_instruction() -> None:
    body = """
    a = nl.load(x)
    r = nl.ndarray((8, 12), dtype=nl.float32, buffer=nl.sbuf)
    r[...] = nl.exp(a)
    r[0:8, 0:6] = a[0:8, 0:6] + a[0:8, 6:12]
    r[0:8, 6:12] = 1.0
    """
    opcodes = [i.opcode for i in stream(body, x=(8, 12))]
    assert opcodes == ["dma_copy", "activation", "tensor_tensor", "memset"]
    a = normal(8, 12)
    text = body + textwrap.indent(STORE.format(shape="(8, 12)", value="r"), "    ")
    expected = np.ones_like(a)
    expected[:, :6] = a[:, :6] + a[:, 6:]
    assert np.allclose(output(textwrap.dedent(text), a), expected)


MATMUL = """
m, k_size = a.shape
n = b.shape[1]
y = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
i_k = nl.arange(128)[:, None]
i_m = nl.arange(128)[None, :]
i_n = nl.arange(512)[None, :]
i_p = nl.arange(128)[:, None]
for tm in nl.affine_range((m + 127) // 128):
    for tn in nl.affine_range((n + 511) // 512):
        total = nl.zeros((nl.par_dim(128), 512), nl.float32, buffer=nl.psum)
        for tk in nl.affine_range((k_size + 127) // 128):
            left = nl.zeros((nl.par_dim(128), 128), nl.float32, buffer=nl.sbuf)
            right = nl.zeros((nl.par_dim(128), 512), nl.float32, buffer=nl.sbuf)
            left[i_k, i_m] = nl.load(
                at[tk * 128 + i_k, tm * 128 + i_m],
                mask=(tk * 128 + i_k < k_size) & (tm * 128 + i_m < m),
            )
            right[i_k, i_n] = nl.load(
                b[tk * 128 + i_k, tn * 512 + i_n],
                mask=(tk * 128 + i_k < k_size) & (tn * 512 + i_n < n),
            )
            total[...] += nisa.nc_matmul(left, right)
        nl.store(
            y[tm * 128 + i_p, tn * 512 + i_n],
            total,
            mask=(tm * 128 + i_p < m) & (tn * 512 + i_n < n),
        )
return y
"""


@pytest.mark.parametrize("sizes", [(128, 128, 512), (130, 200, 520), (5, 7, 3)])
def test_a_tiled_matmul_with_masks(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    a, b = normal(m, k), normal(k, n, seed=1)
    found = output(MATMUL, a, np.ascontiguousarray(a.T), b, parameters="a, at, b")
    assert np.allclose(found, a @ b, rtol=1e-4, atol=1e-4)


def test_nl_matmul_transposes_its_first_operand() -> None:
    a, b = normal(16, 32), normal(32, 24, seed=1)
    product = "a = nl.load(x)\nb = nl.load(w)\nr = nl.matmul(a, b)\n"
    body = product + STORE.format(shape="(16, 24)", value="r")
    assert np.allclose(output(body, a, b, parameters="x, w"), a @ b, rtol=1e-5, atol=1e-5)
    body = body.replace("nl.matmul(a, b)", "nl.matmul(a, b, transpose_x=True)")
    turned = np.ascontiguousarray(a.T)
    assert np.allclose(output(body, turned, b, parameters="x, w"), a @ b, rtol=1e-5, atol=1e-5)


def test_an_assignment_overwrites_and_an_addition_accumulates() -> None:
    a = normal(16, 8)
    body = """
    a = nl.load(x)
    total = nl.zeros((8, 8), dtype=nl.float32, buffer=nl.psum)
    for i in nl.affine_range(3):
        total {sign} nl.matmul(a, a, transpose_x=True)
    """
    for sign, factor in (("+=", 3), ("[...] =", 1)):
        text = textwrap.dedent(body).replace(" {sign}", sign if sign[0] == "[" else f" {sign}")
        text += STORE.format(shape="(8, 8)", value="total")
        assert np.allclose(output(text, a), factor * (a.T @ a), rtol=1e-5, atol=1e-5)


def test_sums_in_sbuf_are_additions() -> None:
    a = normal(8, 12)
    body = """
    a = nl.load(x)
    total = nl.zeros((8, 12), dtype=nl.float32, buffer=nl.sbuf)
    for i in nl.sequential_range(4):
        total += a
    total[...] *= 0.5
    """
    text = textwrap.dedent(body) + STORE.format(shape="(8, 12)", value="total")
    assert np.allclose(output(text, a), 2 * a)


def test_loop_reduce_combines_over_the_loops_that_it_names() -> None:
    a = normal(8, 24)
    body = """
    y = nl.ndarray((8, 6), dtype=nl.float32, buffer=nl.shared_hbm)
    for i in nl.affine_range(2):
        for j in nl.affine_range(4):
            tile = nl.load(x[0:8, nl.ds(i * 12 + j * 3, 3)])
            total = nl.loop_reduce(tile, op=np.add, loop_indices=[j], dtype=nl.float32)
        nl.store(y[0:8, nl.ds(i * 3, 3)], total)
    return y
    """
    expected = a.reshape(8, 2, 4, 3).sum(2).reshape(8, 6)
    assert np.allclose(output(body, a), expected, rtol=1e-5, atol=1e-6)


def test_transposes() -> None:
    a = normal(16, 24)
    for expression in (
        "nl.transpose(nl.load(x))",
        "nisa.nc_transpose(nl.load(x))",
        "nl.load_transpose2d(x)",
        "nisa.dma_transpose(x)",
    ):
        body = f"r = {expression}\n" + STORE.format(shape="(24, 16)", value="r")
        assert np.array_equal(output(body, a), a.T), expression


def test_index_expressions_of_iota_and_affine_select() -> None:
    body = """
    i_p = nl.arange(8)[:, None]
    i_f = nl.arange(12)[None, :]
    a = nl.load(x)
    n = nisa.iota(i_p * 100 + i_f, dtype=nl.float32)
    r = nisa.affine_select(pred=(i_p >= i_f), on_true_tile=a, on_false_value=-1.0)
    r[...] = r + n
    """
    a = normal(8, 12)
    rows, columns = np.arange(8)[:, None], np.arange(12)[None, :]
    expected = np.where(rows >= columns, a, -1) + rows * 100 + columns
    text = textwrap.dedent(body) + STORE.format(shape="(8, 12)", value="r")
    assert np.allclose(output(text, a), expected)


def test_formats_are_promoted_and_numbers_are_weak() -> None:
    body = """
    a = nl.load(x, dtype=nl.bfloat16)
    b = nl.load(x)
    c = a + b
    d = a * 2.0
    e = a > b
    """
    shapes = [i.view("dst") for i in stream(body, x=(8, 12))]
    formats = [view.dtype for view in shapes if view is not None]
    assert formats[2:] == [DType.FLOAT32, DType.BFLOAT16, DType.BOOL]


def test_unknown_keywords_were_ignored() -> None:
    body = "a = nl.load(x, lookahead=3)\nr = nl.add(a, a, hint=1)\n"
    assert [i.opcode for i in stream(body, x=(8, 12))] == ["dma_copy", "tensor_tensor"]


def test_constants_of_the_program() -> None:
    a = normal(16, 8)
    for constant in (
        "nl.shared_constant(np.identity(16, dtype=np.int8), dtype=nl.float32)",
        "nl.shared_identity_matrix(16, dtype=nl.float32)",
    ):
        body = f"a = nl.load(x)\ni = nl.load({constant})\nr = nl.matmul(i, a, transpose_x=True)\n"
        body += STORE.format(shape="(16, 8)", value="r")
        assert np.allclose(output(body, a), a)


def test_a_text_without_imports_is_read_by_how_it_calls() -> None:
    text = "def k(x):\n    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
    text += "    t = nisa.tensor_copy(nl.load(x))\n    nl.store(y, t)\n    return y\n"
    a = normal(8, 4)
    found = run(text, a)
    assert np.array_equal(np.asarray(found.outputs[0]), a)


def test_programs_of_a_grid() -> None:
    body = """
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p = nl.program_id(0) * 4 + nl.arange(4)[:, None]
    i_f = nl.arange(6)[None, :]
    nl.store(y[i_p, i_f], nl.load(x[i_p, i_f], mask=i_p < 7), mask=i_p < 7)
    return y
    """
    a = normal(7, 6)
    assert np.array_equal(output(body, a, grid=(2,)), a)


def test_index_tensors_cost_the_same_whatever_their_length() -> None:
    body = """
    for i in nl.affine_range(200):
        column = (i + 1) * 4096 - 4096 * i - 4096 + nl.arange(4096)[None, :]
    a = nl.load(x[nl.arange(8)[:, None], column])
    """
    assert [i.opcode for i in stream(body, x=(8, 4096))] == ["dma_copy"]


def test_numbers_are_written_to_any_partition() -> None:
    body = """
    r = nl.zeros((8, 4), dtype=nl.float32)
    for i in nl.static_range(8):
        r[i, 1] = i * 2
    """
    text = textwrap.dedent(body) + STORE.format(shape="(8, 4)", value="r")
    expected = np.zeros((8, 4), np.float32)
    expected[:, 1] = np.arange(8) * 2
    assert np.array_equal(output(text, normal(8, 4)), expected)
    assert not any(i.problems for i in stream(text, x=(8, 4)))


def test_loop_iterators_took_any_keyword() -> None:
    body = """
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(2, precise_schedule=True):
        nl.store(out[nl.ds(4 * i, 4), :], nl.load(x[nl.ds(4 * i, 4), :]))
    return out
    """
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    np.testing.assert_array_equal(run(kernel(body), x).outputs[0], x)


def test_a_sum_that_begins_in_memory_that_nothing_wrote() -> None:
    body = """
    sums = nl.ndarray((2, nl.par_dim(4), 4), dtype=nl.float32, buffer=nl.psum)
    a, b = nl.load(x), nl.load(x)
    for turn in nl.affine_range(3):
        sums[1, :, :] += nisa.nc_matmul(a, b)
    out = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, nl.copy(sums[1]))
    return out
    """
    x = normal(4, 4)
    found = run(kernel(body), x)
    np.testing.assert_allclose(found.outputs[0], 3 * (x.T @ x), rtol=1e-5)
    (told,) = found.happenings
    assert told.code == "ambiguous-accumulation"
    assert "16 elements of sums that nothing was written to" in told.message


def test_the_range_of_an_index_tensor_and_of_a_format() -> None:
    body = """
    spans = (np.arange(1, 8) * 9 + 6) // 7 - (np.arange(7) * 9) // 7
    most, least = int(spans.max()), int(spans.min())
    low = nl.full((most, least), nl.finfo(nl.bfloat16).min, dtype=nl.float32)
    out = nl.ndarray((most, least), dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, low if np.finfo(np.float32).eps == 2.0**-23 else x)
    return out
    """
    spans = (np.arange(1, 8) * 9 + 6) // 7 - (np.arange(7) * 9) // 7
    found = run(kernel(body), normal(2, 2)).outputs[0]
    assert found.shape == (spans.max(), spans.min())
    assert (found == float(ml_dtypes.finfo(ml_dtypes.bfloat16).min)).all()


def test_a_column_beside_a_tile() -> None:
    body = """
    a, column = nl.load(x), nl.load(x[:, 1:2])
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    product = nisa.tensor_tensor(a, column, nl.multiply)
    nl.store(out, nisa.tensor_tensor(column, product, op=nl.subtract))
    return out
    """
    x = normal(4, 8)
    np.testing.assert_array_equal(output(body, x), x[:, 1:2] - x * x[:, 1:2])
