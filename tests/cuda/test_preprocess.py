"""Macros, conditionals and includes, and the way back to the text."""

from __future__ import annotations

import pytest

from migrate.budget import Budget, Exhausted, Meter
from migrate.cuda.preprocess import Edit, Expanded, preprocess
from migrate.cuda.tokens import tokens
from migrate.source import Source, SourceError


def expanded(text: str, **options: object) -> Expanded:
    return preprocess(Source.of(text, "a.cu"), **options)  # type: ignore[arg-type]


def words(text: str, **options: object) -> list[str]:
    return expanded(text, **options).text.decode().split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#define N 4\nN", "4"),
        ("#define F(a, b) a + b\nF(1, (2, 3))", "1 + ( 2 , 3 )"),
        ("#define F(a) a\nF\n(1)", "1"),
        ("#define F(a) a\nF + 1", "F + 1"),
        ("#define A B\n#define B A\nA", "A"),
        ("#define F(x) x\n#define G F\nG(3)", "3"),
        ("#define CAT(a, b) a##b\nCAT(x, 1)", "x1"),
        ("#define S(a) #a\nS(x + 1)", '"x + 1"'),
        ("#define V(f, ...) f(__VA_ARGS__)\nV(g, 1, 2)", "g ( 1 , 2 )"),
        ("#define N 4\n#undef N\nN", "N"),
        ("#define LONG 1 + \\\n 2\nLONG", "1 + 2"),
        ("#define N 4\n// N\n/* N */ N", "// N /* N */ 4"),
        ('#define N 4\n"N" N', '"N" 4'),
    ],
)
def test_expansion(text: str, expected: str) -> None:
    assert "".join(words(text)) == expected.replace(" ", "")


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("#if 1", True),
        ("#if 0", False),
        ("#ifdef __CUDACC__", True),
        ("#ifndef __CUDACC__", False),
        ("#if defined(X) && X > 3", True),
        ("#if defined X && X < 3", False),
        ("#if !defined(MISSING)", True),
        ("#if MISSING", False),
        ("#if __CUDA_ARCH__ >= 700", True),
        ("#if (1 << 4) == 16 && -7 / 2 == -3", True),
        ("#if X ? 0 : 1", False),
        ("#if 1 / 0", False),
    ],
)
def test_conditionals(condition: str, holds: bool) -> None:
    found = words(f"#define X 5\n{condition}\nyes\n#else\nno\n#endif")
    assert found == (["yes"] if holds else ["no"])


def test_only_one_branch_of_a_chain_is_kept() -> None:
    text = "#if 0\na\n#elif 1\nb\n#elif 1\nc\n#else\nd\n#endif\n#if 0\n#if 1\ne\n#endif\n#endif"
    assert words(text) == ["b"]


def test_definitions_from_outside_are_overridden_by_none() -> None:
    assert words("TILE F(2)", defines={"TILE": "16", "F(x)": "x + x"}) == ["16", "2", "+", "2"]


def test_the_grid_stride_loop_head_of_a_library() -> None:
    text = expanded("CUDA_KERNEL_LOOP(i, n) { y[i] = 1; }").text.decode().strip()
    assert text.startswith("for")
    assert "blockDim" in text


def test_includes() -> None:
    header = Source.of("#pragma once\n#define N 4\nint from_header;\n", "b.h")
    found = expanded(
        '#include "b.h"\n#include "b.h"\n#include <missing.h>\nN\n',
        include=lambda name, _: {"b.h": header}.get(name),
    )
    assert found.text.decode().split() == ["int", "from_header;", "4"]
    assert found.missing_includes == ("missing.h",)
    at = found.text.index(b"from_header")
    span = found.span(at, at + 11)
    assert (span.file, span.start_line, span.start_column) == ("b.h", 3, 5)
    assert [(frame.kind, frame.file, frame.line) for frame in span.via] == [("include", "a.cu", 1)]


def span_of(text: str, part: str) -> tuple[int, int, int, int, list[tuple[str, int]]]:
    found = expanded(text)
    at = found.text.index(part.encode())
    span = found.span(at, at + len(part))
    via = [(frame.name, frame.line) for frame in span.via]
    return span.start_line, span.start_column, span.end_line, span.end_column, via


def test_verbatim_text_keeps_its_place() -> None:
    assert span_of("#define N 4\nint é = N, later;", "later") == (2, 12, 2, 17, [])


