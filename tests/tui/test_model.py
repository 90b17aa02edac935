"""The state of a review and its transitions."""

import msgspec
import pytest

from migrate.results import Construct, ConstructSide
from migrate.source import Source, Span
from migrate.tui.model import (
    UNMATCHED,
    Filter,
    OnConstruct,
    OnFinding,
    Overview,
    Review,
    layout,
)
from tests.tui.pairs import CONSTRUCTS, CUDA, NKI, SOURCES, comparison, line, review


def walked(review, step, count):
    """What is selected at each of some steps."""
    found = []
    for _ in range(count):
        review = step(review)
        found.append(review.selection)
    return found


def rules(review, selections):
    return [review.pair.findings[selection.position].rule for selection in selections]


def test_a_review_begins_at_the_verdict_with_the_sources_at_the_kernels():
    begun = review()
    assert begun.selection == Overview()
    assert begun.line("cuda") == line(CUDA, "const float* row")
    assert begun.line("nki") == line(NKI, "for first in range")


def test_findings_are_walked_in_the_order_of_their_constructs_and_round():
    begun = review()
    there = walked(begun, Review.next_finding, 5)
    assert rules(begun, there) == ["MAP104", "NUM301", "MAP107", "API401", "MAP104"]
    back = walked(begun, Review.previous_finding, 5)
    assert rules(begun, back) == ["API401", "MAP107", "NUM301", "MAP104", "API401"]


def test_going_round_is_said():
    last = review().previous_finding()
    assert not last.notice
    assert last.next_finding().notice == "on from the first finding"
    assert last.next_finding().previous_finding().notice == "on from the last finding"


@pytest.mark.parametrize(
    ("construct", "after", "before"),
    [(0, "MAP104", "API401"), (2, "NUM301", "MAP104"), (3, "MAP107", "NUM301")],
)
def test_findings_are_sought_from_the_construct_selected(construct, after, before):
    at = review().select(construct)
    assert rules(at, [at.next_finding().selection, at.previous_finding().selection]) == [
        after,
        before,
    ]


def test_a_finding_brings_both_sources_to_its_places():
    at = review().next_finding()
    assert at.side == "nki"
    assert at.line("nki") == line(NKI, "op=nl.add")
    assert at.line("cuda") == line(CUDA, "top = fmaxf(top, row[c])")
    assert at.construct == 1
    assert at.finding == 0


def test_without_findings_that_is_said():
    at = review(findings=()).next_finding()
    assert at.selection == Overview()
    assert at.notice == "there are no findings"


def test_constructs_are_walked_in_the_order_of_the_list_and_stop_at_its_ends():
    begun = review()
    steps = walked(begun, Review.next_construct, len(CONSTRUCTS) + 1)
    assert steps == [*map(OnConstruct, range(8)), OnConstruct(7)]
    end = begun.step_listed(100)
    assert end.next_construct().notice == "the last construct"
    assert end.step_listed(-7).selection == OnConstruct(0)
    assert end.step_listed(-8).selection == Overview()
    assert begun.previous_construct().selection == Overview()


def test_a_construct_brings_both_sources_to_its_first_places():
    at = review().select(2)
    assert at.line("cuda") == line(CUDA, "for (int c = threadIdx.x; c < cols")
    assert at.line("nki") == line(NKI, "nisa.tensor_reduce")


def test_where_a_side_has_nothing_it_follows_while_linked():
    begun = review()
    missing = begun.select(1)
    assert missing.line("cuda") == line(CUDA, "float top")
    assert missing.line("nki") == missing.across("cuda", missing.line("cuda"))
    alone = begun.go("nki", 3).toggle_link().select(1)
    assert alone.line("nki") == 3


def test_a_construct_of_one_side_puts_that_side_in_front():
    assert review().select(5).side == "nki"
    assert review().select(5).select(1).side == "cuda"


