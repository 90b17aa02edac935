"""Every rule's cases, as `tests/rules/<ID>-<name>.md` tells them.

A file has a section a case: its heading, prose, fenced blocks (`cuda`, `python` for the NKI
kernel, `toml` for the case) and a line that says what is expected.  A block that is left out is
the one of the section before.  The expectation is `Fires.` or `Silent.`, with `when run` if both
kernels are run for it, and the verdict if it matters: `Silent when run; faithful.`  Where a rule
fires, `<- ID` in a comment marks the line; it fires on no other.

`Fires when linted.` looks at the NKI kernel alone, at the sizes of the `toml` block, or without
one at inferred sizes; `for trn1` or `for NKI 0.2` after it chooses a target or a version.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import migrate
from migrate.results import Finding
from migrate.rules.registry import RULES

FOLDER = Path(__file__).parent
FENCE = re.compile(r"^```(cuda|python|toml)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXPECTED = re.compile(
    r"^(Fires|Silent)(?: when (run|linted))?(?: for (trn\d))?(?: for NKI (\d\.\d))?"
    r"(?:; ([a-z-]+))?\.$",
    re.MULTILINE,
)
MARK = re.compile(r"(?:#|//) <- ([A-Z]+\d+)")
LONGEST = 300
"""Characters of a message."""


@dataclass(frozen=True)
class Case:
    rule: str
    title: str
    texts: dict[str, str]
    fires: bool
    how: str
    """`run`, `linted`, or empty for a comparison without runs."""
    target: str | None
    version: str | None
    verdict: str | None

    def marked(self) -> set[tuple[str, int]]:
        """The side and line of every mark for the rule."""
        return {
            (side, number)
            for language, side in (("cuda", "cuda"), ("python", "nki"))
            for number, line in enumerate(self.texts.get(language, "").splitlines(), 1)
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
        word, how, target, version, verdict = (part or None for part in expected)
        fires = word == "Fires"
        found.append(Case(rule, title, texts, fires, how or "", target, version, verdict))
    return found


FILES = sorted(FOLDER.glob("[A-Z]*-*.md"))
CASES = [case for path in FILES for case in cases_of(path)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.title}")
def test_a_case(case: Case) -> None:
    if case.how == "linted":
        document = migrate.lint_text(
            case.texts["python"],
            case=case.texts.get("toml"),
            target=case.target,
            nki_version=case.version,
        )
        found = [finding for kernel in document.kernels for finding in kernel.findings]
        _held(case, found)
        return
    result = migrate.compare_text(
        case.texts["cuda"],
        case.texts["python"],
        case=case.texts["toml"],
        run="auto" if case.how == "run" else "never",
    )
    _held(case, result.findings)
    assert case.verdict in (None, result.verdict), result.reasons


def _held(case: Case, found: Sequence[Finding]) -> None:
    """The rule fires at the marks, and all messages are fit to be read."""
    mine = [finding for finding in found if finding.rule == case.rule]
    places = {(finding.side, finding.span.start_line) for finding in mine}
    assert places == (case.marked() if case.fires else set()), [f.message for f in mine]
    for finding in found:
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
