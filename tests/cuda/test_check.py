"""Typed trees: names, conversions, templates, and what is not understood."""

from __future__ import annotations

import pytest

from migrate.budget import Budget, Meter
from migrate.cuda.ast import (
    Assign,
    Binary,
    Cast,
    Declare,
    Evaluate,
    Expression,
    Function,
    If,
    Literal,
    Loop,
    Opaque,
)
from migrate.cuda.check import function
from migrate.cuda.parse import parse
from migrate.cuda.types import Array, Pointer, Scalar
from migrate.source import Source, SourceError


def built(text: str, name: str = "k", **template: object) -> Function:
    return function(parse(Source.of(text, "a.cu")), name, template)


def initial(declaration: str, parameters: str = "int a, unsigned u, float f") -> Expression:
    made = built(f"__global__ void k({parameters}) {{ {declaration} }}").body.body[-1]
    assert isinstance(made, Declare)
    assert made.initial is not None
    assert not isinstance(made.initial, tuple)
    return made.initial


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("a + u", "unsigned int"),
        ("a + 1L", "long"),
        ("u + 1L", "long"),
        ("1UL + 1LL", "unsigned long long"),
        ("a + f", "float"),
        ("f + 1.0", "double"),
        ("f + 1.0f", "float"),
        ("'a' + 'b'", "int"),
        ("(char)a", "char"),
        ("a < f", "bool"),
        ("a << 2L", "int"),
        ("true ? 1 : 2.0f", "float"),
        ("sizeof(float)", "unsigned long"),
        ("threadIdx.x", "unsigned int"),
        ("0x80000000", "unsigned int"),
        ("2147483648", "long"),
        ("sqrt(f)", "float"),
        ("sqrt(1.0)", "double"),
        ("sqrt(a)", "double"),
        ("expf(a)", "float"),
        ("max(a, u)", "unsigned int"),
        ("fmaxf(1.0, f)", "float"),
        ("__float2int_rn(f)", "int"),
        ("(int64_t)a", "long"),
        ("__float2half(f)", "__half"),
    ],
)
def test_types_of_expressions(expression: str, kind: str) -> None:
    assert str(initial(f"auto v = {expression};").type) == kind


def test_conversions_are_explicit_and_say_whether_they_are_written() -> None:
    inserted = initial("float v = a;")
    assert isinstance(inserted, Cast)
    assert not inserted.written
    written = initial("float v = (float)a;")
    assert isinstance(written, Cast)
    assert written.written
    mixed = initial("auto v = f * 2.0;")
    assert isinstance(mixed, Binary)
    assert isinstance(mixed.left, Cast)


def test_a_cast_of_a_named_type_is_not_a_call() -> None:
    made = built(
        "typedef float real; template <typename T> __global__ void k(int a, T* p) {"
        " p[0] = (T)(a); p[1] = T(a); p[2] = (real)(a); p[3] = (a) + a; }",
        T="float",
    )
    assert made.issues == ()
    kinds = [
        type(statement.expression.value).__name__
        for statement in made.body.body
        if isinstance(statement, Evaluate) and isinstance(statement.expression, Assign)
    ]
    assert kinds == ["Cast", "Cast", "Cast", "Cast"]


def test_declarators() -> None:
    made = built(
        "__global__ void k(const float* __restrict__ p, float q[4], int* const r) {"
        " __shared__ float s[4][33]; float *t[2]; dim3 g(1, 2); }"
    )
    p, q, r = (variable.type for variable in made.parameters)
    assert isinstance(p, Pointer)
    assert (p.const, p.restrict) == (True, True)
    assert str(q) == "float*"
    assert isinstance(r, Pointer)
    assert not r.const
    shared = made.body.body[0]
    assert isinstance(shared, Declare)
    assert shared.variable.storage == "shared"
    assert shared.variable.type == Array(Array(p.element, 33), 4)


def test_template_parameters_are_bound_and_folded() -> None:
    text = (
        "template <typename T, int N = 2 * 4> __global__ void k(T* p) {"
        " T local[N]; if constexpr (N > 4) { p[0] = 1; } else { p[0] = unknown(); } }"
    )
    made = built(text, T="float")
    assert made.template == (("T", "float"), ("N", "8"))
    assert made.issues == ()
    declared = made.body.body[0]
    assert isinstance(declared, Declare)
    assert str(declared.variable.type) == "float[8]"
    narrow = built(text, T="double", N=3)
    assert len(narrow.issues) == 1


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ({}, "T has no value"),
        ({"T": "float", "X": 1}, "no template parameter X"),
        ({"T": "nonsense"}, "cannot be 'nonsense'"),
    ],
)
def test_template_arguments_that_do_not_fit(template: dict[str, object], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        built("template <typename T> __global__ void k(T* p) {}", **template)


def test_device_functions_are_found_by_types() -> None:
    made = built(
        """
        __device__ float twice(float x) { return x + x; }
        __device__ int twice(int x) { return 2 * x; }
        template <typename T, int N> __device__ T scaled(T x) { return x * N; }
        __global__ void k(float* p, int a) {
          p[0] = twice(p[0]); int b = twice(a); auto c = scaled<float, 3>(p[0]);
          auto d = scaled<int, 3>(a);
        }
        """
    )
    assert made.issues == ()


def test_a_function_that_calls_itself_is_opaque() -> None:
    made = built(
        "__device__ int f(int n) { return n ? f(n - 1) : 0; }"
        "__global__ void k(int* p) { *p = f(3); }"
    )
    assert [issue.reason for issue in made.issues] == []


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("y[0] = frobnicate(y[0]);", "frobnicate is neither defined in this file nor known"),
        ("mystery_t v;", "the type mystery_t is not understood"),
        ("goto done; done: ;", "goto statement is not understood"),
        ('asm("nop;");', "the PTX instruction nop is not understood"),
        ("y[0] = missing;", "missing is not defined in this file"),
        ("y[0] = y % 2;", "is not understood"),
    ],
)
def test_what_is_not_understood_says_why_and_where(statement: str, reason: str) -> None:
    made = built(f"__global__ void k(float* y) {{\n  {statement}\n}}")
    assert made.issues
    assert reason in made.issues[0].reason
    assert made.issues[0].span.start_line == 2


