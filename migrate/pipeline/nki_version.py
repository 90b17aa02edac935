"""Which NKI versions the NKI kernel is for, and what in it does not go with them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.case import Case
from migrate.facts.nki import VERSIONS, Version
from migrate.results import NkiVersions, VersionReason
from migrate.rules.api402 import NO_VERSION
from migrate.rules.api403 import UNKNOWN_NAME
from migrate.rules.api404 import NOT_IN_VERSION
from migrate.rules.rule import MAYBE, Problem
from migrate.source import SourceError

if TYPE_CHECKING:
    from migrate.nki.parse import Module
    from migrate.nki.versions import Detected, Reason


@dataclass(frozen=True, slots=True)
class VersionReading:
    """The versions of a kernel, what is wrong with it there, and what was inferred."""

    versions: NkiVersions
    problems: tuple[Problem, ...]
    inferred: tuple[str, ...]


def version_of(text: str, file: str) -> Version:
    """A version as people write it (`0.3`, `0.3.0`); raises `SourceError` for another."""
    found = re.fullmatch(r"(0\.\d+)(?:\.\d+)?", text.strip())
    for version in VERSIONS:
        if found is not None and version == f"{found[1]}.0":
            return version
    known = f"{VERSIONS[0]} to {VERSIONS[-1]}"
    raise SourceError(f"NKI version {text!r} is not known; there are {known}", file=file)


def overridden(case: Case, version: str | None) -> Case:
    """The case for the version that was asked for on the command line."""
    if version is None:
        return case
    import msgspec

    side = msgspec.structs.replace(case.nki, version=version_of(version, "--nki-version"))
    return msgspec.structs.replace(case, nki=side)


def read_versions(module: Module, kernel: str, case: Case) -> VersionReading:
    """Detect the versions of a kernel; raises `SourceError` for a stated one that is unknown."""
    from migrate.nki.versions import detect

    stated = None
    if case.nki.version is not None:
        stated = version_of(case.nki.version, case.file or "the case")
    found = detect(module, kernel)
    inferred = () if stated is not None or found.conflict else (_inferred(found),)
    problems = (*_conflict(found), *_unknown(found), *_excluded(found, stated))
    return VersionReading(_told(found), problems, inferred)


def _told(found: Detected) -> NkiVersions:
    return NkiVersions(
        words=found.words,
        lowest=found.lowest,
        highest=found.highest,
        lower=tuple(map(_reason, found.lower)),
        upper=tuple(map(_reason, found.upper)),
    )


def _reason(reason: Reason) -> VersionReason:
    return VersionReason(message=reason.message, span=reason.span)


def _inferred(found: Detected) -> str:
    decided = [*found.lower[:1], *found.upper[:1]]
    because = "; ".join(f"{reason.message}, line {reason.span.start_line}" for reason in decided)
    if found.open:
        return "the NKI version is open: the file serves both namespaces"
    return f"NKI {found.words}" + (f" ({because})" if because else "")


def _conflict(found: Detected) -> Iterator[Problem]:
    if not found.conflict:
        return
    first, *others = found.conflict
    code = NO_VERSION + (MAYBE if any(reason.conditional for reason in found.conflict) else "")
    message = first.message + "".join(f"; {reason.message}" for reason in others)
    related = tuple(reason.span for reason in others)
    yield Problem(code, message, first.span, "nki", {}, related)


def _unknown(found: Detected) -> Iterator[Problem]:
    for name in found.unknown:
        code = UNKNOWN_NAME + (MAYBE if name.reason.conditional else "")
        yield Problem(code, name.message, name.reason.span, "nki", {})


def _excluded(found: Detected, stated: Version | None) -> Iterator[Problem]:
    if stated is None or found.open or (found.conflict and not found.versions):
        return
    for reason in found.excluding(stated):
        code = NOT_IN_VERSION + (MAYBE if reason.conditional else "")
        yield Problem(code, f"{reason.message}; for {stated}", reason.span, "nki", {})


__all__ = ["VersionReading", "overridden", "read_versions", "version_of"]
