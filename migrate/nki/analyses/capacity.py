"""How much of SBUF and PSUM is alive at once, in bytes a partition.

A tensor is alive from its first instruction to its last one, in program order; those whose length
is a matter of sizes that were guessed are left out.  Of a tensor with axes of blocks (NKI 0.1) each
block is alive by itself, since the compiler places them.  What does not fit in SBUF is
moved to HBM and back by the compiler (nki/get-started/about/memory-hierarchy-overview.rst);
PSUM is handed out in banks of 2 KiB, of which there are 8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.facts.hardware import target as facts_of
from migrate.nki.analyses import Base
from migrate.nki.values import Memory, Problem, View

if TYPE_CHECKING:
    from migrate.nki.frames import Instruction
    from migrate.nki.specialize import Specialization
    from migrate.nki.values import Buffer

_SHOWN = 3
"""The largest tensors that a message names."""


@dataclass(slots=True)
class _Life:
    buffer: Buffer
    first: int
    last: int


class Capacity(Base):
    """Codes `sbuf-live` and `psum-live`, at the allocation that goes beyond."""

    codes = frozenset({"sbuf-live", "psum-live"})

    def __init__(self, target: str, guessed: frozenset[str] = frozenset()) -> None:
        super().__init__(target, guessed)
        self._lives: dict[tuple[int, int], _Life] = {}

    def execute(self, instruction: Instruction) -> None:
        for _, operand in instruction.operands:
            if not isinstance(operand, View) or not operand.buffer.memory.on_chip:
                continue
            extents = operand.buffer.shape
            rows = operand.buffer.partition
            if self.open(*extents[:rows], *extents[rows + 1 :]):
                continue
            blocks = list(_blocks(operand))
            if instruction.opcode == "memset" and len(blocks) > 1:
                continue  # `nl.zeros` of all blocks: how a sum in each is begun
            for block in blocks:
                key = (operand.buffer.ordinal, block)
                life = self._lives.get(key)
                if life is None:
                    number = instruction.number
                    self._lives[key] = _Life(operand.buffer, number, number)
                else:
                    life.last = instruction.number

    def problems(self, found: Specialization) -> Iterator[Problem]:
        facts = facts_of(self.target)
        for view in found.returned:
            for block in _blocks(view):
                life = self._lives.get((view.buffer.ordinal, block))
                if life is not None:
                    life.last = found.instructions
        yield from self._beyond(Memory.SBUF, facts.sbuf_bytes_per_partition.value, 1)
        yield from self._beyond(
            Memory.PSUM, facts.psum_bytes_per_partition.value, facts.psum_bank_bytes.value
        )

    def _beyond(self, memory: Memory, limit: int, grain: int) -> Iterator[Problem]:
        """The first moment at which more is alive than there is, if there is one."""
        lives = sorted(
            (life for life in self._lives.values() if life.buffer.memory is memory),
            key=lambda life: life.first,
        )
        ends = sorted(lives, key=lambda life: life.last)
        total, closed = 0, 0
        for life in lives:
            while ends[closed].last < life.first:
                total -= _bytes(ends[closed].buffer, grain)
                closed += 1
            total += _bytes(life.buffer, grain)
            if total > limit:
                yield _problem(memory, lives, life, limit, grain)
                return


def _problem(memory: Memory, lives: list[_Life], at: _Life, limit: int, grain: int) -> Problem:
    alive = [life for life in lives if life.first <= at.first <= life.last]
    total = sum(_bytes(life.buffer, grain) for life in alive)
    alive.sort(key=lambda life: (-_bytes(life.buffer, grain), life.first))
    largest = ", ".join(
        f"{life.buffer.name} {_bytes(life.buffer, grain):,}" for life in alive[:_SHOWN]
    )
    name = memory.value.upper()
    kind = "sbuf-live" if memory is Memory.SBUF else "psum-live"
    return Problem(
        kind,
        f"{total:,} bytes a partition of {name} are in use at once, which has {limit:,}"
        f" ({len(alive)} tensors; the largest: {largest})",
        at.buffer.site.span,
        numbers=(("bytes", total), ("limit", limit)),
        sources=tuple(dict.fromkeys(life.buffer.site.span for life in alive)),
    )


def _blocks(view: View) -> Iterator[int]:
    """The blocks of a tensor that a view is on: 0 where it has no axis of them."""
    buffer = view.buffer
    if not buffer.partition:
        yield 0
        return
    size = 1
    for extent in buffer.shape[buffer.partition :]:
        size *= max(int(extent.value), 1)
    if not view.strided or view.dtype.bytes != buffer.dtype.bytes:
        yield from range(buffer.elements // size)
        return
    last = view.offset + sum(
        (extent - 1) * stride for extent, stride in zip(view.sizes, view.strides, strict=True)
    )
    yield from range(view.offset // size, min(last, buffer.elements - 1) // size + 1)


def _bytes(buffer: Buffer, grain: int) -> int:
    """Bytes that a partition holds of a block, in whole grains."""
    own = buffer.dtype.bytes
    for extent in buffer.shape[buffer.partition + 1 :]:
        own *= int(extent.value)
    return -(-own // grain) * grain
