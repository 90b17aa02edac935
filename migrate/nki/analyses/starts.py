"""Operands of one instruction that lie on different partitions.

A lane of an elementwise engine reads both its operands from one partition: the vendor's library
copies the second half of a tile down before it is combined with the first (aws-neuron/nki-library,
`core/embeddings/rope.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from migrate.nki.analyses import Base
from migrate.nki.values import Memory, Problem
from migrate.nki.views import partition_dimension

if TYPE_CHECKING:
    from migrate.nki.frames import Instruction
    from migrate.nki.specialize import Specialization
    from migrate.nki.values import View

_PAIRS: Final = {
    "tensor_tensor": ("data1", "data2"),
    "scalar_tensor_tensor": ("data", "operand1"),
    "tensor_tensor_scan": ("data0", "data1"),
}
"""The two tiles that an instruction combines."""

_FILLS = 64
"""A tile of more partitions than this begins at partition 0."""


class Starts(Base):
    """Code `start-apart`, at the instruction."""

    codes = frozenset({"start-apart"})

    def __init__(self, target: str, guessed: frozenset[str] = frozenset()) -> None:
        super().__init__(target, guessed)
        self._found: dict[int, Problem] = {}

    def execute(self, instruction: Instruction) -> None:
        names = _PAIRS.get(instruction.opcode)
        if names is None or instruction.site.key in self._found:
            return
        left, right = instruction.view(names[0]), instruction.view(names[1])
        if left is None or right is None:
            return
        if not left.buffer.memory is right.buffer.memory is Memory.SBUF:
            return
        if left.buffer is not right.buffer and not (_fills(left) and _fills(right)):
            return  # where the compiler puts small tiles is not known
        first, second = _start(left), _start(right)
        if first is None or second is None or first == second:
            return
        self._found[instruction.site.key] = Problem(
            "start-apart",
            f"{instruction.opcode}: {names[0]} begins at partition {first}, {names[1]} at"
            f" {second}; one lane reads both from one partition",
            instruction.span,
            names[1],
            numbers=((names[0], first), (names[1], second)),
            sources=(right.buffer.site.span,),
        )

    def problems(self, found: Specialization) -> Iterator[Problem]:
        yield from self._found.values()


def _fills(view: View) -> bool:
    return int(view.buffer.shape[view.buffer.partition].value) > _FILLS


def _start(view: View) -> int | None:
    """The first partition of a view, counted from its tensor's first."""
    if not view.strided or view.buffer.partition or len(view.base) < 2:
        return None
    if [extent.value for extent in view.base] != [extent.value for extent in view.buffer.shape]:
        return None
    return int(view.index[partition_dimension(view)].start.value)
