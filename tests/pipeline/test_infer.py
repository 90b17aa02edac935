"""Comparing two kernels without a case, and with a part of one."""

from __future__ import annotations

import pytest

from migrate.case.types import Case, Tensor
from migrate.source import SourceError
from tests.pipeline.pairs import (
    COPY_NKI,
    LAUNCH,
    MATRIX,
    MATRIX_NKI,
    PRODUCT,
    PRODUCT_NKI,
    ROWS,
    ROWS_NKI,
    SAXPY,
    SAXPY_NKI,
    TRANSPOSE,
    VECTOR,
    VECTOR_NKI,
    compared,
    inferred,
)


def tensor(case: Case, name: str) -> Tensor:
    return next(tensor for tensor in case.tensors if tensor.name == name)


def scalar(case: Case, name: str) -> object:
    return next(scalar.value for scalar in case.scalars if scalar.name == name)


# -- a whole case ---------------------------------------------------------------------


def test_a_vector_kernel() -> None:
    pair = inferred(VECTOR + LAUNCH, VECTOR_NKI)
    assert (pair.launch.grid, pair.launch.block) == (("(count + 127) // 128", 1, 1), (128, 1, 1))
    assert tensor(pair.case, "x") == Tensor(
        name="x", shape=("count",), dtype="float32", role="in", cuda="x", nki="x"
    )
    assert tensor(pair.case, "z") == Tensor(
        name="z", shape=("count",), dtype="float32", role="out", cuda="z", nki_out=0
    )
    assert scalar(pair.case, "count") == "count"
    assert any("grid [(count + 127) // 128] from the launch" in told for told in pair.inferred)
    assert compared(VECTOR + LAUNCH, VECTOR_NKI).verdict == "faithful"


def test_what_was_inferred_is_in_the_result() -> None:
    found = compared(VECTOR + LAUNCH, VECTOR_NKI).inferred
    assert [told.split()[0] for told in found] == ["grid", "block", "shapes", "sizes", "NKI"]


def test_sizes_are_below_at_and_beyond_a_tile() -> None:
    sizes = inferred(VECTOR + LAUNCH, VECTOR_NKI).case.sizes["count"]
    assert sizes[0] < 512
    assert 512 in sizes
    assert any(size > 512 and size % 512 for size in sizes)


def test_a_matrix_kernel() -> None:
    pair = inferred(MATRIX, MATRIX_NKI)
    assert pair.launch.grid == ("(cols + 31) // 32", "(rows + 7) // 8", 1)
    assert {tensor.shape for tensor in pair.case.tensors} == {("rows", "cols")}
    assert compared(MATRIX, MATRIX_NKI).verdict == "faithful"


def test_no_element_limit_is_passed() -> None:
    case = inferred(MATRIX, MATRIX_NKI).case
    for sizes in case.runs():
        rows, cols = tensor(case, "a").extents(sizes)
        assert rows * cols <= 200_000


def test_a_fault_is_still_found() -> None:
    wrong = MATRIX_NKI.replace("range(0, rows, 128)", "range(0, rows - 127, 128)")
    assert compared(MATRIX, wrong).verdict == "not-faithful"


def test_a_tile_that_is_too_large_is_still_found() -> None:
    found = compared(MATRIX, MATRIX_NKI.replace("128", "256"))
    assert any("partitions, 128 at most" in finding.message for finding in found.findings)


# -- the launch -----------------------------------------------------------------------


def test_without_a_launch_the_guard_says_how_many_blocks() -> None:
    pair = inferred(VECTOR, VECTOR_NKI)
    assert (pair.launch.grid, pair.launch.block) == (("(count + 255) // 256", 1, 1), (256, 1, 1))
    assert any("the file has no launch of combine" in told for told in pair.inferred)


def test_a_block_that_nothing_tells() -> None:
    cuda = "__global__ void k(float* x) { x[threadIdx.x] += 1.0f; }"
    with pytest.raises(SourceError, match=r"how many threads a block has .* state grid and block"):
        inferred(cuda, COPY_NKI)


def test_a_grid_that_is_not_read_is_taken_from_the_guard() -> None:
    launch = LAUNCH.replace("dim3 grid((n + block.x - 1) / block.x);", "dim3 grid(blocks(n));")
    assert inferred(VECTOR + launch, VECTOR_NKI).launch.grid == ("(count + 127) // 128", 1, 1)


