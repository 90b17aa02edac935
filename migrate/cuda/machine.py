"""Memory as lanes see it: pointers, checked loads and stores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from migrate.cuda.memory import (
    INSTANCE_ALIGNMENT,
    INTEGERS,
    Buffer,
    Plane,
    from_bits,
    held_as,
)
from migrate.cuda.pointers import Pointers
from migrate.cuda.races import Race, Races
from migrate.cuda.runtime import (
    Array,
    Arriving,
    Mask,
    Raw,
    Ref,
    Refs,
)
from migrate.cuda.types import Array as ArrayType
from migrate.cuda.types import (
    Pointer,
    Scalar,
    Struct,
    Type,
    Vector,
    parts_of,
    scalar_of,
)
from migrate.source import Span

MAX_COPIED = 1 << 14
"""Bytes of a struct or an array that are copied as one value."""


@dataclass(slots=True)
class Machine(Pointers):
    """One slice of lanes with their memory."""

    races: Races = field(init=False)

    def __post_init__(self) -> None:
        self.races = Races(self.lanes, self.meter)

    def allocate(
        self,
        name: str,
        kind: Type,
        count: int,
        space: Any,
        slot: Array | None,
        size: int | None = None,
    ) -> Buffer:
        """Fresh storage of `count` instances; `slot` is which one each lane has."""
        each = size if size is not None else kind.size
        stride = -(-max(each, 1) // INSTANCE_ALIGNMENT) * INSTANCE_ALIGNMENT
        total = stride * count
        self.meter.take(total)
        base = None if slot is None else slot * stride
        return Buffer(name, scalar_of(kind), each, total, space, base)

    # Loads

    def load(self, ref: Ref | Refs, kind: Type, mask: Mask, span: Span) -> Any:
        """What the lanes of the mask read."""
        if isinstance(kind, Struct) and not kind.members:
            return ()
        if not mask.any():
            self._copyable(kind, span)
            return self.nothing(kind, span)
        if isinstance(ref, Refs):
            return self._load_parts(ref, kind, mask, span)
        real = self.real(mask)
        self._copyable(kind, span)
        if not real.any() and ref.buffer is None:
            return self.nothing(kind, span)
        self.aligned(ref, kind, real, span)
        buffer, position = self.flat(ref, kind.size, real, span)
        return self._loaded(buffer, position, kind, real, span)

    def _copyable(self, kind: Type, span: Span) -> None:
        """Raises `Unsupported` for an object that is too large to be a value."""
        if kind.size > MAX_COPIED and isinstance(kind, Struct | ArrayType):
            raise self.unsupported(f"a copy of {kind.size} bytes", span)
        if kind.size > 64:
            self.meter.step(kind.size)

    def _load_parts(self, refs: Refs, kind: Type, mask: Mask, span: Span) -> Any:
        found: Any = None
        for where, part in refs.parts:
            here = where & mask
            if here.any():
                seen = self.load(part, kind, here, span)
                found = seen if found is None else self.select(here, seen, found, kind, span)
        return self.nothing(kind, span) if found is None else found

    def _loaded(
        self, buffer: Buffer, at: Array, kind: Type, mask: Mask, span: Span, *, whole: bool = False
    ) -> Any:
        """A value of any type from checked positions; `whole`: as a part of what is copied."""
        match kind:
            case Scalar():
                return self._scalar(buffer, at, kind, mask, span, silent=whole)
            case Pointer():
                held = self._scalar(buffer, at, INTEGERS[8], mask, span, silent=whole)
                return self.pointer(self.opened(held, INTEGERS[8], span), mask, span)
            case Vector(element=element):
                raw = self._raw(buffer, at, kind, mask, span, element)
                if raw is not None:
                    return raw
                return tuple(
                    self._scalar(buffer, at + part.offset, element, mask, span, silent=whole)
                    for part in parts_of(kind)
                )
            case Struct(layout=layout):
                if layout.overlaid:
                    return self._overlaid(buffer, at, kind, mask, span)
                other = self._passed_on(buffer, at, kind, mask)
                if other is not None:
                    return other
                return tuple(
                    self._loaded(buffer, at + part.offset, part.type, mask, span, whole=True)
                    for part in layout.members
                )
            case ArrayType(element=element, length=int() as length):
                return tuple(
                    self._loaded(buffer, at + index * element.size, element, mask, span, whole=True)
                    for index in range(length)
                )
            case _:
                raise self.unsupported(f"a load of {kind}", span)

    def _scalar(
        self, buffer: Buffer, at: Array, kind: Scalar, mask: Mask, span: Span, *, silent: bool
    ) -> Any:
        size = kind.size
        if buffer.arriving is not None:
            self._check_arrived(buffer.arriving, buffer.name, at, mask, span)
        if buffer.space == "shared" and not self.races.blind:
            self._check_race(self.races.loaded(buffer, at, size, mask, span), buffer, span)
        if not silent and (
            buffer.owner is not None or buffer.defined is not None or not buffer.planes
        ):
            self._check_written(buffer, at, size, mask, span)
        held = held_as(kind)
        assert held is not None
        plane = buffer.planes.get(held)
        if plane is not None and (
            buffer.owner is None or buffer.only_owner(at, size, mask) is plane
        ):
            value = buffer.take(plane, at, self.domain)
            return value if kind.is_float else _seen(value, kind)
        if not buffer.planes:
            return self.constant(float("nan") if kind.is_float else 0, kind)
        whole = buffer.only_owner(at, size, mask)
        if whole is not None and whole.scalar.size < size:
            return self._raw_of(buffer, whole, at, size)
        return from_bits(buffer.bits(at, size, self.domain), kind, self.domain)

    def _raw(
        self, buffer: Buffer, at: Array, kind: Type, mask: Mask, span: Span, element: Scalar
    ) -> Raw | None:
        """What is really in memory that is read as a vector of another format."""
        held = held_as(element)
        if buffer.owner is None and (not buffer.planes or buffer.first is buffer.planes.get(held)):  # type: ignore[arg-type]
            return None
        whole = buffer.only_owner(at, kind.size, mask)
        if whole is None or whole.scalar == held or whole.scalar.size > kind.size:
            return None
        self._check_written(buffer, at, kind.size, mask, span)
        if buffer.arriving is not None:
            self._check_arrived(buffer.arriving, buffer.name, at, mask, span)
        return self._raw_of(buffer, whole, at, kind.size)

    def _raw_of(self, buffer: Buffer, plane: Plane, at: Array, size: int) -> Raw:
        step = plane.scalar.size
        parts = tuple(
            buffer.take(plane, at + further if further else at, self.domain)
            for further in range(0, size, step)
        )
        return Raw(plane.scalar, parts)

    def _passed_on(self, buffer: Buffer, at: Array, kind: Struct, mask: Mask) -> Raw | None:
        """A struct of other scalars than memory holds, such as the bytes that a copy is made of."""
        scalar = scalar_of(kind)
        if scalar is None or not buffer.planes:
            return None
        plane = buffer.only_owner(at, kind.size, mask)
        if plane is None or plane.scalar == held_as(scalar) or kind.size % plane.scalar.size:
            return None
        return self._raw_of(buffer, plane, at, kind.size)

    def _overlaid(self, buffer: Buffer, at: Array, kind: Struct, mask: Mask, span: Span) -> Raw:
        """A union's value: its bytes, in the format that they were written in."""
        plane = buffer.only_owner(at, kind.size, mask)
        if plane is not None and kind.size % plane.scalar.size == 0:
            return self._raw_of(buffer, plane, at, kind.size)
        word = next(size for size in (8, 4, 2, 1) if kind.size % size == 0 and size <= kind.align)
        if not buffer.planes:
            return Raw(INTEGERS[word], (self.constant(0, INTEGERS[word]),) * (kind.size // word))
        parts = tuple(
            buffer.bits(at + further, word, self.domain) for further in range(0, kind.size, word)
        )
        return Raw(INTEGERS[word], parts)

    def _check_written(self, buffer: Buffer, at: Array, size: int, mask: Mask, span: Span) -> None:
        undefined = buffer.missing(at, size, mask)
        if undefined is None:
            return
        lane = int(np.argmax(np.broadcast_to(undefined, mask.shape)))
        base = 0 if buffer.base is None else int(buffer.base[lane])
        index = (int(np.broadcast_to(at, mask.shape)[lane]) - base) // buffer.unit
        self.report(
            "uninitialised",
            f"element {index} of {buffer.name} is read before it is written",
            span,
            lane,
            buffer=buffer.name,
            index=index,
            size=buffer.size // buffer.unit,
        )

    def _check_arrived(
        self, arriving: Arriving, name: str, at: Array, mask: Mask, span: Span
    ) -> None:
        """Report a read of what an asynchronous copy writes that nobody waited for."""
        word = at >> 2
        late = (arriving.group[word] > arriving.arrived[arriving.owner[word]]) & mask
        if late.any():
            self.report(
                "unfinished-copy",
                f"{name} is read before the copy into it was waited for",
                span,
                int(np.argmax(np.broadcast_to(late, mask.shape))),
                buffer=name,
            )

    def _check_race(self, race: Race | None, buffer: Buffer, span: Span) -> None:
        """Report a race on shared memory."""
        if race is None:
            return
        verb = "reads" if race.reads else "stores to"
        earlier = "stores to" if race.reads else "reads"
        self.report(
            "shared-race",
            f"a thread {verb} element {race.index} of {buffer.name}, which a thread of another"
            f" warp {earlier} (line {race.other.start_line}) with no barrier between",
            span,
            race.lane,
            buffer=buffer.name,
            index=race.index,
            size=buffer.size // buffer.unit,
        )

    # Stores

    def store(self, ref: Ref | Refs, value: Any, kind: Type, mask: Mask, span: Span) -> None:
        """Write for the lanes of the mask."""
        if not mask.any():
            return
        if isinstance(ref, Refs):
            for where, part in ref.parts:
                self.store(part, value, kind, mask & where, span)
            return
        real, unsure = self.real(mask), self.unsure(mask)
        if unsure is not None:
            unsure = unsure & self.inside(ref, kind.size, mask)
        if not real.any() and (unsure is None or ref.buffer is None):
            return
        self.aligned(ref, kind, real, span)
        buffer, position = self.flat(ref, kind.size, real, span)
        buffer.written = True
        position = np.broadcast_to(position, mask.shape)
        self._stored(buffer, position, value, kind, real, unsure, span)
        if buffer.stored is not None:
            buffer.touch(position[real if unsure is None else real | unsure], kind.size)

    def _stored(
        self,
        buffer: Buffer,
        at: Array,
        value: Any,
        kind: Type,
        real: Mask,
        unsure: Mask | None,
        span: Span,
    ) -> None:
        if isinstance(value, Raw):
            for index, piece in enumerate(value.parts):
                here = at + index * value.scalar.size if index else at
                self._put(buffer, here, piece, value.scalar, real, unsure, span)
            return
        match kind:
            case Scalar():
                self._put(buffer, at, value, kind, real, unsure, span)
            case Pointer():
                address = self.address(value)
                self._put(buffer, at, address, INTEGERS[8], real, unsure, span)
            case Vector() | Struct():
                for part, piece in zip(parts_of(kind), value, strict=True):
                    here = at + part.offset if part.offset else at
                    self._stored(buffer, here, piece, part.type, real, unsure, span)
            case ArrayType(element=element):
                for index, piece in enumerate(self.elements(value, kind, real, span)):
                    here = at + index * element.size if index else at
                    self._stored(buffer, here, piece, element, real, unsure, span)
            case _:
                raise self.unsupported(f"a store of {kind}", span)

    def elements(self, value: Any, kind: ArrayType, mask: Mask, span: Span) -> tuple[Any, ...]:
        """The elements of an array that is a value, read from where it is."""
        if isinstance(value, tuple):
            return value
        found = self.load(value, kind, mask, span)
        assert isinstance(found, tuple)
        return found

    def _put(
        self,
        buffer: Buffer,
        at: Array,
        value: Any,
        kind: Scalar,
        real: Mask,
        unsure: Mask | None,
        span: Span,
    ) -> None:
        held = held_as(kind)
        assert held is not None
        plane, used = buffer.plane(held, self.domain)
        if used:
            self.meter.take(used)
        if buffer.space == "shared" and not self.races.blind:
            self._check_race(self.races.stored(buffer, at, kind.size, real, span), buffer, span)
        domain = self.domain
        where = None if real.all() else real
        if held.is_float:
            if unsure is not None:
                self._adopt(buffer, plane, at, real | unsure)
                old = buffer.take(plane, at, domain)
                value = self.chosen(real, unsure, value, old, held, span)
                domain.put(plane.data, at >> plane.shift, value, unsure & ~real)
            buffer.put(plane, at, value, where, domain)
        else:
            value = _plain(value, held)
            buffer.put(plane, at, value, where, domain)
        self._check_conflict(buffer, plane, at, value, real, span)

    def _adopt(self, buffer: Buffer, plane: Plane, at: Array, mask: Mask) -> None:
        """Let the cells of some lanes be the plane's own, their bits kept."""
        size = plane.scalar.size
        if buffer.owner is None or buffer.only_owner(at, size, mask) is plane:
            return
        bits = buffer.bits(at, size, self.domain)
        value = from_bits(bits, plane.scalar, self.domain)
        mine = (buffer.owner[at] == plane.number) | ~mask
        buffer.put(plane, at, value, ~mine, self.domain)

    def cells(self, ref: Ref, kind: Scalar, mask: Mask, span: Span) -> tuple[Buffer, Plane, Array]:
        """The cells that a read-modify-write of each lane works on."""
        self.aligned(ref, kind, mask, span)
        buffer, at = self.flat(ref, kind.size, mask, span)
        held = held_as(kind)
        assert held is not None
        self._check_written(buffer, at, kind.size, mask, span)
        plane, used = buffer.plane(held, self.domain)
        if used:
            self.meter.take(used)
        at = np.broadcast_to(at, mask.shape)
        self._adopt(buffer, plane, at, mask)
        buffer.own(plane, at[mask] >> plane.shift)
        return buffer, plane, at

    @staticmethod
    def inside(ref: Ref | Refs, size: int, mask: Mask) -> Mask:
        """The lanes whose access lies in the buffer."""
        if isinstance(ref, Refs):
            return np.zeros_like(mask)
        limit = ref.buffer.size if ref.buffer is not None else 0
        return mask & (ref.offset >= 0) & (ref.offset <= limit - size)

    def _check_conflict(
        self, buffer: Buffer, plane: Plane, at: Array, stored: Any, mask: Mask, span: Span
    ) -> None:
        """Report lanes whose store another lane of the same statement overwrote."""
        if buffer.space == "private":
            return
        there = buffer.take(plane, at, self.domain)
        if plane.scalar.is_float:
            kept = np.asarray(self.domain.to_array(there))
            mine = np.broadcast_to(np.asarray(self.domain.to_array(stored)), mask.shape)
            lost = (kept != mine) & ~((kept != kept) & (mine != mine)) & mask
            if lost.any():
                # One number, rounded on different ways, is no conflict.
                _, unsure = self.domain.compare("equal", there, stored)
                lost = lost if unsure is None else lost & ~unsure
        else:
            lost = (there != stored) & mask
        if lost.any():
            lane = int(np.argmax(lost))
            base = 0 if buffer.base is None else int(buffer.base[lane])
            index = (int(at[lane]) - base) // buffer.unit
            self.report(
                "conflicting-stores",
                f"several threads write different values to element {index} of {buffer.name}",
                span,
                lane,
                buffer=buffer.name,
                index=index,
                size=buffer.size // buffer.unit,
            )


def _plain(value: Any, held: Scalar) -> Array:
    """An integer as memory keeps it."""
    whole = np.asarray(value)
    if whole.dtype == np.bool_:
        return whole.astype(np.uint8)
    if whole.dtype.itemsize != held.size:
        return whole.astype(held.dtype.numpy)
    return whole.view(held.dtype.numpy) if whole.shape else whole.astype(held.dtype.numpy)


def _seen(value: Array, kind: Scalar) -> Array:
    """An integer as its type has it."""
    if kind.is_bool:
        return np.asarray(value != 0)
    wanted = kind.dtype.numpy
    return value if value.dtype == wanted else value.astype(wanted)
