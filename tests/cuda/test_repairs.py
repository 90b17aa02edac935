"""What the parser reads otherwise than C++ does: repaired, recovered from, or reported."""

from __future__ import annotations

import pytest
from tree_sitter import Node

from migrate.cuda.parse import Program, parse
from migrate.source import Source


def program(text: str, **options: object) -> Program:
    return parse(Source.of(text, "a.cu"), **options)  # type: ignore[arg-type]


def kernel(body: str, before: str = "", head: str = "float* p, int n, float x, int m") -> Program:
    return program(f"{before}\n__global__ void k({head}) {{ {body} }}\n")


def types(read: Program) -> list[str]:
    """The types of all nodes of the kernel's body."""
    pending: list[Node] = [read.kernels[0].node.child_by_field_name("body") or read.root]
    found: list[str] = []
    while pending:
        node = pending.pop()
        found.append(node.type)
        pending += reversed(node.children)
    return found


def text_of(read: Program, kind: str) -> list[str]:
    pending, found = [read.root], []
    while pending:
        node = pending.pop()
        if node.type == kind:
            found.append(read.text(node))
        pending += reversed(node.children)
    return found


# -- repairs ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "expression"),
    [
        ("typedef float real;", "(real)(x)"),
        ("using real = float;", "(real)(x)[0]"),
        ("struct real { float v; };", "(real)(x)"),
        ("", "(half)(x)"),
        ("", "(std::uint16_t)(x)"),
        ("", "(clock_t)(x)"),
        ("__device__ real one(real a) { return a; }", "(real)(x)"),
        ("// real numbers\n__device__ void f(const real* a);", "(real)(x)"),
        ("typedef float real;", "(real)-x"),
        ("typedef float real;", "(real)*p"),
        ("typedef float real;", "(real)&p"),
    ],
)
def test_a_cast_of_a_named_type_is_no_call_and_no_operation(before: str, expression: str) -> None:
    read = kernel(f"float y = {expression};", before)
    found = types(read)
    assert "cast_expression" in found
    assert not {"call_expression", "binary_expression"} & set(found)
    assert not read.disagreements


def test_a_type_is_what_the_template_says() -> None:
    text = "template <typename T> __global__ void k(T* p, float x) { p[0] = (T)(x) + (T)-x; }"
    assert text_of(program(text), "cast_expression") == ["(const T)(x)", "(const T)-x"]


@pytest.mark.parametrize("expression", ["(n)*x", "(n)-x", "(n)&m", "(f)(x)"])
def test_a_variable_in_parentheses_is_no_type(expression: str) -> None:
    read = kernel(f"auto f = [](float a) {{ return a; }}; auto y = {expression};")
    assert "cast_expression" not in types(read)
    assert not read.disagreements


def test_a_constant_of_the_file_is_no_type() -> None:
    before = "constexpr int SIZE = 4; enum { COUNT };"
    read = kernel("p[0] = (SIZE)*x + (COUNT)-x;", before)
    assert "cast_expression" not in types(read)
    assert not read.disagreements


def test_a_template_parameter_is_a_value_where_it_is_one() -> None:
    text = "template <int SIZE> __global__ void k(float* p, float x) { p[0] = (SIZE)*x; }"
    read = program(text)
    assert text_of(read, "binary_expression") == ["(SIZE)*x"]
    assert not read.disagreements


@pytest.mark.parametrize(
    ("declaration", "arguments"),
    [
        ("Pair v(n, m);", "((n), m)"),
        ("float v(x);", "((x))"),
        ("Pair v(n * m, n);", "((n * m), n)"),
        ("Pair v(p[0], n);", "((p[0]), n)"),
        ("float4* v(q);", "((q))"),
        ("const Pair v(n, UNKNOWN);", "((n), UNKNOWN)"),
        ("if (n) { Pair v(n, m); }", "((n), m)"),
    ],
)
def test_an_object_is_no_prototype(declaration: str, arguments: str) -> None:
    before = "struct Pair { int a, b; __device__ Pair(int x, int y) : a(x), b(y) {} };"
    read = kernel(f"float4* q; {declaration}", before)
    assert arguments in text_of(read, "argument_list")
    assert not read.disagreements


