"""Every rule's cases, as `tests/rules/<ID>-<name>.md` tells them.

A file has a section a case: its heading, prose, fenced blocks (`cuda`, `python` for the NKI
kernel, `toml` for the case) and a line that says what is expected.  A block that is left out is
the one of the section before.  The expectation is `Fires.` or `Silent.`, with `when run` if both
kernels are run for it, and the verdict if it matters: `Silent when run; faithful.`  Where a rule
fires, `<- ID` in a comment marks the line; it fires on no other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import migrate
from migrate.rules.registry import RULES

FOLDER = Path(__file__).parent
FENCE = re.compile(r"^```(cuda|python|toml)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXPECTED = re.compile(r"^(Fires|Silent)( when run)?(?:; ([a-z-]+))?\.$", re.MULTILINE)
MARK = re.compile(r"(?:#|//) <- ([A-Z]+\d+)")
LONGEST = 300
"""Characters of a message."""


@dataclass(frozen=True)
class Case:
    rule: str
    title: str
    texts: dict[str, str]
    fires: bool
    runs: bool
    verdict: str | None

    def marked(self) -> set[tuple[str, int]]:
        """The side and line of every mark for the rule."""
        return {
            (side, number)
            for language, side in (("cuda", "cuda"), ("python", "nki"))
            for number, line in enumerate(self.texts[language].splitlines(), 1)
            for rule in MARK.findall(line)
            if rule == self.rule
        }


def cases_of(path: Path) -> list[Case]:
    rule = path.stem.split("-")[0]
    _, *sections = re.split(r"^## ", path.read_text("utf-8"), flags=re.MULTILINE)
    found: list[Case] = []
    texts: dict[str, str] = {}
    for section in sections:
        title = section.splitlines()[0]
        texts = {**texts, **dict(FENCE.findall(section))}
        (expected,) = EXPECTED.findall(FENCE.sub("", section))
        word, runs, verdict = expected
        found.append(Case(rule, title, texts, word == "Fires", bool(runs), verdict or None))
    return found


FILES = sorted(FOLDER.glob("[A-Z]*-*.md"))
CASES = [case for path in FILES for case in cases_of(path)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.title}")
def test_a_case(case: Case) -> None:
    result = migrate.compare_text(
        case.texts["cuda"],
        case.texts["python"],
        case=case.texts["toml"],
        run="auto" if case.runs else "never",
    )
    mine = [finding for finding in result.findings if finding.rule == case.rule]
    places = {(finding.side, finding.span.start_line) for finding in mine}
    assert places == (case.marked() if case.fires else set()), [f.message for f in mine]
    assert case.verdict in (None, result.verdict), result.reasons
    for finding in result.findings:
        assert len(finding.message) <= LONGEST
        assert not finding.message.endswith(".")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_fires_and_is_silent(rule) -> None:
    mine = [case for case in CASES if case.rule == rule.id]
    assert [path.stem for path in FILES if path.stem.startswith(f"{rule.id}-")] == [
        f"{rule.id}-{rule.name}"
    ]
    assert sum(case.fires for case in mine) >= 2
    assert sum(not case.fires for case in mine) >= 2
    assert all(case.marked() for case in mine if case.fires)
