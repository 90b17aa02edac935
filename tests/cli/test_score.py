"""`migrate score`: the number, its reasons, and what the exit code says."""

import json
import sys
from types import SimpleNamespace

import pytest

from migrate.cli import OK, SAYS_NO, UNDETERMINED, main
from migrate.results import Score
from tests import examples


@pytest.fixture
def compared(monkeypatch):
    """Make every comparison come to the given result; what was asked for."""
    calls = []

    def come_to(result):
        def compare(cuda, nki, *, case, run, progress, **options):
            calls.append((cuda, nki, case, run))
            return result

        monkeypatch.setitem(sys.modules, "migrate.api", SimpleNamespace(compare=compare))
        return calls

    return come_to


LOST = examples.comparison(
    verdict="not-faithful",
    findings=(examples.finding(points=-60.0),),
    score=Score(fidelity=40.0, mapping=55.25, hardware=100.0),
)


def test_the_number_and_its_reasons(compared, capsys):
    asked = compared(LOST)
    assert main(["score", "kernel.cu", "kernel.py", "--case", "c.toml"]) == SAYS_NO
    assert asked == [("kernel.cu", "kernel.py", "c.toml", "auto")]
    assert capsys.readouterr().out.splitlines() == [
        "40 of 100   fidelity/1   not-faithful   confidence 0.75   correspondence 1.00",
        "mapping 55.25, hardware 100",
        "at most 40: a run fails, or an input shows that the results differ",
        "",
        " -60.00  MAP101 error [wrong]  kernel.py:3:21",
        "         adds 2 where the CUDA kernel adds 1",
    ]


def test_json(compared, capfdbinary):
    compared(LOST)
    assert main(["score", "pair/case.toml", "--run", "never", "--json"]) == SAYS_NO
    told = json.loads(capfdbinary.readouterr().out)
    assert told["score"]["fidelity"] == 40.0
    assert [loss["points"] for loss in told["losses"]] == [-60.0]


def test_output_goes_to_a_file(compared, tmp_path, capsys):
    compared(LOST)
    path = tmp_path / "score.txt"
    assert main(["score", "a.cu", "b.py", "-o", str(path)]) == SAYS_NO
    assert path.read_text().startswith("40 of 100")
    assert capsys.readouterr().out == ""


NONE = {"score": Score(), "reasons": ("nothing\x1b[2J was read",)}


@pytest.mark.parametrize(
    ("changes", "options", "code"),
    [
        ({}, [], OK),
        ({}, ["--fail-under", "100"], OK),
        ({"score": Score(fidelity=89.75)}, ["--fail-under", "90"], SAYS_NO),
        ({"score": Score(fidelity=89.75)}, ["--fail-under", "89.75"], OK),
        ({"verdict": "not-faithful"}, ["--fail-under", "1"], SAYS_NO),
        ({"verdict": "undetermined"}, ["--fail-under", "1"], UNDETERMINED),
        ({"verdict": "undetermined"}, [], UNDETERMINED),
        (
            {"verdict": "undetermined", "score": Score(fidelity=50.0)},
            ["--fail-under", "60"],
            SAYS_NO,
        ),
        (NONE, [], OK),
        (NONE, ["--fail-under", "0"], UNDETERMINED),
        ({"findings": (examples.finding(),)}, [], SAYS_NO),
    ],
)
def test_exit_codes(compared, changes, options, code):
    compared(examples.comparison(**changes))
    assert main(["score", "a.cu", "b.py", *options]) == code


def test_a_missing_score_is_said_and_explained(compared, capsys):
    compared(examples.comparison(**NONE))
    main(["score", "a.cu", "b.py"])
    shown = capsys.readouterr().out
    assert shown.startswith("no score   fidelity/1   faithful")
    assert "too little was understood for a number: CUDA 100 %, NKI 99 %" in shown
    assert "  nothing\\x1b[2J was read" in shown
