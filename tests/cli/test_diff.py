"""`migrate diff`: what is compared, what is written, and what the exit code says."""

import json
import sys
from types import SimpleNamespace

import pytest

from migrate.cli import OK, SAYS_NO, UNDETERMINED, main
from migrate.cli.diff import exit_code
from migrate.results import Comparison
from tests import examples

WARNING = examples.finding(severity="warning", effect="slow")


@pytest.fixture
def asked(monkeypatch):
    """A comparison that is known beforehand; what it was asked for."""
    calls = []

    def compare(cuda, nki, *, case, run, progress, **options):
        calls.append((cuda, nki, case, run))
        return examples.comparison()

    monkeypatch.setitem(sys.modules, "migrate.api", SimpleNamespace(compare=compare))
    return calls


def test_two_kernels(asked, capsys):
    assert main(["diff", "kernel.cu::k", "kernel.py", "--case", "c.toml"]) == OK
    assert asked == [("kernel.cu::k", "kernel.py", "c.toml", "auto")]
    assert "kernel.cu::k -> kernel.py::k" in capsys.readouterr().out


def test_a_case_in_place_of_both(asked, capfdbinary):
    assert main(["diff", "pair/case.toml", "--run", "never", "--format", "json"]) == OK
    assert asked == [(None, None, "pair/case.toml", "never")]
    written = capfdbinary.readouterr().out
    assert Comparison.from_json(written) == examples.comparison()
    assert written.endswith(b"}\n")


@pytest.mark.usefixtures("asked")
def test_output_goes_to_a_file(tmp_path, capsys):
    report, data = tmp_path / "report.txt", tmp_path / "report.json"
    page = tmp_path / "report.md"
    assert main(["diff", "a.cu", "b.py", "-o", str(report)]) == OK
    assert main(["diff", "a.cu", "b.py", "--format", "json", "-o", str(data)]) == OK
    assert main(["diff", "a.cu", "b.py", "--format", "md", "-o", str(page)]) == OK
    assert "faithful" in report.read_text()
    assert page.read_text().startswith("# `kernel.cu::k` → `kernel.py::k`\n")
    assert json.loads(data.read_bytes())["verdict"] == "faithful"
    assert main(["diff", "a.cu", "b.py", "-o", str(tmp_path / "no" / "report.txt")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "report.txt: cannot be written: No such file" in captured.err


@pytest.mark.parametrize(
    ("changes", "fail_on", "code"),
    [
        ({}, "error", OK),
        ({"verdict": "not-faithful"}, "error", SAYS_NO),
        ({"verdict": "not-faithful"}, "never", SAYS_NO),
        ({"verdict": "undetermined"}, "error", UNDETERMINED),
        ({"verdict": "undetermined", "findings": (WARNING,)}, "warning", SAYS_NO),
        ({"findings": (WARNING,)}, "error", OK),
        ({"findings": (WARNING,)}, "warning", SAYS_NO),
        ({"findings": (WARNING,)}, "note", SAYS_NO),
        ({"findings": (WARNING,)}, "never", OK),
        ({"findings": (examples.finding(suppressed="known"),)}, "error", OK),
    ],
)
def test_exit_codes(changes, fail_on, code):
    assert exit_code(examples.comparison(**changes), fail_on) == code
