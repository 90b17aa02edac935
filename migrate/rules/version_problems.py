"""Drafts of what the versions of NKI say about a kernel, which three rules share."""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import related
from migrate.rules.rule import MAYBE, Draft, Evidence


def drafts(evidence: Evidence, code: str) -> Iterator[Draft]:
    """The problems of a code; a warning where the kernel may never come to the place."""
    for problem in evidence.problems:
        if problem.side != "nki" or not problem.code.startswith(code):
            continue
        maybe = problem.code.endswith(MAYBE)
        yield Draft(
            message=problem.message,
            side="nki",
            span=problem.span,
            related=related("nki", problem.related),
            severity="warning" if maybe else None,
            effect="style" if maybe else None,
        )
