"""Reviewed text in every format: nothing of it acts on a terminal, a page or a reader.

The texts are read and compared as any others; what they hold comes out as text.
"""

import io
import json
import sys
import unicodedata
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from migrate.budget import Budget
from migrate.cli import main
from migrate.cli.arrays import npz
from migrate.pipeline.compare import compared
from migrate.report import sources
from migrate.source import quoted
from migrate.tui.detail import detail
from migrate.tui.listing import heading, row, title
from migrate.tui.model import OnConstruct, OnFinding, Overview, Review
from tests import pairs

SEQUENCES = "\x1b[2J\x1b]0;title\x07\x9b31m\x08\x7f"
MARKS = "\u202egnp\u202c\u2066\u200b\ufeff\U000e0041\ue000"
MARKUP = "[bold red]x[/] [@click=app.quit]y[/] [link=http://a]z[/] :skull:"
HTML = "<script>alert(1)</script><img src=x onerror=alert(1)> --> ]]> &lt;"
PAGE = "`` ``` ~~~ **b** _i_ [a](http://b) ![c](d) | # x @org/team #12 www.a.b"
HOSTILE = f"{SEQUENCES}{MARKS} {MARKUP} {HTML} {PAGE}"
ACTING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def acting(text):
    """The characters that may act, line ends apart."""
    return {c for c in text if unicodedata.category(c) in ACTING} - {"\n", "\t"}


