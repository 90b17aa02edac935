"""The verdict on a pair: what was proved, refuted, run and found, weighed.

* `not-faithful`: a run fails, a witness exists, or a finding says that the kernel is
  wrong or cannot run;
* `faithful`, `faithful-with-findings`: every output is proved, or the runs passed;
* `undetermined`: too little was understood to say either.

Without a run, faithful needs that everything was understood, and confidence is at most
`STATIC_CONFIDENCE`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from migrate.results import Coverage, Finding, Run, Verdict

STATIC_CONFIDENCE = 0.8
HALF = 0.5


@dataclass(frozen=True, slots=True)
class Weighed:
    verdict: Verdict
    confidence: float
    reasons: tuple[str, ...]


def weigh(
    *,
    statuses: Sequence[str],
    findings: Sequence[Finding],
    runs: Sequence[Run],
    coverage: Coverage,
    gaps: Sequence[str],
) -> Weighed:
    """Weigh the evidence.

    `statuses` are those of the relations, one a position of the sizes; `gaps` say what
    could not be read, related or run.
    """
    made = [run for run in runs if run.status != "not-run"]
    failed = [run for run in made if run.status == "fail"]
    passed = bool(made) and all(run.status == "pass" for run in made)
    refuted = sum(status == "refuted" for status in statuses)
    proved = bool(statuses) and all(status == "proved" for status in statuses)
    understood = min(coverage.cuda, coverage.nki)
    standing = [f for f in findings if f.suppressed is None and f.effect in {"wrong", "rejects"}]
    reasons: list[str] = []
    if failed:
        reasons.append(f"{len(failed)} of {len(made)} runs fail")
    if refuted:
        reasons.append(f"the two kernels compute different numbers at {_positions(refuted)}")
    if standing:
        first = standing[0]
        reasons.append(f"{first.rule} at {first.span}: {first.message}")
    if failed or refuted or standing:
        certain = 0.99 if failed and refuted else 0.95
        weight = 1.0 if failed or refuted else max(understood, HALF)
        return Weighed("not-faithful", round(certain * weight, 2), tuple(reasons))
    verdict: Verdict = "faithful-with-findings" if _open(findings) else "faithful"
    if proved:
        reasons.append(f"both compute the same expressions at {_positions(len(statuses))}")
    if passed:
        reasons.append(f"all {len(made)} runs agree within the error that rounding explains")
    if proved and passed:
        return Weighed(verdict, round(0.97 * understood, 2), tuple(reasons))
    if passed and understood >= HALF:
        return Weighed(verdict, round(0.85 * understood, 2), (*reasons, *gaps))
    if proved and understood == 1.0 and not made:
        return Weighed(verdict, STATIC_CONFIDENCE, tuple(reasons))
    if made and not passed:
        reasons.append(
            "a run needs investigation: its error is beyond what is likely, not beyond"
            " what is possible"
        )
    reasons += gaps
    if not reasons:
        reasons.append("neither a proof nor a difference was found")
    return Weighed("undetermined", 0.0, tuple(dict.fromkeys(reasons)))


def _open(findings: Sequence[Finding]) -> bool:
    return any(f.suppressed is None and f.severity != "note" for f in findings)


def _positions(count: int) -> str:
    return "the one position of the sizes" if count == 1 else f"{count} positions of the sizes"
