"""Tensors in HBM that the kernel makes for itself: written once, read back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.facts.hardware import target as facts_of
from migrate.nki.analyses import Base
from migrate.nki.values import Memory, Problem

if TYPE_CHECKING:
    from migrate.nki.frames import Instruction
    from migrate.nki.specialize import Specialization
    from migrate.nki.values import Buffer, Site, View

MUCH = 1 << 20
"""Bytes that go to HBM and back before it is told."""

_Region = tuple[int, tuple[int, ...], tuple[int, ...]]


@dataclass(slots=True)
class _Trip:
    buffer: Buffer
    written: int = 0
    read: int = 0
    site: Site | None = None
    """Where it is first read."""
    regions: set[_Region] | None = None
    """What was written; `None` once something else was read than was written."""


class RoundTrips(Base):
    """Code `round-trip`, at the allocation.

    A tensor counts whose pieces are read as they were written: one that is read in another cut
    is a way to turn data around, which may need HBM.
    """

    codes = frozenset({"round-trip"})

    def __init__(self, target: str, guessed: frozenset[str] = frozenset()) -> None:
        super().__init__(target, guessed)
        self._trips: dict[int, _Trip] = {}

    def allocated(self, buffer: Buffer) -> None:
        if buffer.role == "local" and buffer.memory is Memory.HBM:
            self._trips[buffer.ordinal] = _Trip(buffer, regions=set())

    def execute(self, instruction: Instruction) -> None:
        if instruction.opcode != "dma_copy":
            return
        dst, src = instruction.view("dst"), instruction.view("src")
        if dst is None or src is None:
            return
        trip = self._trips.get(dst.buffer.ordinal)
        if trip is not None:
            trip.written += dst.elements * dst.dtype.bytes
            if not _placed(dst):
                trip.regions = None
            elif trip.regions is not None:
                trip.regions.add((dst.offset, dst.sizes, dst.strides))
        trip = self._trips.get(src.buffer.ordinal)
        if trip is not None:
            trip.read += src.elements * src.dtype.bytes
            trip.site = trip.site or instruction.site
            region = (src.offset, src.sizes, src.strides)
            if not _placed(src) or (trip.regions is not None and region not in trip.regions):
                trip.regions = None

    def problems(self, found: Specialization) -> Iterator[Problem]:
        if not found.complete:
            return
        returned = {view.buffer.ordinal for view in found.returned}
        room = facts_of(self.target).sbuf_bytes_per_partition.value * 128
        for ordinal, trip in self._trips.items():
            size = trip.buffer.elements * trip.buffer.dtype.bytes
            if (
                ordinal not in returned
                and trip.regions is not None
                and trip.site is not None
                and trip.written + trip.read >= MUCH
            ):
                fits = ", although all of it would fit in SBUF" if size * 2 <= room else ""
                yield Problem(
                    "round-trip",
                    f"{trip.written:,} bytes of {trip.buffer.name} are written to HBM and"
                    f" {trip.read:,} read back in the same pieces{fits}",
                    trip.buffer.site.span,
                    numbers=(("written", trip.written), ("read", trip.read)),
                    sources=(trip.site.span,),
                )


def _placed(view: View) -> bool:
    """Whether offset and strides say which elements of the tensor those of the view are."""
    return view.strided and view.dtype.bytes == view.buffer.dtype.bytes