def toml(text):
    """As a TOML string."""
    return '"' + "".join(f"\\U{ord(c):08x}" for c in text) + '"'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A pair with hostile names, comments and strings, and something wrong with it."""
    monkeypatch.chdir(tmp_path)
    cuda = pairs.cuda(f"asm volatile({json.dumps(PAGE)}); // {HOSTILE}\nout[i] = x[i] + y[i];")
    nki = pairs.tiles(
        f"nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.subtract)  # {HOSTILE}\n"
        f"assert n > 0, {HOSTILE!r}\n"
        f"print({HOSTILE!r})\n"
        f"nl.device_print({HOSTILE!r}, a)\n"
        f"padded = {HOSTILE!r}.ljust(9)\n"
        "half = '\\ud800'.ljust(9)"
    )
    case = pairs.case(
        pairs.tensor("x"),
        pairs.tensor("y"),
        pairs.tensor("out", role="out").replace('name = "out"', f"name = {toml(HOSTILE)}"),
        n=[3, 700],
    )
    (tmp_path / NAMES["cuda"]).write_text(f"// {HOSTILE}\n{cuda}")
    (tmp_path / NAMES["nki"]).write_text(f"# {HOSTILE}\n{nki}")
    (tmp_path / "case.toml").write_text(f"# {MARKUP}\n{case}")
    return tmp_path


# A name may hold all but a slash and NUL, and 255 bytes; a colon twice asks for a kernel.
NAMES = {
    "cuda": "k\x1b[2J\u202e[bold]<b>`|*_\n.cu",
    "nki": "k\x9b1m\u2066[@click=app.quit]<!--|\r.py",
}
SUBJECTS = [*NAMES.values(), "--case", "case.toml"]


@pytest.fixture
def shown(folder, capfdbinary):
    """Runs a verb: what it writes, as text."""

    def run(*arguments):
        main(list(arguments))
        written = capfdbinary.readouterr()
        assert b"Traceback" not in written.err
        assert b"internal error" not in written.out + written.err
        return written.out.decode(), written.err.decode()

    return run


@pytest.mark.parametrize(
    "arguments",
    [
        ["diff", *SUBJECTS, "--run", "never"],
        ["diff", *SUBJECTS, "--run", "auto"],
        ["diff", *SUBJECTS, "--run", "never", "--format", "json"],
        ["diff", *SUBJECTS, "--run", "never", "--format", "md"],
        ["score", *SUBJECTS, "--run", "never"],
        ["score", *SUBJECTS, "--run", "never", "--json"],
        ["ir", NAMES["cuda"]],
        ["ir", NAMES["nki"], "--case", "case.toml"],
        ["ir", NAMES["nki"], "--case", "case.toml", "--json"],
    ],
)
def test_no_character_acts_in_what_is_written(arguments, shown):
    out, err = shown(*arguments)
    assert not acting(out + err)
    # A score without a loss names nothing of theirs.
    assert arguments[0] == "score" or "\\u2066" in out or "\\u202e" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ["diff", f"{NAMES['cuda']}::{HOSTILE}", NAMES["nki"]],
        ["ir", f"{NAMES['nki']}::{HOSTILE}"],
        ["run", NAMES["nki"]],
        ["diff", f"none{NAMES['cuda']}", NAMES["nki"]],
        ["diff", f"none{HOSTILE.replace('/', '')}.toml"],
        ["explain", HOSTILE],
        [HOSTILE],
        ["diff", "a.cu", "b.py", "--format", HOSTILE],
        ["run", NAMES["nki"], "--arg", HOSTILE, "-o", "x"],
    ],
)
def test_no_character_acts_in_what_is_refused(arguments, shown):
    out, err = shown(*arguments)
    assert out == ""
    assert err.count("\n") == 1
    assert not acting(err)


def test_json_means_what_was_there(shown):
    told = json.loads(shown("diff", *SUBJECTS, "--run", "never", "--format", "json")[0])
    assert told["cuda"]["file"] == NAMES["cuda"]
    assert told["nki"]["file"] == NAMES["nki"]


@pytest.mark.parametrize(
    "text",
    ["\x7f", "\x9b", "\u202e", "\U000e0041", "a\u2028b", "é", "漢字 ok", 'a"\\u001b'],
    ids=ascii,
)
def test_quoted_json_reads_as_before(text):
    data = json.dumps({text: [text]}, ensure_ascii=False).encode()
    assert json.loads(quoted(data)) == {text: [text]}
    assert not acting(quoted(data).decode())
    assert quoted(quoted(data)) == quoted(data)


def test_a_page_holds_no_html_and_no_links_of_theirs(shown):
    page = shown("diff", *SUBJECTS, "--run", "never", "--format", "md")[0]
    for token in MarkdownIt("commonmark").enable("table").parse(page):
        for inner in (token, *(token.children or ())):
            if inner.type.startswith("html"):
                assert inner.content == "<br>"
            assert inner.type not in ("link_open", "image")


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def test_on_a_terminal_only_our_own_colours_act(folder, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    main(["diff", *SUBJECTS, "--run", "never"])
    shown = screen.getvalue()
    assert acting(shown) <= {"\x1b"}
    # Styles alone: no sequence that moves, clears, names or links.
    assert all(part.split("m")[0].replace(";", "").isdigit() for part in shown.split("\x1b[")[1:])
    assert shown.count("\x1b") == shown.count("\x1b[")


@pytest.mark.usefixtures("folder")
def test_what_the_review_paints_is_harmless():
    result = compared(
        NAMES["cuda"], NAMES["nki"], case="case.toml", run="never", budget=Budget(), progress=None
    )
    review = Review.of(result, sources.of(result, "case.toml"))
    painted = []
    selections = [Overview(), *(OnConstruct(i) for i in range(len(result.constructs)))]
    selections += [OnFinding(i) for i in range(len(result.findings))]
    for side in ("cuda", "nki"):
        document = review.pair.document(side)
        for number in range(1, document.line_count + 1):
            painted += [f.text for f in document.line(number).fragments()]
    for selection in selections:
        at = replace(review, selection=selection)
        lines = [*detail(at, excerpts=True), title(at), heading(at, "cuda"), heading(at, "nki")]
        painted += [piece.text for line in lines for piece in line]
    painted += [piece.text for i in range(len(result.constructs)) for piece in row(review.pair, i)]
    assert painted
    assert not set().union(*map(acting, painted))


def test_arrays_with_hostile_names(folder, shown):
    (folder / "in.npz").write_bytes(npz({"x\x1b[2J": [1.0], "y": [1.0]}))
    out, err = shown("run", NAMES["nki"], "--inputs", "in.npz")
    assert out == ""
    assert not acting(err)


def test_a_name_that_is_not_utf8(folder, shown):
    name = "k\udcff.cu"
    (folder / name).write_text(pairs.ADD)
    for form in ("text", "json", "md"):
        out, _ = shown("diff", name, NAMES["nki"], "--case", "case.toml", "--format", form)
        assert "udcff" in out
        assert not acting(out)
