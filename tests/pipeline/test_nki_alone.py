"""Arguments for an NKI kernel from its own text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from migrate.api import lint_text
from migrate.budget import Budget, Exhausted, Meter
from migrate.nki.values import TensorSpec
from migrate.numerics.dtypes import DType
from migrate.pipeline.kernels import parse_nki
from migrate.pipeline.nki_alone import InferredArguments, infer
from migrate.pipeline.single import inspected
from migrate.source import Source
from tests.pipeline.pairs import HEAD, MATRIX_NKI, PRODUCT_NKI, ROWS_NKI, SAXPY_NKI, VECTOR_NKI


def inferred(text: str) -> InferredArguments:
    module = parse_nki(Source.of(text, "kernel.py"))
    found = infer(module, module.kernels[0], Meter())
    assert not isinstance(found, str), found
    return found


def shapes(text: str) -> dict[str, tuple[int, ...]]:
    return {
        name: tuple(int(extent.value) for extent in given.shape)
        for name, given in inferred(text).args.items()
        if isinstance(given, TensorSpec)
    }


def copying(before: str = "", parameters: str = "x", after: str = "", docs: str = "") -> str:
    """A kernel that copies one tile of `x`, with lines before and behind."""
    told = f'    """{docs}"""\n' if docs else ""
    return HEAD + (
        f"@nki.jit\ndef copied({parameters}):\n{told}{before}"
        "    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)\n"
        "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    nisa.dma_copy(dst=tile, src=x)\n"
        "    nisa.dma_copy(dst=out, src=tile)\n"
        "    return out\n"
        f"{after}"
    )


@pytest.mark.parametrize("nki", [MATRIX_NKI, VECTOR_NKI, PRODUCT_NKI, ROWS_NKI, SAXPY_NKI])
def test_kernels_of_one_sort_each_are_taken(nki: str) -> None:
    found = inferred(HEAD + nki)
    assert not found.failures
    assert found.complete
    assert found.usable


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        ("x.shape[0] == 96", lambda rows, cols: rows == 96),
        ("x.shape[1] % 96 == 0", lambda rows, cols: cols % 96 == 0),
        ("x.shape[0] <= 32 and x.shape[1] > 700", lambda rows, cols: rows <= 32 and cols > 700),
        ("x.shape[1] in (40, 80)", lambda rows, cols: cols in (40, 80)),
        ("x.shape[0] * 4 == x.shape[1]", lambda rows, cols: rows * 4 == cols),
        ("x.shape[1] == WIDTH", lambda rows, cols: cols == 320),
    ],
)
def test_what_it_asserts_is_met(condition: str, met: Callable[[int, int], bool]) -> None:
    text = copying(f"    assert {condition}\n").replace("@nki.jit", "WIDTH = 320\n\n\n@nki.jit")
    rows, cols = shapes(text)["x"]
    assert met(rows, cols)
    assert rows <= 128


def test_what_it_raises_for_is_avoided() -> None:
    before = (
        '    rows, cols = x.shape\n    if cols % 192 != 0:\n        raise ValueError("columns")\n'
    )
    assert shapes(copying(before))["x"][1] % 192 == 0


def test_a_rank_that_is_asserted() -> None:
    before = "    assert len(x.shape) == 3\n    assert x.shape[0] == 4\n"
    assert shapes(copying(before))["x"][0] == 4
    assert len(shapes(copying(before))["x"]) == 3


def test_a_call_in_the_file() -> None:
    after = (
        "\n\ndef test_copied():\n"
        "    rows = 64\n"
        "    data = np.random.rand(rows, 5 * rows).astype(np.float16)\n"
        "    copied(data)\n"
    )
    found = inferred("import numpy as np\n" + copying(after=after))
    assert found.args["x"].shape[0].value == 64
    assert found.args["x"].shape[1].value == 320
    assert found.args["x"].dtype is DType.FLOAT16
    ((words, span),) = found.inferred
    assert "from a call in the file" in words
    assert span.start_line > 10


def test_the_cases_of_a_test() -> None:
    after = (
        '\n\n@pytest.mark.parametrize("rows, cols", [(32, 48), (64, 96)])\n'
        "def test_copied(rows, cols):\n"
        "    copied(np.zeros((rows, cols), dtype=np.float32))\n"
    )
    assert shapes("import numpy as np\nimport pytest\n" + copying(after=after)) == {"x": (32, 48)}


def test_its_docstring() -> None:
    found = inferred(copying(docs="Copies.\n\n    x: tensor of shape [B, 40], bfloat16\n    "))
    assert [extent.value for extent in found.args["x"].shape][1] == 40
    assert found.args["x"].dtype is DType.BFLOAT16
    assert "from its docstring" in found.inferred[0][0]


def test_names_annotations_and_defaults() -> None:
    parameters = "x, scale: float, rows: int, use_bias: bool, eps=1e-5"
    found = inferred(copying("    assert rows == x.shape[0]\n", parameters))
    assert not found.failures
    assert "eps" not in found.args
    assert found.args["use_bias"] is False
    assert found.args["rows"].value == found.args["x"].shape[0].value


def test_no_arguments_that_a_kernel_takes() -> None:
    found = inferred(copying("    assert x.shape[0] > 4 and x.shape[0] < 4\n"))
    assert found.failures
    assert not found.usable


def test_a_fault_of_the_kernel_at_its_own_call_is_told() -> None:
    after = "\n\ndef main():\n    copied(np.zeros((256, 64), dtype=np.float32))\n"
    kernel = copying("    x = x.reshape((256, 64))\n", after=after)
    document = lint_text("import numpy as np\n" + kernel)
    assert [finding.severity for finding in document.kernels[0].findings] == ["error"]


def test_a_parameter_that_nothing_tells_of() -> None:
    text = copying(parameters="x, how: Mode")
    module = parse_nki(Source.of(text, "kernel.py"))
    assert infer(module, module.kernels[0], Meter()) == "nothing tells what how is"


def test_a_search_is_bounded() -> None:
    before = "    while True:\n        pass\n"
    module = parse_nki(Source.of(copying(before), "kernel.py"))
    meter = Meter(Budget(steps=200_000))
    try:
        found = infer(module, module.kernels[0], meter)
    except Exhausted:
        return
    assert isinstance(found, str) or found.failures


def test_lint_says_what_was_inferred() -> None:
    (kernel,) = lint_text(copying("    assert x.shape[0] == 96\n")).kernels
    assert kernel.complete
    assert any("x is a tensor (x_0 = 96" in words for words in kernel.inferred)
    assert any("(line " in words for words in kernel.inferred)


def test_lint_does_not_blame_a_kernel_for_arguments_that_do_not_fit() -> None:
    (kernel,) = lint_text(copying("    assert x.shape[0] > 4 and x.shape[0] < 4\n")).kernels
    assert not kernel.complete
    assert not [finding for finding in kernel.findings if finding.severity == "error"]
    assert any("state them in a case" in reason for reason in kernel.reasons)


def test_ir_says_what_was_inferred(tmp_path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(HEAD + MATRIX_NKI)
    (kernel,) = inspected(str(file), None, case=None).kernels
    assert kernel.coverage == 1.0
    assert kernel.inferred
    assert all(" = " in extent for extent in kernel.parameters[0].shape)


def test_ir_says_what_to_state(tmp_path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(copying("    assert x.shape[0] > 4 and x.shape[0] < 4\n"))
    (kernel,) = inspected(str(file), None, case=None).kernels
    assert kernel.coverage == 0.0
    assert "state them in a case" in kernel.constructs[0].summary


def test_helpers_in_a_file_beside_it_are_read(tmp_path) -> None:
    (tmp_path / "helpers.py").write_text("def width():\n    return 72\n")
    file = tmp_path / "kernel.py"
    file.write_text("from helpers import width\n" + copying("    assert x.shape[1] == width()\n"))
    (kernel,) = inspected(str(file), None, case=None).kernels
    assert kernel.coverage == 1.0
    assert any("= 72" in extent for extent in kernel.parameters[0].shape)


def test_a_rank_that_a_helper_unpacks() -> None:
    helper = "def extents(t):\n    a, b, c = t.shape\n    return a\n\n\n"
    text = copying("    assert extents(x) <= 4\n").replace("@nki.jit", helper + "@nki.jit")
    assert len(shapes(text)["x"]) == 3


def test_a_format_that_is_asserted() -> None:
    found = inferred(copying("    assert x.dtype == nl.bfloat16\n"))
    assert found.args["x"].dtype is DType.BFLOAT16
    assert not found.failures


def test_sizes_that_leave_something_of_a_quotient() -> None:
    before = "    other = nl.ndarray((x.shape[1] // 512, 4), dtype=x.dtype, buffer=nl.sbuf)\n"
    assert shapes(copying(before))["x"][1] >= 512


def test_a_number_that_is_counted_with() -> None:
    before = "    width = 2 * n + 1\n    assert x.shape[1] == width * 4\n"
    found = inferred(copying(before, "x, n"))
    assert not found.failures
    assert found.args["x"].shape[1].value == 4 * (2 * found.args["n"].value + 1)


def test_words_that_a_kernel_takes_without_naming_them() -> None:
    before = '    left, right = options["margin"]\n    assert x.shape[1] == 60 + left + right\n'
    after = "\n\ndef main():\n    copied(np.zeros((8, 64)), margin=(1, 3))\n"
    found = inferred("import numpy as np\n" + copying(before, "x, **options", after))
    assert not found.failures
    assert found.args["margin"] == (1, 3)


def test_a_loop_of_many_fixed_trips_goes_as_far_as_it_goes() -> None:
    text = HEAD + (
        "@nki.jit\ndef strided(x):\n"
        "    out = nl.ndarray((128, 2400), dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    for i in range(600):\n"
        "        t = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.sbuf)\n"
        "        nisa.dma_copy(dst=t, src=x[0:128, i * 4 : i * 4 + 4])\n"
        "        nisa.dma_copy(dst=out[:, i * 4 : i * 4 + 4], src=t)\n"
        "    return out\n"
    )
    found = inferred(text)
    assert not found.failures
    assert shapes(text)["x"] == (128, 2400)
    assert found.tries < 10


FLOORS = """\
@nki.jit
def floors(x):
    \"\"\"Copies x.

    Args:
        x: a tensor of shape [M, N]{demand}
    \"\"\"
    M, N = x.shape
    out = nl.ndarray((M, N), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(M // 128):
        tile = nl.ndarray((128, N), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[i * 128 : (i + 1) * 128, :])
        nisa.dma_copy(dst=out[i * 128 : (i + 1) * 128, :], src=tile)
    return out
"""


@pytest.mark.parametrize(
    ("demand", "rules"),
    [
        ("", {"HW209"}),
        (", where M is a multiple of 128", set()),
        (", where M is a multiple of TILE", set()),
        (", of which the length L must be divisible by 128", set()),
        (", where M need not be a multiple of 128", {"HW209"}),
    ],
)
def test_sizes_are_the_multiples_that_a_docstring_says(demand: str, rules: set[str]) -> None:
    (kernel,) = lint_text(HEAD + FLOORS.format(demand=demand)).kernels
    assert {f.rule for f in kernel.findings if f.rule in {"HW209", "MAP114"}} == rules


LISTED = """\
@nki.jit
def ordered(x, order=None):
    assert order == {wanted}
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    return out


def test_ordered():
    x = np.zeros((128, 64), dtype=np.float32)
    ordered(x, order={given})
"""


@pytest.mark.parametrize("order", ["[0, 1, 2]", "(0, 1, 2)"])
def test_a_list_that_a_call_gives_is_a_list(order: str) -> None:
    text = "import numpy as np\n" + HEAD + LISTED.format(wanted=order, given=order)
    assert not inferred(text).failures
