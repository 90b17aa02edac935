"""Memory as lanes see it: pointers, checked loads and stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from migrate.cuda.arithmetic import Arithmetic
from migrate.cuda.runtime import (
    Array,
    Buffer,
    Fault,
    Mask,
    Raw,
    Ref,
)
from migrate.cuda.types import Scalar, Type, Vector, scalar_of, scalars_in
from migrate.numerics.dtypes import DType
from migrate.source import Span


@dataclass(slots=True)
class Machine(Arithmetic):
    """One slice of lanes with their memory."""

    def allocate(
        self,
        name: str,
        kind: Type,
        count: int,
        space: Any,
        base: Array | None,
        size: int | None = None,
        *,
        span: Span,
    ) -> Buffer:
        """Fresh storage: floats are NaN and integers 0 until written."""
        scalar = scalar_of(kind)
        if scalar is None:
            raise self.unsupported(f"storage of {kind}", span)
        each = size if size is not None else scalars_in(kind)
        total = each * count
        self.meter.take(total * (scalar.size + 1))
        data = (
            self.domain.constant(float("nan"), scalar.dtype, (total,))
            if scalar.is_float
            else np.zeros(total, dtype=scalar.dtype.numpy)
        )
        return Buffer(name, scalar, each, data, space, base, np.zeros(total, dtype=np.bool_))

    def flat(self, ref: Ref, scalars: int, mask: Mask, span: Span) -> tuple[Buffer, Array]:
        """The position of the first scalar of an access by each lane, checked.

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
        if low < 0 or high > buffer.size - scalars:
            bad = ((offset < 0) | (offset > buffer.size - scalars)) & mask
            if bad.any():
                lane = int(np.argmax(bad))
                index = int(np.broadcast_to(offset, mask.shape)[lane])
                if 0 <= index < buffer.size:
                    index += scalars - 1
                event = self.report(
                    "out-of-bounds",
                    f"element {index} of {buffer.name} is accessed, which has {buffer.size}",
                    span,
                    lane,
                    buffer=buffer.name,
                    index=index,
                    size=buffer.size,
                )
                raise Fault(event)
            offset = np.where(mask, offset, 0)
        if scalars in (2, 4, 8, 16) and (offset % scalars).any():
            crooked = (offset % scalars != 0) & mask
            if crooked.any():
                lane = int(np.argmax(crooked))
                index = int(np.broadcast_to(offset, mask.shape)[lane])
                event = self.report(
                    "misaligned",
                    f"{scalars} elements of {buffer.name} are accessed together from {index}",
                    span,
                    lane,
                    buffer=buffer.name,
                    index=index,
                    size=buffer.size,
                )
                raise Fault(event)
        return buffer, offset if buffer.base is None else offset + buffer.base

    def load(self, ref: Ref, kind: Type, mask: Mask, span: Span) -> Any:
        """What the lanes of the mask read."""
        scalar = scalar_of(kind)
        if scalar is None:
            raise self.unsupported(f"a load of {kind}", span)
        if not mask.any():
            return self.nothing(kind, span)
        # Through a pointer of another width memory is only passed on: see `Raw`.
        raw = ref.buffer is not None and ref.buffer.scalar.size != scalar.size
        if raw and ref.buffer is not None:
            scalar = ref.buffer.scalar
            if kind.size % scalar.size:
                raise self.unsupported(f"memory of {scalar} accessed as {kind}", span)
        scalars = kind.size // scalar.size if raw else scalars_in(kind)
        mask = self.real(mask)
        if not mask.any() and ref.buffer is None:
            return self.nothing(kind, span)
        buffer, position = self.flat(ref, scalars, mask, span)
        parts = []
        for part in range(scalars):
            at = position + part if part else position
            if buffer.defined is not None:
                undefined = ~buffer.defined[at] & mask
                if undefined.any():
                    lane = int(np.argmax(np.broadcast_to(undefined, mask.shape)))
                    index = int(np.broadcast_to(ref.offset, mask.shape)[lane]) + part
                    self.report(
                        "uninitialised",
                        f"element {index} of {buffer.name} is read before it is written",
                        span,
                        lane,
                        buffer=buffer.name,
                        index=index,
                        size=buffer.size,
                    )
            if buffer.scalar.is_float:
                value = self.domain.take(buffer.data, at)
            else:
                value = np.asarray(buffer.data[at])
            parts.append(self._viewed(value, buffer.scalar, scalar, span))
        if raw:
            return Raw(scalar, tuple(parts))
        return tuple(parts) if isinstance(kind, Vector) else parts[0]

    def store(self, ref: Ref, value: Any, kind: Type, mask: Mask, span: Span) -> None:
        """Write for the lanes of the mask."""
        if not mask.any():
            return
        scalar = value.scalar if isinstance(value, Raw) else scalar_of(kind)
        if scalar is None:
            raise self.unsupported(f"a store of {kind}", span)
        if isinstance(value, Raw):
            parts: tuple[Any, ...] = value.parts
        else:
            parts = value if isinstance(kind, Vector) else (value,)
        real, unsure = self.real(mask), self.unsure(mask)
        if unsure is not None:
            unsure = unsure & self.inside(ref, len(parts), mask)
        if not real.any() and (unsure is None or ref.buffer is None):
            return
        buffer, position = self.flat(ref, len(parts), real, span)
        buffer.written = True
        position = np.broadcast_to(position, mask.shape)
        whole = bool(real.all())
        for part, piece in enumerate(parts):
            at = position + part if part else position
            stored = self._viewed(piece, scalar, buffer.scalar, span)
            if buffer.scalar.is_float:
                if unsure is not None:
                    old = self.domain.take(buffer.data, at)
                    stored = self.chosen(real, unsure, stored, old, buffer.scalar, span)
                    self.domain.put(buffer.data, at, stored, unsure & ~real)
                self.domain.put(buffer.data, at, stored, None if whole else real)
            else:
                spread = np.broadcast_to(stored, mask.shape)
                target = at if whole else at[real]
                buffer.data[target] = spread if whole else spread[real]
            if buffer.defined is not None:
                buffer.defined[at if whole else at[real]] = True
            if buffer.stored is not None:
                buffer.stored[at[real if unsure is None else real | unsure]] = True
            self._check_conflict(buffer, at, stored, real, span)

    @staticmethod
    def inside(ref: Ref, scalars: int, mask: Mask) -> Mask:
        """The lanes whose access lies in the buffer."""
        size = ref.buffer.size if ref.buffer is not None else 0
        return mask & (ref.offset >= 0) & (ref.offset <= size - scalars)

    def _check_conflict(
        self, buffer: Buffer, at: Array, stored: Any, mask: Mask, span: Span
    ) -> None:
        """Report lanes whose store another lane of the same statement overwrote."""
        if buffer.space == "private":
            return
        if buffer.scalar.is_float:
            there = self.domain.take(buffer.data, at)
            kept = np.asarray(self.domain.to_array(there))
            mine = np.broadcast_to(np.asarray(self.domain.to_array(stored)), mask.shape)
            lost = (kept != mine) & ~((kept != kept) & (mine != mine)) & mask
            if lost.any():
                # One number, rounded on different ways, is no conflict.
                _, unsure = self.domain.compare("equal", there, stored)
                lost = lost if unsure is None else lost & ~unsure
        else:
            lost = (buffer.data[at] != stored) & mask
        if lost.any():
            lane = int(np.argmax(lost))
            index = int(at[lane]) - (0 if buffer.base is None else int(buffer.base[lane]))
            self.report(
                "conflicting-stores",
                f"several threads write different values to element {index} of {buffer.name}",
                span,
                lane,
                buffer=buffer.name,
                index=index,
                size=buffer.size,
            )

    def _viewed(self, value: Any, frm: Scalar, to: Scalar, span: Span) -> Any:
        """The bits of one scalar type as another."""
        if frm.dtype is to.dtype:
            return value
        if frm.size != to.size or DType.BOOL in (frm.dtype, to.dtype):
            raise self.unsupported(f"memory of {frm} accessed as {to}", span)
        whole = value if frm.is_float else self.domain.from_array(np.asarray(value), frm.dtype)
        seen = self.domain.bitcast(whole, to.dtype)
        return seen if to.is_float else np.asarray(self.domain.to_array(seen))

    def stride(self, ref: Ref, element: Type, span: Span) -> int:
        """How many scalars of the buffer one element of a pointer's type takes."""
        if ref.buffer is None:
            return 1
        size, unit = element.size, ref.buffer.scalar.size
        if size % unit:
            raise self.unsupported(f"memory of {ref.buffer.scalar} accessed as {element}", span)
        return size // unit

    def moved(self, ref: Ref, index: Array, element: Type, span: Span) -> Ref:
        """`ref + index` in elements of the pointer's type."""
        stride = self.stride(ref, element, span)
        return Ref(ref.buffer, ref.offset + index.astype(np.int64) * stride)
