"""The two programs of a logical core, run in step while a kernel is simulated.

The specialiser reads one program after the other.  Where the first one waits for the second, at a
barrier or an exchange, what it does afterwards is kept until the second one is there, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from migrate.nki.device_loops import DeviceLoop
from migrate.nki.frames import Instruction, LoopStep
from migrate.nki.values import Buffer, LoopValue

Item: TypeAlias = "Instruction | Buffer | tuple[DeviceLoop, LoopStep]"

MEETINGS = frozenset({"core_barrier", "sendrecv"})
"""Instructions at which a core waits for the other one (nki.isa)."""


@dataclass(slots=True, eq=False)
class InStep:
    """Hands out the items of both programs in an order in which they may happen.

    `do` does an item up to the next instruction at which a core waits, which it gives, and so
    on; `execute` does that instruction where no other core is, `meet` what two of them do for
    which the cores have met; `lost` is told one that waits in vain.
    """

    do: Callable[[Item], Iterator[Instruction]]
    execute: Callable[[Instruction], None]
    meet: Callable[[Instruction, Instruction], None]
    lost: Callable[[Instruction], None]
    _kept: deque[Item] = field(default_factory=deque)
    """What the first program has still to do, from where it may wait."""
    _first: Iterator[Instruction] | None = None
    _waiting: Instruction | None = None
    """Where the first program waits, once the second one has begun."""

    def take(self, item: Item, loops: Sequence[LoopValue]) -> None:
        """The next item, which is in these loops."""
        program = _program(loops)
        if program == 0 and (self._kept or _may_wait(item)):
            self._kept.append(item)
            return
        if program == 1:
            self._begin_second()
        for instruction in self.do(item):
            if program != 1 or self._first is None:
                self.execute(instruction)
            elif self._waiting is None:
                self.lost(instruction)
            else:
                self.meet(self._waiting, instruction)
                self._waiting = next(self._first, None)

    def end(self) -> None:
        """Both programs have ended."""
        self._begin_second()
        if self._waiting is not None:
            self.lost(self._waiting)

    def _begin_second(self) -> None:
        if self._first is None:
            self._first = self._rest()
            self._waiting = next(self._first, None)

    def _rest(self) -> Iterator[Instruction]:
        while self._kept:
            yield from self.do(self._kept.popleft())


def _may_wait(item: Item) -> bool:
    """Whether it is an instruction at which a core waits, or may have some in it."""
    return item.opcode in MEETINGS if isinstance(item, Instruction) else isinstance(item, tuple)


def _program(loops: Sequence[LoopValue]) -> int | None:
    """Which of two programs; `None` where there are not two."""
    found = [
        value
        for value in loops
        if value.loop.iterator == "grid" and value.trips is not None and value.trips.value != 1
    ]
    if len(found) != 1 or found[0].trips is None or found[0].trips.value != 2:
        return None
    return found[0].iteration
