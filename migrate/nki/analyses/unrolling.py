"""Loops that are written out in full, instruction by instruction.

`range` and `nl.static_range` are Python's: the compiler sees every iteration.  So does it with
`nl.affine_range` in current versions, but only there may it keep the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from migrate.nki.analyses import Base
from migrate.nki.values import Problem

if TYPE_CHECKING:
    from migrate.nki.frames import Instruction
    from migrate.nki.specialize import Specialization
    from migrate.nki.symbols import Loop

MANY = 50_000
"""Instructions of one loop nest: public kernels of this length take the compiler long, and the
longest that is known to complete has 266,346."""

_WRITTEN_OUT = frozenset({"range", "static_range", "nl.static_range"})


class Unrolling(Base):
    """Code `long-unroll`, at the loop."""

    codes = frozenset({"long-unroll"})

    def __init__(self, target: str, guessed: frozenset[str] = frozenset()) -> None:
        super().__init__(target, guessed)
        self._counts: Counter[Loop] = Counter()

    def execute(self, instruction: Instruction) -> None:
        for turn in instruction.loops:
            if turn.loop.iterator in _WRITTEN_OUT:
                self._counts[turn.loop] += 1
                return

    def problems(self, found: Specialization) -> Iterator[Problem]:
        for loop, count in self._counts.items():
            if count >= MANY:
                yield Problem(
                    "long-unroll",
                    f"the loop over {loop.axis} is written out as {count:,} instructions",
                    loop.span,
                    numbers=(("instructions", count),),
                )
