"""The verdict: what stands against a kernel, what for it, and what decides nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from migrate.results import Coverage, Finding, Run
from migrate.score.verdict import STATIC_CONFIDENCE, Weighed, weigh
from tests import examples

FAULTY = examples.finding(
    id="f9",
    rule="CUDA501",
    family="cuda",
    severity="warning",
    side="cuda",
    message="the CUDA kernel itself makes 1 access outside x",
    witness=None,
    points=0.0,
)
WARNING = examples.finding(severity="warning", effect="inaccurate", family="numerics", witness=None)
NOTE = msgspec.structs.replace(WARNING, severity="note")
PASS = examples.run(status="pass", outputs=())
FAIL = examples.run(status="fail")
SKIPPED = examples.run(status="not-run", reason="the NKI kernel cannot be run", outputs=())
DOUBTFUL = examples.run(status="investigate", outputs=())


def weighed(**changes: Any) -> Weighed:
    given: dict[str, Any] = {
        "statuses": ["proved", "proved"],
        "findings": (),
        "runs": (),
        "coverage": Coverage(cuda=1.0, nki=1.0),
        "gaps": (),
    }
    return weigh(**{**given, **changes})


# -- not faithful -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "confidence"),
    [
        ({"statuses": ["proved", "refuted"]}, 0.95),
        ({"runs": (FAIL,)}, 0.95),
        ({"runs": (FAIL,), "statuses": ["refuted"]}, 0.99),
        ({"findings": (examples.finding(),)}, 0.95),
        ({"findings": (examples.finding(effect="rejects", witness=None),)}, 0.95),
    ],
)
def test_what_stands_against_a_kernel(changes: dict[str, Any], confidence: float) -> None:
    found = weighed(**changes)
    assert (found.verdict, found.confidence) == ("not-faithful", confidence)
    assert found.reasons


def test_passing_runs_do_not_outweigh_a_witness() -> None:
    assert weighed(statuses=["refuted"], runs=(PASS, PASS)).verdict == "not-faithful"


def test_a_finding_alone_weighs_as_much_as_was_understood() -> None:
    half = Coverage(cuda=0.6, nki=1.0)
    found = weighed(findings=(examples.finding(),), coverage=half, statuses=["unknown"])
    assert (found.verdict, found.confidence) == ("not-faithful", 0.57)


@pytest.mark.parametrize("effect", ["inaccurate", "slow", "style"])
def test_milder_findings_do_not_reject(effect: str) -> None:
    mild = examples.finding(effect=effect, witness=None)
    assert weighed(findings=(mild,)).verdict == "faithful-with-findings"


def test_a_suppressed_finding_does_not_count() -> None:
    put_aside = msgspec.structs.replace(examples.finding(), suppressed="known")
    assert weighed(findings=(put_aside,)).verdict == "faithful"


# -- faithful ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "confidence"),
    [
        ({}, STATIC_CONFIDENCE),
        ({"runs": (PASS, PASS)}, 0.97),
        ({"runs": (PASS,), "statuses": ["unknown"]}, 0.85),
        ({"runs": (PASS,), "statuses": ["proved", "unknown"]}, 0.85),
    ],
)
def test_what_speaks_for_a_kernel(changes: dict[str, Any], confidence: float) -> None:
    found = weighed(**changes)
    assert (found.verdict, found.confidence) == ("faithful", confidence)


@pytest.mark.parametrize(
    ("finding", "verdict"), [(WARNING, "faithful-with-findings"), (NOTE, "faithful")]
)
def test_findings_that_leave_it_faithful(finding: Finding, verdict: str) -> None:
    assert weighed(findings=(finding,)).verdict == verdict


def test_runs_without_a_proof_are_said_to_be_all() -> None:
    assert any(
        reason.startswith("not proved")
        for reason in weighed(statuses=["unknown"], runs=(PASS,)).reasons
    )
    assert not any("not proved" in reason for reason in weighed(runs=(PASS,)).reasons)


def test_what_could_not_be_read_is_said_beside_the_runs() -> None:
    found = weighed(statuses=["unknown"], runs=(PASS,), gaps=("line 3 is not understood",))
    assert found.reasons[-1] == "line 3 is not understood"


# -- undetermined -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"statuses": ["proved", "unknown"]},
        {"statuses": []},
        {"coverage": Coverage(cuda=0.99, nki=1.0)},
        {"statuses": ["unknown"], "runs": (SKIPPED,)},
        {"statuses": ["unknown"], "runs": (DOUBTFUL,)},
        {"statuses": ["unknown"], "runs": (PASS,), "coverage": Coverage(cuda=0.4, nki=1.0)},
        {"runs": (DOUBTFUL, PASS)},
    ],
)
def test_too_little_to_tell(changes: dict[str, Any]) -> None:
    found = weighed(**changes)
    assert (found.verdict, found.confidence) == ("undetermined", 0.0)
    assert found.reasons


# -- the reference ----------------------------------------------------------------------


@pytest.mark.parametrize("effect", ["wrong", "rejects"])
@pytest.mark.parametrize("statuses", [["unknown"], ["proved", "unknown"], []])
def test_a_faulty_reference_decides_nothing(effect: str, statuses: list[str]) -> None:
    found = weighed(
        findings=(msgspec.structs.replace(FAULTY, effect=effect),), statuses=statuses, runs=(PASS,)
    )
    assert (found.verdict, found.confidence) == ("undetermined", 0.0)
    assert found.reasons[0].startswith("the reference is at fault: CUDA501 at kernel.py:3:")


def test_what_is_proved_wherever_it_is_defined_stays_proved_with_less_confidence() -> None:
    found = weighed(findings=(FAULTY,), runs=(SKIPPED,))
    assert (found.verdict, found.confidence) == ("faithful", 0.64)
    assert any("the reference is at fault" in reason for reason in found.reasons)


@pytest.mark.parametrize(
    "changes",
    [{"statuses": ["refuted"]}, {"runs": (FAIL,)}, {"findings": (examples.finding(), FAULTY)}],
)
def test_a_kernel_that_is_wrong_besides_is_told_with_the_fault(changes: dict[str, Any]) -> None:
    found = weighed(**{"findings": (FAULTY,), **changes})
    assert (found.verdict, found.confidence) == ("not-faithful", 0.76)
    assert any("the reference is at fault" in reason for reason in found.reasons)


def test_a_suppressed_fault_is_none() -> None:
    quiet = msgspec.structs.replace(FAULTY, suppressed="known")
    assert weighed(findings=(quiet,)) == weighed()


# -- what no finding explains -----------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "confidence"),
    [({}, 0.72), ({"runs": (PASS,)}, 0.87), ({"statuses": ["refuted"]}, 0.85)],
)
def test_lost_constructs_without_a_finding_lower_confidence(
    changes: dict[str, Any], confidence: float
) -> None:
    found = weighed(unnamed=("c3", "c7"), **changes)
    assert found.verdict == weighed(**changes).verdict
    assert found.confidence == confidence
    assert found.reasons[-1] == "no finding says why these constructs are lost: c3, c7"


def test_many_of_them_are_not_all_listed() -> None:
    found = weighed(unnamed=tuple(f"c{n}" for n in range(9)))
    assert found.reasons[-1].endswith("c0, c1, c2, c3, …")


@pytest.mark.parametrize("runs", [(), (PASS,), (SKIPPED,), (DOUBTFUL,), (FAIL,)])
@pytest.mark.parametrize("statuses", [["proved"], ["unknown"], ["refuted"], []])
def test_a_doubt_never_raises_confidence(runs: tuple[Run, ...], statuses: list[str]) -> None:
    plain = weighed(runs=runs, statuses=statuses)
    for doubt in ({"findings": (FAULTY,)}, {"unnamed": ("c1",)}):
        doubted = weighed(runs=runs, statuses=statuses, **doubt)
        assert doubted.confidence <= plain.confidence
        assert (doubted.verdict == "not-faithful") == (plain.verdict == "not-faithful")
