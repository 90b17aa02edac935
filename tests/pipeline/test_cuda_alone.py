"""A CUDA kernel read by itself, and held to a run at sizes of the tool's choice."""

from __future__ import annotations

import pytest

from migrate.cuda.launches import launches
from migrate.cuda.parse import parse
from migrate.pipeline.cuda_alone import Reading, reading
from migrate.source import Source


def read(text: str) -> Reading:
    program = parse(Source.of(text, "kernel.cu"))
    return reading(program, program.kernels[0], launches(program))


SCALE = """
template <int VECTOR>
__global__ void scale(const float* x, float* y, float by, int n) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * VECTOR;
  for (int j = 0; j < VECTOR; ++j) {
    if (i + j < n) y[i + j] = by * x[i + j];
  }
}
"""


def test_a_launch_in_the_file_is_taken() -> None:
    found = read(SCALE + "void run(float* x, int n) { scale<4><<<n / 256, 64>>>(x, x, 2.0f, n); }")
    assert (found.status, found.reason) == ("agrees", "")
    assert found.sizes["n"] >= 256
    assert any("from the launch" in word for word in found.told)


def test_what_no_launch_tells_is_tried() -> None:
    found = read(SCALE)
    assert found.status == "agrees"
    assert any("VECTOR" in word and "nothing tells it" in word for word in found.told)


def test_sizes_that_the_kernel_asserts_are_found() -> None:
    found = read(
        "#include <assert.h>\n__global__ void k(const float* x, float* y, int n) {"
        " assert(n % 3 != 0 && n < 20); int i = threadIdx.x;"
        " if (i < n) y[i] = x[n - 1 - i]; }"
    )
    assert found.status == "agrees"
    assert found.sizes["n"] == 16


def test_the_members_of_a_struct_that_is_passed_are_sizes() -> None:
    found = read(
        "struct Shape { int rows; int columns; };"
        "__global__ void k(const float* x, float* y, Shape shape) {"
        " int i = blockIdx.x * blockDim.x + threadIdx.x;"
        " if (i < shape.rows * shape.columns) y[i] = 2.0f * x[i]; }"
        "void run(float* x, Shape s) { k<<<(s.rows * s.columns + 63) / 64, 64>>>(x, x, s); }"
    )
    assert (found.status, found.reason) == ("agrees", "")


@pytest.mark.parametrize(
    ("statement", "status", "reason"),
    [
        ("y[i] = unheard_of(x[i]);", "opaque", "unheard_of"),
        ("y[i - 100000] = x[i];", "not-run", "element"),
    ],
)
def test_why_a_kernel_does_not_count_as_read(statement: str, status: str, reason: str) -> None:
    found = read(
        "__global__ void k(const float* x, float* y) {"
        f" int i = blockIdx.x * blockDim.x + threadIdx.x; {statement} }}"
    )
    assert found.status == status
    assert reason in found.reason


def test_a_launch_that_is_too_large_is_cut_down() -> None:
    found = read(
        "__global__ void k(const float* x, float* y) {"
        " int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = 2.0f * x[i]; }"
        "void run(float* x) { k<<<1000000, 256>>>(x, x); }"
    )
    assert found.status == "agrees"
