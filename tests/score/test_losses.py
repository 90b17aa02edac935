"""The account of a score: read back from a result, complete to the last quarter."""

import msgspec

from migrate.results import Score
from migrate.score.fidelity import score
from migrate.score.losses import account
from tests import examples


def judged(**changes):
    """A result as a comparison makes it: scored by its own evidence."""
    result = examples.comparison(**changes)
    total, findings = score(
        constructs=result.constructs,
        findings=result.findings,
        runs=result.runs,
        verdict=result.verdict,
        coverage=result.coverage,
    )
    return msgspec.structs.replace(result, score=total, findings=findings)


def test_the_costliest_comes_first_and_the_sum_is_the_difference():
    style = examples.finding(
        id="f2", rule="API402", family="api", severity="note", effect="style", witness=None
    )
    told = account(judged(verdict="not-faithful", findings=(style, examples.finding())))
    assert [loss.finding.id for loss in told.losses] == ["f1", "f2"]
    assert told.score.fidelity == 100 + sum(loss.points for loss in told.losses) == 40
    assert told.cap == "at most 40: a run fails, or an input shows that the results differ"


def test_what_only_a_run_shows_is_said():
    told = account(judged(verdict="not-faithful", runs=(examples.run(),)))
    (loss,) = told.losses
    assert (loss.points, loss.finding) == (-60.0, None)
    assert "no finding says why" in loss.reason


def test_constructs_that_no_finding_names_are_listed():
    lost = examples.construct(id="c2", verdict="missing", nki=())
    named = examples.construct(id="c3", verdict="mismapped", findings=("f1",))
    finding = examples.finding(severity="warning", effect="inaccurate", witness=None)
    told = account(judged(constructs=(lost, named), findings=(finding,)))
    assert told.unnamed == ("c2",)
    assert told.cap is None


def test_without_a_score_there_is_nothing_to_account_for():
    told = account(judged(constructs=()))
    assert told.score == Score()
    assert (told.losses, told.cap) == ((), None)


def test_json_is_the_account():
    told = account(judged(verdict="not-faithful", findings=(examples.finding(),)))
    data = msgspec.json.decode(told.to_json(indent=2))
    assert data["schema_version"] == "1"
    assert data["score"]["fidelity"] == 40
    assert data["losses"][0]["finding"]["rule"] == "MAP101"