def test_the_next_with_a_verdict_goes_round():
    begun = review()
    assert begun.next_with(("mismapped",)).selection == OnConstruct(2)
    found = walked(begun, lambda at: at.next_with(UNMATCHED), 4)
    assert found == [OnConstruct(1), OnConstruct(5), OnConstruct(7), OnConstruct(1)]
    last = begun.select(7).next_with(UNMATCHED)
    assert last.notice == "on from the first"
    filtered = begun.filtered(Filter(frozenset({"matched"})))
    assert filtered.next_with(("mismapped",)).notice == "no construct listed is mismapped"


def test_the_partner_is_on_the_other_side_and_further_jumps_visit_every_place():
    at = review().select(0)
    assert at.side == "cuda"
    seen = []
    for _ in range(4):
        at = at.partner()
        seen.append((at.side, at.line(at.side)))
    first, second = line(NKI, "for first in range"), line(NKI, "min(nl.tile_size.pmax, rows")
    home = line(CUDA, "blockIdx.x * cols;")
    assert seen == [("nki", first), ("cuda", home), ("nki", second), ("cuda", home)]
    assert review().select(0).partner().notice == "place 1 of 2 on the NKI side"


def test_without_a_partner_that_is_said_and_nothing_moves():
    at = review().select(1)
    gone = at.partner()
    assert gone.notice == "missing: nothing on the NKI side"
    assert (gone.side, gone.lines) == (at.side, at.lines)
    free = review().previous_finding().partner()
    assert free.notice == "this finding has no place on the CUDA side"


def test_the_partner_of_a_finding_is_its_related_place():
    at = review().next_finding().partner()
    assert at.side == "cuda"
    assert at.line("cuda") == line(CUDA, "top = fmaxf(top, row[c])")


def test_from_the_overview_the_partner_is_the_other_source():
    assert review().partner().side == "nki"


def test_moving_onto_a_line_selects_what_it_shows():
    begun = review()
    reduce = line(NKI, "nisa.tensor_reduce")
    assert begun.go("nki", line(NKI, "nisa.dma_copy(dst=tile")).selection == OnConstruct(4)
    assert begun.go("nki", reduce).selection == OnFinding(0)
    assert begun.go("nki", reduce - 2).move("nki", 2).selection == OnFinding(0)
    assert begun.go("cuda", line(CUDA, "__syncthreads();")).selection == OnConstruct(3)
    assert begun.select(2).go("cuda", 1).selection == OnConstruct(2)


def test_moving_within_the_selected_construct_keeps_it():
    outer = review().select(2)
    inner = line(CUDA, "top = fmaxf(top, __shfl")
    assert outer.go("cuda", inner).selection == OnConstruct(2)
    assert review().select(0).go("cuda", inner).selection == OnConstruct(7)


def test_a_cursor_stays_in_its_text():
    begun = review()
    assert begun.go("cuda", -5).line("cuda") == 1
    assert begun.go("cuda", 10**9).line("cuda") == CUDA.text.count("\n")


def test_linked_sources_move_together_and_unlinked_ones_alone():
    begun = review()
    linked = begun.go("cuda", CUDA.text.count("\n"))
    assert linked.line("nki") == NKI.text.count("\n")
    alone = begun.toggle_link()
    assert alone.notice == "each source scrolls alone"
    assert alone.go("cuda", 40).line("nki") == begun.line("nki")
    assert alone.toggle_link().linked


def test_lines_answer_each_other_by_construct():
    begun = review()
    for text, partner in (("row[c] / top", "nisa.tensor_scalar"), ("row[c])", "src=x[first")):
        here, there = line(CUDA, text), line(NKI, partner)
        assert begun.across("cuda", here) == there
        assert begun.across("nki", there) == here


def test_the_answering_line_never_goes_back():
    begun = review()
    for side, source in (("cuda", CUDA), ("nki", NKI)):
        answers = [begun.across(side, n) for n in range(1, source.text.count("\n") + 1)]
        assert answers == sorted(answers)


