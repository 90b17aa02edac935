"""Launches in host code."""

from __future__ import annotations

import pytest

from migrate.cuda.launch import Constant, Launch, NotRead, Symbol, evaluate, index, launches
from migrate.cuda.parse import parse
from migrate.ir.index import Index, ceil_div
from migrate.source import Source

KERNEL = "__global__ void k(const float* x, float* y, int n) {}\n"


def launch(body: str, before: str = "", parameters: str = "float* x, float* y, int n") -> Launch:
    text = f"{KERNEL}{before}\nvoid run({parameters}) {{\n{body}\n}}\n"
    (found,) = launches(parse(Source.of(text, "a.cu")))
    return found


def geometry(found: Launch, **values: int) -> tuple[list[int | None], list[int | None]]:
    return (
        [evaluate(part, values) for part in found.grid],
        [evaluate(part, values) for part in found.block],
    )


@pytest.mark.parametrize(
    ("body", "grid", "block"),
    [
        ("k<<<4, 256>>>(x, y, n);", [4, 1, 1], [256, 1, 1]),
        ("k<<<(n + 255) / 256, 256>>>(x, y, n);", [4, 1, 1], [256, 1, 1]),
        (
            "int t = 128; int blocks = (n + t - 1) / t; k<<<blocks, t>>>(x, y, n);",
            [8, 1, 1],
            [128, 1, 1],
        ),
        (
            "dim3 g(n / 10, 2); dim3 b = dim3(16, 16); k<<<g, b>>>(x, y, n);",
            [100, 2, 1],
            [16, 16, 1],
        ),
        ("int gx = 3, gy = 5; dim3 g(gx, gy); k<<<g, 32>>>(x, y, n);", [3, 5, 1], [32, 1, 1]),
        ("dim3 g{7}; dim3 b = {8, 4, 2}; k<<<g, b>>>(x, y, n);", [7, 1, 1], [8, 4, 2]),
        ("k<<<dim3(n, 1, 3), dim3(32)>>>(x, y, n);", [1000, 1, 3], [32, 1, 1]),
        ("dim3 b(32, 8); k<<<n / b.x, b>>>(x, y, n);", [31, 1, 1], [32, 8, 1]),
        ("k<<<cdiv(n, 256), std::min(n, 1024)>>>(x, y, n);", [4, 1, 1], [1000, 1, 1]),
        ("k<<<BLOCKS(n), WIDTH>>>(x, y, n);", [4, 1, 1], [256, 1, 1]),
        ("k<<<n > 500 ? 2 : 1, (unsigned)n>>>(x, y, n);", [2, 1, 1], [1000, 1, 1]),
        (
            "const auto g = static_cast<int>(n) >> 3; k<<<g, 1 << 5>>>(x, y, n);",
            [125, 1, 1],
            [32, 1, 1],
        ),
    ],
)
def test_geometry(body: str, grid: list[int], block: list[int]) -> None:
    before = (
        "#define BLOCKS(n) (((n) + WIDTH - 1) / WIDTH)\n"
        "constexpr int WIDTH = 256;\n"
        "static inline int cdiv(int a, int b) { return (a + b - 1) / b; }"
    )
    assert geometry(launch(body, before), n=1000) == (grid, block)


def test_as_index_expressions() -> None:
    found = launch("int blocks = (n + 255) / 256; k<<<blocks, 256>>>(x, y, n);")
    n = Index.size("n")
    assert index(found.grid[0], {"n": n}) == ceil_div(n, 256)
    assert index(found.grid[0], {}) is None


def test_the_rest_of_a_launch() -> None:
    body = "k2<float, 4><<<1, 2, 3 * sizeof(float), stream>>>(x, y + 1, n * 2, 0.5f);"
    found = launch(body)
    assert (found.kernel, found.template, found.function) == ("k2", ("float", "4"), "run")
    assert evaluate(found.shared, {}) == 12
    assert found.arguments[0] == Symbol("x")
    assert evaluate(found.arguments[2], {"n": 7}) == 14
    assert found.arguments[3] == NotRead("0.5f")
    assert found.span.start_line == 4


@pytest.mark.parametrize(
    "body",
    [
        "int b = 1; b = 2; k<<<b, 32>>>(x, y, n);",
        "int b = 1; b++; k<<<b, 32>>>(x, y, n);",
        "k<<<blocks_for(n), 32>>>(x, y, n);",
        "dim3 g; g.x = n; k<<<g, 32>>>(x, y, n);",
    ],
)
def test_what_is_not_certain_is_not_read(body: str) -> None:
    assert evaluate(launch(body).grid[0], {"n": 4}) is None


def test_the_nearest_declaration_counts() -> None:
    text = f"""{KERNEL}
    void run(float* x, float* y, int n) {{
      if (n > 5) {{ dim3 grid(n / 2); dim3 block(32); k<<<grid, block>>>(x, y, n); }}
      else {{ dim3 grid(n); dim3 block(64); k<<<grid, block>>>(x, y, n); }}
    }}
    """
    found = launches(parse(Source.of(text, "a.cu")))
    assert [geometry(one, n=10) for one in found] == [
        ([5, 1, 1], [32, 1, 1]),
        ([10, 1, 1], [64, 1, 1]),
    ]


def test_extents_of_tensors_are_symbols() -> None:
    found = launch("const int M = x.size(0); k<<<(M + 31) / 32, 32>>>(x, y, n);")
    assert evaluate(found.grid[0], {"x.size(0)": 100}) == 4


def test_a_name_that_means_itself_ends() -> None:
    assert evaluate(launch("int b = b + 1; k<<<b, 32>>>(x, y, n);").grid[0], {"n": 4}) is None


def test_no_launch() -> None:
    assert launches(parse(Source.of(KERNEL + "int a = 1 << 3;", "a.cu"))) == ()


def test_defaults() -> None:
    found = launch("k<<<1, 2>>>(x, y, n);")
    assert found.shared == Constant(0)
