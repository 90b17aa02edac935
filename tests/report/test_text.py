"""The text report: what it says, where it points, and that reviewed text stays text."""

import io
import unicodedata

import msgspec
import pytest

from migrate.report import sources, text
from migrate.results import ConstructSide, Subject
from migrate.source import Source, Span
from tests import examples

SOURCES = {"kernel.cu": examples.CUDA, "kernel.py": examples.NKI}


def render(result=None, **changes):
    return text.render(result or examples.comparison(**changes), SOURCES)


def test_the_heading_says_what_was_compared_and_the_verdict():
    shown = render()
    first, second = shown.splitlines()[:2]
    assert first == "kernel.cu::k -> kernel.py::k, trn2, NKI 0.6"
    assert "faithful" in second
    assert "confidence 0.75" in second
    # 99.9 % is not everything.
    assert "CUDA 100 %, NKI 99 %" in second


@pytest.mark.parametrize("verdict", list(text.GLYPHS))
def test_every_construct_has_its_verdict_as_glyph_and_word(verdict):
    shown = render(constructs=(examples.construct(verdict=verdict, nki=()),))
    (line,) = [line for line in shown.splitlines() if "c1 elementwise" in line]
    assert f"{text.GLYPHS[verdict][0]} {verdict}" in line
    assert line.rstrip().endswith("–")
    assert "one instruction adds" in shown


def test_a_finding_quotes_and_underlines_both_places():
    shown = render(findings=(examples.finding(),)).splitlines()
    at = shown.index("error MAP101 [wrong] adds 2 where the CUDA kernel adds 1")
    assert shown[at + 1 : at + 7] == [
        "  --> NKI kernel.py:3:21",
        "      through call add at kernel.py:3:9",
        "  3 |     return add(x, '→', 2.0)",
        "    |                        ^^^",
        "  --> CUDA added here kernel.cu:2:21",
        "  2 |   x[threadIdx.x] += 1.0f;",
    ]
    assert shown[at + 7] == "    |                     ^^^^"
    assert "n=4 (normal inputs, seed 0): x[0, 2] is 1.0 in CUDA, nan in NKI" in shown[at + 8]
    assert "costs 40 points" in shown[at + 9]


def test_carets_stand_under_wide_and_hidden_characters():
    source = Source.of("漢字\u202e = bad(1)\n", "kernel.py")
    where = examples.span(source, "bad(1)")
    finding = examples.finding(span=where, related=(), witness=None, points=0.0)
    result = examples.comparison(findings=(finding,))
    lines = text.render(result, {"kernel.py": source}).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("  1 | "))
    assert lines[at] == "  1 | 漢字\\u202e = bad(1)"
    # Two wide characters, six of the escape, three more.
    assert lines[at + 1] == "    | " + " " * (4 + 6 + 3) + "^^^^^^"


def test_long_places_are_cut():
    source = Source.of("x = 1\n" * 9 + "a" * 10_000 + "HERE" + "b" * 10_000, "kernel.py")
    many = Span(file="kernel.py", start_line=2, start_column=1, end_line=8, end_column=6)
    long = examples.span(source, "HERE")
    findings = tuple(
        examples.finding(id=f"f{i}", span=place, related=(), witness=None)
        for i, place in enumerate((many, long))
    )
    shown = text.render(examples.comparison(findings=findings), {"kernel.py": source}, width=100)
    assert "... to line 8" in shown
    assert "aaaHEREbbb" in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_runs_say_how_far_apart():
    shown = render(runs=(examples.run(), examples.run(status="not-run", reason="no", outputs=())))
    assert "m=2, n=4" in shown
    assert "normal #7" in shown
    assert "1,500 of 2,000 differ, first at [0, 2]" in shown
    assert "allowed 1e-07" in shown
    assert "not-run" in shown


def test_what_was_inferred_suppressed_and_cut_short_is_said():
    shown = render(
        inferred=("grid from the launch",),
        findings=(examples.finding(suppressed="known"),),
        deterministic=False,
    )
    assert "inferred: grid from the launch" in shown
    assert "(suppressed: known)" in shown
    assert "another machine may say more" in shown


HOSTILE = "\x1b]0;title\x07\x1b[2J[bold red]x[/] [link=http://a]\u202e\u200b:skull:\r"


def test_reviewed_text_comes_out_harmless():
    source = Source.of(f"y = 1  # {HOSTILE}\n", HOSTILE)
    where = examples.span(source, "y = 1")
    side = ConstructSide(summary=HOSTILE, span=where)
    result = examples.comparison(
        cuda=Subject(file=HOSTILE, kernel=HOSTILE, digest="0"),
        reasons=(HOSTILE,),
        inferred=(HOSTILE,),
        constructs=(examples.construct(reason=HOSTILE, cuda=(side,), nki=(side,)),),
        findings=(examples.finding(message=HOSTILE, span=where, suppressed=HOSTILE),),
        runs=(examples.run(reason=HOSTILE, sizes={HOSTILE: 1}),),
    )
    shown = text.render(result, {HOSTILE: source}, width=1000)
    assert "[bold red]x[/]" in shown
    assert ":skull:" in shown
    acting = {c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co")}
    assert acting == {"\n"}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def _terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)


@pytest.mark.usefixtures("_terminal")
def test_colour_on_a_terminal_alone(monkeypatch):
    def written(stream):
        text.write(examples.comparison(), stream, SOURCES)
        return stream.getvalue()

    assert "\x1b[" in written(Terminal())
    assert "\x1b[" not in written(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    # NO_COLOR asks for no colour; bold is not one.
    assert "\x1b[32m" not in written(Terminal())
    assert "\x1b[1;32m" not in written(Terminal())


def test_sources_are_those_that_were_judged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.cu").write_text(examples.CUDA.text)
    (tmp_path / "kernel.py").write_text("changed since\n")
    result = examples.comparison()
    assert set(sources.of(result)) == {"kernel.cu"}
    case = tmp_path / "pair" / "case.toml"
    case.parent.mkdir()
    (case.parent / "kernel.py").write_text(examples.NKI.text)
    assert set(sources.of(result, case)) == {"kernel.cu", "kernel.py"}
    gone = msgspec.structs.replace(result.cuda, file="nowhere.cu")
    assert sources.of(examples.comparison(cuda=gone, nki=gone)) == {}
