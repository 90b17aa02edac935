"""The command line around the verbs: help, usage errors, failures in one sentence."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.budget import Exhausted
from migrate.cli import CLOSED_PIPE, INTERRUPTED, OK, UNDETERMINED, USAGE, VERBS, main
from migrate.facts import FactsError
from migrate.source import SourceError
from migrate.version import VERSION


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["help"]])
def test_help_names_every_verb(arguments, capsys):
    assert main(arguments) == OK
    shown = capsys.readouterr().out
    for verb, summary in VERBS.items():
        assert f"  {verb}" in shown
        assert summary in shown


def test_version(capsys):
    assert main(["--version"]) == OK
    assert capsys.readouterr().out == f"migrate {VERSION}\n"


def test_nothing_asked_for_is_a_usage_error(capsys):
    assert main([]) == USAGE
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize("verb", list(VERBS))
def test_each_verb_has_help_with_examples(verb, capsys):
    assert main([verb, "--help"]) == OK
    shown = capsys.readouterr().out
    assert f"usage: migrate {verb}" in shown
    assert "examples:" in shown
    assert "exit codes:" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dif"], "unknown verb 'dif'; did you mean 'diff'?"),
        (["xyzzy\x1b[2J"], f"unknown verb 'xyzzy\\x1b[2J'; there are {', '.join(VERBS)}"),
        (["--verbose"], "unknown option '--verbose'"),
        (["diff"], "arguments are required: CUDA"),
        (["diff", "kernel.cu"], "the NKI kernel is missing"),
        (["diff", "case.toml", "kernel.py"], "stands in place of both kernels"),
        (["diff", "case.toml", "--case", "case.toml"], "a case was given twice"),
        (["diff", "a.cu", "b.py", "--format", "yaml"], "invalid choice: 'yaml'"),
        (["diff", "a.cu", "b.py", "--form", "json"], "unrecognized arguments: --form json"),
        (["score", "kernel.cu"], "the NKI kernel is missing"),
        (["score", "a.cu", "b.py", "--fail-under", "x"], "'x' is not a number from 0 to 100"),
        (["score", "a.cu", "b.py", "--fail-under", "101"], "'101' is not a number from 0 to 100"),
        (["explain", "a", "b"], "unrecognized arguments: b"),
        (["ir", "case.toml"], "a case goes to --case"),
        (["ir", "::k"], "is not FILE or FILE::KERNEL"),
        (["ir", "kernel.cu::"], "is not FILE or FILE::KERNEL"),
        (["run", "case.toml", "-o", "out.npz"], "not a case"),
        (["run", "kernel.txt", "-o", "out.npz"], "neither .cu nor .py"),
        (["run", "kernel.cu", "-o", "out.npz"], "needs --grid and --block"),
        (["run", "kernel.py", "--arg", "n", "-o", "out.npz"], "--arg n is not NAME=VALUE"),
        (["run", "kernel.py", "--arg", "n=x", "-o", "out.npz"], "is not a number"),
        (["run", "kernel.py", "--inputs", "none.npz", "-o", "x"], "none.npz: no such file"),
    ],
)
def test_usage_errors_are_one_sentence(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == USAGE
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


class Failing:
    """A verb that ends in an exception."""

    def __init__(self, error):
        self.error = error

    def run(self, arguments):
        raise self.error


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (SourceError("is empty", file="a.cu"), USAGE, "migrate: a.cu: is empty\n"),
        (Exhausted("steps", 10, "parsing"), UNDETERMINED, "stopped after 10 steps"),
        (FactsError("the tables are missing"), USAGE, "the tables are missing"),
        (PermissionError(13, "Permission denied", "x"), USAGE, "Permission denied"),
        (KeyError("\x1b[2J"), USAGE, "internal error: KeyError: '\\x1b[2J'"),
        (RecursionError("too deep"), USAGE, "internal error: RecursionError"),
        (KeyboardInterrupt(), INTERRUPTED, ""),
    ],
)
def test_failures_are_one_sentence_and_a_code(error, code, message, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "migrate.cli.diff", Failing(error))
    assert main(["diff", "a.cu", "b.py"]) == code
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") <= 1
    assert "\x1b" not in shown


def test_debug_shows_the_traceback(monkeypatch):
    monkeypatch.setitem(sys.modules, "migrate.cli.diff", Failing(KeyError("x")))
    with pytest.raises(KeyError):
        main(["diff", "a.cu", "b.py", "--debug"])


def test_a_reader_that_goes_away_is_no_error(checkout):
    # Standard output is a pipe whose reading end is closed already.
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "migrate", "--help"],
            cwd=checkout,
            stdout=write,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(write)
    assert done.returncode == CLOSED_PIPE
    assert done.stderr == b""


def test_help_imports_no_heavy_module(checkout):
    code = (
        "import sys; from migrate.cli import main; main(['--help']);"
        "print(sorted({'numpy', 'rich', 'msgspec', 'tree_sitter', 'textual', 'libcst'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "arguments",
    [
        ["diff", "samples/vector_add/case.toml", "--run", "never"],
        ["score", "samples/vector_add/case.toml", "--run", "never"],
        ["ir", "samples/vector_add/kernel.py"],
        ["map", "samples/vector_add/kernel.cu"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_json_by_either_name(arguments, capfd, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    shown = []
    for option in (["--json"], ["--format", "json"]):
        assert main([*arguments, *option]) == OK
        shown.append(json.loads(capfd.readouterr().out))
    assert shown[0] == shown[1]


@pytest.mark.parametrize("verb", ["diff", "map"])
def test_two_formats_are_a_usage_error(verb, capsys):
    assert main([verb, "kernel.cu", "--format", "md", "--json"]) == USAGE
    assert "not allowed with argument" in capsys.readouterr().err