def test_a_place_in_a_macro_body_carries_the_use() -> None:
    text = "#define TWICE(x) ((x) * 2)\n\nint a = TWICE(b);"
    assert span_of(text, "* 2") == (1, 23, 1, 26, [("TWICE", 3)])


def test_an_argument_is_where_it_is_written() -> None:
    text = "#define TWICE(x) ((x) * 2)\n\nint a = TWICE(bcd);"
    assert span_of(text, "bcd") == (3, 15, 3, 18, [])


def test_a_range_that_mixes_body_and_argument_is_the_use() -> None:
    text = "#define ADD(x) x + 1\n\nint a = ADD(bcd);"
    assert span_of(text, "bcd + 1") == (3, 9, 3, 17, [])


def test_a_macro_without_a_text_stands_where_it_is_used() -> None:
    text = "void f() {\n  CUDA_KERNEL_LOOP(i, n) { }\n}"
    assert span_of(text, "blockDim") == (2, 3, 2, 25, [])


DOUBLING = ["#define A0 x x"] + [f"#define A{i} A{i - 1} A{i - 1}" for i in range(1, 40)]


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("\n".join([*DOUBLING, "A39"]), "41:1", "expand to more than 400,000 words"),
        ("\n".join([*DOUBLING, "#if A39\n#endif"]), "41:5", "expand to more than"),
        ("#define F(x) x x\n" + "F(" * 40 + "1" + ")" * 40, "2:1", "expand to more than"),
        ("#define F(x) x\n\n  " + "F(" * 80 + "1" + ")" * 80, "3:3", "nest deeper than 64"),
        ("#define P " + "a ## " * 2000 + "a\nP", "2:1", "pastes a name of more than 1,000"),
        ("#define F(x) x\n" + "F( " * 20_000, "2:", "expand to more than"),
        (
            "\n".join(f"#define A{i} A{i + 1}" for i in range(20_000)) + "\nA0",
            "20001:1",
            "expand to more than",
        ),
    ],
    ids=["doubling", "condition", "arguments", "nesting", "pasting", "unclosed", "chain"],
)
def test_expansion_is_bounded(text: str, place: str, reason: str) -> None:
    with pytest.raises(SourceError) as refused:
        expanded(text)
    assert reason in refused.value.message
    assert str(refused.value.where).startswith(f"a.cu:{place}")


@pytest.mark.parametrize(
    "text",
    [
        "'\\" * 200_000,
        'R"(x' * 200_000,
        '"\\' * 200_000,
        "//" + "x" * 3_000_000,
        "1'" * 200_000,
    ],
    ids=["character", "raw string", "string", "comment", "number"],
)
def test_what_is_not_closed_is_one_token(text: str) -> None:
    assert len(tokens(None, text.encode())) <= 2


def test_a_file_of_too_many_words() -> None:
    with pytest.raises(SourceError, match="more than 400,000 words") as refused:
        expanded("\n" + "+ " * 400_001)
    assert refused.value.where is not None
    assert refused.value.where.start_line == 2


def test_a_name_that_nobody_writes() -> None:
    with pytest.raises(SourceError, match="a name has more than 1,000 characters"):
        expanded("int " + "x" * 1001 + ";")


def test_the_meter_ends_it() -> None:
    text = "#define F(x) x\n" + "F(1)\n" * 2000
    with pytest.raises(Exhausted):
        expanded(text, meter=Meter(Budget(steps=1000)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Arguments that a directive interrupts ([cpp.replace]/11 leaves it open; compilers go on).
        ("#define F(a, b) a - b\nF(1,\n#if 1\n2\n#else\n3\n#endif\n)", "1 - 2"),
        ("#define F(a) a\nF(1\n#if 0\n)\n#endif\n", "F(1"),
        ("#define F(a) a\n#define N 4\nF(N\n#pragma once\n N", "F( 4 4"),
        # Words in literals, comments and numbers are no names.
        ("#define f 4\n1.f 1.0f 0xf 'f' \"f\" /* f */ f", "1.f 1.0f 0xf 'f' \"f\" /* f */ 4"),
        ('#define N 4\nR"x(N )" N)x" N', 'R"x(N )" N)x" 4'),
        ("#define N 4\n1'000 N 'N'", "1'000 4 'N'"),
        ("#define N 4 // four\nN", "4"),
        ("#define N /* a\n b */ 4\nN", "4"),
        ("/* a */ #define N 4\nN", "/* a */ 4"),
        ("  #  define N 4\nN", "4"),
        ("#define LOG(f, ...) f(x, ##__VA_ARGS__)\nLOG(g) LOG(g, 1)", "g( x ) g( x, 1)"),
        ("#define REST(args...) f(args)\nREST(1, 2)", "f( 1, 2)"),
        ("#define PAREN )\n#define F(x) [x]\nF((1)", "F((1)"),
        ('#define F(x) x\nF(")" ")")', '")" ")"'),
    ],
)
def test_what_a_quick_search_could_get_wrong(text: str, expected: str) -> None:
    assert "".join(words(text)) == expected.replace(" ", "")


