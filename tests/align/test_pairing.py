"""Pairing: who is whose partner, and the verdict on each pairing."""

from dataclasses import replace

import pytest

from migrate import facts
from migrate.align.pairing import pair
from migrate.ir.constructs import constructs
from migrate.numerics.dtypes import DType
from tests.align.kernels import (
    BF16,
    Faults,
    cuda,
    nki,
    reduction_cuda,
    reduction_nki,
    related,
    related_rows,
)

N = 84
"""Two whole tiles of 4 x 8, half a one, and four elements."""

ADD = {"out": ("add", "x", "y")}
SUBTRACT = {"out": ("subtract", "x", "y")}
BIAS_RELU = {"out": ("maximum", ("add", "x", "bias"), 0.0)}
FINE = {"matched", "transformed", "not-needed"}


def paired(left, right, n=N):
    binding, relation = related(left, right, n)
    return pair(constructs(left), constructs(right), binding, [relation], left, right)


def wrong(found):
    """What is not fine, by kind: verdict and mapping."""
    return {c.kind: (c.verdict, c.mapping) for c in found if c.verdict not in FINE}


def only(found, kind):
    (construct,) = [c for c in found if c.kind == kind]
    return construct


def lines(sides):
    return [side.span.start_line for side in sides]


def test_a_guarded_map_against_tiles_with_a_remainder():
    found = paired(cuda(ADD), nki(ADD, N))
    assert [(c.id, c.kind, c.verdict, c.mapping) for c in found] == [
        ("c1", "tile-axis", "transformed", "tile_axis.tiles"),
        ("c2", "mask", "transformed", "mask.bounded-slice"),
        ("c3", "stage-in", "transformed", "staging.register"),
        ("c4", "stage-in", "transformed", "staging.register"),
        ("c5", "elementwise", "matched", "elementwise.vector"),
        ("c6", "output-store", "matched", "output_store.transfer"),
    ]
    # Both regions of the NKI kernel come from one helper: one place, one thing.
    assert [(lines(c.cuda), lines(c.nki)) for c in found[2:]] == [
        ([20], [70]),
        ([21], [71]),
        ([30], [80]),
        ([40], [90]),
    ]
    guard = only(found, "mask")
    assert guard.cuda[0].summary == "4*b + t < n"
    assert [side.summary for side in guard.nki] == [
        "partition min(-4*row + 10, 4)",
        "the rest: 1 × 4",
    ]
    assert all(c.findings == () for c in found)


def test_reasons_come_from_the_tables():
    for construct in paired(cuda(ADD), nki(ADD, N)):
        ways = facts.mapping(construct.mapping).realisation
        (way,) = [way for way in ways if way.id == construct.mapping]
        assert construct.reason == way.reason
        assert construct.verdict == way.verdict


def test_a_guard_is_not_needed_where_tiles_fit():
    found = paired(cuda(ADD), nki(ADD, 64), 64)
    guard = only(found, "mask")
    assert (guard.verdict, guard.mapping, guard.nki) == ("not-needed", "mask.exact-tiles", ())
    assert wrong(found) == {}


def test_a_remainder_without_a_guard():
    found = paired(cuda(ADD, guarded=False), nki(ADD, N))
    edges = [c for c in found if c.kind == "mask"]
    assert [(c.verdict, c.mapping, c.cuda) for c in edges] == [
        ("transformed", "mask.remainder-tile", ())
    ] * 2
    assert [c.id for c in edges] == ["c6", "c7"]


@pytest.mark.parametrize(
    ("faults", "kind", "mapping", "why"),
    [
        (Faults(no_rest=True), "mask", "mask.bounded-slice", "4 of 84 elements"),
        (Faults(step=2), "tile-axis", "tile_axis.tiles", "32 of 84 elements"),
        (Faults(shift={"y": -1}), "stage-in", "staging.register", "y[i0 - 1] in NKI"),
        (Faults(loads={"y": "x"}), "stage-in", "staging.register", "where CUDA reads logical_y"),
    ],
)
def test_a_fault_is_put_at_one_door(faults, kind, mapping, why):
    found = paired(cuda(ADD), nki(ADD, N, faults))
    assert wrong(found) == {kind: ("mismapped", mapping)}
    (construct,) = [c for c in found if c.verdict == "mismapped"]
    assert why in construct.reason
    requirements = facts.mapping(mapping).requirement
    assert any(construct.reason.startswith(r.otherwise) for r in requirements)


