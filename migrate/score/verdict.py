"""The verdict on a pair: what was proved, refuted, run and found, weighed.

* `not-faithful`: a run fails, a witness exists, or a finding says that the kernel is
  wrong or cannot run;
* `faithful`, `faithful-with-findings`: every output is proved, or the runs passed;
* `undetermined`: too little was understood to say either.

Without a run, faithful needs that everything was understood, and confidence is at most
`STATIC_CONFIDENCE`.

Findings about the CUDA kernel itself (family `cuda`) never make the NKI kernel not faithful.
Where what it does is not defined there is nothing to be faithful to: unless the outputs are
proved equal wherever they are defined, the pair is undetermined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from migrate.results import Coverage, Finding, Run, Verdict

STATIC_CONFIDENCE = 0.8
HALF = 0.5

FAULTY_REFERENCE = 0.8
"""What is left of the confidence where the CUDA kernel itself is at fault."""

UNNAMED = 0.9
"""What is left of it where a construct is lost and no finding says why."""


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
    unnamed: Sequence[str] = (),
) -> Weighed:
    """Weigh the evidence.

    `statuses` are those of the relations, one a position of the sizes; `gaps` say what
    could not be read, related or run.  `unnamed` are the constructs that are mismapped or
    missing although no finding says why.
    """
    made = [run for run in runs if run.status != "not-run"]
    failed = [run for run in made if run.status == "fail"]
    passed = bool(made) and all(run.status == "pass" for run in made)
    refuted = sum(status == "refuted" for status in statuses)
    proved = bool(statuses) and all(status == "proved" for status in statuses)
    understood = min(coverage.cuda, coverage.nki)
    mine = [f for f in findings if f.suppressed is None and f.family != "cuda"]
    standing = [f for f in mine if f.effect in {"wrong", "rejects"}]
    faulty = [f for f in findings if f.suppressed is None and f.family == "cuda"]
    certainty = (FAULTY_REFERENCE if faulty else 1.0) * (UNNAMED if unnamed else 1.0)
    doubts = _doubts(faulty, unnamed)
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
        confidence = round(certain * weight * certainty, 2)
        return Weighed("not-faithful", confidence, (*reasons, *doubts))
    if faulty and not proved:
        return Weighed("undetermined", 0.0, tuple(dict.fromkeys((*doubts, *gaps))))
    verdict: Verdict = "faithful-with-findings" if _open(mine) else "faithful"
    if proved:
        reasons.append(f"both compute the same expressions at {_positions(len(statuses))}")
    if passed:
        reasons.append(f"all {len(made)} runs agree within the error that rounding explains")
    if proved and passed:
        confidence = round(0.97 * understood * certainty, 2)
        return Weighed(verdict, confidence, (*reasons, *doubts))
    if passed and understood >= HALF:
        reasons.append("not proved: that other inputs give the same rests on the runs")
        confidence = round(0.85 * understood * certainty, 2)
        return Weighed(verdict, confidence, (*reasons, *doubts, *gaps))
    if proved and understood == 1.0 and not made:
        return Weighed(verdict, round(STATIC_CONFIDENCE * certainty, 2), (*reasons, *doubts))
    if made and not passed:
        reasons.append(
            "a run needs investigation: its error is beyond what is likely, not beyond"
            " what is possible"
        )
    reasons += gaps
    if not reasons:
        reasons.append("neither a proof nor a difference was found")
    return Weighed("undetermined", 0.0, tuple(dict.fromkeys(reasons)))


def _doubts(faulty: Sequence[Finding], unnamed: Sequence[str]) -> tuple[str, ...]:
    """Why less is certain than the evidence by itself would give, in sentences."""
    found: list[str] = []
    if faulty:
        first = faulty[0]
        found.append(f"the reference is at fault: {first.rule} at {first.span}: {first.message}")
    if unnamed:
        shown = ", ".join(unnamed[:4]) + (", …" if len(unnamed) > 4 else "")
        found.append(f"no finding says why these constructs are lost: {shown}")
    return tuple(found)


def _open(findings: Sequence[Finding]) -> bool:
    return any(f.severity != "note" for f in findings)


def _positions(count: int) -> str:
    return "the one position of the sizes" if count == 1 else f"{count} positions of the sizes"
