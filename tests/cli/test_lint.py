"""`migrate lint`: what it finds in a file, what it writes, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import migrate
from migrate.cli import OK, SAYS_NO, UNDETERMINED, USAGE, main
from migrate.results import LintDocument, schemas

HEAD = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
"""
SOUND = """\
def copied(x):
    rows, cols = x.shape
    out = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, 128):
        size = min(128, rows - start)
        t = nl.ndarray((size, cols), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x[start : start + size, :])
        nisa.dma_copy(dst=out[start : start + size, :], src=t)
    return out
"""
WHOLE = SOUND.replace("min(128, rows - start)", "128").replace("copied", "whole")
UNREAD = SOUND.replace("def copied(x):", "def copied(x, eps=1e-6):")
CASE = """\
[[tensor]]
name = "x"
shape = [200, 64]
dtype = "float32"
role = "in"
nki = "x"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sound.py").write_text(HEAD + SOUND)
    (tmp_path / "whole.py").write_text(HEAD + WHOLE)
    (tmp_path / "unread.py").write_text(HEAD + UNREAD)
    (tmp_path / "two.py").write_text(HEAD + SOUND + "\n\n@nki.jit\n" + WHOLE)
    (tmp_path / "case.toml").write_text(CASE)
    return tmp_path


def test_nothing_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "sound.py", "--case", "case.toml"]) == OK
    shown = capsys.readouterr().out
    assert shown == (
        "sound.py::copied, trn2, NKI 0.2.0 or later\n"
        "  nothing found; 4 instructions\n"
        "  inferred: NKI 0.2.0 or later (the namespace `nki`: from 0.2.0 on, line 1)\n"
    )


def test_a_finding_with_its_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "whole.py", "--case", "case.toml"]) == SAYS_NO
    shown = capsys.readouterr().out
    assert "error HW202" in shown
    assert "--> NKI whole.py:13:" in shown
    assert "x[start : start + size, :]" in shown
    assert "\x1b" not in shown


def test_every_kernel_or_the_one_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "two.py", "--case", "case.toml", "--json"]) == SAYS_NO
    document = json.loads(capsys.readouterr().out)
    assert [kernel["name"] for kernel in document["kernels"]] == ["copied", "whole"]
    assert main(["lint", "two.py::copied", "--case", "case.toml", "--json"]) == OK
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert kernel["name"] == "copied"


def test_json_fits_its_schema_and_is_the_same_again(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    outputs = []
    for _ in range(2):
        assert main(["lint", "two.py", "--case", "case.toml", "--format", "json"]) == SAYS_NO
        outputs.append(capfdbinary.readouterr().out)
    assert outputs[0] == outputs[1]
    jsonschema.Draft202012Validator(schemas()["lint.schema.json"]).validate(json.loads(outputs[0]))
    document = LintDocument.from_json(outputs[0])
    assert document.deterministic
    assert [kernel.complete for kernel in document.kernels] == [True, True]


@pytest.mark.parametrize(
    ("fail_on", "code"), [("error", OK), ("warning", SAYS_NO), ("note", SAYS_NO), ("never", OK)]
)
def test_what_fails(
    fail_on: str, code: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["lint", "unread.py", "--case", "case.toml", "--fail-on", fail_on]
    assert main(arguments) == code
    assert "warning API405 [style] the parameter eps of copied" in capsys.readouterr().out


def test_a_finding_set_aside_is_shown_and_does_not_count(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (folder / "unread.py").read_text()
    marked = text.replace("eps=1e-6):", "eps=1e-6):  # migrate: ignore[API405] for the caller")
    (folder / "unread.py").write_text(marked)
    assert main(["lint", "unread.py", "--case", "case.toml", "--fail-on", "note"]) == OK
    shown = capsys.readouterr().out
    assert "nothing found" in shown
    assert "(suppressed: for the caller)" in shown


def test_the_target_and_the_version_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--case", "case.toml", "--target", "trn1", "--nki-version", "0.1"]
    assert main(["lint", "sound.py", *options]) == SAYS_NO
    shown = capsys.readouterr().out
    assert "sound.py::copied, trn1" in shown
    assert "API404" in shown


def test_sizes_are_inferred(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "sound.py"]) == OK
    shown = capsys.readouterr().out
    assert "instructions at cols = 128, rows = 145" in shown
    told = "inferred: x is a tensor (rows = 145, cols = 128) of float32, from how it is used"
    assert told in shown


def test_a_kernel_that_is_not_read_to_its_end(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "open.py").write_text(HEAD + "def k(x, n):\n    return helper(x, n)\n")
    assert main(["lint", "open.py"]) == UNDETERMINED
    assert "not read to its end" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.py"], "no such file"),
        (["sound.py::other"], "other"),
        (["case.toml"], "a case goes to --case"),
        (["sound.py", "--target", "trn9"], "invalid choice"),
        (["sound.py", "--nki-version", "9"], "is not known"),
        (["sound.py", "--case", "none.toml"], "no such file"),
    ],
)
def test_usage(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["lint", *arguments])
    except SystemExit as stop:
        code = int(str(stop.code))
    assert code == USAGE
    assert message in capsys.readouterr().err


def test_hostile_text_is_harmless(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = UNREAD.replace("eps=1e-6", "eps='\x1b[2J [red]x[/red]'")
    (folder / "hostile.py").write_text(HEAD + hostile)
    main(["lint", "hostile.py", "--case", "case.toml"])
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "[red]" in shown


def test_a_text_reads_no_file() -> None:
    document = migrate.lint_text(HEAD + WHOLE, case=CASE)
    (kernel,) = document.kernels
    assert document.file == "kernel.py"
    assert [finding.rule for finding in kernel.findings] == ["HW202", "HW202"]
