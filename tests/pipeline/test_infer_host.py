"""What the wrapper of an NKI kernel decides in a comparison without a case."""

from __future__ import annotations

import pytest

from migrate.budget import Budget
from migrate.case.types import Tensor
from migrate.pipeline.compare import judged
from migrate.pipeline.completion import completed
from migrate.pipeline.kernels import Pair, pair_of_text
from tests.pipeline.pairs import HEAD, PRODUCT, PRODUCT_NKI, compared, inferred

LEGACY = """
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

@nki.jit
def product(lhs, rhs):
    k, m = lhs.shape
    _, n = rhs.shape
    out = nl.ndarray((m, n), dtype=lhs.dtype, buffer=nl.shared_hbm)
    left = nl.load(lhs)
    right = nl.load(rhs)
    total = nisa.nc_matmul(left, right)
    nl.store(out, nl.copy(total, dtype=out.dtype))
    return out
"""

STYLES = pytest.mark.parametrize("nki", [HEAD + PRODUCT_NKI, LEGACY], ids=["0.2", "0.1"])


def wrapped(body: str, parameters: str = "a, b", before: str = "") -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"\n\n{before}\ndef run({parameters}):\n{lines}"


def layouts(pair: Pair) -> dict[str, str | None]:
    return {tensor.name: tensor.nki_layout for tensor in pair.case.tensors}


def tensor(pair: Pair, name: str) -> Tensor:
    return next(tensor for tensor in pair.case.tensors if tensor.name == name)


@STYLES
@pytest.mark.parametrize(
    "turned",
    [
        "a.T",
        "a.t().contiguous()",
        "a.transpose(0, 1)",
        "np.transpose(a)",
        "np.ascontiguousarray(a.transpose(1, 0))",
        "jnp.swapaxes(a, 0, 1)",
        "a.permute(1, 0)",
        "rearrange(a, 'm k -> k m')",
    ],
)
def test_a_wrapper_that_turns_an_operand(nki: str, turned: str) -> None:
    text = nki + "import torch\nimport numpy as np\n" + wrapped(f"return product({turned}, b)")
    pair = completed(pair_of_text(PRODUCT, text, None))
    assert layouts(pair) == {"a": "transpose(1, 0)", "b": None, "c": None}
    assert judged(pair, run="never", budget=Budget()).verdict == "faithful"


@STYLES
def test_a_wrapper_that_forgets_to_turn_an_operand(nki: str) -> None:
    pair = completed(pair_of_text(PRODUCT, nki + wrapped("return product(a, b)"), None))
    assert layouts(pair) == {"a": None, "b": None, "c": None}
    assert judged(pair, run="never", budget=Budget()).verdict == "not-faithful"


def test_without_a_wrapper_a_matrix_is_turned_where_that_proves_it() -> None:
    assert compared(PRODUCT, PRODUCT_NKI).verdict == "faithful"


def test_operands_in_the_order_of_the_wrapper() -> None:
    text = PRODUCT_NKI + wrapped("return product(lhs=b, rhs=a)")
    pair = inferred(PRODUCT, text)
    assert (tensor(pair, "a").nki, tensor(pair, "b").nki) == ("rhs", "lhs")
    assert compared(PRODUCT, text).verdict == "not-faithful"


def test_a_result_that_is_turned_on_its_way_back() -> None:
    text = PRODUCT_NKI + wrapped("return product(a.T, b).T")
    assert compared(PRODUCT, text).verdict == "not-faithful"
    text = PRODUCT_NKI + wrapped("return product(b, a.T).T")
    assert layouts(inferred(PRODUCT, text))["c"] == "transpose(1, 0)"
    assert compared(PRODUCT, text).verdict == "faithful"


def test_where_it_is_read_is_said() -> None:
    text = PRODUCT_NKI + wrapped("return product(a.T, b)")
    assert any("as the wrapper has it (run, kernel.py:" in told
               for told in inferred(PRODUCT, text).inferred)  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        "k, m = a.shape\nreturn product(a, b)",
        '"""a: [k, m], the left matrix, turned."""\nreturn product(a, b)',
    ],
)
def test_a_wrapper_with_other_axes_decides_nothing(body: str) -> None:
    text = PRODUCT_NKI + wrapped(body)
    assert layouts(inferred(PRODUCT, text))["a"] == "transpose(1, 0)"
    assert compared(PRODUCT, text).verdict == "faithful"


