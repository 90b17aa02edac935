"""A source on the screen."""

import pytest

from migrate.source import Source, Span
from migrate.tui.document import MAX_COLUMNS, Document, columns, displayed
from tests.tui.pairs import CUDA


def text(line):
    return "".join(fragment.text for fragment in line.fragments())


def test_lines_are_those_of_the_text():
    document = Document(CUDA, "cuda")
    lines = CUDA.text.splitlines()
    assert document.line_count == len(lines)
    assert [text(document.line(n)) for n in range(1, len(lines) + 1)] == lines
    assert document.width == max(map(len, lines))


def test_a_text_without_a_final_newline_has_its_last_line():
    assert Document(Source.of("a\nb", "x"), "cuda").line_count == 2


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("a\tb", "a   b"),
        ("abcd\tb", "abcd    b"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("\u202eab", "\\u202eab"),
        ("[bold]→[/]", "[bold]→[/]"),
    ],
)
def test_a_line_is_harmless_and_its_tabs_are_widened(line, shown):
    made, offsets = displayed(line)
    assert made == shown
    assert len(offsets) == len(line) + 1
    assert [made[offsets[line.index("b")]]] == ["b"]


def test_what_is_marked_is_found_behind_tabs_and_escapes():
    document = Document(Source.of("\t\x1b = fmaxf(a, 1);", "x"), "cuda")
    fragments = document.line(1).fragments([(5, 10)])
    assert [fragment.text for fragment in fragments if fragment.marked] == ["fmaxf"]
    assert "".join(fragment.text for fragment in fragments) == "    \\x1b = fmaxf(a, 1);"


def test_ink_and_marking_are_kept_apart():
    document = Document(Source.of("int x = 10;", "x"), "cuda")
    fragments = document.line(1).fragments([(4, 9)])
    assert fragments == (
        ("int", "type", False),
        (" ", "text", False),
        ("x = ", "text", True),
        ("1", "number", True),
        ("0", "number", False),
        (";", "text", False),
    )


def test_a_very_long_line_says_what_is_left_out():
    document = Document(Source.of("x" * (MAX_COLUMNS + 1500), "x"), "cuda")
    shown = document.line(1).fragments()
    assert shown[-1].text == " … 1,500 more characters"
    assert document.width < MAX_COLUMNS + 100


def test_the_width_counts_what_is_shown():
    assert Document(Source.of("a\n\t\x1b\x1b\n", "x"), "cuda").width == 12
    assert Document(Source.of("漢字\n", "x"), "nki").width == 4


@pytest.mark.parametrize(
    ("number", "expected"), [(1, None), (2, (3, MAX_COLUMNS)), (3, (0, MAX_COLUMNS)), (4, (0, 4))]
)
def test_a_span_covers_columns_of_its_lines(number, expected):
    span = Span(file="x", start_line=2, start_column=4, end_line=4, end_column=5)
    assert columns(span, number) == expected


def test_an_empty_span_still_marks_a_column():
    span = Span(file="x", start_line=1, start_column=3, end_line=1, end_column=3)
    assert columns(span, 1) == (2, 3)