def test_a_row_a_block_without_a_launch() -> None:
    cuda = ROWS.split("void run")[0].replace(", int THREADS", "").replace("THREADS", "blockDim.x")
    case = inferred(cuda, ROWS_NKI).case
    assert tensor(case, "x").shape == ("grid_x", "D")


def test_of_several_launches_the_first_is_taken() -> None:
    launch = LAUNCH + LAUNCH.replace("run", "again").replace("128", "64")
    pair = inferred(VECTOR + launch, VECTOR_NKI)
    assert pair.launch.block == (128, 1, 1)
    assert any(", the first of 2" in told for told in pair.inferred)


def test_sizes_that_the_host_code_fixes() -> None:
    launch = LAUNCH.replace("int n)", "int)").replace("dim3 block", "const int n = 96; dim3 block")
    case = inferred(VECTOR + launch, VECTOR_NKI).case
    assert case.sizes == {"count": (96,)}


def test_sizes_of_the_host_code_that_are_too_large_are_free() -> None:
    launch = LAUNCH.replace("int n)", "int)").replace(
        "dim3 block", "const int n = 1 << 20; dim3 block"
    )
    pair = inferred(VECTOR + launch, VECTOR_NKI)
    assert pair.launch.grid == ("(count + 127) // 128", 1, 1)
    assert max(pair.case.sizes["count"]) < 1000


def test_template_arguments_come_from_the_launch() -> None:
    pair = inferred(ROWS, ROWS_NKI)
    assert pair.launch.template == {"T": "float", "THREADS": 256}
    assert pair.launch.grid == ("batch*seq", 1, 1)
    assert tensor(pair.case, "x").shape == ("batch*seq", "D")
    assert tensor(pair.case, "gamma").nki_layout == "reshape(1, D)"
    assert scalar(pair.case, "shift") == 0.125
    assert compared(ROWS, ROWS_NKI).verdict == "faithful"


def test_a_template_value_that_nothing_tells() -> None:
    with pytest.raises(SourceError, match="template parameter THREADS of scale_rows is open"):
        inferred(ROWS.split("void run")[0], ROWS_NKI)


# -- parameters -----------------------------------------------------------------------


@pytest.mark.parametrize("names", ["A, B", "B, A"])
def test_names_that_say_nothing_are_tried_in_every_order(names: str) -> None:
    first, second = names.split(", ")
    nki = VECTOR_NKI.replace("(x, y)", "(A, B)")
    nki = nki.replace("x.", f"{first}.").replace("src=x", f"src={first}")
    nki = nki.replace("src=y", f"src={second}")
    found = compared(VECTOR, nki)
    assert found.verdict == "faithful"
    assert f"parameters x is {first}, y is {second}, under which both compute the same" in (
        found.inferred
    )


def test_where_no_order_is_right_the_given_one_stays() -> None:
    nki = VECTOR_NKI.replace("nl.subtract", "nl.multiply").replace("(x, y)", "(A, B)")
    nki = nki.replace("x.", "A.").replace("src=x", "src=A").replace("src=y", "src=B")
    found = compared(VECTOR, nki)
    assert found.verdict == "not-faithful"
    assert "parameters x is A, y is B, by their order" in found.inferred


def test_names_are_never_overruled() -> None:
    swapped = VECTOR_NKI.replace("data1=left, data2=right", "data1=right, data2=left")
    assert compared(VECTOR, swapped).verdict == "not-faithful"


@pytest.mark.parametrize("name", ["d_x", "x_ptr", "x_hbm", "X"])
def test_names_may_say_where_an_array_lives(name: str) -> None:
    nki = VECTOR_NKI.replace("(x, y)", f"(y, {name})").replace("x.", f"{name}.")
    nki = nki.replace("src=x", f"src={name}")
    assert tensor(inferred(VECTOR, nki).case, "x").nki == name


def test_too_few_parameters() -> None:
    with pytest.raises(SourceError, match=r"reads 1 tensor \(y\), for which .* takes no tensor"):
        inferred(VECTOR, COPY_NKI)


def test_a_result_that_is_missing() -> None:
    cuda = VECTOR.replace("float* z,", "float* z, float* w,").replace(
        "z[i] = x[i] - y[i];", "{ z[i] = x[i] - y[i]; w[i] = x[i]; }"
    )
    with pytest.raises(SourceError, match="returns nothing that is w of the CUDA kernel"):
        inferred(cuda, VECTOR_NKI)


