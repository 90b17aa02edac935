"""Every analysis of the instruction stream, in one table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from migrate.nki.analyses import Analysis
from migrate.nki.analyses.capacity import Capacity
from migrate.nki.analyses.fusion import Fusion
from migrate.nki.analyses.lanes import Lanes
from migrate.nki.analyses.matmuls import Matmuls
from migrate.nki.analyses.ranges import Ranges
from migrate.nki.analyses.round_trips import RoundTrips
from migrate.nki.analyses.starts import Starts
from migrate.nki.analyses.steps import Steps
from migrate.nki.analyses.sums import Sums
from migrate.nki.analyses.transfers import Transfers
from migrate.nki.analyses.transposing import Transposing
from migrate.nki.analyses.unrolling import Unrolling
from migrate.nki.analyses.written import Written

ANALYSES: Final[tuple[Callable[[str, frozenset[str]], Analysis], ...]] = (
    Capacity,
    Written,
    Transfers,
    Lanes,
    Matmuls,
    Fusion,
    RoundTrips,
    Unrolling,
    Sums,
    Starts,
    Steps,
    Ranges,
    Transposing,
)
