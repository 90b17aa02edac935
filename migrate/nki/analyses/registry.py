"""Every analysis of the instruction stream, in one table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from migrate.nki.analyses import Analysis
from migrate.nki.analyses.capacity import Capacity

ANALYSES: Final[tuple[Callable[[str], Analysis], ...]] = (Capacity,)
