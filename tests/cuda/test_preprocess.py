"""Macros, conditionals and includes, and the way back to the text."""

from __future__ import annotations

import pytest

from migrate.budget import Budget, Exhausted, Meter
from migrate.cuda.preprocess import Expanded, preprocess
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
        include={"b.h": header}.get,
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