def test_an_output_that_the_nki_kernel_takes() -> None:
    nki = VECTOR_NKI.replace("(x, y)", "(x, y, out)").replace(
        "out = nl.ndarray((n,), dtype=x.dtype, buffer=nl.shared_hbm)", "pass"
    )
    z = tensor(inferred(VECTOR, nki).case, "z")
    assert (z.nki, z.nki_out) == ("out", None)
    assert compared(VECTOR, nki).verdict == "faithful"


def test_an_array_that_is_read_and_written() -> None:
    y = tensor(inferred(SAXPY, SAXPY_NKI).case, "y")
    assert (y.role, y.nki, y.nki_out) == ("inout", "y", 0)


# -- scalars --------------------------------------------------------------------------


def test_a_float_argument_has_an_odd_value_and_says_so() -> None:
    pair = inferred(SAXPY, SAXPY_NKI)
    (a,) = (scalar for scalar in pair.case.scalars if scalar.name == "a")
    assert (a.value, a.nki, a.dtype) == (0.75, "a", "float32")
    assert "a = 0.75 (float32): nothing states a value" in pair.inferred
    assert compared(SAXPY, SAXPY_NKI).verdict == "faithful"


def test_a_default_of_the_nki_kernel_is_the_value() -> None:
    nki = SAXPY_NKI.replace("(a, x, y)", "(x, y, a=1.5)")
    assert scalar(inferred(SAXPY, nki).case, "a") == 1.5


def test_a_number_in_the_nki_kernel_is_the_value_if_it_proves_right() -> None:
    nki = SAXPY_NKI.replace("(a, x, y)", "(x, y)").replace("operand0=a", "operand0=2.5")
    assert scalar(inferred(SAXPY, nki).case, "a") == 2.5


def test_a_value_that_nothing_tells() -> None:
    nki = SAXPY_NKI.replace("(a, x, y)", "(x, y)").replace("operand0=a", "operand0=x.shape[0]")
    with pytest.raises(SourceError, match=r"the value of a is not known.*\[\[scalar\]\]"):
        inferred(SAXPY, nki)


def test_an_integer_that_decides_no_shape() -> None:
    cuda = SAXPY.replace("float a", "int a")
    assert scalar(inferred(cuda, SAXPY_NKI).case, "a") == 3


# -- shapes and layouts -----------------------------------------------------------------


def test_a_vector_that_the_nki_kernel_takes_as_a_matrix() -> None:
    cuda = VECTOR.replace(" - ", " + ").replace("combine", "add")
    case = inferred(cuda, MATRIX_NKI).case
    assert tensor(case, "x").shape == ("rows", "cols")
    assert scalar(case, "count") == "cols*rows"


def test_a_matrix_that_is_taken_turned() -> None:
    case = inferred(PRODUCT, PRODUCT_NKI).case
    assert tensor(case, "a").nki_layout == "transpose(1, 0)"
    assert tensor(case, "b").nki_layout is None
    assert compared(PRODUCT, PRODUCT_NKI).verdict == "faithful"


def test_sizes_without_tiles_stay_where_the_kernel_can_be_compiled() -> None:
    pair = inferred(PRODUCT, PRODUCT_NKI)
    assert all(max(values) <= 128 for name, values in pair.case.sizes.items() if name != "n")
    assert any(told.startswith("no larger sizes: at ") for told in pair.inferred)


def test_a_transposition_is_no_layout() -> None:
    assert compared(TRANSPOSE, COPY_NKI).verdict == "not-faithful"


def test_a_shape_that_data_decides() -> None:
    cuda = VECTOR.replace("const float* y", "const int* y").replace("x[i] - y[i]", "x[y[i]]")
    with pytest.raises(SourceError, match=r"the shape of x is not known .*data decides"):
        inferred(cuda, VECTOR_NKI)


def test_a_kernel_that_asserts_whole_tiles() -> None:
    nki = MATRIX_NKI.replace("    out =", "    assert rows % 128 == 0\n    out =")
    pair = inferred(MATRIX, nki)
    assert all(rows % 128 == 0 for rows in pair.case.sizes["rows"])
    assert any(told.startswith("only whole tiles: at ") for told in pair.inferred)
    assert compared(MATRIX, nki).verdict == "faithful"


def test_a_kernel_that_stops_whatever_is_tried() -> None:
    found = compared(MATRIX, MATRIX_NKI.replace("return out", "return result"))
    assert found.verdict == "not-faithful"
    assert any("result is not defined" in finding.message for finding in found.findings)


# -- parts of a case ----------------------------------------------------------------------


