"""The Markdown report: what it says, and that reviewed text stays text."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from migrate.report import markdown, markup
from migrate.results import ConstructSide, Score, Subject
from migrate.source import Source, Span
from tests import examples

SOURCES = {"kernel.cu": examples.CUDA, "kernel.py": examples.NKI}


def render(**changes):
    return markdown.render(examples.comparison(**changes), SOURCES)


def test_the_heading_says_what_was_compared_and_the_verdict():
    shown = render(reasons=("all 3 runs agree",))
    assert shown.startswith(
        "# `kernel.cu::k` → `kernel.py::k`\n\n**faithful** with confidence 0.75"
    )
    assert "CUDA 100 %, NKI 99 %; for trn2, NKI 0.6" in shown
    assert "\n* all 3 runs agree\n" in shown
    assert "Score **100** of 100 (mapping 100)." in shown


def test_a_finding_quotes_both_places_and_says_what_to_write():
    finding = examples.finding(points=-60.0)
    shown = render(
        verdict="not-faithful", findings=(finding,), score=Score(fidelity=40.0, mapping=64.0)
    )
    assert "Score **40** of 100 (mapping 64); at most 40: a run fails" in shown
    assert (
        "### MAP101 error (wrong, costs 60 points)\n\n"
        "adds 2 where the CUDA kernel adds 1\n\n"
        "NKI `kernel.py:3:21`, through call `add` at `kernel.py:3:9`\n\n"
        "```python\n\treturn add(x, '→', 2.0)\n```\n\n"
        "CUDA (added here) `kernel.cu:2:21`\n\n"
        "```cuda\n  x[threadIdx.x] += 1.0f;\n```\n\n"
        "For example n=4 (normal inputs, seed 0): x\\[0, 2\\] is 1.0 in CUDA, nan in NKI (by"
    ) in shown
    assert "**Use instead**\n\n```python\nfor i in nl.affine_range((n + 511)" in shown


def test_a_rule_of_another_version_has_no_advice():
    shown = render(findings=(examples.finding(rule="MAP000", suppressed="known to be right"),))
    assert "Use instead" not in shown
    assert "*Suppressed:* known to be right" in shown


def test_constructs_and_runs_are_tables():
    shown = render(
        constructs=(examples.construct(), examples.construct(id="c2", verdict="missing", nki=())),
        runs=(examples.run(), examples.run(status="not-run", reason="no launch", outputs=())),
        inferred=("grid from the launch",),
        deterministic=False,
    )
    assert "1 of 2 CUDA constructs arrived." in shown
    assert (
        "| c1 elementwise | ✓ matched | 2: `x + 1` | 3: `x + 1` | one instruction adds |" in shown
    )
    assert "| c2 elementwise | − missing | 2: `x + 1` | – |" in shown
    assert "| m=2, n=4 | normal, seed 7 | fail | x: 1,500 of 2,000 differ" in shown
    assert "| not-run | no launch |" in shown
    assert "## Assumed\n\n* grid from the launch" in shown
    assert shown.endswith("another machine may say more.\n")


def test_no_score_and_losses_without_a_finding_are_said():
    assert "No score: too little was understood" in render(score=Score())
    shown = render(
        verdict="not-faithful", runs=(examples.run(),), score=Score(fidelity=40.0, mapping=100.0)
    )
    assert "60 points: a run fails, or an input shows that the results differ, and no" in shown


def test_long_places_are_cut():
    source = Source.of("x = 1\n" * 20 + "a" * 10_000 + "HERE" + "b" * 10_000, "kernel.py")
    many = Span(file="kernel.py", start_line=2, start_column=1, end_line=18, end_column=6)
    long = examples.span(source, "HERE")
    findings = tuple(
        examples.finding(id=f"f{i}", span=place, related=(), witness=None)
        for i, place in enumerate((many, long))
    )
    result = examples.comparison(findings=findings)
    shown = markdown.render(result, {"kernel.py": source})
    assert "x = 1\n" * markdown.EXCERPT_LINES + "…\n```" in shown
    assert "aaaHEREbbb" in shown
    assert max(map(len, shown.splitlines())) < 300


PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def parsed(text):
    """All tokens of a page, those inside paragraphs included."""
    for token in PARSER.parse(text):
        yield token
        yield from token.children or ()


def kinds(text):
    """The structure of a page: its tokens without what they say."""
    return [(token.type, token.tag) for token in parsed(text) if token.type != "text"]


HOSTILE = [
    "\x1b]0;title\x07\x1b[2J\u202e\u200b\r",
    "<script>alert(1)</script> <!-- <img src=x onerror=y> </td></table>",
    "[a](http://b) ![c](d) [e][f] <http://g> www.example.com ftp://h",
    "| a | b |\n| - | - |\\|\\\\| `|` ``|",
    "```\n# heading\n```` ` `` ~~~\n---\n===",
    "# x\n* y\n1. z\n> q\n    code\n- [ ] task",
    "*a* __b__ ~~c~~ $d$ $`e`$ &lt; &#124; \\* \\",
    "@org/team #12 a/b#3 GH-4 :skull: someone@example.com",
    "1) one",
    "- minus",
    "+ plus",
    "= sum",
    "---",
    "***",
    "`",
    "``",
    "` `",
    "\\",
]


def report(text, source):
    where = examples.span(source, "y = 1")
    side = ConstructSide(summary=text, span=where)
    result = examples.comparison(
        cuda=Subject(file=text, kernel=text, digest="0"),
        nki=Subject(file="a", kernel="b", digest="0", target="trn2", version=text),
        reasons=(text,),
        inferred=(text,),
        constructs=(examples.construct(id=text, reason=text, cuda=(side,), nki=(side, side)),),
        findings=(
            examples.finding(
                rule=text, message=text, span=where, suppressed=text, related=(), witness=None
            ),
        ),
        runs=(examples.run(reason=text, sizes={text: 1}),),
    )
    return markdown.render(result, {source.name: source})


CODE = {("code_inline", "code"), ("softbreak", "br"), ("text_special", "")}


def outline(text):
    return [kind for kind in kinds(text) if kind not in CODE]


@pytest.mark.parametrize("text", HOSTILE)
def test_reviewed_text_cannot_break_out(text):
    source = Source.of(f"y = 1  # {text}\n", "kernel.py")
    shown = report(text, source)
    assert outline(shown) == outline(report("harmless", source))
    allowed = {token.content for token in parsed(shown) if token.type.startswith("html")}
    assert allowed <= {"<br>"}
    acting = {c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co")}
    assert acting <= {"\n", "\t"}
    # What GitHub acts on in plain text stands in code.
    said = "".join(token.content for token in parsed(shown) if token.type == "text")
    assert not re.search(r"@\w|\w#\d|://|www\.|:skull:|GH-\d", said)


def said(text):
    """The text of the only paragraph, whatever it is marked as."""
    tokens = [token for token in parsed(text) if token.type in ("text", "code_inline")]
    return "".join(token.content for token in tokens)


TEXTS = st.text(
    st.sampled_from("ab1 `|\\*_<>&#@:[]()!~$^.-+=\n\t") | st.characters(codec="utf-8"), max_size=30
)


@given(TEXTS)
def test_text_reads_as_it_was_and_stays_one_paragraph(text):
    shown = markup.plain(text)
    assert "\n" not in shown
    assert said(f"{shown}\n") == markup.line(text)
    blocks = [token.type for token in PARSER.parse(f"{shown}\n\nend")]
    paragraph = ["paragraph_open", "inline", "paragraph_close"]
    assert blocks == (paragraph if not shown else paragraph * 2)


@given(TEXTS)
def test_code_reads_as_it_was(text):
    shown = markup.code(text)
    assert said(f"x{shown}") == f"x{markup.line(text)}"
    types = [token.type for token in parsed(f"x{shown}")]
    assert types.count("code_inline") == (1 if shown else 0)


@given(TEXTS, st.booleans())
def test_a_cell_stays_a_cell(text, as_code):
    shown = markup.cell(text) if as_code else markup.plain(text)
    table = f"| a | b |\n| --- | --- |\n| {shown} | end |\n"
    cells = [token for token in PARSER.parse(table) if token.type == "td_open"]
    assert len(cells) == 2
    inline = [token for token in PARSER.parse(table) if token.type == "inline"]
    assert inline[3].content == "end"
    read = "".join(c.content for c in inline[2].children if c.type in ("text", "code_inline"))
    assert read == markup.line(text)


@given(st.lists(st.sampled_from(["`", "``", "````", "~~~", "\n", "x", "# y", "\t"])))
def test_a_block_ends_where_it_should(parts):
    text = "".join(parts)
    tokens = PARSER.parse(markup.block(text, "python") + "\n\nend")
    assert tokens[0].type == "fence"
    assert tokens[0].content.rstrip("\n") == text.rstrip("\n")
    assert len(tokens) == 4
