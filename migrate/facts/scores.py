"""`score/*.toml`: what the versions of the score weigh and cost."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal

from msgspec import Meta

from migrate.facts.base import Fact, read
from migrate.results import ConstructKind, Effect, Severity

Hundredths = Annotated[int, Meta(ge=0, le=100)]
Positive = Annotated[int, Meta(ge=1)]


class Weight(Fact, frozen=True, kw_only=True):
    """What a kind of construct counts, and whether it tells computations apart."""

    weight: Positive
    computes: bool
    reason: str


class Cost(Fact, frozen=True, kw_only=True):
    """What a finding of an effect costs: points, and percent of a construct it names."""

    points: Hundredths
    share: Hundredths
    reason: str


class Percent(Fact, frozen=True, kw_only=True):
    """A factor in percent."""

    percent: Hundredths
    reason: str


class Repetition(Fact, frozen=True, kw_only=True):
    """Each further finding of a rule costs `percent` of the one before, `most` of them."""

    percent: Hundredths
    most: Positive
    reason: str


CapName = Literal["not-faithful", "fails", "rejects", "cheat"]


class Cap(Fact, frozen=True, kw_only=True):
    """The most that is given where something holds; `words` say what."""

    at: Hundredths
    words: str
    reason: str


class Scoring(Fact, frozen=True, kw_only=True):
    """One version of the score.  `unit` is the number of parts of a point that are counted."""

    id: str
    title: str
    unit: Positive
    least_understood: Hundredths
    """Percent of both kernels below which no number is given."""
    least_understood_reason: str
    kind: dict[ConstructKind, Weight]
    effect: dict[Effect, Cost]
    severity: dict[Severity, Percent]
    repetition: Repetition
    cap: dict[CapName, Cap]


def scoring(id: str) -> Scoring:  # noqa: A002
    """A version of the score, `fidelity-1`; raises `KeyError` for an unknown one."""
    return _scorings()[id]


@cache
def _scorings() -> Mapping[str, Scoring]:
    return read("score.json", dict[str, Scoring])
