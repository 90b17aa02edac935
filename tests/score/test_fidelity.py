"""fidelity/1: what is lost, who bears it, and the laws that hold for any evidence."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate import facts
from migrate.results import Coverage, Score
from migrate.score.fidelity import caps, score
from tests import examples

FULL = Coverage(cuda=1.0, nki=1.0)
TABLE = facts.scoring("fidelity-1")


def made(name, kind="elementwise", verdict="matched", findings=(), **changes):
    return examples.construct(id=name, kind=kind, verdict=verdict, findings=findings, **changes)


def found(name, rule="MAP101", family="mapping", severity="error", effect="wrong", **changes):
    changes.setdefault("witness", None)
    return examples.finding(
        id=name, rule=rule, family=family, severity=severity, effect=effect, points=0.0, **changes
    )


def scored(constructs, findings=(), runs=(), verdict="faithful", coverage=FULL):
    return score(
        constructs=constructs, findings=findings, runs=runs, verdict=verdict, coverage=coverage
    )


def lost(findings):
    return sum(finding.points for finding in findings)


PASSED = examples.run(status="pass", outputs=())
FAILED = examples.run()
RIGHT = (made("c1"), made("c2", "tile-axis", "transformed"), made("c3", "mask", "not-needed"))


def test_nothing_lost_is_100():
    total, findings = scored(RIGHT)
    assert total == Score(fidelity=100.0, mapping=100.0, hardware=100.0, numerics=100.0)
    assert findings == ()


@pytest.mark.parametrize(
    ("constructs", "coverage"),
    [
        ((), FULL),
        ((made("c1", verdict="unknown"),), FULL),
        ((made("c1", "opaque", "unknown"),), FULL),
        ((made("c1", verdict="extra", cuda=()),), FULL),
        (RIGHT, Coverage(cuda=0.0, nki=1.0)),
        (RIGHT, Coverage(cuda=1.0, nki=0.49)),
        # Three known constructs beside much that is unknown.
        ((*RIGHT, *(made(f"u{i}", "contraction", "unknown") for i in range(2))), FULL),
    ],
)
def test_too_little_understood_is_no_number(constructs, coverage):
    finding = found("f1", effect="slow", severity="warning")
    total, (same,) = scored(constructs, (finding,), (PASSED,), "faithful", coverage)
    assert total == Score()
    assert same.points == 0.0


def test_an_undetermined_pair_has_no_number():
    finding = found("f1", effect="slow", severity="warning")
    total, (same,) = scored(RIGHT, (finding,), (PASSED,), "undetermined", FULL)
    assert total == Score()
    assert same.points == 0.0
    assert scored(RIGHT, (finding,), (PASSED,), "faithful", FULL)[0].fidelity is not None


def test_what_is_unknown_leaves_the_denominator():
    missing = made("c9", "scan", "missing", ("f1",), nki=())
    finding = found("f1", severity="error", effect="inaccurate")
    # scan 8 of elementwise 5 + tile-axis 4 + mask 5 + scan 8, half of it, and 8 points.
    total, _ = scored((*RIGHT, missing), (finding,))
    assert total.mapping == pytest.approx(100 - 100 * 8 / 22 / 2 - 8, abs=0.25)
    unknown = made("c10", "contraction", "unknown")
    assert scored((*RIGHT, missing, unknown), (finding,))[0] == total


def test_a_wrong_construct_costs_its_share_and_the_penalty():
    wrong = made("c4", "mask", "mismapped", ("f1",))
    total, (finding,) = scored((*RIGHT, wrong), (found("f1"),), verdict="not-faithful")
    # 5 of 19, and 30 points, in quarters rounded up.
    assert finding.points == -56.5
    assert total == Score(fidelity=43.5, mapping=43.5, hardware=100.0, numerics=100.0)


def test_a_lost_construct_that_no_finding_names_costs_nothing():
    silent = made("c4", "mask", "mismapped")
    assert scored((*RIGHT, silent))[0].fidelity == 100.0
    suppressed = made("c4", "mask", "mismapped", ("f1",))
    total, (finding,) = scored((*RIGHT, suppressed), (found("f1", suppressed="known"),))
    assert (total.fidelity, finding.points) == (100.0, 0.0)


def test_the_gravest_finding_bears_the_construct():
    wrong = made("c4", "mask", "mismapped", ("f1", "f2"))
    style = found("f1", rule="API402", family="api", severity="note", effect="style")
    total, (first, second) = scored((*RIGHT, wrong), (style, found("f2")))
    assert first.points == -0.5
    assert second.points == -56.5
    assert total.fidelity == 43.0
    assert total.hardware == 99.5


def test_findings_about_the_cuda_kernel_cost_nothing():
    own = found("f1", rule="CUDA501", family="cuda")
    total, (same,) = scored(RIGHT, (own,))
    assert (total.fidelity, same.points) == (100.0, 0.0)


def test_repetitions_cost_half_of_the_one_before():
    warnings = [found(f"f{i}", severity="warning", effect="slow") for i in range(3)]
    total, _ = scored(RIGHT, warnings)
    assert total.fidelity == 100 - 3 - 1.5 - 0.75
    many = [found(f"f{i}", severity="warning", effect="slow") for i in range(100)]
    assert scored(RIGHT, many)[0].fidelity >= 94
    other = [*warnings, found("f9", rule="PERF601", severity="warning", effect="slow")]
    assert scored(RIGHT, other)[0].fidelity == total.fidelity - 3


@pytest.mark.parametrize(
    ("finding", "runs", "verdict", "most"),
    [
        (found("f1", severity="warning"), (), "not-faithful", 70),
        (examples.finding(), (), "not-faithful", 40),
        (found("f1", rule="NUM302", family="numerics"), (FAILED,), "not-faithful", 40),
        (found("f1", rule="HW201", family="hardware", effect="rejects"), (), "not-faithful", 30),
        (found("f1", rule="CHEAT701", family="cheat"), (), "not-faithful", 20),
        (found("f1", rule="CHEAT702", family="cheat", effect="style"), (), "faithful", 20),
    ],
)
def test_a_cap_is_borne_by_the_finding_that_causes_it(finding, runs, verdict, most):
    bystander = found("f7", rule="API403", family="api", severity="note", effect="style")
    total, (first, second) = scored(RIGHT, (finding, bystander), runs, verdict)
    assert total.fidelity == most
    assert second.points == -0.5
    assert first.points == most - 100 + 0.5


def test_a_note_caps_nothing():
    finding = found("f1", rule="CHEAT703", family="cheat", severity="note", effect="style")
    assert scored(RIGHT, (finding,))[0].fidelity == 99.5


@pytest.mark.parametrize(
    ("runs", "most"), [((FAILED,), 40.0), ((), 70.0), ((FAILED, PASSED), 40.0)]
)
def test_a_cap_holds_without_a_finding(runs, most):
    total, _ = scored(RIGHT, (), runs, "not-faithful")
    assert total.fidelity == most
    (lowest, *_) = caps((), runs, "not-faithful")
    assert (lowest.at, lowest.by) == (most, ())


def test_a_refused_kernel_has_a_number_although_nothing_was_read():
    stops = found("f1", rule="API401", family="api", effect="rejects")
    nothing = Coverage(cuda=1.0, nki=0.0)
    total, (finding,) = scored((), (stops,), (), "not-faithful", nothing)
    assert total == Score(fidelity=30.0, hardware=60.0)
    assert finding.points == -70.0


def test_numerics_has_evidence_from_runs_alone():
    wrong = found("f1", rule="NUM302", family="numerics")
    total, _ = scored((), (wrong,), (FAILED,), "not-faithful", Coverage(cuda=0.0, nki=0.0))
    assert total == Score(fidelity=40.0, numerics=70.0)


def test_no_more_is_lost_than_there_is():
    rules = [found(f"f{i}", rule=f"MAP{i}") for i in range(101, 111)]
    total, findings = scored(RIGHT, rules, verdict="not-faithful")
    assert total.fidelity == 0.0
    assert total.mapping == 0.0
    assert {finding.points for finding in findings} == {-10.0}


# -- laws ---------------------------------------------------------------------------------

KINDS = st.sampled_from(sorted(TABLE.kind))
PLACES = st.sampled_from(["2.0", "add", "return", "k(x)"])


@st.composite
def findings_(draw, name):
    family = draw(
        st.sampled_from(["mapping", "hardware", "numerics", "performance", "api", "cheat", "cuda"])
    )
    return found(
        name,
        rule=f"R{draw(st.integers(0, 3))}",
        family=family,
        severity=draw(st.sampled_from(["error", "warning", "note"])),
        effect=draw(st.sampled_from(sorted(TABLE.effect))),
        span=examples.span(examples.NKI, draw(PLACES)),
        witness=draw(st.sampled_from([None, examples.finding().witness])),
        suppressed=draw(st.sampled_from([None, None, None, "known"])),
    )


@st.composite
def evidence(draw):
    findings = tuple(draw(findings_(f"f{i}")) for i in range(draw(st.integers(0, 8))))
    ids = [finding.id for finding in findings]
    constructs = tuple(
        made(
            f"c{i}",
            draw(KINDS),
            verdict,
            tuple(draw(st.lists(st.sampled_from(ids), unique=True, max_size=3))) if ids else (),
            cuda=() if verdict == "extra" else examples.construct().cuda,
        )
        for i in range(draw(st.integers(0, 8)))
        for verdict in [
            draw(
                st.sampled_from(
                    ["matched", "transformed", "mismapped", "missing", "extra", "unknown"]
                )
            )
        ]
    )
    runs = tuple(
        examples.run(status=draw(st.sampled_from(["pass", "investigate", "not-run", "fail"])))
        for _ in range(draw(st.integers(0, 2)))
    )
    return {
        "constructs": constructs,
        "findings": findings,
        "runs": runs,
        "verdict": draw(st.sampled_from(["faithful", "not-faithful", "undetermined"])),
        "coverage": Coverage(
            cuda=draw(st.sampled_from([0.0, 0.4, 0.7, 1.0])),
            nki=draw(st.sampled_from([0.0, 0.5, 1.0])),
        ),
    }


@given(evidence())
def test_points_explain_the_difference_from_100_exactly(given_):
    total, findings = score(**given_)
    assert [f.id for f in findings] == [f.id for f in given_["findings"]]
    if total.fidelity is None:
        assert lost(findings) == 0
        return
    missing = total.fidelity - 100 - lost(findings)
    held = caps(given_["findings"], given_["runs"], given_["verdict"])
    if not held or held[0].by:
        assert missing == 0
    else:
        assert missing <= 0
        assert total.fidelity <= held[0].at
    for cap in held:
        assert total.fidelity <= cap.at
    for finding in findings:
        assert finding.points == 0 or (finding.suppressed is None and finding.family != "cuda")


@given(evidence(), st.data())
def test_another_finding_never_raises_the_score(given_, data):
    before, _ = score(**given_)
    more = data.draw(findings_("new"))
    names = data.draw(st.sets(st.sampled_from([c.id for c in given_["constructs"]] or ["none"])))
    constructs = tuple(
        msgspec.structs.replace(c, findings=(*c.findings, "new")) if c.id in names else c
        for c in given_["constructs"]
    )
    after, _ = score(
        **{**given_, "constructs": constructs, "findings": (*given_["findings"], more)}
    )
    for part in ("fidelity", "mapping", "hardware", "numerics"):
        earlier, later = getattr(before, part), getattr(after, part)
        if earlier is not None:
            assert later is not None
            assert later <= earlier


@given(evidence(), st.randoms(use_true_random=False))
def test_the_order_of_the_evidence_changes_nothing(given_, random):
    total, findings = score(**given_)
    shuffled = {
        name: tuple(random.sample(items, len(items))) if isinstance(items, tuple) else items
        for name, items in given_.items()
    }
    shuffled["constructs"] = tuple(
        msgspec.structs.replace(c, findings=tuple(random.sample(c.findings, len(c.findings))))
        for c in shuffled["constructs"]
    )
    again, others = score(**shuffled)
    assert again == total
    assert {f.id: f.points for f in others} == {f.id: f.points for f in findings}


# -- what the page says -------------------------------------------------------------------


def rows(page, first):
    """The rows of the table whose heading begins with `first`."""
    (_, table) = page.split(f"| {first} |", 1)
    lines = table.split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_has_the_numbers_of_the_table(checkout):
    page = (checkout / "docs" / "score.md").read_text()
    said = {name: [float(cell) for cell in cells] for name, *cells in rows(page, "effect")}
    assert said == {
        effect: [
            cost.points * TABLE.severity[severity].percent / 100
            for severity in ("error", "warning", "note")
        ]
        for effect, cost in TABLE.effect.items()
    }
    said = {words: int(at) for words, at in rows(page, "something holds")}
    assert said == {cap.words: cap.at for cap in TABLE.cap.values()}


PAIR = (
    made("c1", "tile-axis"),
    made("c2", "mask"),
    made("c3", "stage-in"),
    made("c4", "stage-in"),
    made("c6", "output-store"),
)
WITNESS = examples.finding().witness


@pytest.mark.parametrize(
    ("verdict", "finding", "result", "fidelity", "mapping", "hardware"),
    [
        ("matched", {"severity": "note", "effect": "style"}, "faithful", 99.5, 99.5, 100),
        (
            "mismapped",
            {"family": "numerics", "severity": "warning", "effect": "inaccurate"},
            "faithful-with-findings",
            87.25,
            93.25,
            100,
        ),
        ("mismapped", {"witness": WITNESS}, "not-faithful", 40, 52, 100),
        ("matched", {"family": "hardware", "effect": "rejects"}, "not-faithful", 30, 100, 60),
    ],
)
def test_the_worked_examples(verdict, finding, result, fidelity, mapping, hardware):
    addition = made("c5", "elementwise", verdict, ("f1",))
    total, _ = scored((*PAIR, addition), (found("f1", **finding),), verdict=result)
    assert (total.fidelity, total.mapping, total.hardware) == (fidelity, mapping, hardware)