def test_what_a_caller_turns_first_decides_nothing() -> None:
    text = (
        PRODUCT_NKI
        + wrapped("return product(a, b)")
        + (
            "\n\ndef test_product():\n"
            "    a = np.zeros((4, 5))\n    b = np.zeros((5, 6))\n    run(a.T, b)\n"
        )
    )
    assert compared(PRODUCT, text).verdict == "faithful"


def test_parameters_of_other_names_decide_nothing() -> None:
    text = PRODUCT_NKI + wrapped("return product(x, y)", "x, y")
    assert compared(PRODUCT, text).verdict == "faithful"


def test_the_outer_of_two_wrappers_decides() -> None:
    text = PRODUCT_NKI + wrapped(
        "return inner(a.T, b)", before="def inner(a, b):\n    return product(a, b)\n"
    )
    assert layouts(inferred(PRODUCT, text))["a"] == "transpose(1, 0)"
    assert compared(PRODUCT, text).verdict == "faithful"


def test_calls_that_contradict_one_another_decide_nothing() -> None:
    text = PRODUCT_NKI + wrapped(
        "if a.is_turned:\n    return product(a, b)\nreturn product(a.T, b)"
    )
    pair = inferred(PRODUCT, text)
    assert any("a is handed over in different ways" in told for told in pair.inferred)
    assert compared(PRODUCT, text).verdict == "faithful"


def test_a_cast_decides_the_format() -> None:
    text = PRODUCT_NKI + wrapped("return product(a.T.to(torch.bfloat16), b.bfloat16())")
    pair = inferred(PRODUCT, text)
    assert (tensor(pair, "a").nki_dtype, tensor(pair, "b").nki_dtype) == ("bfloat16",) * 2
    assert tensor(pair, "a").cuda_dtype == "float32"


def test_a_launch_decides_the_grid() -> None:
    text = PRODUCT_NKI + wrapped("m, k = a.shape\nreturn product[m // 128, 2](a.T, b)")
    pair = inferred(PRODUCT, text)
    assert pair.case.nki.grid == ("m // 128", 2)
    assert any(told.startswith("NKI grid ") for told in pair.inferred)


def test_a_case_goes_before_the_wrapper() -> None:
    text = PRODUCT_NKI + wrapped("return product[2](a, b)")
    case = (
        "[nki]\ngrid = [1]\n[sizes]\nm = [4]\nk = [5]\n"
        '[[tensor]]\nname = "a"\nshape = ["m", "k"]\ncuda = "a"\nnki = "lhs"\n'
        'nki_layout = "transpose(1, 0)"\n'
    )
    pair = inferred(PRODUCT, text, case)
    assert pair.case.nki.grid == (1,)
    assert tensor(pair, "a").nki_layout == "transpose(1, 0)"


ROWS = """
__global__ void twice(const float* x, float* y, int rows, int cols) {
  int r = blockIdx.y * 8 + threadIdx.y, c = blockIdx.x * 32 + threadIdx.x;
  if (r < rows && c < cols) y[r * cols + c] = 2.0f * x[r * cols + c];
}
"""

WHOLE_TILES = """
@nki.jit
def twice(x):
    rows, cols = x.shape
    assert rows % 128 == 0
    out = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, 128):
        tile = nl.ndarray((128, cols), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[start : start + 128, :])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=out[start : start + 128, :], src=tile)
    return out
"""


@pytest.mark.parametrize(
    "pad",
    [
        "x = F.pad(x, (0, 0, 0, (-rows) % 128))",
        "x = np.pad(x, ((0, (-rows) % 128), (0, 0)))",
        "extra = (-rows) % 128\nif extra:\n    x = F.pad(x, (0, 0, 0, extra))",
        "z = x.new_zeros(128 * ((rows + 127) // 128), cols)\nz[:rows, :cols] = x\nx = z",
    ],
)
def test_padding_and_slicing_back(pad: str) -> None:
    body = f"rows, cols = x.shape\n{pad}\nreturn twice(x)[:rows]"
    pair = inferred(ROWS, WHOLE_TILES + wrapped(body, "x"))
    assert (tensor(pair, "x").nki_layout or "").startswith("pad(")
    assert (tensor(pair, "y").nki_layout or "").startswith("pad(")
    assert any(rows % 128 for rows in pair.case.sizes["rows"])
    found = compared(ROWS, WHOLE_TILES + wrapped(body, "x"))
    assert found.verdict == "faithful"


