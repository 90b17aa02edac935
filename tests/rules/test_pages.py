"""The rules' pages: every rule has a whole one, and `docs/rules` says the same."""

import shutil

import msgspec
import pytest

from migrate.rules import pages, taxonomy
from migrate.rules.registry import BY_ID, RULES


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_has_every_heading(rule):
    assert tuple(pages.sections(rule)) == ("What", "Why", "Example", "Use instead", "Sources")
    page = pages.page(rule)
    assert page.startswith(f"# {rule.id}: {rule.name}\n\n{rule.family} · {rule.severity} · ")


def test_ids_and_names_are_unique():
    assert len(BY_ID) == len(RULES)
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_the_pages_in_docs_are_current(checkout):
    assert pages.stale(checkout / "docs" / "rules") == []


def test_the_index_links_every_page():
    files = pages.generate()
    for rule in RULES:
        assert f"[{rule.id}]({rule.id}.md) | {rule.name}" in files["README.md"]
        assert f"{rule.id}.md" in files


def test_changed_missing_and_orphaned_pages_are_stale(tmp_path):
    for name, text in pages.generate().items():
        (tmp_path / name).write_text(text, "utf-8")
    assert pages.stale(tmp_path) == []
    (tmp_path / "MAP101.md").write_text("edited")
    (tmp_path / "MAP102.md").unlink()
    (tmp_path / "MAP000.md").write_text("of no rule")
    assert pages.stale(tmp_path) == ["MAP000.md", "MAP101.md", "MAP102.md"]


@pytest.mark.parametrize(
    "page",
    [
        "",
        "# MAP999: other-title\n\n## What\nx",
        "# MAP101: elements-left-out\n\n## What\nx\n## Why\nx\n## Example\nx\n## Sources\nx",
        "# MAP101: elements-left-out\n\n## What\n\n## Why\nx\n## Example\nx\n## Use instead\nx",
    ],
)
def test_a_page_that_lacks_something_is_refused(page, monkeypatch):
    monkeypatch.setattr(type(RULES[0]), "page", property(lambda _: page))
    with pytest.raises(ValueError, match="MAP101"):
        pages.sections(BY_ID["MAP101"])


def test_the_command(checkout, tmp_path, monkeypatch, capsys):
    (tmp_path / "docs").mkdir()
    shutil.copytree(checkout / "mappings" / "faults", tmp_path / "mappings" / "faults")
    monkeypatch.setattr(pages, "__file__", str(tmp_path / "migrate" / "rules" / "pages.py"))
    assert pages.main(["check"]) == 1
    assert "MAP101.md is stale" in capsys.readouterr().err
    assert pages.main(["build"]) == 0
    (tmp_path / "docs" / "rules" / "MAP000.md").write_text("of no rule")
    assert pages.main(["build"]) == 0
    assert pages.main(["check"]) == 0
    (tmp_path / "docs" / "faults.md").write_text("edited")
    assert pages.main(["check"]) == 1
    assert "faults.md is stale" in capsys.readouterr().err
    assert pages.main(["bake"]) == 2


COUNTS = {"TP": 18, "MS": 18, "MM": 19, "IX": 19, "AV": 20, "LP": 15, "SP": 7, "PF": 15}


def test_every_kind_of_fault_has_rules_or_a_reason(checkout):
    faults = taxonomy.load(checkout)
    wanted = [f"{group}{n:02}" for group, count in COUNTS.items() for n in range(1, count + 1)]
    assert sorted(fault.id for fault in faults) == sorted(wanted)
    assert (checkout / "docs" / "faults.md").read_text("utf-8") == taxonomy.table(faults)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"rules": ["MAP101"], "reason": "both"},
        {"rules": ["MAP999"]},
        {"id": "ZZ01", "reason": "of no group"},
        {"reason": "known", "more": 1},
    ],
)
def test_an_entry_that_says_nothing_or_the_unknown_is_refused(fields):
    entry = {"id": "TP01", "title": "A fault", **fields}
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(entry, taxonomy.Fault)
