"""`cuda_to_nki/*.toml`: which NKI construct may stand for which CUDA construct."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

from msgspec import field

from migrate.facts.base import Fact, read
from migrate.results import ConstructKind, ConstructVerdict, Effect

RequirementName = Literal[
    "same-operator",
    "same-operands",
    "same-elements",
    "same-bound",
    "same-dtype",
    "same-rounding",
    "same-value",
    "same-special-values",
    "covers-extent",
    "written-once",
    "partition-limit",
    "fits-on-chip",
]
"""What the alignment can check of a pairing.  A table may ask for nothing else."""


class Requirement(Fact, frozen=True, kw_only=True):
    """What a pairing must satisfy, and what it means where it does not."""

    id: RequirementName
    states: str
    otherwise: str
    effect: Effect
    source: str


class Realisation(Fact, frozen=True, kw_only=True):
    """One way in which a construct of one side may stand on the other.

    A missing kind means that nothing stands there: CUDA only is rightly gone, NKI only
    is rightly added.  `cuda_when` and `nki_when` are attributes that the constructs must
    have; `opcodes` are the NKI instructions that carry it (empty: any).
    """

    id: str
    cuda_kind: ConstructKind | None = None
    nki_kind: ConstructKind | None = None
    cuda_when: dict[str, str] = field(default_factory=dict)
    nki_when: dict[str, str] = field(default_factory=dict)
    opcodes: tuple[str, ...] = ()
    verdict: ConstructVerdict
    requires: tuple[RequirementName, ...] = ()
    reason: str
    source: str


class Advice(Fact, frozen=True, kw_only=True):
    """How to write a CUDA construct in NKI; the first that fits a construct is told.

    `when` are attributes that it must have (one of several words: `a|b`).  `instructions` are
    names of `nki/*.toml`, whose engines and limits are told with it, `limits` figures of the
    target.  A `caution` is told beside what realises the construct, wherever it fits.
    """

    id: str
    cuda_kind: ConstructKind
    when: dict[str, str] = field(default_factory=dict)
    how: str
    why: str = ""
    instructions: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    caution: bool = False
    source: str


class Entry(Fact, frozen=True, kw_only=True):
    """One file of `cuda_to_nki`: a kind of construct and its accepted realisations."""

    id: str
    title: str
    what: str
    requirement: tuple[Requirement, ...] = ()
    realisation: tuple[Realisation, ...] = ()
    advice: tuple[Advice, ...] = ()

    def requirements(self, realisation: Realisation) -> tuple[Requirement, ...]:
        """The requirements of one of its realisations, in the order asked for."""
        by_id = {requirement.id: requirement for requirement in self.requirement}
        return tuple(by_id[name] for name in realisation.requires)


@cache
def mappings() -> Mapping[str, Entry]:
    """All entries of `cuda_to_nki` by id."""
    return read("cuda_to_nki.json", dict[str, Entry])


def mapping(id: str) -> Entry:  # noqa: A002
    """The entry `id`, or the one that holds the realisation `id`; raises `KeyError`."""
    return mappings()[id.partition(".")[0]]


def realisations(
    cuda_kind: ConstructKind | None, nki_kind: ConstructKind | None
) -> tuple[Realisation, ...]:
    """Every accepted way for this pair of kinds, in the order of the tables.

    `None` stands for no construct on that side.  Without a result the pairing is not one
    that the tables know.
    """
    return _by_kinds().get((cuda_kind, nki_kind), ())


def advice(cuda_kind: ConstructKind) -> tuple[Advice, ...]:
    """Everything that is said about a kind of CUDA construct, in the order of the tables."""
    return tuple(
        piece
        for entry in mappings().values()
        for piece in entry.advice
        if piece.cuda_kind == cuda_kind
    )


@cache
def _by_kinds() -> Mapping[tuple[str | None, str | None], tuple[Realisation, ...]]:
    found: dict[tuple[str | None, str | None], tuple[Realisation, ...]] = {}
    for entry in mappings().values():
        for way in entry.realisation:
            key = (way.cuda_kind, way.nki_kind)
            found[key] = (*found.get(key, ()), way)
    return found
