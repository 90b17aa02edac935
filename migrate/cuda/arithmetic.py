"""Arithmetic on lanes: integers exactly, floats through the domain."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from migrate.budget import Meter
from migrate.cuda.intrinsics import IntrinsicEntry
from migrate.cuda.runtime import (
    Array,
    Event,
    EventKind,
    Lanes,
    Mask,
    Raw,
    Ref,
    Unsupported,
)
from migrate.cuda.types import Pointer, Scalar, Type, Vector
from migrate.numerics.casts import Rule
from migrate.numerics.domain import Domain, OperatorError, ulps
from migrate.numerics.dtypes import DType
from migrate.numerics.operators import operator
from migrate.source import Frame as SpanFrame
from migrate.source import Span


@dataclass(slots=True)
class Arithmetic:
    """The state that all lanes of one slice share while it runs, and operations on values."""

    lanes: Lanes
    domain: Domain[Any]
    meter: Meter
    fma: bool
    events: list[Event] = field(default_factory=list)
    reported: set[tuple[str, Span]] = field(default_factory=set)
    calls: list[SpanFrame] = field(default_factory=list)
    # Lanes that took a branch on a comparison within the error bound, and might not have.
    doubt: Mask | None = None
    # Lanes that did not take it and might have: they go along, and what they would write only
    # widens what is there.
    shadow: Mask | None = None

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

    def real(self, mask: Mask) -> Mask:
        """The lanes that are truly there."""
        return mask if self.shadow is None else mask & ~self.shadow

    @contextmanager
    def shadowed(self, more: Mask) -> Iterator[None]:
        """More lanes that only go along."""
        outer = self.shadow
        self.shadow = more if outer is None else outer | more
        try:
            yield
        finally:
            self.shadow = outer

    def unsure(self, mask: Mask) -> Mask | None:
        """The lanes of the mask that might be elsewhere; `None` for no lane."""
        found: Mask | None = None
        for part in (self.doubt, self.shadow):
            if part is not None:
                found = part if found is None else found | part
        if found is None:
            return None
        found = found & mask
        return found if found.any() else None

    def chosen(
        self, real: Mask, unsure: Mask | None, new: Any, old: Any, kind: Type, span: Span
    ) -> Any:
        """`new` for the real lanes, else `old`; with a bound that reaches both where unsure.

        Only floats carry bounds: an integer that hangs on an unsure comparison is exact here.
        """
        if unsure is None or isinstance(new, Raw):
            return self.select(real, new, old, kind, span)
        match kind:
            case Vector(element=element):
                pairs = zip(new, old, strict=True)
                return tuple(self.chosen(real, unsure, a, b, element, span) for a, b in pairs)
            case Scalar(is_float=True):
                which = self.domain.mark(self.domain.from_array(real, DType.BOOL), unsure)
                return self.domain.select(which, new, old)
            case _:
                return self.select(real, new, old, kind, span)

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
            zero = (right == 0) & self.real(mask)
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