def test_the_rest_of_a_kernel_is_read_around_what_is_not_understood() -> None:
    made = built("__global__ void k(float* y) { mystery_t v; y[0] = 1.0f; }")
    assert isinstance(made.body.body[0], Opaque)
    assert isinstance(made.body.body[1], Evaluate)


def test_a_macro_loop_head_is_a_loop() -> None:
    made = built("__global__ void k(int n, float* y) {\n  CUDA_KERNEL_LOOP(i, n) { y[i] = 1; }\n}")
    loop = made.body.body[0]
    assert isinstance(loop, Loop)
    assert made.issues == ()
    assert (loop.head.start_line, loop.head.start_column) == (2, 3)


@pytest.mark.parametrize("text", ["a.b().", "f(1)->g().", "(h).i()."])
def test_the_work_of_a_chain_of_calls_is_a_power_of_its_length(text: str) -> None:
    meter = Meter(Budget(steps=100_000))
    source = Source.of(f"__global__ void k(int* p) {{ *p = {text * 60}x; }}", "kernel.cu")
    made = function(parse(source), "k", meter=meter)
    assert made.issues != ()


def test_a_lambda_takes_what_a_lambda_inside_names() -> None:
    text = "int a = 1; auto f = [=] { auto g = [=] { return a; }; return g(); }; *p = f();"
    assert built(f"__global__ void k(int* p) {{ {text} }}").issues == ()


def test_nesting_is_bounded() -> None:
    deep = "(" * 400 + "1" + ")" * 400
    made = built(f"__global__ void k(int* p) {{ *p = {deep}; }}")
    assert any("nested deeper" in issue.reason for issue in made.issues)
    blocks = "if (1) {" * 300 + "}" * 300
    made = built(f"__global__ void k(int* p) {{ {blocks} }}")
    assert any("nested deeper" in issue.reason for issue in made.issues)
    parts = "T::" * 3000
    for name in (f"{parts}x", f"{parts}f(1)"):
        made = built(f"__global__ void k(int* p) {{ *p = {name}; }}")
        assert [issue.reason for issue in made.issues] == ["a name of more than 120 parts"]
    angles = "<A" * 400 + ">" * 400
    made = built(f"__global__ void k(int* p) {{ A{angles} q; *p = f{angles}(1); }}")
    assert len(made.issues) >= 2


@pytest.mark.parametrize(
    "statements",
    [
        "break;",
        "if (n > 1) continue;",
        "for (int i = 0; i < n; ++i) { p[i] = 1; } break;",
        "switch (n) { case 1: p[0] = 1; continue; }",
    ],
)
def test_a_way_out_of_no_loop_is_not_understood(statements: str) -> None:
    made = built(f"__global__ void k(int* p, int n) {{ {statements} p[0] = 2; }}")
    assert made.issues
    assert "outside every loop" in made.issues[0].reason


def test_ways_out_of_loops_and_switches() -> None:
    made = built(
        """
        __global__ void k(int* p, int n) {
          for (int i = 0; i < n; ++i) {
            if (p[i] > 2) continue;
            switch (n) { case 1: if (p[i]) continue; break; default: p[i] = 1; }
            if (p[i] > 1) break;
          }
          int a[4] = {1, 2, 3, 4};
          for (int x : a) { if (x > 2) break; }
          do { if (n) continue; } while (false);
        }
        """
    )
    assert made.issues == ()


def test_constants() -> None:
    made = built(
        """
        const int width = 4 * 8; enum { depth = 3 };
        __global__ void k(float* p) { const int n = width / 2; float a[n + depth]; p[0] = FLT_MAX; }
        """
    )
    declared = made.body.body[1]
    assert isinstance(declared, Declare)
    assert str(declared.variable.type) == "float[19]"
    assert made.issues == ()


def test_literals_keep_their_type() -> None:
    value = initial("auto v = 1.0;")
    assert isinstance(value, Literal)
    assert isinstance(value.type, Scalar)
    assert value.type.name == "double"


def test_statement_spans() -> None:
    made = built("__global__ void k(int* p, int n) {\n  if (n > 0)\n    *p = 1;\n}")
    branch = made.body.body[0]
    assert isinstance(branch, If)
    assert (branch.span.start_line, branch.span.end_line) == (2, 3)
    assert branch.then.body[0].span.start_line == 3
