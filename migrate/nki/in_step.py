"""The two programs of a logical core, run in step while a kernel is simulated.

The specialiser reads one program after the other.  Where the first one waits for the second, at a
barrier or an exchange, what it does afterwards is kept until the second one is there, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
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

    `do` does one item, `meet` what two instructions do for which the cores have met; `lost` is
    told an instruction that waits in vain.  `inside` says whether the items that come belong to
    a loop on the device.
    """

    do: Callable[[Item], None]
    meet: Callable[[Instruction, Instruction], None]
    lost: Callable[[Instruction], None]
    inside: Callable[[], bool]
    _kept: deque[Item] = field(default_factory=deque)
    """What the first program has still to do: it begins with an instruction that waits."""

    def take(self, item: Item, loops: Sequence[LoopValue]) -> None:
        """The next item, which is in these loops."""
        program = _program(loops)
        if program == 0 and (self._kept or self._waits(item)):
            self._kept.append(item)
        elif program != 1 or not self._waits(item):
            self.do(item)
        else:
            self._met(item)

    def end(self) -> None:
        """Both programs have ended."""
        if self._kept:
            first = self._kept.popleft()
            self._kept.clear()
            assert isinstance(first, Instruction)
            self.lost(first)

    def _waits(self, item: Item) -> bool:
        return isinstance(item, Instruction) and item.opcode in MEETINGS and not self.inside()

    def _met(self, second: Item) -> None:
        assert isinstance(second, Instruction)
        if not self._kept:
            self.lost(second)
            return
        first = self._kept.popleft()
        assert isinstance(first, Instruction)
        self.meet(first, second)
        while self._kept and not self._waits(self._kept[0]):
            self.do(self._kept.popleft())


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