def test_padding_that_a_condition_may_leave_out_wrongly() -> None:
    body = (
        "rows, cols = x.shape\nextra = (-rows) % 128\n"
        "if extra > 5:\n    x = F.pad(x, (0, 0, 0, extra))\nreturn twice(x)[:rows]"
    )
    pair = inferred(ROWS, WHOLE_TILES + wrapped(body, "x"))
    assert tensor(pair, "x").nki_layout is None


HEADS = """
@nki.jit
def twice(x):
    parts, rows, cols = x.shape
    out = nl.ndarray((parts, rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
    for p in range(parts):
        tile = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[p, :, :])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=out[p, :, :], src=tile)
    return out
"""


def test_a_reshape_and_back() -> None:
    body = "r, c = x.shape\nreturn twice(x.reshape(-1, 4, c)).reshape(r, c)"
    cuda = ROWS.replace("r < rows &&", "r < 4 * rows &&")
    pair = inferred(cuda, HEADS + wrapped(body, "x"))
    assert (tensor(pair, "x").nki_layout or "").startswith("reshape(")
    assert compared(cuda, HEADS + wrapped(body, "x")).verdict == "faithful"


@pytest.mark.parametrize(
    "body",
    [
        "return run(a, b)",
        "while True:\n    a = a.T\nreturn product(a, b)",
        "for i in range(10**9):\n    a = a.T\nreturn product(a, b)",
        "return product(getattr(a, 'T'), b)",
        "return product(*[a.T, b])",
        "return product(**{'lhs': a, 'rhs': b})",
        "a.transpose_(0, 1)\nreturn product(a, b)",
        "a = a @ a\nreturn product(a, b)",
        "a = a.T if b.turned else a\nreturn product(a, b)",
        "a = a.reshape(10**30, -1, -1)\nreturn product(a, b)",
        "a = a.permute(5, 5)\nreturn product(a, b)",
        "a = a" + ".T" * 90 + "\nreturn product(a, b)",
        "a, a = a.shape\nreturn product(a, b)",
        "return product[lambda: 0](exec('x'), b)",
        "try:\n    x = a.T\nexcept E:\n    x = a\nreturn product(x, b)",
    ],
)
def test_what_is_not_understood_decides_nothing(body: str) -> None:
    assert compared(PRODUCT, PRODUCT_NKI + wrapped(body)).verdict == "faithful"


MAIN = """

def run(a, b):
    return product(a.T, b)


if __name__ == "__main__":
    a = np.random.rand(24, 40).astype(np.float32)
    b = np.random.rand(40, 56)
    assert np.allclose(run(a, b), a @ b)
"""


def test_the_sizes_of_a_call_in_the_file() -> None:
    pair = inferred(PRODUCT, PRODUCT_NKI + MAIN)
    sizes = pair.case.sizes
    assert list(zip(sizes["m"], sizes["n"], sizes["k"], strict=True))[-1] == (24, 56, 40)
    assert any(told.startswith("sizes m = 24, n = 56, k = 40 from the call at kernel.py:")
               for told in pair.inferred)  # fmt: skip
    assert judged(pair, run="never", budget=Budget()).verdict == "faithful"


def test_a_kernel_that_takes_the_sizes_of_its_call_only() -> None:
    body = PRODUCT_NKI.replace("    out =", "    assert (k, m, n) == (40, 24, 56)\n    out =")
    pair = inferred(PRODUCT, body + MAIN)
    assert pair.case.sizes == {"m": (24,), "n": (56,), "k": (40,)}


def test_a_call_that_does_not_fit_the_cuda_kernel_gives_no_sizes() -> None:
    pair = inferred(PRODUCT, PRODUCT_NKI + MAIN.replace("rand(40, 56)", "rand(41, 56)"))
    assert not any("from the call" in told for told in pair.inferred)
