"""Which versions of NKI a kernel can run on, with the lines that decide.

The lowest and the highest version come from the namespace, the style of calls, the names
and parameters used, and constructs of the language.  A kernel that no version takes is at
fault: `conflict` has the lines that exclude each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import Final

from msgspec import Struct

from migrate.facts.nki import VERSIONS, Version, briefs
from migrate.nki.parse import Generation, Module
from migrate.nki.version_scan import scan
from migrate.nki.version_syntax import ALL
from migrate.nki.version_types import Reason, UnknownName
from migrate.nki.version_words import listed, spoken

MAX_DECIDING: Final = 3
"""Reasons that are kept for each end."""

MAX_SUGGESTED: Final = 20
"""Unknown names for which others are looked for."""

NEAREST: Final = 3


class Unknown(Struct, frozen=True):
    """A name that no version has, and known names that look like it."""

    reason: UnknownName
    near: tuple[str, ...]

    @property
    def message(self) -> str:
        hint = f"; did you mean {' or '.join(f'`{name}`' for name in self.near)}?"
        return f"`{self.reason.written}` is in no version of NKI{hint if self.near else ''}"


class Detected(Struct, frozen=True):
    """What a kernel's text says about versions.

    `versions` is empty where no version fits, or where the file serves both namespaces
    and its parts cannot be told apart (`open`).  `lower` and `upper` are the reasons that
    exclude the version below the lowest and above the highest; `conflict` those that leave
    none; `remarks` are told and exclude nothing.
    """

    versions: frozenset[Version]
    lower: tuple[Reason, ...]
    upper: tuple[Reason, ...]
    conflict: tuple[Reason, ...]
    remarks: tuple[Reason, ...]
    unknown: tuple[Unknown, ...]
    reasons: tuple[Reason, ...]
    imported: Generation | None
    open: bool = False

    @property
    def lowest(self) -> Version | None:
        return min(self.versions, default=None)

    @property
    def highest(self) -> Version | None:
        return max(self.versions, default=None)

    @property
    def generation(self) -> Generation | None:
        """By the versions that fit, else by the imports, else by what most of the text says."""
        if self.highest == VERSIONS[0]:
            return "0.1"
        if self.versions and VERSIONS[0] not in self.versions:
            return "0.2+"
        if self.imported is not None:
            return self.imported
        votes = Counter(VERSIONS[0] in reason.versions for reason in self.reasons)
        if votes[True] == votes[False]:
            return None
        return "0.1" if votes[True] > votes[False] else "0.2+"

    @property
    def words(self) -> str:
        """`0.1.0`, `0.3.0 to 0.6.0`, `0.2.0 or later`, `0.1.0, 0.3.0 or later`, `unknown`."""
        if not self.versions:
            return "none" if self.conflict else "unknown"
        return listed(self.versions)

    def excluding(self, version: Version) -> tuple[Reason, ...]:
        """What in the kernel a version does not have, in the order of the text."""
        return tuple(reason for reason in self.reasons if version not in reason.versions)


def detect(module: Module, kernel: str | None = None) -> Detected:
    """The versions of one kernel with what it reaches in its file; without a name, the file."""
    found = scan(module.source, module.tree, kernel)
    reasons = tuple(reason for reason in found.reasons if reason.doubt is None)
    remarks = tuple(reason for reason in found.reasons if reason.doubt is not None)
    versions = ALL
    for reason in reasons:
        versions &= reason.versions
    unknown = tuple(_suggested(found.unknown))
    by = module.generation
    if not versions:
        conflict = () if found.shim else _conflict(reasons, found.weights)
        return Detected(versions, (), (), conflict, remarks, unknown, reasons, by, open=found.shim)
    return Detected(
        versions,
        _deciding(reasons, _neighbour(min(versions), -1)),
        _deciding(reasons, _neighbour(max(versions), 1)),
        (),
        remarks,
        unknown,
        reasons,
        by,
    )


def _neighbour(version: Version, step: int) -> Version | None:
    place = VERSIONS.index(version) + step
    return VERSIONS[place] if 0 <= place < len(VERSIONS) else None


def _deciding(reasons: tuple[Reason, ...], version: Version | None) -> tuple[Reason, ...]:
    found = [reason for reason in reasons if version is not None and version not in reason.versions]
    return tuple(found[:MAX_DECIDING])


def _conflict(
    reasons: tuple[Reason, ...], weights: Counter[tuple[str, frozenset[Version]]]
) -> tuple[Reason, ...]:
    """The fewest reasons that leave no version, the one that stands alone first.

    Of several, those against which most of the text speaks: they are the likely mistake, and
    a line of the kernel rather than an import.
    """
    support: Counter[Version] = Counter()
    for (_, versions), weight in weights.items():
        for version in versions:
            support[version] += weight
    by_versions: dict[frozenset[Version], Reason] = {}
    for reason in reasons:
        known = by_versions.get(reason.versions)
        if known is None or (known.is_import and not reason.is_import):
            by_versions[reason.versions] = reason

    def standing(kind: frozenset[Version]) -> tuple[int, bool]:
        most = max((support[version] for version in kind), default=-1)
        return most, by_versions[kind].is_import

    for size in (1, 2, 3):
        found = [
            sorted(group, key=standing)
            for group in combinations(by_versions, size)
            if not frozenset.intersection(ALL, *group)
        ]
        if found:
            group = min(found, key=lambda kinds: standing(kinds[0]))
            return tuple(by_versions[kind] for kind in group)
    return tuple(by_versions.values())[:MAX_DECIDING]


def _suggested(names: list[UnknownName]) -> Iterator[Unknown]:
    """Unknown names with what looks like them, the first `MAX_SUGGESTED` of them."""
    near: dict[str, tuple[str, ...]] = {}
    for name in names:
        if name.name not in near:
            near[name.name] = _near(name.name) if len(near) < MAX_SUGGESTED else ()
        yield Unknown(name, near[name.name])


def _near(name: str) -> tuple[str, ...]:
    """Known names that look like one, the likeliest first, in its own module first."""
    from cydifflib import get_close_matches

    module, _, last = name[:200].rpartition(".")
    known = briefs()
    if module in known:
        members = known[module].members
        return tuple(f"{module}.{m}" for m in get_close_matches(last, members, n=1, cutoff=0.6))
    split = [(key, *key.rpartition(".")[::2]) for key in known]
    ours = [own for _, place, own in split if place == module]
    found = [f"{module}.{n}" for n in get_close_matches(last, ours, n=NEAREST, cutoff=0.7)]
    others = [key for key, _, own in split if own == last and key not in found]
    return tuple((others + found)[:NEAREST])


__all__ = ["Detected", "Generation", "Reason", "Unknown", "detect", "spoken"]
