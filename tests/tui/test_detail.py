"""What the detail pane says."""

import msgspec

from migrate.results import ConstructSide, Score
from migrate.source import Source, Span
from migrate.tui.detail import EXCERPT_WIDTH, MAX_PLACES, detail
from migrate.tui.ink import plain
from migrate.tui.model import Review
from tests.tui.pairs import CONSTRUCTS, CUDA, FINDINGS, NKI, RUNS, SOURCES, comparison, review


def shown(at, **options):
    return plain(detail(at, **options))


def test_the_overview_has_verdict_reasons_score_runs_and_what_was_inferred():
    assert (
        shown(review())
        == """\
✗ not-faithful  confidence 0.93  correspondence 0.80
y differs at [0, 2]

score 38 of 100  mapping 60, hardware 100, numerics 85
understood CUDA 96 %, NKI 100 %
CUDA kernel.cu::row_scale
NKI kernel.py::row_scale, trn2, NKI 0.6

runs
  fail        cols=512, rows=128  normal #0
    y: 65,000 of 65,536 differ, first at [0, 0], largest difference 0.7, allowed 1.2e-06
  pass        cols=1, rows=1  ones #0
    y: all 1 agree, largest difference 0, allowed 1e-07
  not-run     cols=512, rows=1000000  normal #0
    needs more memory than the budget allows

inferred
  the grid, from the launch in run_row_scale"""
    )


def test_the_overview_says_that_there_is_no_score_and_that_time_decided():
    made = shown(review(score=Score(), deterministic=False))
    assert "score none: too little was understood" in made
    assert "another machine may say more" in made


def test_a_construct_has_verdict_reason_mapping_and_places():
    assert (
        shown(review().select(0))
        == """\
≈ transformed  c1 tile-axis
a block's row becomes a partition of a tile
mapping axis.block-to-partition
CUDA kernel.cu:8:26  grid rows
NKI kernel.py:15:5  tiles of 128 rows
NKI kernel.py:16:17  the last tile"""
    )
    assert "\nNKI nothing" in shown(review().select(1))


def test_a_construct_brings_its_findings():
    made = shown(review().select(2))
    assert made.index("✗ mismapped  c3 reduction") < made.index("error MAP104")
    assert made.index("error MAP104") < made.index("warning NUM301")


def test_a_finding_has_message_places_witness_cost_construct_and_runs():
    assert (
        shown(review().next_finding())
        == """\
error MAP104  wrong, mapping
reduces with add where the CUDA kernel takes the maximum
NKI kernel.py:20:48
  through call row_scale at kernel.py:12:1
CUDA kernel.cu:11:11  the maximum
for example cols=3, rows=2 (normal inputs, seed 1): y[0, 2] is 1.0 in CUDA, -0.25 in NKI \
(by evaluating both meanings)
costs 40 points

− missing  c2 initial-value
nothing starts at minus infinity
CUDA kernel.cu:9:3  -inf
NKI nothing

runs
  fail        cols=512, rows=128  normal #0
    y: 65,000 of 65,536 differ, first at [0, 0], largest difference 0.7, allowed 1.2e-06
  not-run     cols=512, rows=1000000  normal #0
    needs more memory than the budget allows"""
    )


def test_a_suppressed_finding_says_why():
    at = review().next_finding().next_finding().next_finding()
    assert "suppressed: kept for a trace" in shown(at)
    assert "\nruns" not in shown(at)


def test_excerpts_show_the_text_of_both_sides():
    made = shown(review().next_finding(), excerpts=True)
    assert "  20 │         nisa.tensor_reduce(dst=top, data=tile, op=nl.add, axis=1)" in made
    assert "  11 │     top = fmaxf(top, row[c]);" in made


def test_an_excerpt_of_a_long_line_is_the_part_that_is_meant():
    long = "x" * 500 + "HERE" + "y" * 500 + "\n"
    source = Source.of(long, "kernel.cu")
    span = Span(file="kernel.cu", start_line=1, start_column=501, end_line=1, end_column=505)
    construct = msgspec.structs.replace(CONSTRUCTS[1], cuda=(ConstructSide(summary="", span=span),))
    result = comparison(constructs=(construct,), findings=())
    at = Review.of(result, {"kernel.cu": source, "kernel.py": NKI}).select(0)
    line = next(text for text in shown(at, excerpts=True).split("\n") if "HERE" in text)
    assert line.startswith("  1 │ …xxx")
    assert line.endswith("yyy…")
    assert len(line) < EXCERPT_WIDTH + 20


def test_long_lists_are_cut_with_their_count():
    places = CONSTRUCTS[1].cuda * (MAX_PLACES + 5)
    construct = msgspec.structs.replace(CONSTRUCTS[1], cuda=places)
    made = shown(Review.of(comparison(constructs=(construct,)), SOURCES).select(0))
    assert made.count("CUDA kernel.cu:9:3") == MAX_PLACES
    assert "  and 5 more" in made
    assert "and 1,160 more" in shown(review(runs=RUNS * 400))


def test_before_the_result_it_says_how_long_that_has_taken():
    assert shown(Review.reading(CUDA, NKI).waiting()).startswith(
        "The two kernels are being compared  1 s"
    )


def test_hostile_text_is_shown_as_text():
    hostile = "\x1b]0;x\x07[bold]\u202e\n\nfake"
    finding = msgspec.structs.replace(FINDINGS[1], message=hostile, rule=hostile)
    construct = msgspec.structs.replace(CONSTRUCTS[2], reason=hostile, mapping=hostile)
    at = review(findings=(finding,), constructs=(construct,), reasons=(hostile,))
    for state in (at, at.select(0), at.next_finding()):
        made = shown(state)
        assert not {"\x1b", "\x07", "\u202e"} & set(made)
        assert "\\x1b]0;x\\x07[bold]\\u202e\\x0a\\x0afake" in made
