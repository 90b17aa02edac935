"""Which findings say what is wrong with a construct.

A finding belongs to the constructs in whose lines it stands.  Where a construct is lost for a
reason that shows elsewhere (a mask that a loop bound breaks, a tile axis cut short by the sizes
it is made of), the finding is one whose rule is about constructs of that kind: first one that
names a place in the construct beside its own, else any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from migrate.results import Construct, ConstructKind, Finding, Side
from migrate.rules.registry import BY_ID
from migrate.source import Span

_LOST: Final = frozenset({"mismapped", "missing", "extra"})


def linked(constructs: Sequence[Construct], found: Sequence[Finding]) -> tuple[Construct, ...]:
    """The constructs, with the ids of the findings that are about them."""
    return tuple(
        msgspec.structs.replace(
            construct, findings=tuple(finding.id for finding in _about(construct, found))
        )
        for construct in constructs
    )


def unnamed(constructs: Sequence[Construct], found: Sequence[Finding]) -> tuple[str, ...]:
    """The constructs that are mismapped or missing and that no finding on the NKI kernel names."""
    naming = {f.id for f in found if f.suppressed is None and f.family != "cuda"}
    return tuple(
        construct.id
        for construct in constructs
        if construct.verdict in {"mismapped", "missing"} and naming.isdisjoint(construct.findings)
    )


def _about(construct: Construct, found: Sequence[Finding]) -> list[Finding]:
    here = [f for f in found if _inside(construct, f.side, f.span)]
    if construct.verdict not in _LOST or any(_explains(f, construct) for f in here):
        return here
    likely = [f for f in found if f not in here and _explains(f, construct)]
    if construct.verdict == "missing" and not likely:
        # What nothing is written from is not needed: the lack of the result explains the rest.
        likely = [f for f in found if _is_about(f, "output-store")]
    near = [f for f in likely if any(_inside(construct, r.side, r.span) for r in f.related)]
    # In the order of the findings, which is the gravest first.
    chosen = {id(f) for f in (*here, *(near or likely))}
    return [f for f in found if id(f) in chosen]


def _explains(finding: Finding, construct: Construct) -> bool:
    return _is_about(finding, construct.kind)


def _is_about(finding: Finding, kind: ConstructKind) -> bool:
    rule = BY_ID.get(finding.rule)
    return rule is not None and kind in rule.about


def _inside(construct: Construct, side: Side, span: Span) -> bool:
    """Whether a place begins in the lines of a construct."""
    return any(
        own.span.file == span.file and own.span.start_line <= span.start_line <= own.span.end_line
        for own in (construct.nki if side == "nki" else construct.cuda)
    )
