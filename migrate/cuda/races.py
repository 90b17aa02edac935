"""Races on shared memory that a run shows: accesses of two warps with no barrier between.

Lanes run in lockstep, so that a missing barrier goes unnoticed in the values.  Here every
element of shared memory keeps who stored to it and who read it since the block's last barrier.
Only what is certain counts: lanes of different warps (within one, the hardware may well keep
the order), an element that one warp alone stored to, and no other way to wait in sight: once a
kernel uses fences or the results of atomics on shared memory, nothing more is said.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from migrate.budget import Meter
from migrate.cuda.memory import Buffer
from migrate.cuda.runtime import WARP, Array, Lanes, Mask
from migrate.source import Span

MAX_CELLS = 1 << 21
"""Elements that are watched; a slice of blocks with more shared memory is not."""


@dataclass(frozen=True, slots=True)
class Race:
    """An access of an element by `lane`, and the place of the other warp's access to it."""

    lane: int
    index: int
    other: Span
    reads: bool


_INTERVAL = 32
_PLACE = 8
_WARPS = np.int64(0xFE)
_PLACES = (1 << (_INTERVAL - _PLACE)) - 1


@dataclass(slots=True)
class _Cells:
    """By element, the last store and the last load, each as one number.

    From the lowest bit: whether several warps stored in the interval, the warp (7 bits), the
    place (24 bits), the interval.  `stored` and `loaded` tell whether there was any in the
    intervals that are open now.
    """

    store: Array
    load: Array
    stored: bool = False
    loaded: bool = False


@dataclass(slots=True)
class Races:
    """The shared memory of one slice of blocks."""

    lanes: Lanes
    meter: Meter
    now: Array = field(init=False)
    """By lane: its block's interval and its warp, in the bits of `_Cells`."""
    cells: dict[int, _Cells | None] = field(default_factory=dict)
    places: list[Span] = field(default_factory=list)
    numbers: dict[Span, int] = field(default_factory=dict)
    blind: bool = False

    def __post_init__(self) -> None:
        self.blind = self.lanes.threads <= WARP
        warps = self.lanes.thread // WARP if not self.blind else np.asarray(0)
        self.now = (np.int64(1) << _INTERVAL) | (warps << 1)

    def barrier(self, arrived: Mask) -> None:
        """Begin a new interval in the blocks that a barrier was reached in."""
        if self.blind:
            return
        if arrived.all():
            self.now = self.now + (np.int64(1) << _INTERVAL)
            for found in self.cells.values():
                if found is not None:
                    found.stored = found.loaded = False
        else:
            self.now = self.now + (arrived.astype(np.int64) << _INTERVAL)[self.lanes.slot]

    def give_up(self) -> None:
        """Say nothing more: the kernel waits in a way that is not followed."""
        self.blind = True

    def loaded(self, buffer: Buffer, at: Array, size: int, mask: Mask, span: Span) -> Race | None:
        """A load of `size` bytes at byte positions; the race that it is, if it is one."""
        found = self._cells(buffer, size)
        if found is None:
            return None
        cell, now = self._chosen(buffer, at, mask)
        race = None
        if found.stored:
            other = found.store[cell]
            racing = self._apart(other, now) & (other & 1 == 0)
            race = self._race(racing, cell, other, buffer, mask, reads=True)
        found.load[cell] = now | self._number(span)
        found.loaded = True
        return race

    def stored(self, buffer: Buffer, at: Array, size: int, mask: Mask, span: Span) -> Race | None:
        """A store of `size` bytes at byte positions; the race that it is, if it is one."""
        found = self._cells(buffer, size)
        if found is None:
            return None
        cell, now = self._chosen(buffer, at, mask)
        mark = now | self._number(span)
        several = np.zeros(len(cell), dtype=np.bool_)
        if found.stored:
            old = found.store[cell]
            several = self._apart(old, now) | ((old & 1 != 0) & ((old ^ now) >> _INTERVAL == 0))
        found.store[cell] = mark
        several |= (found.store[cell] ^ mark) & _WARPS != 0
        if several.any():
            found.store[cell[several]] |= 1
        found.stored = True
        if not found.loaded:
            return None
        other = found.load[cell]
        # Where several store to the element that was read, it may be a flag that they all set.
        racing = self._apart(other, now) & (found.store[cell] & 1 == 0)
        return self._race(racing, cell, other, buffer, mask, reads=False)

    def _cells(self, buffer: Buffer, size: int) -> _Cells | None:
        key = id(buffer)
        if size < buffer.unit:
            self.cells[key] = None  # parts of elements are not told apart
        if key not in self.cells:
            count = buffer.total // buffer.unit
            if count > MAX_CELLS:
                self.cells[key] = None
            else:
                self.meter.take(16 * count)
                self.cells[key] = _Cells(np.zeros(count, np.int64), np.zeros(count, np.int64))
        return self.cells[key]

    def _chosen(self, buffer: Buffer, at: Array, mask: Mask) -> tuple[Array, Array]:
        """The elements that the lanes of the mask access, and their `now`."""
        cell = np.broadcast_to(at >> (buffer.unit.bit_length() - 1), mask.shape)
        return (cell, self.now) if mask.all() else (cell[mask], self.now[mask])

    @staticmethod
    def _apart(other: Array, now: Array) -> Array:
        """Whether an access was in the same interval, by another warp."""
        differs = other ^ now
        return np.asarray((differs >> _INTERVAL == 0) & (differs & _WARPS != 0))

    def _race(
        self, racing: Array, cell: Array, other: Array, buffer: Buffer, mask: Mask, *, reads: bool
    ) -> Race | None:
        if not racing.any():
            return None
        first = int(np.argmax(racing))
        lane = int(np.flatnonzero(mask)[first])
        base = 0 if buffer.base is None else int(buffer.base[lane]) // buffer.unit
        place = self.places[int(other[first]) >> _PLACE & _PLACES]
        return Race(lane, int(cell[first]) - base, place, reads)

    def _number(self, span: Span) -> int:
        """A place in the bits of `_Cells`."""
        number = self.numbers.get(span)
        if number is None:
            number = self.numbers[span] = len(self.places)
            self.places.append(span)
        return number << _PLACE
