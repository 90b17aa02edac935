"""Tensors that the kernel itself places, read after another one at the same addresses was written.

An address is a partition and an offset; whether the offset counts bytes or elements is told in two
ways (nki/migration/index.rst), so that only what overlaps either way counts.  Said is what is
certain: a tensor that was written, then overlapped by one that was written whole, then read whole.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.nki.analyses import Base
from migrate.nki.instructions import INSTRUCTIONS
from migrate.nki.values import Problem, View

if TYPE_CHECKING:
    from migrate.nki.frames import Instruction
    from migrate.nki.specialize import Specialization
    from migrate.nki.values import Buffer
    from migrate.source import Span

MOST_PLACED = 512
"""Tensors with an address that are looked at; of more nothing is said."""


@dataclass(slots=True)
class _Placed:
    """A tensor with an address: what wrote over it since it was written."""

    buffer: weakref.ref[Buffer]
    written: bool = False
    over: tuple[str, Span, Span] | None = None
    """The name of the other tensor, where it was written and where it was made."""


class Overlap(Base):
    """Code `address-overlap`, at the instruction that reads."""

    codes = frozenset({"address-overlap"})

    def __init__(self, target: str, guessed: frozenset[str] = frozenset()) -> None:
        super().__init__(target, guessed)
        self._placed: dict[int, _Placed] = {}
        self._found: dict[tuple[int, int], Problem] = {}

    def execute(self, instruction: Instruction) -> None:
        spec = INSTRUCTIONS.get(instruction.opcode)
        if spec is None:
            return
        views = [
            (spec.parameter(name), value)
            for name, value in instruction.operands
            if isinstance(value, View) and value.buffer.address is not None
        ]
        for parameter, view in views:
            if parameter is None or parameter.role != "out":
                self._read(instruction, view)
        for parameter, view in views:
            if parameter is not None and parameter.role != "in":
                self._write(instruction, view)

    def _read(self, instruction: Instruction, view: View) -> None:
        known = self._placed.get(view.buffer.ordinal)
        if known is None or known.over is None or not _whole(view):
            return
        name, written, made = known.over
        problem = Problem(
            "address-overlap",
            f"{view.buffer.name} is read after {name} at the same addresses was written",
            instruction.span,
            sources=(written, view.buffer.site.span, made),
        )
        self._found.setdefault((instruction.site.key, view.buffer.site.key), problem)

    def _write(self, instruction: Instruction, view: View) -> None:
        mine = self._placed.get(view.buffer.ordinal)
        if mine is None:
            if len(self._placed) >= MOST_PLACED:
                self._forget()
            if len(self._placed) >= MOST_PLACED:
                return
            mine = self._placed[view.buffer.ordinal] = _Placed(weakref.ref(view.buffer))
        # What is written again in part is known in part: nothing is said of it.
        mine.written, mine.over = True, None
        if not _whole(view) or instruction.mask is not None:
            return
        for ordinal, other in self._placed.items():
            buffer = other.buffer()
            if buffer is None or ordinal == view.buffer.ordinal or not other.written:
                continue
            if buffer.memory is view.buffer.memory and _overlap(buffer, view.buffer):
                other.over = view.buffer.name, instruction.span, view.buffer.site.span

    def _forget(self) -> None:
        """Leave out what the kernel has dropped."""
        self._placed = {k: known for k, known in self._placed.items() if known.buffer() is not None}

    def problems(self, found: Specialization) -> Iterator[Problem]:
        yield from self._found.values()


def _whole(view: View) -> bool:
    return (
        view.elements == view.buffer.elements and view.dtype is view.buffer.dtype and view.strided
    )


def _overlap(left: Buffer, right: Buffer) -> bool:
    """Whether two tensors have an address in common, in bytes and in elements."""
    return all(
        _meet(_rows(left), _rows(right)) and _meet(_bytes(left, unit), _bytes(right, unit))
        for unit in (False, True)
    )


def _rows(buffer: Buffer) -> tuple[int, int]:
    assert buffer.address is not None
    return buffer.address[0], int(buffer.shape[buffer.partition].value)


def _bytes(buffer: Buffer, elements: bool) -> tuple[int, int]:
    """Start and size within a partition; `elements`: the offset counts those."""
    assert buffer.address is not None
    rows = max(_rows(buffer)[1], 1)
    start = buffer.address[1] * (buffer.dtype.bytes if elements else 1)
    return start, buffer.elements // rows * buffer.dtype.bytes


def _meet(left: tuple[int, int], right: tuple[int, int]) -> bool:
    return left[0] < right[0] + right[1] and right[0] < left[0] + left[1]
