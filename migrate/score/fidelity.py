"""`fidelity/1`: how much of the CUDA kernel arrived, from 0 to 100, and what took the rest.

What a loss is, in this order:

1. *Share.*  CUDA constructs that are mismapped or missing, by weight, as a share of all
   CUDA constructs that were judged.  A construct is lost only if a finding names it, and
   the gravest such finding bears it: nothing is taken without a reason that can be read.
2. *Penalty.*  Every finding costs by effect and severity, repetitions of a rule less.
3. *Cap.*  Where something holds that no share can make good (a failing run, a refusal, a
   cheat), the rest down to the cap is borne by the findings that say so.

Losses are counted in whole units (quarters of a point) and rounded up: 100 means that
nothing was lost, and the points of the findings add up to the difference exactly.  Only
a cap that nothing but a run or the verdict stands for has no finding; `losses` names it.

Findings that are suppressed and those of the family `cuda` cost nothing.  The numbers are
in `mappings/score/fidelity-1.toml`, `docs/score.md` has worked examples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Final

import msgspec

from migrate import facts
from migrate.facts import CapName, Scoring
from migrate.results import Construct, Coverage, Family, Finding, Run, Score, Verdict
from migrate.source import Span

VERSION: Final = "fidelity/1"
_TABLE: Final = "fidelity-1"
_ALL: Final = 100

_LOST: Final = frozenset({"mismapped", "missing"})
_PARTS: Final[Mapping[str, frozenset[Family]]] = {
    "mapping": frozenset({"mapping", "cheat"}),
    "hardware": frozenset({"hardware", "api"}),
    "numerics": frozenset({"numerics"}),
}
"""The findings whose penalties make up a part; lost constructs count to the mapping."""


@dataclass(frozen=True, slots=True)
class Capped:
    """A cap that holds: the most that is given, why, and the findings that say so."""

    name: CapName
    at: int
    words: str
    by: tuple[Finding, ...]


def score(
    *,
    constructs: Sequence[Construct],
    findings: Sequence[Finding],
    runs: Sequence[Run],
    verdict: Verdict,
    coverage: Coverage,
) -> tuple[Score, tuple[Finding, ...]]:
    """The score, and the findings in the order given with the points that each costs.

    Everything is `None`, and no finding costs anything, where the verdict is undetermined or
    too little was understood, and no cap holds.  Another finding never raises `fidelity`; the
    order of the arguments' items changes nothing.
    """
    table = facts.scoring(_TABLE)
    standing = _standing(findings)
    held = caps(findings, runs, verdict)
    known = verdict != "undetermined" and understood(constructs, coverage)
    if not known and not held:
        return Score(version=VERSION), tuple(_costing(finding, 0.0) for finding in findings)
    penalties = _penalties(table, standing)
    shares = _shares(table, standing, constructs)
    charges = [a + b for a, b in zip(penalties, shares, strict=True)]
    units, named = _capped(table, standing, charges, held)
    points = {
        id(finding): -count / table.unit for finding, count in zip(standing, named, strict=True)
    }
    made = any(run.status != "not-run" for run in runs)
    evidence = {
        "mapping": known,
        "hardware": known or coverage.nki > 0,
        "numerics": known or made,
    }
    parts: dict[str, float | None] = {}
    for name, families in _PARTS.items():
        lost = sum(
            (p for f, p in zip(standing, penalties, strict=True) if f.family in families),
            start=sum(shares, Fraction()) if name == "mapping" else Fraction(),
        )
        found = any(finding.family in families for finding in standing)
        parts[name] = _rest(table, lost) if evidence[name] or found else None
    total = Score(
        version=VERSION,
        fidelity=_ALL - units / table.unit,
        mapping=parts["mapping"],
        hardware=parts["hardware"],
        numerics=parts["numerics"],
    )
    return total, tuple(_costing(f, points.get(id(f), 0.0)) for f in findings)


def understood(constructs: Sequence[Construct], coverage: Coverage) -> bool:
    """Whether enough was read and judged for a number: half of both kernels, by default."""
    table = facts.scoring(_TABLE)
    asked = [construct for construct in constructs if construct.cuda]
    total = sum(table.kind[construct.kind].weight for construct in asked)
    judged = sum(table.kind[construct.kind].weight for construct in asked if _judged(construct))
    least = Fraction(table.least_understood, _ALL)
    read = min(Fraction(coverage.cuda), Fraction(coverage.nki))
    return judged > 0 and judged >= total * least and read >= least


def caps(findings: Sequence[Finding], runs: Sequence[Run], verdict: Verdict) -> tuple[Capped, ...]:
    """The caps that hold, the lowest first.

    A cap without findings rests on a run, or on a verdict for which no finding stands.
    """
    table = facts.scoring(_TABLE)
    grave = [finding for finding in _standing(findings) if finding.severity != "note"]
    failed = any(run.status == "fail" for run in runs)
    refuses = [finding for finding in grave if finding.effect == "rejects"]
    refutes = [finding for finding in grave if finding.effect in {"wrong", "rejects"}]
    shown = [finding for finding in grave if finding.witness is not None]
    cheats = [finding for finding in grave if finding.family == "cheat"]
    wrong = [finding for finding in grave if finding.effect == "wrong"] if failed else []
    by: dict[CapName, tuple[bool, list[Finding]]] = {
        "not-faithful": (verdict == "not-faithful", refutes),
        "fails": (failed or bool(shown), shown or wrong),
        "rejects": (bool(refuses), refuses),
        "cheat": (bool(cheats), cheats),
    }
    held = [
        Capped(name, table.cap[name].at, table.cap[name].words, tuple(carriers))
        for name, (holds, carriers) in by.items()
        if holds
    ]
    return tuple(sorted(held, key=lambda cap: cap.at))


def _standing(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that count, in an order that is their own."""
    kept = [f for f in findings if f.suppressed is None and f.family != "cuda"]
    return sorted(kept, key=_key)


