"""How many of the 128 partitions the elementwise engines and DMA have work on.

An instruction takes as long for 1 partition as for 128: what counts is the length of its free
axis (nki/guides/architecture/trainium_inferentia2_arch.rst).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.facts.hardware import target as facts_of
from migrate.nki.analyses import Base
from migrate.nki.instructions import INSTRUCTIONS
from migrate.nki.values import Problem, View

if TYPE_CHECKING:
    from migrate.nki.frames import Instruction
    from migrate.nki.specialize import Specialization
    from migrate.nki.values import Site

LONG = 2048
"""Elements along the free axis that could go over more partitions."""

PART = 4
"""Less than this part of the partitions is told."""

MANY = 8
"""Instructions at one place before it is told."""

SHARE = 0.25
"""Of the time of all such instructions: less is not worth a word."""


_QUADRANTS = frozenset({"nc_stream_shuffle"})
"""What moves rows within 32 partitions: a row for all is moved four times."""


@dataclass(slots=True)
class _Work:
    site: Site
    opcode: str
    count: int = 0
    columns: int = 0
    """Elements along the free axis, of all instructions: what the engine's time goes with."""
    open: bool = False
    """Whether the partitions are a matter of sizes that were guessed."""
    partitions: int = 0
    """The most partitions of an instruction."""


class Lanes(Base):
    """Code `few-partitions`, at the instruction."""

    codes = frozenset({"few-partitions"})

    def __init__(self, target: str, guessed: frozenset[str] = frozenset()) -> None:
        super().__init__(target, guessed)
        self._places: dict[int, _Work] = {}
        self._columns = 0

    def execute(self, instruction: Instruction) -> None:
        spec = INSTRUCTIONS.get(instruction.opcode)
        if spec is None or not {"vector", "scalar", "gpsimd"}.intersection(spec.engines):
            return
        if instruction.opcode in _QUADRANTS:
            return
        views = [
            operand
            for _, operand in instruction.operands
            if isinstance(operand, View) and operand.buffer.memory.on_chip and operand.shape
        ]
        if not views:
            return
        largest = max(views, key=lambda view: view.free_elements)
        self._columns += largest.free_elements
        place = self._places.get(instruction.site.key)
        if place is None:
            place = self._places[instruction.site.key] = _Work(instruction.site, instruction.opcode)
        place.open = place.open or self.open(*(view.shape[0] for view in views))
        place.count += 1
        place.columns += largest.free_elements
        place.partitions = max(place.partitions, *(view.sizes[0] for view in views))

    def problems(self, found: Specialization) -> Iterator[Problem]:
        all_of_them = facts_of(self.target).partitions.value
        for place in self._places.values():
            if (
                not place.open
                and place.partitions * PART <= all_of_them
                and place.count >= MANY
                and place.columns >= LONG * MANY
                and place.columns // place.count * place.partitions >= LONG
                and place.columns >= SHARE * self._columns
            ):
                yield Problem(
                    "few-partitions",
                    f"{place.count:,} {place.opcode} work on {place.partitions} of {all_of_them}"
                    f" partitions, {place.columns // place.count:,} elements on each",
                    place.site.span,
                    numbers=(("partitions", place.partitions), ("instructions", place.count)),
                )
