"""`nki/*.toml`: the names of the NKI API in every version, and what sources disagree about.

    FAMILY.toml     names (functions, instructions, operators, dtypes, …) -> `names`, `name`
    versions.toml   the releases and what changed in the language         -> `releases`, `features`
    disputes.toml   questions that sources answer differently             -> `disputes`

`briefs` is the part that reading a kernel needs: since when, until when, and with which
parameters a name exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, field

from migrate.facts.base import Fact, read
from migrate.facts.hardware import TargetName

Version = Literal["0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0"]
VERSIONS: Final[tuple[Version, ...]] = (
    "0.1.0",
    "0.2.0",
    "0.3.0",
    "0.4.0",
    "0.5.0",
    "0.6.0",
    "0.7.0",
)
"""Every version that the tables know, oldest first."""

Kind = Literal[
    "instruction",
    "function",
    "operator",
    "dtype",
    "buffer",
    "sizes",
    "constant",
    "enum",
    "class",
    "iterator",
    "decorator",
    "annotation",
    "method",
    "module",
]
Memory = Literal["hbm", "shared_hbm", "sbuf", "psum", "immediate"]
Style = Literal["value", "destination"]
Text = Annotated[str, Meta(min_length=1)]
Sources = Annotated[tuple[Text, ...], Meta(min_length=1)]
EngineName = Literal["tensor", "vector", "scalar", "gpsimd", "dma", "sequencer", "collectives"]


class Call(Fact, frozen=True, kw_only=True):
    """How a name is called from a version on, as its documentation writes the signature.

    `style`: whether an instruction returns its result or writes it to a destination.
    `refused`: keywords that `**kwargs` takes and the call then raises for.
    """

    since: Version
    sdk: str
    text: Text
    style: Style | None = None
    refused: tuple[str, ...] = ()


class Operand(Fact, frozen=True, kw_only=True):
    """What a parameter takes; `memory` is empty where it is not documented."""

    role: Literal["in", "out", "inout", "accumulate", "const", "register"]
    memory: tuple[Memory, ...] = ()
    shape: str | None = None
    dtypes: str | None = None
    note: str | None = None


class Limit(Fact, frozen=True, kw_only=True):
    """A restriction, in words and, where it is one, as numbers.

    `measure` says what of the operand is measured; `most` is a number, or one by target;
    `when` is what it depends on, in words.
    """

    states: Text
    operand: str | None = None
    measure: str | None = None
    least: int | None = None
    most: int | dict[TargetName, int] | None = None
    multiple: int | None = None
    one_of: tuple[int, ...] = ()
    when: str | None = None
    since: Version | None = None
    targets: tuple[TargetName, ...] = ()


class Cost(Fact, frozen=True, kw_only=True):
    """Cycles of the engine; N are elements a partition, P partitions."""

    formula: Text
    engine: str
    source: Text
    note: str | None = None


class Member(Fact, frozen=True, kw_only=True):
    """A member of an enum, or a size."""

    since: Version
    value: int | None = None
    deprecated: Version | None = None


class Change(Fact, frozen=True, kw_only=True):
    """What a version changed."""

    version: Version
    what: Text


class Name(Fact, frozen=True, kw_only=True):
    """A name of the API.

    `removed` is the first version without it; `absent_in` are versions between that lack
    it (an operator: as a function only).  `targets` is empty where none is excluded.
    `valid_inputs` are those of the Scalar engine's table.
    """

    id: str
    kind: Kind
    summary: Text
    computes: str | None = None
    engines: tuple[EngineName, ...] = ()
    since: Version
    removed: Version | None = None
    absent_in: tuple[Version, ...] = ()
    deprecated: Version | None = None
    use_instead: str | None = None
    experimental: bool = False
    undocumented: bool = False
    targets: tuple[TargetName, ...] = ()
    bytes: int | None = None
    valid_inputs: str | None = None
    reduces_with: bool = False
    operator_class: Literal["arithmetic", "bitvec", "activation"] | None = None
    operators: str | None = None
    reduces: str | None = None
    dtypes: dict[str, str] = field(default_factory=dict)
    indirect: tuple[str, ...] = ()
    cost: Cost | None = None
    note: tuple[str, ...] = ()
    source: Sources
    call: tuple[Call, ...] = ()
    operand: dict[str, Operand] = field(default_factory=dict)
    limit: tuple[Limit, ...] = ()
    member: dict[str, Member] = field(default_factory=dict)
    change: tuple[Change, ...] = ()

    def indirect_names(self) -> tuple[str, ...]:
        """Parameters that take indirect views; those that must share an index apart."""
        return tuple(name for group in self.indirect for name in group.strip("()").split(","))


class Family(Fact, frozen=True, kw_only=True):
    """One file of names."""

    title: Text
    name: tuple[Name, ...]


class Release(Fact, frozen=True, kw_only=True):
    """A version of NKI and the releases of the Neuron SDK that have it."""

    version: Version
    sdk: str
    date: str
    namespace: str
    title: str | None = None
    what: Text
    source: Sources


class Feature(Fact, frozen=True, kw_only=True):
    """Something that the language has in some versions only.

    With a `doubt`, a kernel that uses it is told so, and nothing is concluded.
    """

    id: str
    states: Text
    versions: tuple[Version, ...]
    doubt: str | None = None
    source: Sources


class Versions(Fact, frozen=True, kw_only=True):
    """The file of releases and features."""

    release: tuple[Release, ...]
    feature: tuple[Feature, ...]


class Dispute(Fact, frozen=True, kw_only=True):
    """A question that sources answer differently: the readings, the one taken, and why.

    `about` are names of the API and targets.
    """

    id: str
    about: tuple[str, ...] = ()
    question: Text
    readings: Annotated[tuple[Text, ...], Meta(min_length=2)]
    taken: Text
    why: Text
    source: Sources


class Disputes(Fact, frozen=True, kw_only=True):
    """The file of disputes."""

    dispute: tuple[Dispute, ...]


# -- the part that reading a kernel needs -------------------------------------------------


class Parameter(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A parameter of a signature; `default` is text, `None` where one must be given."""

    name: str
    default: str | None
    kind: Literal["either", "keyword", "rest", "keywords"] = "either"


