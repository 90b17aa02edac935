"""`migrate explain`: pages on a terminal, in a pipe, as JSON; unknown ids."""

import io
import json
import sys

import pytest

from migrate.cli import OK, SAYS_NO, USAGE, main


def test_a_pipe_gets_markdown(capsys):
    assert main(["explain", "MAP101"]) == OK
    shown = capsys.readouterr().out
    assert shown.startswith("# MAP101: elements-left-out\n")
    assert "\x1b" not in shown
    assert "\n## Use instead\n" in shown


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def test_a_terminal_gets_it_laid_out(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert main(["explain", "trn2"]) == OK
    shown = sys.stdout.getvalue()
    assert "trn2: Trainium2" in shown
    assert "\x1b[" in shown
    assert "# trn2" not in shown


def test_json(capfdbinary):
    assert main(["explain", "mask.bounded-slice", "--json"]) == OK
    told = json.loads(capfdbinary.readouterr().out)
    assert (told["kind"], told["id"]) == ("mapping", "mask.bounded-slice")
    assert [way["id"] for way in told["facts"]["realisation"]] == ["mask.bounded-slice"]
    assert told["markdown"].startswith("# mask.bounded-slice")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("MAP1O1", "nothing is called 'MAP1O1'; did you mean MAP101"),
        ("mask.bounded-slices", "did you mean mask.bounded-slice"),
        ("trn22", "did you mean trn2"),
        ("\x1b[2J", "nothing is called '\\x1b[2J'; rules look like MAP101"),
        ("q" * 100_000, "rules look like MAP101"),
    ],
)
def test_an_unknown_id_is_one_sentence_with_the_nearest(given, message, capsys):
    assert main(["explain", given]) == SAYS_NO
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_without_an_id_everything_is_listed(capsys):
    assert main(["explain"]) == OK
    shown = capsys.readouterr().out
    for heading in ("Rules", "Mappings", "Targets", "Versions", "Names"):
        assert f"## {heading}" in shown
    assert "`nki.isa.nc_matmul`" in shown


def test_the_list_as_json(capfdbinary):
    assert main(["explain", "--format", "json"]) == OK
    index = json.loads(capfdbinary.readouterr().out)["index"]
    assert "trn2" in index["targets"]["Trainium2"]


def test_text_in_a_pipe_is_laid_out_without_colours(capsys):
    assert main(["explain", "nl.load", "--format", "text"]) == OK
    shown = capsys.readouterr().out
    assert "nki.language.load" in shown
    assert "# nki" not in shown
    assert "\x1b" not in shown


def test_a_terminal_gives_markdown_when_asked(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert main(["explain", "nl.load", "--format", "md"]) == OK
    assert sys.stdout.getvalue().startswith("# nki.language.load\n")


def test_two_formats_are_too_many(capsys):
    assert main(["explain", "nl.load", "--json", "--format", "md"]) == USAGE
    assert "different things" in capsys.readouterr().err


def test_an_unclear_name_lists_what_it_may_be(capsys):
    assert main(["explain", "reciprocal"]) == SAYS_NO
    message = capsys.readouterr().err
    assert message == (
        "migrate: 'reciprocal' may be nki.isa.reciprocal or nki.language.reciprocal\n"
    )