def test_only_sizes() -> None:
    case = inferred(SAXPY, SAXPY_NKI, "[sizes]\nn = [100, 600]").case
    assert case.sizes == {"n": (100, 600)}
    assert tensor(case, "x").shape == ("n",)


def test_sizes_in_other_letters() -> None:
    case = inferred(SAXPY, SAXPY_NKI, "[sizes]\nN = [100, 600]").case
    assert tensor(case, "x").shape == ("N",)
    assert case.cuda.launch[0].grid == ("(N + 255) // 256", 1, 1)


def test_sizes_of_nothing() -> None:
    with pytest.raises(SourceError, match=r"sizes length are those of nothing.*\(open: n\)"):
        inferred(SAXPY, SAXPY_NKI, "[sizes]\nlength = 100")


def test_only_one_tensor() -> None:
    case = inferred(SAXPY, SAXPY_NKI, '[[tensor]]\nname = "x"\nshape = [100]').case
    assert tensor(case, "x").shape == tensor(case, "y").shape == (100,)
    assert scalar(case, "n") == 100


def test_a_tensor_in_sizes_of_its_own() -> None:
    text = '[sizes]\nL = [100, 600]\n[[tensor]]\nname = "x"\nshape = ["L"]\nfill = "ones"'
    case = inferred(SAXPY, SAXPY_NKI, text).case
    assert tensor(case, "x").fill == "ones"
    assert tensor(case, "y").shape == ("L",)
    assert scalar(case, "n") == "L"


def test_only_the_launch() -> None:
    text = '[sizes]\nn = 100\n[cuda]\ngrid = ["ceil_div(n, 64)"]\nblock = [64]'
    pair = inferred(VECTOR.replace("count", "n"), VECTOR_NKI, text)
    assert (pair.launch.grid, pair.launch.block) == (("ceil_div(n, 64)",), (64,))


def test_only_a_scalar() -> None:
    case = inferred(SAXPY, SAXPY_NKI, '[[scalar]]\nname = "a"\ncuda = "a"\nvalue = 3.5').case
    assert [scalar.value for scalar in case.scalars if scalar.cuda == "a"] == [3.5]
    assert [scalar.nki for scalar in case.scalars if scalar.cuda == "a"] == ["a"]


def test_a_case_that_states_everything_is_left_alone() -> None:
    whole = inferred(VECTOR + LAUNCH, VECTOR_NKI)
    lines = [
        "[cuda]",
        'grid = ["ceil_div(count, 128)"]',
        "block = [128]",
        "[sizes]",
        "count = 100",
    ]
    for one in whole.case.tensors:
        place = f'nki = "{one.nki}"' if one.nki else f"nki_out = {one.nki_out}"
        lines += [
            "[[tensor]]",
            f'name = "{one.name}"',
            'shape = ["count"]',
            f'role = "{one.role}"',
            f'cuda = "{one.cuda}"',
            place,
        ]
    lines += ["[[scalar]]", 'name = "count"', 'value = "count"', 'cuda = "count"']
    pair = inferred(VECTOR + LAUNCH, VECTOR_NKI, "\n".join(lines))
    assert pair.inferred == ()
    assert pair.launch.grid == ("ceil_div(count, 128)",)


# -- windows ----------------------------------------------------------------------------

WINDOW = """
__global__ void sums(const float* x, float* y, int rows, int cols) {
  int r = blockIdx.x, shorter = cols - 2;
  for (int c = threadIdx.x; c < shorter; c += 128)
    y[r * shorter + c] = x[r * cols + c] + x[r * cols + c + 2];
}
void run(const float* x, float* y, int rows, int cols) { sums<<<rows, 128>>>(x, y, rows, cols); }
"""

WINDOW_NKI = """
@nki.jit
def sums(x):
    rows, cols = x.shape
    out = nl.ndarray((rows, cols - 2), dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, 128):
        size = min(128, rows - start)
        tile = nl.ndarray((size, cols), dtype=x.dtype, buffer=nl.sbuf)
        total = nl.ndarray((size, cols - 2), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[start : start + size, :])
        left, right = tile[:, 0 : cols - 2], tile[:, 2:cols]
        nisa.tensor_tensor(dst=total, data1=left, data2=right, op=nl.add)
        nisa.dma_copy(dst=out[start : start + size, :], src=total)
    return out
"""