def test_a_prototype_in_a_body_is_reported() -> None:
    read = kernel("void other(int a); float helper(float);")
    assert [issue.kind for issue in read.disagreements] == ["prototype", "prototype"]


@pytest.mark.parametrize(
    ("condition", "comparison"),
    [
        ("n < m && x > (p[0])", "(n) < m"),
        ("n < m || m > (n)", "(n) < m"),
        ("n < size<0>(p)", "(n) < size<0>(p)"),
    ],
)
def test_a_comparison_is_no_template(condition: str, comparison: str) -> None:
    before = "template <int N> __device__ int size(float* p) { return N; }"
    read = kernel(f"if ({condition}) {{ p[0] = 1; }}", before)
    assert comparison in text_of(read, "binary_expression")
    assert not read.disagreements


def test_a_call_of_a_template_stays_one() -> None:
    before = "template <class A, class B> __device__ A to(B x) { return x; }"
    read = kernel("p[0] = to<float, int>(n) + static_cast<float>(n);", before)
    assert text_of(read, "template_function") == ["to<float, int>", "static_cast<float>"]


def test_places_after_repairs_are_those_of_the_text() -> None:
    body = "typedef float real; float y = (real)(x) + 1; int later = m;"
    read = kernel(body)
    found = next(n for n in _nodes(read.root) if read.text(n) == "later")
    span = read.span(found)
    line = f"__global__ void k(float* p, int n, float x, int m) {{ {body} }}"
    assert (span.start_line, span.start_column) == (2, line.index("later") + 1)
    assert span.end_column == line.index("later") + 6


def _nodes(root: Node) -> list[Node]:
    pending, found = [root], []
    while pending:
        node = pending.pop()
        found.append(node)
        pending += node.children
    return found


# -- recoveries ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "typename K::Scan(tmp).Run(x);",
        "auto t = typename K::template Load<4>(tmp);",
        "auto f = [=] __device__ (float a) { return a; };",
        "auto f = [&] __host__ __device__ { return 1; };",
        "CHECK(n)\n p[0] = 1;",
        "CHECK(n, f(m))\n}\nvoid host() {",
        "f(n < m, x > m);",
        "TIMES(n, p[0] += 1; p[1] += 2;)",
        "TIMES(p[0] += 1; p[1] += 2;)",
    ],
)
def test_what_the_grammar_does_not_know_in_a_kernel(body: str) -> None:
    read = kernel(body)
    assert not read.kernels[0].node.has_error
    assert not read.disagreements


@pytest.mark.parametrize(
    "before",
    [
        "API_INLINE int f(int a) { return a; }",
        "template <class T> API_INLINE __device__ T f(T a) { return a; }",
        "BIND(f32, float)\nBIND(f16, half)",
        "template class Holder<float>;",
        "template <class T, typename enable_if<is_one<T>{}>::type* = nullptr> __device__ int f();",
        "__global__ void __launch_bounds__(256, 2, 4) other(int n) {}",
        "struct __align__(8) Pair { float a, b; };",
        "__global__ void C10_LAUNCH_BOUNDS_1(256) other(float* const __restrict p) {}",
        "__device__ int table[4] __attribute__((aligned(8)));",
    ],
)
def test_what_stands_before_a_kernel_does_not_spoil_it(before: str) -> None:
    read = kernel("p[0] = x;", before)
    assert read.kernels[-1].name == "k"
    assert not any(definition.node.has_error for definition in read.kernels)
    assert not read.disagreements


def test_braces_in_a_launch_are_an_extent() -> None:
    text = "__device__ void f(float* p) { g<<<n, {x, y, 1}, 0, s>>>(p); g<<<{x, y}, f({1})>>>(p); }"
    assert text_of(program(text), "compound_literal_expression")[:2] == [
        "dim3{x, y, 1}",
        "dim3{x, y}",
    ]


def test_alignment_stays() -> None:
    read = program("struct __align__(16) S { float a; };\n__global__ void k(S* s) { }")
    assert text_of(read, "alignas_qualifier") == ["alignas(16)"]


