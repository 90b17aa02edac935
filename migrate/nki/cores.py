"""What the instructions between the two cores of a logical core compute.

One program after the other is read, so that what one core gets from another is not known.
"""

from __future__ import annotations

from typing import TypeVar

from migrate.nki.errors import Unsupported
from migrate.nki.frames import Instruction
from migrate.nki.semantics import Machine

V = TypeVar("V")


def core_barrier(m: Machine[V], i: Instruction) -> None:
    """Nothing for one core alone: a barrier orders what is in program order already."""
    for loop in i.loops:
        if loop.loop.iterator == "grid" and loop.trips is not None and loop.trips.value > 1:
            raise Unsupported("a barrier between programs, which are read one after the other")


def sendrecv(m: Machine[V], i: Instruction) -> None:
    """An exchange with the other core."""
    raise Unsupported("an exchange with another core")
