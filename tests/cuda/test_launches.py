"""Launches in host code."""

from __future__ import annotations

import pytest

from migrate.cuda.launches import (
    Constant,
    Launch,
    NotRead,
    Operation,
    Symbol,
    deduced,
    evaluate,
    index,
    launches,
)
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
    ("body", "grid"),
    [
        ("int b = 1; b = 2; k<<<b, 32>>>(x, y, n);", [2, 1, 1]),
        ("int b = 1; b++; b *= 3; k<<<b, 32>>>(x, y, n);", [6, 1, 1]),
        ("int b = 1; if (n > 3) b = 7; k<<<b, 32>>>(x, y, n);", [7, 1, 1]),
        (
            (
                "int b; if (n > 9) { b = 7; } else if (n > 3) { b = 5; } else { b = 2; }"
                " k<<<b, 32>>>(x, y, n);"
            ),
            [5, 1, 1],
        ),
        ("int b = 9; if (n > 3) { k<<<b, 32>>>(x, y, n); } else { b = 1; }", [9, 1, 1]),
        ("int m = n; m = (m + 1) / 2 * 2; k<<<m, 32>>>(x, y, n);", [4, 1, 1]),
        ("dim3 g; g.x = n; g.y = 2 * g.x; k<<<g, 32>>>(x, y, n);", [4, 8, 1]),
        ("dim3 g(1, 2); g = dim3(n, 5, 6); g.z += 1; k<<<g, 32>>>(x, y, n);", [4, 5, 7]),
        ("dim3 g = n > 5 ? dim3(n) : dim3(n, n); k<<<g, 32>>>(x, y, n);", [4, 4, 1]),
        ("k<<<{n, 2, 1}, 32>>>(x, y, n);", [4, 2, 1]),
        ("dim3 const g(n, 3); k<<<(g), 32>>>(x, y, n);", [4, 3, 1]),
        ("auto g = extents(n); k<<<g, 32>>>(x, y, n);", [4, 2, 1]),
        ("auto go = [&](int m) { k<<<m, 32>>>(x, y, n); };", [None, 1, 1]),
        ("int t = 3; auto go = [&] { k<<<t + n, 32>>>(x, y, n); };", [7, 1, 1]),
        ("k<<<ceil(n / 3.0), 32>>>(x, y, n);", [2, 1, 1]),
        ("k<<<(int)ceilf((float)n / 3), 32>>>(x, y, n);", [2, 1, 1]),
        ("k<<<std::max<int>(n, 2), 32>>>(x, y, n);", [4, 1, 1]),
        ("k<<<Shape::kBlocks, 32>>>(x, y, n);", [12, 1, 1]),
        ("k<<<THREE, 32>>>(x, y, n);", [3, 1, 1]),
        ("k<<<round_up<8>(n), 32>>>(x, y, n);", [8, 1, 1]),
        ("k<<<chosen(n), 32>>>(x, y, n);", [16, 1, 1]),
        ("k<<<n & 6, sizeof(int) * 8>>>(x, y, n);", [4, 1, 1]),
        ("CHECK(k<<<n, 32>>>(x, y, n));", [4, 1, 1]),
        ('DISPATCH(n, "k", ([&] { dim3 g(n); k<<<g, 32>>>(x, y, n); }));', [4, 1, 1]),
        ("broken(; } k<<<n, 32>>>(x, y, n);", [4, 1, 1]),
    ],
)
def test_followed(body: str, grid: list[int | None]) -> None:
    before = """
    enum { ONE = 1, TWO, THREE };
    struct Shape { static constexpr int kBlocks = 3 * 4; };
    dim3 extents(int m) { return dim3(m, 2); }
    template <int M> int round_up(int v) { return (v + M - 1) / M * M; }
    int chosen(int v) { if (v > 100) return 128; if (v > 3) { return v * 4; } return 1; }
    """
    assert geometry(launch(body, before), n=4)[0] == grid