def _key(finding: Finding) -> tuple[str, str, Span, str, str]:
    return (finding.rule, finding.side, finding.span, finding.message, finding.id)


def _judged(construct: Construct) -> bool:
    return bool(construct.cuda) and construct.verdict != "unknown" and construct.kind != "opaque"


def _penalty(table: Scoring, finding: Finding) -> Fraction:
    percent = table.severity[finding.severity].percent
    return Fraction(table.effect[finding.effect].points * percent, _ALL)


def _penalties(table: Scoring, standing: Sequence[Finding]) -> list[Fraction]:
    """What each finding costs by itself.

    Within a rule the costliest counts in full, each further one by a factor less.  A
    finding more can only push others to a smaller factor behind one that costs at least
    as much: the sum never falls.
    """
    by_rule: dict[tuple[str, Family], list[int]] = {}
    for number, finding in enumerate(standing):
        by_rule.setdefault((finding.rule, finding.family), []).append(number)
    factor = Fraction(table.repetition.percent, _ALL)
    costs = [Fraction()] * len(standing)
    for numbers in by_rule.values():
        ranked = sorted(numbers, key=lambda number: -_penalty(table, standing[number]))
        for rank, number in enumerate(ranked[: table.repetition.most]):
            costs[number] = _penalty(table, standing[number]) * factor**rank
    return costs


def _shares(
    table: Scoring, standing: Sequence[Finding], constructs: Sequence[Construct]
) -> list[Fraction]:
    """What each finding costs for the constructs that it is the gravest to name.

    The whole is fixed by the constructs alone, so that a finding more can only lose more.
    """
    costs = [Fraction()] * len(standing)
    judged = [construct for construct in constructs if _judged(construct)]
    whole = sum(table.kind[construct.kind].weight for construct in judged)
    by_id: dict[str, list[int]] = {}
    for number, finding in enumerate(standing):
        by_id.setdefault(finding.id, []).append(number)
    for construct in judged:
        naming = [n for name in construct.findings for n in by_id.get(name, ())]
        if construct.verdict not in _LOST or not naming:
            continue
        gravest = min(naming, key=lambda n: (-_share(table, standing[n]), _key(standing[n])))
        weight = Fraction(table.kind[construct.kind].weight, whole)
        costs[gravest] += _ALL * weight * _share(table, standing[gravest])
    return costs


def _share(table: Scoring, finding: Finding) -> Fraction:
    percent = table.effect[finding.effect].share * table.severity[finding.severity].percent
    return Fraction(percent, _ALL * _ALL)


def _capped(
    table: Scoring,
    standing: Sequence[Finding],
    charges: Sequence[Fraction],
    held: Sequence[Capped],
) -> tuple[int, list[int]]:
    """Units lost in all, and units that each standing finding bears."""
    lost = min(sum(charges, Fraction()), Fraction(_ALL))
    ceiling = min((cap.at for cap in held), default=_ALL)
    more = _ALL - ceiling - lost
    if more <= 0:
        units = ceil(lost * table.unit)
        return units, _allotted(charges, units)
    units = (_ALL - ceiling) * table.unit
    carriers = {id(finding) for cap in held if cap.at == ceiling for finding in cap.by}
    if not carriers:
        return units, _allotted(charges, ceil(lost * table.unit))
    each = Fraction(more, len(carriers))
    raised = [
        charge + each if id(finding) in carriers else charge
        for finding, charge in zip(standing, charges, strict=True)
    ]
    return units, _allotted(raised, units)


def _allotted(charges: Sequence[Fraction], units: int) -> list[int]:
    """`units` in whole numbers, in proportion to the charges: largest remainder first.

    Ties go by the order of the charges, which is the findings' own.
    """
    total = sum(charges, Fraction())
    if not total:
        return [0] * len(charges)
    exact = [charge * units / total for charge in charges]
    whole = [floor(part) for part in exact]
    left = units - sum(whole)
    by_rest = sorted(range(len(charges)), key=lambda n: (whole[n] - exact[n], n))
    for number in by_rest[:left]:
        whole[number] += 1
    return whole


def _rest(table: Scoring, lost: Fraction) -> float:
    return (_ALL * table.unit - ceil(min(lost, Fraction(_ALL)) * table.unit)) / table.unit


def _costing(finding: Finding, points: float) -> Finding:
    return msgspec.structs.replace(finding, points=points or 0.0)