@pytest.mark.parametrize(
    ("left", "right", "states"),
    [
        (SUBTRACT, {"out": ("subtract", "y", "x")}, "an operand is another tensor"),
        (ADD, SUBTRACT, "another operator computes another function"),
        (ADD, {"out": ("add", "y", ("multiply", "x", "y"))}, "another operator"),
        (
            {"out": ("add", ("multiply", "x", "y"), "z")},
            {"out": ("add", ("multiply", "x", "z"), "y")},
            "an operand is another tensor",
        ),
    ],
)
def test_wrong_arithmetic(left, right, states):
    found = paired(cuda(left), nki(right, N))
    assert wrong(found) == {"elementwise": ("mismapped", "elementwise.vector")}
    assert only(found, "elementwise").reason.startswith(states)


def test_bias_and_relu():
    found = paired(cuda(BIAS_RELU), nki(BIAS_RELU, N))
    assert wrong(found) == {}
    assert only(found, "constant").mapping == "elementwise.constant"
    assert [c.kind for c in found] == [
        "tile-axis",
        "mask",
        "stage-in",
        "stage-in",
        "elementwise",
        "constant",
        "output-store",
    ]


def test_a_number_that_the_instruction_has_built_in():
    left = {"out": ("maximum_number", ("add", "x", "bias"), 0.0)}
    found = paired(cuda(left), nki({"out": ("relu", ("add", "x", "bias"))}, N))
    assert wrong(found) == {}
    zero = only(found, "constant")
    assert (zero.verdict, zero.mapping, zero.nki) == (
        "not-needed",
        "elementwise.constant-implied",
        (),
    )


def test_nan_is_a_note_and_no_fault():
    left = {"out": ("maximum_number", "x", "y")}
    found = paired(cuda(left), nki({"out": ("maximum", "x", "y")}, N))
    assert wrong(found) == {}
    assert "NaN operand is ignored in CUDA only" in only(found, "elementwise").reason


def test_a_bias_that_was_forgotten():
    found = paired(cuda(BIAS_RELU), nki({"out": ("maximum", "x", 0.0)}, N))
    assert wrong(found) == {
        "stage-in": ("missing", "staging.direct"),
        "elementwise": ("mismapped", "elementwise.vector"),
    }
    (lost,) = [c for c in found if c.verdict == "missing"]
    assert (lines(lost.cuda), lost.nki) == ([21], ())


def test_an_extra_scaling():
    found = paired(cuda(ADD), nki({"out": ("multiply", ("add", "x", "y"), 2.0)}, N))
    assert wrong(found) == {
        "elementwise": ("mismapped", "elementwise.vector"),
        "constant": ("extra", "elementwise.constant-added"),
    }
    assert found[-1].kind == "constant"


def test_another_constant():
    found = paired(cuda({"out": ("multiply", "x", 2.0)}), nki({"out": ("multiply", "x", 3.0)}, N))
    assert wrong(found) == {"constant": ("mismapped", "elementwise.constant")}
    assert only(found, "constant").reason.endswith("2 in CUDA, 3 in NKI")


def test_unlike_numbers_of_equal_kernels_are_no_partners():
    left = {"out": ("maximum", ("add", "x", "x"), 0.0)}
    right = {"out": ("relu", ("multiply", "x", 2.0))}
    found = [c for c in paired(cuda(left), nki(right, N)) if c.kind == "constant"]
    assert wrong(found) == {}
    assert sorted((len(c.cuda), len(c.nki)) for c in found) == [(0, 1), (1, 0)]


def test_reciprocal_numbers_of_equal_kernels_are_partners():
    left, right = {"out": ("multiply", "x", 0.5)}, {"out": ("divide", "x", 2.0)}
    found = paired(cuda(left), nki(right, N))
    assert wrong(found) == {}
    assert lines(only(found, "constant").nki) != []


def test_a_constant_as_float32_holds_it():
    short = 0.10000000149011612
    left, right = {"out": ("multiply", "x", 0.1)}, {"out": ("multiply", "x", short)}
    assert wrong(paired(cuda(left), nki(right, N))) == {}


def test_one_of_two_outputs_is_not_stored():
    both = {**ADD, "difference": ("subtract", "x", "y")}
    assert wrong(paired(cuda(both), nki(both, N))) == {}
    found = paired(cuda(both), nki(both, N, Faults(no_store=frozenset({"difference"}))))
    (lost,) = [c for c in found if c.verdict not in FINE]
    assert (lost.kind, lost.verdict, lines(lost.cuda), lost.nki) == (
        "output-store",
        "missing",
        [41],
        (),
    )


def test_a_narrow_tile_between():
    found = paired(cuda(ADD), nki(ADD, N, Faults(tile=BF16)))
    assert wrong(found) == {"cast": ("extra", "cast.added")}
    casts = [c for c in found if c.kind == "cast"]
    assert [lines(c.nki) for c in casts] == [[70], [71]]
    assert all("(inaccurate): float32 to bfloat16" in c.reason for c in casts)