@pytest.mark.parametrize(
    "body",
    [
        "k<<<blocks_for(n), 32>>>(x, y, n);",
        "int b = 1; pick(&b); k<<<b, 32>>>(x, y, n);",
        "int b = 1; std::cin >> b; k<<<b, 32>>>(x, y, n);",
        "int b = 1; adjust(n, b); k<<<b, 32>>>(x, y, n);",
        "int b = 1; for (int i = 0; i < n; ++i) { b *= 2; } k<<<b, 32>>>(x, y, n);",
        "for (int b = 1; b < n; b *= 2) k<<<b, 32>>>(x, y, n);",
        "int b = 1; while (b < n) { k<<<b, 32>>>(x, y, n); b++; }",
        "int b = 1; switch (n) { case 1: b = 3; break; } k<<<b, 32>>>(x, y, n);",
        "int b = 1; auto f = [&] { b = 4; }; f(); k<<<b, 32>>>(x, y, n);",
        "int b = 1; if (unknown()) b = 2; k<<<b, 32>>>(x, y, n);",
        "auto [b, t] = plan(n); k<<<b, 32>>>(x, y, n);",
    ],
)
def test_what_is_not_certain_stays_a_name(body: str) -> None:
    before = "void adjust(int n, int& b) { b = n; }"
    assert evaluate(launch(body, before).grid[0], {"n": 4}) is None


def test_a_variable_of_the_program_is_one_name_everywhere() -> None:
    found = launch("int m = atoi(argv[1]); k<<<(m + 31) / 32, 32>>>(x, y, m);")
    assert found.arguments[2] == Symbol("m")
    assert evaluate(found.grid[0], {"m": 100}) == 4
    # A helper of another file hangs on n: a size of its own in its place would not.
    other = launch("int m = blocks_for(n); k<<<m, 32>>>(x, y, n);")
    assert other.grid[0] == Symbol("blocks_for(n)")


@pytest.mark.parametrize(
    "body",
    [
        "hipLaunchKernelGGL(k, dim3(n), dim3(64), 128, 0, x, y, n);",
        "hipLaunchKernelGGL(HIP_KERNEL_NAME(k), n, 64, 128, 0, x, y, n);",
        (
            "void* args[] = {&x, &y, &n};"
            " cudaLaunchKernel((void*)k, dim3(n), dim3(64), args, 128, stream);"
        ),
        (
            "void* args[] = {(void*)&x, &y, &n};"
            " cudaLaunchCooperativeKernel((const void*)&k, n, 64, args, 128);"
        ),
        (
            "cudaLaunchConfig_t c = {0}; c.gridDim = dim3(n); c.blockDim.x = 64;"
            " c.dynamicSmemBytes = 128; cudaLaunchKernelEx(&c, k, x, y, n);"
        ),
        (
            'CUfunction f; cuModuleGetFunction(&f, module, "k"); void* args[] = {&x, &y, &n};'
            " cuLaunchKernel(f, n, 1, 1, 64, 1, 1, 128, 0, args, 0);"
        ),
        "auto f = &k; f<<<n, 64, 128>>>(x, y, n);",
        "LAUNCH(k, n, 64, 128)(x, y, n);",
    ],
)
def test_other_forms(body: str) -> None:
    before = "#define LAUNCH(f, g, b, s) f<<<g, b, s>>>"
    found = launch(body, before)
    assert found.kernel == "k"
    assert evaluate(found.grid[0], {"n": 4}) == 4
    assert evaluate(found.block[0], {}) == 64
    assert evaluate(found.shared, {}) == 128
    assert found.arguments == (Symbol("x"), Symbol("y"), Symbol("n"))


def test_a_type_that_the_host_names() -> None:
    found = launch("using T = half; float* d = nullptr; k<T><<<1, 2>>>(d, (int*)y, n);")
    assert found.template == ("half",)
    assert found.argument_types == ("float*", "int*", "int")
    assert found.read


