"""The faults of migrations by kind, and the rules that tell each.

`mappings/faults/taxonomy.toml` is the table; `python -m migrate.rules.pages build` makes
`docs/faults.md` of it.  Only the documentation needs it: it is read from a checkout.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from migrate.rules.registry import BY_ID

GROUPS: Final[Mapping[str, str]] = {
    "TP": "Tiling and partitions",
    "MS": "Memory spaces",
    "MM": "Matrix products",
    "IX": "Indexing",
    "AV": "API versions",
    "LP": "Loops",
    "SP": "Programs and cores",
    "PF": "Performance",
}
"""The first two letters of an id."""

_HEAD: Final = """\
<!-- Made from mappings/faults/taxonomy.toml by `python -m migrate.rules.pages build`. -->

# Faults and rules

What goes wrong in migrations from CUDA to NKI, by kind, and the rules that tell it: `MAP` and `NUM`
where two kernels are compared, the others for an NKI kernel alone too. Where no rule tells a fault,
the reason stands in its place.
"""


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of fault, with the rules that tell it or the reason why none does."""

    id: str
    title: str
    rules: tuple[str, ...] = ()
    reason: str = ""

    def __post_init__(self) -> None:
        if bool(self.rules) == bool(self.reason):
            raise ValueError(f"{self.id}: either rules or a reason")
        unknown = [rule for rule in self.rules if rule not in BY_ID]
        if unknown:
            raise ValueError(f"{self.id}: no rule is called {', '.join(unknown)}")
        if self.id[:2] not in GROUPS:
            raise ValueError(f"{self.id}: of no group")


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fault: tuple[Fault, ...]


def load(root: Path) -> tuple[Fault, ...]:
    """The table of a checkout; raises `msgspec.ValidationError` where it is not one."""
    text = (root / "mappings" / "faults" / "taxonomy.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Table).fault


def table(faults: Sequence[Fault]) -> str:
    """`docs/faults.md`."""
    parts = [_HEAD]
    for group, title in GROUPS.items():
        parts.append(f"\n## {title}\n\n| id | fault | rules, or why none |\n| --- | --- | --- |\n")
        parts += [
            f"| {fault.id} | {fault.title} | {_told(fault)} |\n"
            for fault in faults
            if fault.id.startswith(group)
        ]
    return "".join(parts)


def _told(fault: Fault) -> str:
    links = ", ".join(f"[{rule}](rules/{rule}.md)" for rule in fault.rules)
    return links or fault.reason