def test_constructs_in_another_order_do_not_break_the_link():
    def place(source, number):
        where = Span(
            file=source.name, start_line=number, start_column=1, end_line=number, end_column=2
        )
        return (ConstructSide(summary="", span=where),)

    crossed = tuple(
        Construct(
            id=f"c{i}",
            kind="cast",
            verdict="matched",
            cuda=place(CUDA, here),
            nki=place(NKI, there),
        )
        for i, (here, there) in enumerate([(5, 20), (10, 8), (15, 12), (15, 14), (20, 18)])
    )
    at = Review.of(comparison(constructs=crossed, findings=()), SOURCES)
    assert [at.across("cuda", n) for n in (10, 15, 20)] == [8, 12, 18]
    assert at.select(0).line("nki") == 20


def test_the_filter_hides_constructs_and_keeps_the_selection():
    at = review().select(4).filtered(Filter.problems())
    assert [CONSTRUCTS[i].verdict for i in at.listed] == [
        "missing",
        "mismapped",
        "extra",
        "unknown",
    ]
    assert at.selection == OnConstruct(4)
    assert at.next_construct().selection == OnConstruct(5)
    assert at.previous_construct().selection == OnConstruct(2)
    assert at.counts()["matched"] == 2
    nothing = at.filtered(Filter(frozenset()))
    assert nothing.next_construct().notice == "no construct is listed"
    assert nothing.previous_construct().selection == Overview()


def test_a_filter_toggles_one_verdict():
    only = Filter().toggled("matched")
    assert "matched" not in only.verdicts
    assert not only.open
    assert only.toggled("matched") == Filter()
    assert Filter().open


@pytest.mark.parametrize(
    ("width", "shape"),
    [(200, "wide"), (110, "wide"), (109, "single"), (80, "single"), (79, "narrow"), (1, "narrow")],
)
def test_the_layout_follows_the_width(width, shape):
    assert layout(width) == shape


def test_the_other_side_on_each_layout():
    begun = review()
    assert begun.other_side("wide").side == "nki"
    assert begun.other_side("single").other_side("single").side == "cuda"
    cuda = begun.other_side("narrow")
    nki = cuda.other_side("narrow")
    closed = nki.other_side("narrow")
    assert [(at.source_open, at.side) for at in (cuda, nki, closed)] == [
        (True, "cuda"),
        (True, "nki"),
        (False, "nki"),
    ]


def test_before_the_result_the_sources_can_be_read():
    waiting = Review.reading(CUDA, NKI)
    assert waiting.go("nki", 12).line("nki") == 12
    assert waiting.next_finding().notice == "still comparing"
    assert waiting.next_construct().selection == Overview()
    assert waiting.waiting().waited == 1


def test_the_result_leaves_a_reader_who_has_moved_where_they_are():
    waiting = Review.reading(CUDA, NKI)
    come = waiting.with_result(comparison(), SOURCES)
    assert (come.lines, come.selection) == (review().lines, Overview())
    moved = waiting.go("nki", 12).with_result(comparison(), SOURCES)
    assert moved.line("nki") == 12
    assert moved.pair.result is not None


def test_a_text_that_is_gone_leaves_one_line():
    at = Review.of(comparison(), {"kernel.cu": CUDA})
    assert at.pair.document("nki") is None
    assert at.next_finding().line("nki") == 1


def test_places_in_other_files_are_not_looked_for_in_these():
    elsewhere = msgspec.structs.replace(
        CONSTRUCTS[4],
        cuda=tuple(
            msgspec.structs.replace(part, span=msgspec.structs.replace(part.span, file="a.h"))
            for part in CONSTRUCTS[4].cuda
        ),
    )
    at = Review.of(comparison(constructs=(elsewhere,), findings=()), SOURCES).select(0)
    assert at.places("cuda") == ()
    assert at.side == "nki"


def test_places_beyond_the_text_end_at_its_last_line():
    short = Source.of("int x;\n", "kernel.cu")
    at = Review.of(comparison(), {"kernel.cu": short, "kernel.py": NKI})
    assert at.select(2).line("cuda") == 1
