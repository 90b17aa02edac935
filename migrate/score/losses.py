"""What took the points, read back from a result: the score's own account."""

from __future__ import annotations

from typing import Final

import msgspec

from migrate.results import (
    SCHEMA_VERSION,
    Comparison,
    Construct,
    Finding,
    Score,
    Verdict,
    encoded,
)
from migrate.score.fidelity import Capped, caps

_ALL: Final = 100.0


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """Points lost (below 0), and the finding that bears them.

    `finding` is `None` only for what a failing run or the verdict takes where no finding
    says why; `reason` then says what it is.
    """

    points: float
    reason: str
    finding: Finding | None = None


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A score with its reasons: `score.fidelity` is 100 plus the points of `losses`.

    `cap` says what the number cannot exceed, where a cap decides it.  `unnamed` are
    the constructs that are mismapped or missing although no finding says why: they cost
    nothing.
    """

    schema_version: str = SCHEMA_VERSION
    verdict: Verdict
    confidence: float
    correspondence: float
    score: Score
    cap: str | None
    losses: tuple[Loss, ...]
    unnamed: tuple[str, ...]

    def to_json(self, *, indent: int = 0) -> bytes:
        """UTF-8 JSON; equal accounts give equal bytes."""
        return encoded(self, indent=indent)


def account(result: Comparison) -> Account:
    """The reasons for the score of a result, the costliest first."""
    ranked = sorted(
        (finding for finding in result.findings if finding.points < 0),
        key=lambda finding: finding.points,
    )
    lost = [
        Loss(points=finding.points, reason=finding.message, finding=finding) for finding in ranked
    ]
    cap: Capped | None = None
    if result.score.fidelity is not None:
        held = caps(result.findings, result.runs, result.verdict)
        cap = next((c for c in held if c.at == result.score.fidelity), None)
        rest = result.score.fidelity - _ALL - sum(loss.points for loss in lost)
        if rest < 0:
            words = cap.words if cap is not None else "the runs and the verdict"
            lost.append(Loss(points=rest, reason=f"{words}, and no finding says why"))
    return Account(
        verdict=result.verdict,
        confidence=result.confidence,
        correspondence=result.correspondence,
        score=result.score,
        cap=f"at most {cap.at}: {cap.words}" if cap is not None else None,
        losses=tuple(lost),
        unnamed=tuple(c.id for c in result.constructs if _unnamed(c, result)),
    )


def _unnamed(construct: Construct, result: Comparison) -> bool:
    if construct.verdict not in {"mismapped", "missing"}:
        return False
    named = {f.id for f in result.findings if f.suppressed is None and f.family != "cuda"}
    return named.isdisjoint(construct.findings)