def test_launches_of_a_member_and_a_template() -> None:
    text = f"""{KERNEL}
    template <int kBlock = 128, bool kFast = true>
    struct Runner {{
      int rows;
      void run(float* x, float* y) {{ k<<<(rows + kBlock - 1) / kBlock, kBlock>>>(x, y, rows); }}
    }};
    """
    (found,) = launches(parse(Source.of(text, "a.cu")))
    assert (found.function, found.read) == ("run", True)
    assert evaluate(found.grid[0], {"rows": 300, "kBlock": 128}) == 3


def test_expressions_that_grow_without_end_are_cut() -> None:
    doubled = "".join(f"int b{i + 1} = b{i} + b{i};" for i in range(50))
    found = launch(f"int b0 = n; {doubled} k<<<b50, 32>>>(x, y, n);")
    assert evaluate(found.grid[0], {"n": 1}) is None
    nested = "(" * 5000 + "n" + ")" * 5000
    assert not launch(f"k<<<{nested}, 32>>>(x, y, n);").read


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


def test_a_macro_that_means_itself_ends() -> None:
    found = launch("k<<<B, 32>>>(x, y, n);", "#define B N\n#define N B\n")
    assert evaluate(found.grid[0], {}) is None


@pytest.mark.parametrize("operators", ["(float)", "- ", "1 ? 1 : ", ":: "])
def test_an_extent_that_nests_without_end_is_not_read(operators: str) -> None:
    found = launch(f"k<<<{operators * 3000}1, 32>>>(x, y, n);")
    assert evaluate(found.grid[0], {}) is None
    assert evaluate(found.block[0], {}) == 32


def test_no_launch() -> None:
    assert launches(parse(Source.of(KERNEL + "int a = 1 << 3;", "a.cu"))) == ()


def test_defaults() -> None:
    found = launch("k<<<1, 2>>>(x, y, n);")
    assert found.shared == Constant(0)


def test_deduced_template_arguments() -> None:
    text = """
    template <typename T, typename U, typename V>
    __global__ void k(const T* __restrict__ x, U scale, T* y, V* a, V* b) {}
    void run(const half* x, half* y, double s) {
      float* a; int* b;
      k<<<1, 2>>>(x, s, y, a, b);
    }
    """
    program = parse(Source.of(text, "a.cu"))
    (found,) = launches(program)
    # a and b disagree about V.
    assert deduced(program, program.kernels[0], found) == {"T": "half", "U": "double"}


def test_types_of_the_file_are_numbers() -> None:
    found = launch(
        "len_t m = atoi(argv[1]); real_t r = 2.5; k<<<m, int(r * 2)>>>(x, y, m);",
        "typedef long len_t;\nusing real_t = float;",
    )
    assert found.grid[0] == Symbol("m")
    assert evaluate(found.block[0], {}) == 5


def test_constants_keep_the_name_of_their_variable() -> None:
    found = launch(
        "const int m = 1 << 10; int b = (m + 127) / 128; dim3 g(b); k<<<g, 32>>>(x, y, m);"
    )
    assert isinstance(found.arguments[2], Constant)
    assert (found.arguments[2].value, found.arguments[2].name) == (1024, "m")
    # Not folded: with another m it is another number.
    assert isinstance(found.grid[0], Operation)
    assert evaluate(found.grid[0], {}) == 8


def test_what_a_call_gives_the_host_template() -> None:
    text = """
    template <int N, bool fast> __global__ void k(float* x) {}
    template <const int kWidth, const bool kFast = true, typename T>
    void start(T* x, int n) { k<kWidth * 2, kFast><<<n / kWidth, kWidth>>>(x); }
    void run(float* x, int n) {
      switch (n) { case 1: start<64, false, float>(x, n); break; default: start<32>(x, n); }
    }
    """
    (found,) = launches(parse(Source.of(text, "a.cu")))
    assert found.instance == (("kWidth", 64), ("kFast", 0))
    assert [evaluate(value, dict(found.instance)) for value in found.template_values] == [128, 0]