def test_a_result_with_shorter_rows() -> None:
    assert tensor(inferred(WINDOW, WINDOW_NKI).case, "y").shape == ("rows", "cols - 2")
    assert compared(WINDOW, WINDOW_NKI).verdict == "faithful"
    wrong = WINDOW_NKI.replace("tile[:, 2:cols]", "tile[:, 1 : cols - 1]")
    assert compared(WINDOW, wrong).verdict == "not-faithful"


LARGEST = """
__global__ void largest(const float* x, float* y, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float most = x[r * cols];
  for (int c = 1; c < cols; ++c) most = fmaxf(most, x[r * cols + c]);
  y[r] = most;
}
void run(const float* x, float* y, int rows, int cols) {
  largest<<<(rows + 127) / 128, 128>>>(x, y, rows, cols);
}
"""

LARGEST_NKI = """
@nki.jit
def largest(x):
    rows, cols = x.shape
    out = nl.ndarray((rows, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, 128):
        size = min(128, rows - start)
        tile = nl.ndarray((size, cols), dtype=x.dtype, buffer=nl.sbuf)
        most = nl.ndarray((size, 1), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[start : start + size, :])
        nisa.tensor_reduce(dst=most, op=nl.minimum, data=tile, axis=1)
        nisa.dma_copy(dst=out[start : start + size, :], src=most)
    return out
"""


def test_guesses_under_which_the_shapes_disagree_are_passed_over() -> None:
    found = compared(LARGEST, LARGEST_NKI)
    assert found.verdict == "not-faithful"
    assert [finding.rule for finding in found.findings] == ["MAP103"]


BATCHED = """__global__ void scale(const float* x, float* y, int rows) {
  int batch = blockIdx.y, row = blockIdx.x * 4 + threadIdx.y, k = threadIdx.x;
  if (row < rows) {
    y[(batch * rows + row) * 64 + k] = 2.0f * x[(batch * rows + row) * 64 + k];
  }
}
void launch(const float* x, float* y, int batches, int rows) {
  scale<<<dim3((rows + 3) / 4, batches), dim3(64, 4)>>>(x, y, rows);
}
"""

BATCHED_NKI = """import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def scale(x):
    batches, rows, cols = x.shape
    y = nl.ndarray((batches, rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
    for b in range(batches):
        for k in range(0, rows, 128):
            count = min(128, rows - k)
            t = nl.ndarray((count, cols), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=t, src=x[b, k : k + count, :])
            nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
            nisa.dma_copy(dst=y[b, k : k + count, :], src=t)
    return y
"""


def test_a_batch_that_is_gone_through_one_by_one_is_small() -> None:
    case = inferred(BATCHED, BATCHED_NKI).case
    shapes = {tensor.name: tensor.shape for tensor in case.tensors}
    assert shapes == dict.fromkeys("xy", ("batches", "rows", 64))
    assert max(case.sizes["batches"]) <= 3
    assert max(case.sizes["rows"]) > 128


def test_counters_may_be_called_as_sizes_are() -> None:
    cuda = BATCHED.replace("int rows", "int k").replace("rows", "k")
    cuda = cuda.replace("k = threadIdx.x", "c = threadIdx.x").replace("64 + k", "64 + c")
    assert "int k)" in cuda
    found = compared(cuda, BATCHED_NKI)
    assert (found.verdict, found.coverage.cuda, found.coverage.nki) == ("faithful", 1.0, 1.0)


def test_an_order_of_axes_that_nothing_shows_is_not_guessed() -> None:
    cuda = """__global__ void scale(const float* x, float* y, int a, int b, int c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < a * b * c) y[i] = 2.0f * x[i];
}
void launch(const float* x, float* y, int a, int b, int c) {
  scale<<<(a * b * c + 255) / 256, 256>>>(x, y, a, b, c);
}
"""
    assert compared(cuda, BATCHED_NKI).verdict == "faithful"
    wrong = BATCHED_NKI.replace("operand0=2.0", "operand0=3.0")
    with pytest.raises(SourceError, match="in an order that no access shows"):
        compared(cuda, wrong)


def test_a_size_in_a_struct_is_not_made_up() -> None:
    cuda = """struct Args { float scale; int n; };
__global__ void scale(const float* x, float* y, Args a, int rows) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < a.n * rows) y[i] = a.scale * x[i];
}
void launch(const float* x, float* y, int n, int rows) {
  Args a{2.0f, n};
  scale<<<(n * rows + 255) / 256, 256>>>(x, y, a, rows);
}
"""
    with pytest.raises(SourceError, match=r"the value of a\.n, a member of a struct, is not read"):
        inferred(cuda, VECTOR_NKI)
