"""Pointers on lanes: where they lead, checked, and as numbers."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from migrate.cuda.arithmetic import Arithmetic
from migrate.cuda.memory import (
    Buffer,
)
from migrate.cuda.runtime import (
    Array,
    Fault,
    Mask,
    Ref,
    Refs,
)
from migrate.cuda.types import (
    Member,
    Type,
)
from migrate.source import Span

_FIRST_ADDRESS = 1 << 20
_ZERO = np.asarray(0, dtype=np.int64)


@dataclass(slots=True)
class Addresses:
    """Where buffers are, for pointers that are stored or turned into numbers."""

    starts: list[int] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)

    def of(self, buffer: Buffer) -> int:
        if buffer.address is None:
            last = self.starts[-1] + self.buffers[-1].size if self.starts else _FIRST_ADDRESS
            buffer.address = (last + 8192) // 4096 * 4096
            self.starts.append(buffer.address)
            self.buffers.append(buffer)
        return buffer.address

    def at(self, address: int) -> Buffer | None:
        """The buffer that an address lies in or just behind."""
        position = bisect.bisect_right(self.starts, address) - 1
        if position < 0:
            return None
        buffer = self.buffers[position]
        return buffer if address <= self.starts[position] + buffer.size + 4096 else None


@dataclass(slots=True)
class Pointers(Arithmetic):
    """Arithmetic with pointers: offsets in bytes of buffers."""

    addresses: Addresses = field(default_factory=Addresses)

    def flat(self, ref: Ref, size: int, mask: Mask, span: Span) -> tuple[Buffer, Array]:
        """The first byte of an access of `size` bytes by each lane, checked.

        Lanes outside the mask get the instance's start.  Raises `Fault` for an access outside.
        """
        buffer = ref.buffer
        if buffer is None:
            if not mask.any():
                raise self.unsupported("a null pointer", span)
            event = self.report(
                "null-pointer", "a null pointer is used", span, int(np.argmax(mask))
            )
            raise Fault(event)
        offset = ref.offset
        low, high = int(offset.min()), int(offset.max())
        if low < 0 or high > buffer.size - size:
            self._check_inside(buffer, offset, size, mask, span)
            offset = np.where(mask, offset, 0)
        return buffer, offset if buffer.base is None else offset + buffer.base

    def _check_inside(
        self, buffer: Buffer, offset: Array, size: int, mask: Mask, span: Span
    ) -> None:
        bad = ((offset < 0) | (offset > buffer.size - size)) & mask
        if not bad.any():
            return
        lane = int(np.argmax(bad))
        first = int(np.broadcast_to(offset, mask.shape)[lane])
        if 0 <= first < buffer.size:
            first += size - buffer.unit
        index, count = first // buffer.unit, buffer.size // buffer.unit
        event = self.report(
            "out-of-bounds",
            f"element {index} of {buffer.name} is accessed, which has {count}",
            span,
            lane,
            buffer=buffer.name,
            index=index,
            size=count,
        )
        raise Fault(event)

    def aligned(self, ref: Ref, kind: Type, mask: Mask, span: Span) -> None:
        """Raises `Fault` for an access that is not aligned as its type has to be."""
        buffer = ref.buffer
        if buffer is None or buffer.grain % kind.align == 0:
            return
        offset = ref.offset
        if not (offset & (kind.align - 1)).any():
            return
        crooked = (offset % kind.align != 0) & mask
        if not crooked.any():
            return
        lane = int(np.argmax(crooked))
        index = int(np.broadcast_to(offset, mask.shape)[lane]) // buffer.unit
        count = max(kind.size // buffer.unit, 1)
        event = self.report(
            "misaligned",
            f"{count} elements of {buffer.name} are accessed together from {index}",
            span,
            lane,
            buffer=buffer.name,
            index=index,
            size=buffer.size // buffer.unit,
        )
        raise Fault(event)

    def moved(self, ref: Ref | Refs, index: Array, element: Type, span: Span) -> Ref | Refs:
        """`ref + index` in elements of the pointer's type."""
        return self.shifted(ref, index.astype(np.int64) * element.size, element.size)

    def shifted(self, ref: Ref | Refs, by: Array, grain: int) -> Ref | Refs:
        """`ref` moved by bytes that `grain` divides."""
        if isinstance(ref, Refs):
            return Refs(tuple((where, self._shifted(part, by, grain)) for where, part in ref.parts))
        return self._shifted(ref, by, grain)

    @staticmethod
    def _shifted(ref: Ref, by: Array, grain: int) -> Ref:
        if ref.buffer is not None and grain % ref.buffer.grain:
            ref.buffer.grain = _common(ref.buffer.grain, grain)
        return Ref(ref.buffer, ref.offset + by)

    def member(self, ref: Ref | Refs, part: Member) -> Ref | Refs:
        """The place of a member of the object that a pointer points to."""
        offset = np.asarray(part.offset, dtype=np.int64)
        return self.shifted(ref, offset, _common(part.type.align, part.offset or part.type.align))

    def address(self, ref: Ref | Refs) -> Array:
        """A pointer as a number."""
        if isinstance(ref, Refs):
            whole = np.zeros(self.lanes.total, dtype=np.uint64)
            for where, part in ref.parts:
                whole = np.where(where, self.address(part), whole)
            return whole
        if ref.buffer is None:
            return np.asarray(ref.offset).astype(np.uint64)
        return np.asarray(self.addresses.of(ref.buffer) + ref.offset).astype(np.uint64)

    def pointer(self, address: Array, mask: Mask, span: Span) -> Any:
        """The pointer that a number is."""
        numbers = np.asarray(address).astype(np.int64)
        parts: list[tuple[Mask, Ref]] = []
        rest = np.array(np.broadcast_to(mask, mask.shape))
        spread = np.broadcast_to(numbers, mask.shape)
        while rest.any():
            first = int(spread[int(np.argmax(rest))])
            buffer = self.addresses.at(first) if first else None
            if buffer is None:
                same = rest & (spread == first)
                parts.append((same, Ref(None, np.asarray(first, dtype=np.int64))))
            else:
                assert buffer.address is not None
                offset = numbers - buffer.address
                same = rest & (spread >= buffer.address)
                same &= spread <= buffer.address + buffer.size + 4096
                buffer.grain = 1
                parts.append((same, Ref(buffer, offset)))
            rest &= ~same
            self.meter.step(20)
        if not parts:
            return Ref(None, _ZERO)
        return parts[0][1] if len(parts) == 1 else Refs(tuple(parts))


def _common(first: int, second: int) -> int:
    while second:
        first, second = second, first % second
    return max(first, 1)
