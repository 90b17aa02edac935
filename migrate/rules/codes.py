"""Which rule tells which problem of the NKI front end, by the problem's code.

Instructions are checked as they are issued (`nki.checks`, `nki.limits`), analyses look at the
whole stream (`nki.analyses`), scans at the text (`nki.scans`).  Each names what it finds by a
code.  What no rule claims of the checks is told by HW201.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from migrate.results import Severity
from migrate.rules.places import related
from migrate.rules.rule import Draft, Evidence

REFUSING: Final = "refused:"
"""Prefix of the codes of problems that instructions are refused for."""

CLAIMS: Final[Mapping[str, frozenset[str]]] = {
    "MAP114": frozenset({"floor-trips"}),
    "MAP115": frozenset({"few-values"}),
    "HW203": frozenset(
        {"partitions", "stationary-size", "moving-size", "transpose-size", "tile-bytes"}
    ),
    "HW204": frozenset({"memory", "tile-memory", "both-psum", "gpsimd-psum"}),
    "HW205": frozenset({"sbuf-live", "psum-live"}),
    "HW206": frozenset({"partition-start"}),
    "HW207": frozenset({"dtype", "dtype-mix", "psum-dtype", "literal-dtype"}),
    "HW208": frozenset({"unwritten-read", "unwritten-unused"}),
    "HW209": frozenset({"unwritten-output"}),
    "HW210": frozenset({"psum-prefilled"}),
    "HW211": frozenset({"start-apart"}),
    "HW212": frozenset({"core-branch"}),
    "HW213": frozenset({"partition-step"}),
    "NUM306": frozenset({"outside-range"}),
    "PERF601": frozenset({"small-descriptors"}),
    "PERF602": frozenset({"loaded-again"}),
    "PERF603": frozenset({"few-partitions"}),
    "PERF604": frozenset({"short-moving"}),
    "PERF605": frozenset({"wide-matmul"}),
    "PERF606": frozenset({"unfused"}),
    "PERF607": frozenset({"round-trip"}),
    "PERF608": frozenset({"long-unroll"}),
    "PERF609": frozenset({"transposed-again"}),
    "PERF610": frozenset({"dma-transposes"}),
    "API406": frozenset({"result-dropped"}),
    "API408": frozenset({"traced-once"}),
    "API409": frozenset({"out-of-scope"}),
    "API407": frozenset({"tensor-operator"}),
    "API405": frozenset({"unread-parameter", "unread-local"}),
}

CLAIMED: Final = frozenset().union(*CLAIMS.values())
"""Every code that has a rule of its own."""


MILD: Final[Mapping[str, Severity]] = {"unwritten-unused": "note"}
"""Codes that are not as grave as their rule."""


def told(evidence: Evidence, rule: str) -> Iterator[Draft]:
    """The problems that are a rule's, each at its own place with the others beside it."""
    claims = CLAIMS[rule]
    for problem in evidence.problems:
        if problem.side == "nki" and problem.code.removeprefix(REFUSING) in claims:
            yield Draft(
                message=problem.message,
                side="nki",
                span=problem.span,
                related=related("nki", (p for p in problem.related if p != problem.span)),
                severity=MILD.get(problem.code.removeprefix(REFUSING)),
            )
