"""Loops whose trips only the device knows, while a kernel is simulated.

What is emitted between the begin and the end of such a loop is kept, and done again as often as
the registers say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from migrate.budget import Exhausted, Meter
from migrate.nki.device_loops import DeviceLoop
from migrate.nki.frames import Instruction, LoopStep
from migrate.nki.symbols import Number
from migrate.nki.values import Buffer, View

MAX_TURNS = 1_000_000
"""Instructions done again, and turns without one."""

Item: TypeAlias = "Instruction | Buffer | Kept"


@dataclass(slots=True, eq=False)
class Kept:
    """What one turn of a loop does, in order: instructions, allocations, loops within."""

    loop: DeviceLoop
    items: list[Item] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Replay:
    """Keeps the bodies of loops on the device, and goes through them.

    `allocate` makes a tensor new, `integer` reads a register, `put` writes one; `ended` says
    that nothing more is to be done.
    """

    allocate: Callable[[Buffer], None]
    integer: Callable[[View], int]
    put: Callable[[View, int], None]
    ended: Callable[[], bool]
    meter: Meter
    _open: list[Kept] = field(default_factory=list)
    _turns: int = 0

    @property
    def idle(self) -> bool:
        """Whether no such loop is open."""
        return not self._open

    def keeps(self, item: Instruction | Buffer) -> bool:
        """Whether the item belongs to a loop, and is done when that is."""
        if not self._open:
            return False
        self._open[-1].items.append(item)
        return True

    def step(self, loop: DeviceLoop, step: LoopStep) -> Kept | None:
        """A loop begins, ends, or is given up; the loop, if it is to be done now."""
        if step == "begin":
            self._open.append(Kept(loop))
            return None
        kept = self._open.pop()
        if step == "given up":
            return None
        if self._open:
            self._open[-1].items.append(kept)
            return None
        return kept

    def instructions(self, kept: Kept) -> Iterator[Instruction]:
        """What a loop does, turn by turn; each is to be executed before the next is asked for."""
        loop = kept.loop
        if self.ended():
            return
        if loop.condition is not None:
            while not self.ended() and self.integer(loop.condition) != 0:
                yield from self._turn(kept)
            return
        assert loop.counter is not None
        position, stop = self._bound(loop.start), self._bound(loop.stop)
        while not self.ended() and position < stop:
            self.put(loop.counter, position)
            yield from self._turn(kept)
            position += loop.step

    def _bound(self, bound: View | Number | None) -> int:
        if isinstance(bound, View):
            return self.integer(bound)
        return int(bound.value) if bound is not None else 0

    def _turn(self, kept: Kept) -> Iterator[Instruction]:
        self._count()
        for item in kept.items:
            if self.ended():
                return
            match item:
                case Instruction():
                    self._count()
                    yield item
                case Buffer():
                    self.allocate(item)
                case Kept():
                    yield from self.instructions(item)

    def _count(self) -> None:
        self._turns += 1
        self.meter.step(8)
        if self._turns > MAX_TURNS:
            raise Exhausted("steps", MAX_TURNS, "repeating a loop of the device (instructions)")
