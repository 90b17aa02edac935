"""A score with its reasons, as plain text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from migrate.report import words
from migrate.results import Comparison
from migrate.score.losses import Loss, account
from migrate.source import neutral

PARTS: Final = ("mapping", "hardware", "numerics", "performance")
"""The parts of a score, in the order they are shown."""


def render(result: Comparison) -> str:
    """The number, its parts, and every loss with the finding that bears it."""
    return "\n".join(_lines(result)) + "\n"


def _lines(result: Comparison) -> Iterator[str]:
    score = result.score
    weighed = (
        f"{result.verdict}   confidence {result.confidence:.2f}"
        f"   correspondence {result.correspondence:.2f}"
    )
    if score.fidelity is None:
        yield f"no score   {score.version}   {weighed}"
        yield (
            f"too little was understood for a number: CUDA {words.share(result.coverage.cuda)},"
            f" NKI {words.share(result.coverage.nki)}"
        )
        for reason in result.reasons:
            yield f"  {neutral(reason)}"
        return
    told = account(result)
    yield f"{score.fidelity:g} of 100   {score.version}   {weighed}"
    parts = [f"{name} {points:g}" for name in PARTS if (points := getattr(score, name)) is not None]
    if parts:
        yield ", ".join(parts)
    if told.cap is not None:
        yield told.cap
    yield ""
    if not told.losses:
        yield "nothing was lost"
    for loss in told.losses:
        yield from _loss(loss)
    if told.unnamed:
        yield (
            f"{', '.join(map(neutral, told.unnamed))}: not accounted for, but no finding says"
            " what is wrong there, so that nothing is lost"
        )


def _loss(loss: Loss) -> Iterator[str]:
    points = f"{loss.points:>7.2f}"
    if loss.finding is None:
        yield f"{points}  {neutral(loss.reason)}"
        return
    finding = loss.finding
    head = f"{points}  {finding.rule} {finding.severity} [{finding.effect}]"
    yield neutral(f"{head}  {finding.span}")
    yield f"         {neutral(finding.message)}"
