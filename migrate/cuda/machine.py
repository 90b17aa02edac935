"""Arithmetic on lanes: integers exactly, floats through the domain, pointers by offset."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from migrate.budget import Meter
from migrate.cuda.intrinsics import IntrinsicEntry
from migrate.cuda.runtime import (
    Array,
    Buffer,
    Event,
    EventKind,
    Fault,
    Lanes,
    Mask,
    Raw,
    Ref,
    Unsupported,
)
from migrate.cuda.types import Pointer, Scalar, Type, Vector, scalar_of, scalars_in
from migrate.numerics.casts import Rule
from migrate.numerics.domain import Domain, OperatorError, ulps
from migrate.numerics.dtypes import DType
from migrate.numerics.operators import operator
from migrate.source import Frame as SpanFrame
from migrate.source import Span


@dataclass(slots=True)
class Machine:
    """The state that all lanes of one slice share while it runs."""

    lanes: Lanes
    domain: Domain[Any]
    meter: Meter
    fma: bool
    events: list[Event] = field(default_factory=list)
    reported: set[tuple[str, Span]] = field(default_factory=set)
    calls: list[SpanFrame] = field(default_factory=list)
    # Lanes whose control flow hung on a comparison within the error bound.
    doubt: Mask | None = None

    # Places and reports

    def place(self, span: Span) -> Span:
        """A span with the calls that led to it."""
        for frame in reversed(self.calls):
            span = span.through(frame)
        return span

    def report(
        self,
        kind: EventKind,
        message: str,
        span: Span,
        lane: int,
        *,
        buffer: str | None = None,
        index: int | None = None,
        size: int | None = None,
    ) -> Event:
        """Record an event once a place."""
        block, thread = self.lanes.where(lane)
        event = Event(kind, message, self.place(span), block, thread, buffer, index, size)
        if (kind, event.span) not in self.reported:
            self.reported.add((kind, event.span))
            self.events.append(event)
        return event

    def unsupported(self, reason: str, span: Span) -> Unsupported:
        return Unsupported(reason, self.place(span))

    # Values

    def constant(self, value: int | float | bool, kind: Scalar) -> Any:
        if kind.is_float:
            return self.domain.constant(value, kind.dtype)
        return np.asarray(value).astype(kind.dtype.numpy)

    def spread(self, value: Any, kind: Type) -> Any:
        """A value with one entry a lane."""
        shape = (self.lanes.total,)
        if isinstance(value, Raw):
            return Raw(value.scalar, tuple(self.spread(p, value.scalar) for p in value.parts))
        match kind:
            case Vector(element=element):
                return tuple(self.spread(part, element) for part in value)
            case Scalar(is_float=True):
                if self.domain.shape(value) == shape:
                    return value
                return self.domain.broadcast(value, shape)
            case Pointer():
                return Ref(value.buffer, np.broadcast_to(value.offset, shape))
            case _:
                return np.broadcast_to(value, shape)

    def select(self, mask: Array, then: Any, otherwise: Any, kind: Type, span: Span) -> Any:
        """`then` where the mask holds."""
        if isinstance(then, Raw) or isinstance(otherwise, Raw):
            return self._select_raw(mask, then, otherwise, span)
        match kind:
            case Vector(element=element):
                return tuple(
                    self.select(mask, a, b, element, span)
                    for a, b in zip(then, otherwise, strict=True)
                )
            case Pointer():
                if then.buffer is otherwise.buffer:
                    return Ref(then.buffer, np.where(mask, then.offset, otherwise.offset))
                raise self.unsupported("a pointer into different arrays in different threads", span)
            case Scalar(is_float=True):
                return self.domain.select(mask, then, otherwise)
            case _:
                return np.where(mask, then, otherwise)

    def _select_raw(self, mask: Array, then: Any, otherwise: Any, span: Span) -> Raw:
        if not (isinstance(then, Raw) and isinstance(otherwise, Raw)):
            raise self.unsupported("memory of another type mixed with values", span)
        if then.scalar != otherwise.scalar or len(then.parts) != len(otherwise.parts):
            raise self.unsupported("memory of several types in one variable", span)
        pairs = zip(then.parts, otherwise.parts, strict=True)
        return Raw(then.scalar, tuple(self.select(mask, a, b, then.scalar, span) for a, b in pairs))

    def doubted(self, value: Any, kind: Type, where: Mask | None) -> Any:
        """A value marked where it hung on a comparison within the error bound."""
        if where is None:
            return value
        if isinstance(value, Raw):
            parts = tuple(self.doubted(part, value.scalar, where) for part in value.parts)
            return Raw(value.scalar, parts)
        match kind:
            case Vector(element=element):
                return tuple(self.doubted(part, element, where) for part in value)
            case Scalar(is_float=True):
                if self.domain.shape(value) != where.shape:
                    value = self.domain.broadcast(value, where.shape)
                return self.domain.mark(value, where)
            case _:
                return value

    # Arithmetic

    def cast(self, value: Any, frm: Type, to: Type) -> Any:
        if isinstance(value, Raw):
            return value
        match frm, to:
            case Scalar(), Scalar():
                if frm.dtype is to.dtype:
                    return value
                if to.is_bool:
                    return self.domain.truth(value)[0] if frm.is_float else value != 0
                if frm.is_float and to.is_float:
                    return self.domain.cast(value, to.dtype, Rule.CUDA)
                if frm.is_float:
                    converted = self.domain.cast(value, to.dtype, Rule.CUDA)
                    return np.asarray(self.domain.to_array(converted)).astype(to.dtype.numpy)
                if to.is_float:
                    whole = self.domain.from_array(np.asarray(value), frm.dtype)
                    return self.domain.cast(whole, to.dtype, Rule.CUDA)
                return np.asarray(value).astype(to.dtype.numpy)
            case Pointer(), Scalar():
                return np.asarray(value.buffer is not None)
            case Scalar(), Pointer():
                return Ref(None, np.asarray(0, dtype=np.int64))
            case _:
                return value

    def unary(self, name: str, value: Any, kind: Scalar) -> Any:
        if kind.is_float:
            return self.domain.apply(name, (value,), kind.dtype)
        if name == "logical_not":
            return np.logical_not(value)
        return np.asarray(_integer(name)(value)).astype(kind.dtype.numpy, copy=False)

    def binary(self, name: str, left: Any, right: Any, kind: Scalar, mask: Mask, span: Span) -> Any:
        """An arithmetic operator in `kind`, the type of both operands."""
        if kind.is_float:
            return self.domain.apply(name, (left, right), kind.dtype)
        if name in ("divide", "fmod"):
            zero = (right == 0) & mask
            if zero.any():
                lane = int(np.argmax(np.broadcast_to(zero, mask.shape)))
                self.report("division-by-zero", "an integer is divided by zero", span, lane)
            right = np.where(right == 0, right.dtype.type(1), right)
        if name in ("left_shift", "right_shift"):
            right = right.astype(left.dtype) if right.dtype != left.dtype else right
        return np.asarray(_integer(name)(left, right)).astype(kind.dtype.numpy, copy=False)

    def compare(self, name: str, left: Any, right: Any, kind: Scalar) -> tuple[Array, Mask | None]:
        """Where the comparison holds, and where that is within the error bound."""
        if kind.is_float:
            return self.domain.compare(name, left, right)
        return np.asarray(_integer(name)(left, right)), None

    def intrinsic(self, entry: IntrinsicEntry, values: tuple[Any, ...], kind: Scalar) -> Any:
        assert entry.operator is not None
        if not kind.is_float:
            return np.asarray(_integer(entry.operator)(*values)).astype(
                kind.dtype.numpy, copy=False
            )
        return self.domain.apply(
            entry.operator, values, kind.dtype, error=_error(entry, kind.dtype)
        )

    # Memory

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
        value = self.doubted(value, kind, None if self.doubt is None else self.doubt & mask)
        if isinstance(value, Raw):
            parts: tuple[Any, ...] = value.parts
        else:
            parts = value if isinstance(kind, Vector) else (value,)
        buffer, position = self.flat(ref, len(parts), mask, span)
        buffer.written = True
        position = np.broadcast_to(position, mask.shape)
        whole = bool(mask.all())
        for part, piece in enumerate(parts):
            at = position + part if part else position
            stored = self._viewed(piece, scalar, buffer.scalar, span)
            if buffer.scalar.is_float:
                self.domain.put(buffer.data, at, stored, None if whole else mask)
            else:
                target = at if whole else at[mask]
                buffer.data[target] = (
                    np.broadcast_to(stored, mask.shape)
                    if whole
                    else np.broadcast_to(stored, mask.shape)[mask]
                )
            if buffer.defined is not None:
                buffer.defined[at if whole else at[mask]] = True
            self._check_conflict(buffer, at, stored, mask, span)

    def _check_conflict(
        self, buffer: Buffer, at: Array, stored: Any, mask: Mask, span: Span
    ) -> None:
        """Report lanes whose store another lane of the same statement overwrote."""
        if buffer.space == "private":
            return
        if buffer.scalar.is_float:
            kept = np.asarray(self.domain.to_array(self.domain.take(buffer.data, at)))
            mine = np.broadcast_to(np.asarray(self.domain.to_array(stored)), mask.shape)
            lost = (kept != mine) & ~((kept != kept) & (mine != mine)) & mask
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

    def nothing(self, kind: Type, span: Span) -> Any:
        """A value for lanes that are not there."""
        match kind:
            case Scalar():
                return self.constant(0, kind)
            case Vector(element=element, lanes=lanes):
                return (self.constant(0, element),) * lanes
            case Pointer():
                return Ref(None, np.asarray(0, dtype=np.int64))
            case _:
                raise self.unsupported(f"a value of {kind}", span)

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


@functools.cache
def _integer(name: str) -> Any:
    found = operator(name).integers
    if found is None:
        raise ValueError(f"{name} is no operator on integers")
    return found


@functools.cache
def _error(entry: IntrinsicEntry, dtype: DType) -> OperatorError | None:
    if not (entry.ulp or entry.absolute or entry.ulp_slope):
        return None
    if entry.ulp_slope:
        unit = dtype.unit_roundoff

        def relative(first: Array) -> Array:
            grown = entry.ulp + np.floor(np.abs(entry.ulp_slope * np.asarray(first)))
            return np.asarray((2.0 * grown + 1.0) * unit)

        return OperatorError(relative, entry.absolute)
    return ulps(entry.ulp, dtype=dtype, absolute=entry.absolute)