class Signature(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A `Call` with its parameters taken apart."""

    since: Version
    parameters: tuple[Parameter, ...]
    style: Style | None = None
    refused: tuple[str, ...] = ()


class Brief(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """When a name exists and how it is called; `members` are its own names by version."""

    kind: Kind
    since: Version
    removed: Version | None = None
    absent_in: tuple[Version, ...] = ()
    calls: tuple[Signature, ...] = ()
    members: dict[str, Version] = field(default_factory=dict)
    use_instead: str | None = None

    def exists(self, version: Version) -> bool:
        """Whether the name is there (an operator: at least as an operator)."""
        if version < self.since or (self.removed is not None and version >= self.removed):
            return False
        return self.kind == "operator" or version not in self.absent_in

    def signatures(self, version: Version) -> tuple[Signature, ...]:
        """The signatures that hold in a version: its own, else those of the last before it."""
        own = tuple(call for call in self.calls if call.since == version)
        if own:
            return own
        before = [call for call in self.calls if call.since < version]
        return () if not before else (before[-1],)


@cache
def briefs() -> Mapping[str, Brief]:
    """Every name by id (`nki.isa.nc_matmul`), only what reading a kernel needs."""
    return read("nki_briefs.json", dict[str, Brief])


@cache
def features() -> Mapping[str, Feature]:
    """What the language has in some versions only, by id."""
    return {feature.id: feature for feature in _versions().feature}


def releases() -> tuple[Release, ...]:
    """The versions, oldest first."""
    return _versions().release


@cache
def _versions() -> Versions:
    return read("nki_versions.json", Versions)


@cache
def names() -> Mapping[str, Name]:
    """Every name of the API by id, with all that is known."""
    return read("nki.json", dict[str, Name])


def name(id: str) -> Name:  # noqa: A002
    """A name by its id; raises `KeyError`."""
    return names()[id]


@cache
def families() -> Mapping[str, str]:
    """The titles of the files of names, by id of the name."""
    return read("nki_families.json", dict[str, str])


@cache
def disputes() -> tuple[Dispute, ...]:
    """What sources disagree about."""
    return read("nki_disputes.json", Disputes).dispute


def disputes_about(id: str) -> tuple[Dispute, ...]:  # noqa: A002
    """The disputes that a name or a target is part of."""
    return tuple(dispute for dispute in disputes() if id in dispute.about)
