"""Marks of a side, whatever the places are."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from migrate.results import Construct, ConstructSide
from migrate.source import Span
from migrate.tui.marks import Links, Marks
from tests.tui.pairs import CONSTRUCTS, CUDA, FINDINGS, NKI, line

VERDICTS = ("matched", "mismapped", "unknown")


def construct(index, first, last, other=None, verdict="matched"):
    def side(file, start, end):
        span = Span(file=file, start_line=start, start_column=1, end_line=end, end_column=9)
        return (ConstructSide(summary="", span=span),)

    return Construct(
        id=f"c{index}",
        kind="cast",
        verdict=verdict,
        cuda=side("a.cu", first, last),
        nki=side("a.py", other, other) if other is not None else (),
    )


ranges = st.lists(
    st.tuples(st.integers(1, 12), st.integers(0, 6), st.sampled_from(VERDICTS)), max_size=8
)


@given(ranges)
def test_a_line_shows_a_construct_exactly_where_one_stands(drawn):
    constructs = [
        construct(i, first, first + length, verdict=verdict)
        for i, (first, length, verdict) in enumerate(drawn)
    ]
    marks = Marks.of(constructs, (), "cuda", "a.cu")
    for number in range(1, 21):
        covering = marks.covering(number)
        assert set(covering) == {
            i for i, (first, length, _) in enumerate(drawn) if first <= number <= first + length
        }
        top = marks.top(number)
        assert (top is None) == (not covering)
        if top is not None:
            starting = [i for i in covering if drawn[i][0] == number]
            assert top in (starting or covering)
            wrong = [i for i in starting if drawn[i][2] == "mismapped"]
            if wrong:
                assert top in wrong
            if not starting:
                shortest = min(drawn[i][1] for i in covering)
                assert drawn[top][1] == shortest


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 40)), max_size=12))
def test_links_rise_and_keep_to_the_texts(pairs):
    constructs = [construct(i, here, here, there) for i, (here, there) in enumerate(pairs)]
    links = Links.of(constructs, ("a.cu", "a.py"), (30, 40))
    for side, count, most in (("cuda", 30, 40), ("nki", 40, 30)):
        answers = [links.across(side, number) for number in range(-1, count + 3)]
        assert answers == sorted(answers)
        assert answers[0] == 1
        assert all(1 <= answer <= most for answer in answers)


def test_another_file_has_no_marks():
    marks = Marks.of(CONSTRUCTS, FINDINGS, "cuda", "other.cu")
    assert marks.places == ()
    assert marks.top(10) is None


def test_a_line_with_several_findings_shows_the_gravest():
    moved = [
        msgspec.structs.replace(finding, span=FINDINGS[1].span)
        for finding in (FINDINGS[2], FINDINGS[1])
    ]
    marks = Marks.of(CONSTRUCTS, moved, "nki", "kernel.py")
    number = line(NKI, "op=nl.add")
    assert marks.severities[number] == "error"
    assert marks.findings[number] == (0, 1)
    assert line(CUDA, "top") not in marks.findings
