"""What a scan for versions finds."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct, field

from migrate.facts.nki import Version
from migrate.source import Span


class Reason(Struct, frozen=True):
    """A place, what it says, and the versions that it is possible in.

    `doubt` says why nothing is concluded from it.
    """

    span: Span
    message: str
    versions: frozenset[Version]
    doubt: str | None = None
    conditional: bool = False
    """Whether it stands under an `if`, which a kernel may never enter."""
    is_import: bool = False


class UnknownName(Struct, frozen=True):
    """A name of a module of NKI that no version has."""

    span: Span
    written: str
    name: str
    conditional: bool = False


class Scan(Struct):
    """Everything found, in the order of the text."""

    reasons: list[Reason] = field(default_factory=list)
    unknown: list[UnknownName] = field(default_factory=list)
    weights: Counter[tuple[str, frozenset[Version]]] = field(default_factory=Counter)
    """How often a reason (its message and versions) was met; an import counts once."""
    shim: bool = False
    """Whether a name has an import of either namespace."""
