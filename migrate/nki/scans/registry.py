"""Every scan of a kernel's text, in one table."""

from __future__ import annotations

from typing import Final

from migrate.nki.scans import Scan, remainders, unused

SCANS: Final[tuple[Scan, ...]] = (unused.scan, remainders.scan)

CODES: Final = unused.CODES | remainders.CODES
"""The codes of what scans find; `rules.codes` says which rule tells them."""