LARGER = (
    "#define LARGER(a, b) ({ __typeof__(a) first = (a); const __typeof__((b)) second = (b);"
    " first > second ? first : second; })\n"
)


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("LARGER(x, 1)", "(((x)) > ((1)) ? ((x)) : ((1)))"),
        ("LARGER(x == y, z[i] <= 1)", "(((x==y))>((z[i]<=1))?((x==y)):((z[i]<=1)))"),
        ("LARGER(max(x, y), 1)", "(((max(x,y)))>((1))?((max(x,y))):((1)))"),
    ],
)
def test_a_statement_expression_without_effects_is_an_expression(use: str, expected: str) -> None:
    found = "".join(words(LARGER + use))
    assert found == expected.replace(" ", "")


@pytest.mark.parametrize("use", ["LARGER(i++, 1)", "LARGER(f(x), 1)", "LARGER(x = 2, 1)"])
def test_an_argument_with_effects_is_evaluated_once(use: str) -> None:
    found = "".join(words(LARGER + use))
    assert found.startswith("({decltype(")


def test_what_the_configuration_leaves_out_is_known() -> None:
    text = "int a;\n#ifdef WIDE\nint b;\n#else\nint c;\n#endif\n"
    found = expanded(text)
    assert [(part.directive, part.line) for part in found.left_out] == [("#ifdef WIDE", 2)]
    assert text[found.left_out[0].start : found.left_out[0].end].strip() == "int b;"
    assert expanded(text, defines={"WIDE": "1"}).left_out[0].directive == "#else"


def test_the_configuration() -> None:
    text = "#if __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 900 && defined(__CUDACC__)\nyes\n#endif"
    assert words(text) == ["yes"]
    assert words(text, defines={"__CUDA_ARCH__": "900"}) == []


def test_pragmas_are_kept_beside_the_text() -> None:
    found = expanded("int a;\n#pragma unroll 4\nfor (;;) ;")
    assert [words for _, words in found.pragmas] == ["unroll 4"]
    assert b"pragma" not in found.text


def test_edits_keep_places() -> None:
    found = expanded("#define ONE 1\nint a = ONE + bcd;\nint later;")
    at = found.text.index(b"bcd")
    once = found.edited([Edit(at, at, b"(const "), Edit(at + 3, at + 3, b")")])
    assert b"(const bcd)" in once.text
    start = once.text.index(b"later")
    twice = once.edited([Edit(start, start + 5, b"LATER"), Edit(start + 5, start + 5, b"!!")])
    for text, word, place in (
        (once, b"bcd", (2, 15, 2, 18)),
        (once, b"later", (3, 5, 3, 10)),
        (twice, b"bcd", (2, 15, 2, 18)),
        (twice, b"LATER!!", (3, 5, 3, 10)),
        (twice, b";\nint", (2, 18, 3, 4)),
    ):
        at = text.text.index(word)
        span = text.span(at, at + len(word))
        found_place = (span.start_line, span.start_column, span.end_line, span.end_column)
        assert found_place == place


def test_includes_are_bounded() -> None:
    header = Source.of("int a;\n" * 2000 + '#include "b.h"\n#include "b.h"\n', "b.h")
    with pytest.raises(SourceError, match="includes more than 8 MiB"):
        expanded('#include "b.h"\n', include=lambda name, _: header)


def test_arguments_that_never_close_are_bounded() -> None:
    line = ("y" * 199 + " ") * 150
    text = "#define F(a) a\nint x = F(\n" + f"{line}\n#line 1\n" * 120
    with pytest.raises(SourceError, match="more than 400,000 words") as refusal:
        preprocess(Source.of(text, "k.cu"))
    assert refusal.value.where is not None
    assert refusal.value.where.start_line == 2
