"""Every scan of a kernel's text, in one table."""

from __future__ import annotations

from typing import Final

from migrate.nki.scans import (
    Scan,
    core_branches,
    dropped,
    remainders,
    scopes,
    traced,
    unused,
    windows,
)

SCANS: Final[tuple[Scan, ...]] = (
    unused.scan,
    remainders.scan,
    dropped.scan,
    core_branches.scan,
    windows.scan,
    traced.scan,
    scopes.scan,
)

CODES: Final = frozenset().union(
    unused.CODES,
    remainders.CODES,
    dropped.CODES,
    core_branches.CODES,
    windows.CODES,
    traced.CODES,
    scopes.CODES,
)
"""The codes of what scans find; `rules.codes` says which rule tells them."""
