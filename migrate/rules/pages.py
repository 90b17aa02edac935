"""A page for each rule, made from the docstring of the file that defines it.

`python -m migrate.rules.pages build` writes `docs/rules/`, an index and one page a rule, and
`docs/faults.md` (`rules.taxonomy`).
`migrate explain` shows the same page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from migrate.results import Effect, Family
from migrate.rules import taxonomy
from migrate.rules.registry import RULES
from migrate.rules.rule import Rule

HEADINGS: Final = ("What", "Why", "Example", "Use instead", "Sources")
"""What every page has, in this order."""

_FAMILIES: Final[Mapping[Family, str]] = {
    "mapping": "The NKI kernel computes something else",
    "hardware": "It cannot run, or touches what is not there",
    "numerics": "It computes the same, less exactly",
    "performance": "It computes the same, slower than it need be",
    "api": "It does not compile",
    "cheat": "It does not do the work itself",
    "cuda": "The CUDA kernel itself is at fault",
}
_EFFECTS: Final[Mapping[Effect, str]] = {
    "rejects": "the compiler refuses the kernel",
    "wrong": "other results",
    "inaccurate": "the same function with fewer digits",
    "slow": "right, at a cost",
    "style": "right, harder to read or to maintain",
}
_INDEX: Final = """\
# Rules

Every finding names a rule. A rule has a *severity* (`error`, `warning`, `note`) and an
*effect*, which says what happens to a kernel that breaks it:

{effects}

Ids are never reused. `migrate explain ID` shows a page in the terminal.
"""


def sections(rule: Rule) -> Mapping[str, str]:
    """A rule's page by heading, as Markdown; raises `ValueError` where one is missing."""
    title, *rest = re.split(r"^## (.+)\n", rule.page, flags=re.MULTILINE)
    if title.strip() != f"# {rule.id}: {rule.name}":
        raise ValueError(f"{rule.id}: the page is not titled '# {rule.id}: {rule.name}'")
    headings, bodies = rest[::2], [body.strip() for body in rest[1::2]]
    if tuple(headings) != HEADINGS or not all(bodies):
        raise ValueError(f"{rule.id}: the page must have {', '.join(HEADINGS)}, each with a text")
    return dict(zip(headings, bodies, strict=True))


def page(rule: Rule) -> str:
    """A rule's page as Markdown, with its place in the table below the title."""
    parts = [
        f"# {rule.id}: {rule.name}",
        f"{rule.family} · {rule.severity} · {rule.effect}: {_EFFECTS[rule.effect]}",
    ]
    parts += [f"## {heading}\n\n{body}" for heading, body in sections(rule).items()]
    return "\n\n".join(parts) + "\n"


def generate() -> dict[str, str]:
    """The files of `docs/rules/` by name."""
    effects = "\n".join(f"* `{effect}`: {meaning}" for effect, meaning in _EFFECTS.items())
    index = [_INDEX.format(effects=effects)]
    for family, title in _FAMILIES.items():
        rules = [rule for rule in RULES if rule.family == family]
        if not rules:
            continue
        index.append(
            f"## {title}\n\n| rule | name | severity | effect |\n| --- | --- | --- | --- |"
        )
        index[-1] += "".join(
            f"\n| [{rule.id}]({rule.id}.md) | {rule.name} | {rule.severity} | {rule.effect} |"
            for rule in rules
        )
        index[-1] += "\n"
    files = {"README.md": _mark("migrate/rules/") + "\n".join(index)}
    for rule in RULES:
        files[f"{rule.id}.md"] = _mark(f"migrate/rules/{rule.id.lower()}.py") + page(rule)
    return files


def stale(folder: Path) -> list[str]:
    """The files of `folder` that are not what the rules say, or belong to no rule."""
    wanted = generate()
    there = {path.name: path.read_text("utf-8") for path in folder.glob("*.md")}
    names = sorted(wanted.keys() | there.keys())
    return [name for name in names if wanted.get(name) != there.get(name)]


def _mark(origin: str) -> str:
    return f"<!-- Made from {origin} by `python -m migrate.rules.pages build`; edit that. -->\n\n"


def main(arguments: list[str]) -> int:
    """`build` writes the pages, `check` exits 1 where they are stale."""
    root = Path(__file__).resolve().parents[2]
    folder = root / "docs" / "rules"
    if arguments not in (["build"], ["check"]) or not folder.parent.is_dir():
        sys.stderr.write("usage: python -m migrate.rules.pages build|check, in a checkout\n")
        return 2
    names = stale(folder)
    table, faults = root / "docs" / "faults.md", taxonomy.table(taxonomy.load(root))
    old = not table.is_file() or table.read_text("utf-8") != faults
    if arguments == ["check"]:
        for path in [*(folder / name for name in names), *([table] if old else [])]:
            sys.stderr.write(f"{path} is stale\n")
        return 1 if names or old else 0
    table.write_text(faults, "utf-8")
    folder.mkdir(exist_ok=True)
    wanted = generate()
    for name in names:
        if name in wanted:
            (folder / name).write_text(wanted[name], "utf-8")
        else:
            (folder / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