def test_a_host_function_that_does_not_parse_hides_no_kernel() -> None:
    read = program(
        "void host() { DISPATCH(t, f<<<g, b>>>(p);) \n }}}\n"
        "__global__ void k(float* p) { if (p) { p[0] = 1; } }"
    )
    assert [definition.name for definition in read.kernels] == ["k"]
    assert not read.disagreements


# -- text against tree --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "kind", "place"),
    [
        ("LOOP(i, n) { p[i] = 1; }", "nested-function", "LOOP(i, n) { p[i] = 1; }"),
        ("DYNAMIC(float, s);", "error", "DYNAMIC(float, s)"),
        ("p[0] = = 1;", "error", "="),
        ("float y = (Unknown)(x);", "call-or-cast", "Unknown"),
        ("float y = (UNKNOWN)*x;", "call-or-cast", "UNKNOWN"),
    ],
)
def test_what_stays_wrong_is_reported(body: str, kind: str, place: str) -> None:
    read = kernel(f"p[1] = 2; {body} p[2] = 3;")
    issue = read.disagreements[0]
    assert issue.kind == kind
    assert issue.function == (read.kernels[0].node.start_byte, read.kernels[0].node.end_byte)
    assert read.source.excerpt(issue.span) == place


def test_a_lost_keyword_is_reported() -> None:
    read = kernel("for (int i = 0; i < n; ++i) else { p[i] = 1; return; }")
    assert read.disagreements


def test_only_the_statement_is_not_read() -> None:
    from migrate.cuda.ast import Opaque
    from migrate.cuda.check import function

    made = function(kernel("p[0] = 1; LOOP(i, n) { p[i] = 1; } p[1] = 2;"), "k")
    kinds = [isinstance(statement, Opaque) for statement in made.body.body]
    assert kinds == [False, True, False]
    assert "defined nowhere" in made.issues[0].reason


def test_a_head_that_is_not_read_refuses_the_kernel() -> None:
    from migrate.cuda.check import function
    from migrate.source import SourceError

    read = program("__global__ void k(float* p, int ? n) { p[0] = 1; }")
    if read.kernels:
        with pytest.raises(SourceError, match="cannot be read"):
            function(read, "k")


@pytest.mark.parametrize(
    "body",
    [
        "if (n) p[0] = 1; else if (m) p[0] = 2; else return;",
        "do { n--; } while (n > 0); while (n) { break; }",
        "switch (n) { case 1: p[0] = 1; break; default: goto end; } end: return;",
        "// for if while\n /* return */ const char* s = \"do if\"; for (auto v : p) {}",
        "struct Local { int a; __device__ int get() const { return a; } }; Local l;",
        "auto f = [](int a) { if (a) return 1; return 2; };",
        "asm volatile(\"{ .reg .pred p; @p bra for; }\" :: \"r\"(n) : \"memory\");",
        "#pragma unroll\n for (int i = 0; i < 4; ++i)\n#pragma unroll 2\n for (;;) p[0] = i;",
    ],
)  # fmt: skip
def test_no_false_alarm(body: str) -> None:
    assert not kernel(body).disagreements


def test_functions_inside_of_functions_end() -> None:
    read = program("__global__ void k() { " + "F() { if (" * 3000)
    assert read.kernels is not None


@pytest.mark.parametrize(
    ("expression", "product"),
    [
        ("m * (n) - 2 / m", "m * (n)"),
        ("(n) + (m - 1) * m", "(m - 1) * m"),
        ("-(n) + 3 * m", "3 * m"),
        ("(n) & m * 2", "m * 2"),
    ],
)
def test_a_variable_in_parentheses_binds_as_it_is_written(expression: str, product: str) -> None:
    read = kernel(f"int q = {expression}; p[q] = x;")
    assert "cast_expression" not in types(read)
    found = [text.replace("((n))", "(n)") for text in text_of(read, "binary_expression")]
    assert product in found


def test_deep_nesting_ends() -> None:
    read = kernel(f"int q = {'(' * 100_000}1{')' * 100_000};")
    assert [definition.name for definition in read.kernels] == ["k"]