def test_a_narrow_tile_of_a_tensor_that_is_narrow_in_cuda_too():
    left, right = cuda(ADD), nki(ADD, N, Faults(tile=BF16))
    binding, relation = related(left, right, N)
    narrow = tuple(replace(t, cuda_dtype=DType.BFLOAT16) for t in binding.tensors)
    found = pair(
        constructs(left),
        constructs(right),
        replace(binding, tensors=narrow),
        [relation],
        left,
        right,
    )
    assert wrong(found) == {}


def test_what_is_not_understood_is_unknown():
    left, right = cuda(ADD, opaque=True), nki(ADD, N)
    found = paired(left, right)
    opaque = only(found, "opaque")
    assert (opaque.verdict, opaque.reason) == ("unknown", "not understood: inline assembly")
    undecided = {c.kind for c in found if c.verdict == "unknown"}
    assert undecided == {"stage-in", "elementwise", "opaque", "output-store"}
    # What is written where does not depend on the value.
    assert only(found, "mask").verdict == "transformed"


def test_without_relations_only_the_formats_are_known():
    left, right = cuda(ADD), nki(ADD, N)
    binding, _ = related(left, right, N)
    found = pair(constructs(left), constructs(right), binding, [], left, right)
    assert {c.verdict for c in found} == {"unknown"}
    assert all("related" in c.reason for c in found)
    assert all(c.cuda and c.nki for c in found)


def test_what_is_left_out_is_blamed_once_over_all_sizes():
    left = cuda(ADD)
    relations = []
    for n in (3, N):
        binding, relation = related(left, nki(ADD, n, Faults(no_rest=True)), n)
        relations.append(relation)
    right = nki(ADD, N, Faults(no_rest=True))
    found = pair(constructs(left), constructs(right), binding, relations, left, right)
    assert wrong(found) == {"mask": ("mismapped", "mask.bounded-slice")}


def test_every_construct_once_and_the_same_every_time():
    left, right = cuda(BIAS_RELU), nki({"out": ("maximum", "x", 3.0)}, N)
    found = paired(left, right)
    assert found == paired(left, right)
    assert [c.id for c in found] == [f"c{n + 1}" for n in range(len(found))]
    given = [(part[0], part[1]) for c in constructs(left) for part in c.parts]
    assert sorted((s.span, s.summary) for c in found for s in c.cuda) == sorted(given)
    given = [(part[0], part[1]) for c in constructs(right) for part in c.parts]
    assert sorted((s.span, s.summary) for c in found for s in c.nki) == sorted(given)


def paired_rows(left, right):
    binding, relation = related_rows(left, right, 6, 5)
    return pair(constructs(left), constructs(right), binding, [relation], left, right)


def test_a_loop_with_a_running_sum_against_a_reduction_of_the_free_axis():
    found = paired_rows(reduction_cuda(6, 5), reduction_nki(6, 5))
    assert wrong(found) == {}
    total = only(found, "reduction")
    assert (total.verdict, total.mapping) == ("transformed", "reduction.free-axis")
    assert (lines(total.cuda), lines(total.nki)) == ([14], [80])
    start = only(found, "initial-value")
    assert (start.verdict, start.mapping) == ("not-needed", "initial_value.implied")


def test_another_reduction():
    found = paired_rows(reduction_cuda(6, 5), reduction_nki(6, 5, "maximum"))
    assert only(found, "reduction").verdict == "mismapped"
    assert only(found, "reduction").reason.startswith("another operator combines")
    assert only(found, "stage-in").verdict == "transformed"
    # The sum's own start is the neutral element: it is not what is wrong.
    assert only(found, "initial-value").verdict == "not-needed"


def test_a_start_that_counts():
    found = paired_rows(reduction_cuda(6, 5, start=5.0), reduction_nki(6, 5))
    assert wrong(found) == {
        "initial-value": ("missing", "initial_value.implied"),
        "reduction": ("mismapped", "reduction.free-axis"),
    }


def test_a_scaling_after_the_reduction_was_forgotten():
    found = paired_rows(reduction_cuda(6, 5, scale=0.2), reduction_nki(6, 5))
    assert wrong(found) == {
        "elementwise": ("missing", "elementwise.implied"),
        "constant": ("missing", "elementwise.constant-implied"),
    }
    assert lines(only(found, "elementwise").cuda) == [16]


def test_a_reduction_over_part_of_the_axis():
    found = paired_rows(reduction_cuda(6, 5), reduction_nki(6, 5, covered=4))
    assert only(found, "reduction").verdict == "mismapped"


def test_too_many_constructs(monkeypatch):
    monkeypatch.setattr("migrate.align.pairing.MAX_PAIRS", 10)
    found = paired(cuda(ADD), nki(ADD, N))
    assert {c.verdict for c in found} == {"unknown"}
    assert all("too many to align" in c.reason for c in found)
    assert len(found) == len(constructs(cuda(ADD))) + len(constructs(nki(ADD, N)))
