"""Access patterns whose first axis does not go from partition to partition.

The first axis of a tile in SBUF or PSUM is the partitions: its step in an access pattern is the
elements of a partition (or several of them, or none), and nothing else has an address.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from migrate.nki.analyses import Base
from migrate.nki.values import Problem, View

if TYPE_CHECKING:
    from migrate.nki.frames import Instruction
    from migrate.nki.specialize import Specialization


class Steps(Base):
    """Code `partition-step`, at the instruction."""

    codes = frozenset({"partition-step"})

    def __init__(self, target: str, guessed: frozenset[str] = frozenset()) -> None:
        super().__init__(target, guessed)
        self._found: dict[tuple[int, str], Problem] = {}

    def execute(self, instruction: Instruction) -> None:
        if instruction.opcode == "opaque" or instruction.opcode.startswith("dma_"):
            return
        for name, view in instruction.operands:
            if not isinstance(view, View) or not view.buffer.memory.on_chip or not view.shape:
                continue
            if view.buffer.partition or not view.strided or view.dtype is not view.buffer.dtype:
                continue
            if view.faults or view.sizes[0] < 2 or view.elements == 0:
                continue
            step, row = view.strides[0], _row(view)
            if step % row == 0 or (instruction.site.key, name) in self._found:
                continue
            self._found[instruction.site.key, name] = Problem(
                "partition-step",
                f"{instruction.opcode}: {name} goes over {view.sizes[0]} partitions in steps of"
                f" {step} elements; a partition of {view.buffer.name} has {row}",
                instruction.span,
                name,
                numbers=(("step", step), ("partition", row)),
                sources=(view.buffer.site.span,),
            )

    def problems(self, found: Specialization) -> Iterator[Problem]:
        yield from self._found.values()


def _row(view: View) -> int:
    """Elements of a partition."""
    return max(view.buffer.elements // max(int(view.buffer.shape[0].value), 1), 1)
