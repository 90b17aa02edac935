"""Title, list, gutters and headings, as text."""

import msgspec
import pytest

from migrate.tui import listing
from migrate.tui.ink import plain
from migrate.tui.model import Filter, Review
from tests.tui.pairs import CONSTRUCTS, CUDA, NKI, SOURCES, comparison, line, review


def shown(made):
    return plain([made])


def test_the_title_counts():
    begun = review()
    assert shown(listing.title(begun)) == (
        "✗ not-faithful  ·  score 38  ·  4 findings  ·  8 constructs  ·  row_scale → row_scale"
    )
    at = begun.next_finding().next_finding()
    assert "finding 2 of 4  ·  construct 3 of 8" in shown(listing.title(at))
    filtered = at.filtered(Filter(frozenset({"mismapped"})))
    assert "listed construct 1 of 1" in shown(listing.title(filtered))
    assert "not linked" in shown(listing.title(begun.toggle_link()))


def test_the_title_says_what_happened_first():
    assert shown(listing.title(review().select(1).partner())).startswith(
        "missing: nothing on the NKI side  ·  ✗ not-faithful"
    )


def test_the_title_before_the_result():
    assert shown(listing.title(Review.reading(CUDA, NKI))) == "comparing  ·  kernel.cu → kernel.py"


def test_the_tally_has_signs_and_says_that_it_is_filtered():
    assert shown(listing.tally(review())) == "constructs  ✓ 2  ≈ 1  ✗ 1  − 1  + 1  · 1  ? 1"
    assert shown(listing.tally(review().filtered(Filter.problems()))).endswith("  filtered")


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (0, "    ≈ transformed c1   tile-axis        8 → 15+1"),
        (1, " 1! − missing     c2   initial-value    9 → –"),
        (2, " 2! ✗ mismapped   c3   reduction        10 → 20"),
    ],
)
def test_a_row_has_sign_word_kind_and_lines(index, expected):
    assert shown(listing.row(review().pair, index)) == expected


def gutters(at, side, numbers):
    return [shown(listing.source_line(at, side, number).gutter) for number in numbers]


def test_gutters_tie_both_sides_by_sign_and_name():
    at = review()
    here = line(CUDA, "row[c] / top")
    assert gutters(at, "cuda", [here - 1, here, here + 1]) == [
        " 30        ",
        " 31 ✓ c7   ",
        " 32        ",
    ]
    assert gutters(at, "nki", [line(NKI, "nisa.tensor_scalar")]) == [" 23 ✓ c7   "]


def test_a_construct_is_named_where_it_begins_and_inner_ones_show_in_it():
    first = line(CUDA, "for (int c = threadIdx.x; c < cols")
    assert gutters(review(), "cuda", range(first, first + 6)) == [
        " 10 ✗ c3   ",
        " 11 ✓ c5   ",
        " 12 ✗ c3   ",
        " 13 ✗      ",
        " 14 ? c8   ",
        " 15 ✗ c3   ",
    ]


def test_the_selected_construct_shows_on_all_its_lines():
    first = line(CUDA, "for (int c = threadIdx.x; c < cols")
    assert gutters(review().select(2), "cuda", range(first, first + 3)) == [
        " 10 ✗ c3   ",
        " 11 ✗      ",
        " 12 ✗      ",
    ]


def test_findings_stand_in_the_gutter_by_letter():
    at = review()
    assert gutters(at, "nki", [line(NKI, "op=nl.add")]) == ["E20 ✗ c3   "]
    assert gutters(at, "nki", [line(NKI, "nl.bfloat16")]) == ["W19        "]
    assert gutters(at, "nki", [line(NKI, "import nki.isa")]) == ["N 7        "]


def test_what_is_selected_is_marked_in_the_code_of_both_sides():
    at = review().next_finding()
    marked = {
        side: [
            part.text for part in listing.source_line(at, side, at.line(side)).code if part.marked
        ]
        for side in ("cuda", "nki")
    }
    assert "".join(marked["nki"]) == "op=nl.add"
    assert "".join(marked["cuda"]) == "fmaxf(top, row[c])"


def test_beyond_the_text_there_is_no_line():
    assert listing.source_line(review(), "cuda", 0) is None
    assert listing.source_line(review(), "cuda", 40) is None
    gone = Review.of(comparison(), {"kernel.cu": CUDA})
    assert listing.source_line(gone, "nki", 1) is None


def test_headings_say_where_the_cursor_is():
    at = review().select(2)
    assert shown(listing.heading(at, "cuda")) == "CUDA kernel.cu  10/37  ✗ mismapped c3 reduction"
    assert shown(listing.heading(at, "nki")) == (
        "NKI kernel.py  20/25  trn2  ✗ mismapped c3 reduction"
    )


def test_hostile_names_are_shown_as_text():
    hostile = "\x1b[2J[bold]\u202e"
    construct = msgspec.structs.replace(CONSTRUCTS[0], id=hostile)
    made = comparison(constructs=(construct,))
    subject = msgspec.structs.replace(made.cuda, kernel=hostile)
    at = Review.of(msgspec.structs.replace(made, cuda=subject), SOURCES).select(0)
    everything = plain(
        [
            listing.title(at),
            listing.row(at.pair, 0),
            listing.heading(at, "cuda"),
            listing.source_line(at, "cuda", at.line("cuda")).gutter,
        ]
    )
    assert "\\x1b[2J[bold]\\u202e → " in everything
    assert "\x1b" not in everything
    assert "\u202e" not in everything
