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
from migrate.cuda.memory import as_bits, from_bits, regrouped
from migrate.cuda.runtime import (
    Array,
    Event,
    EventKind,
    Lanes,
    Mask,
    Raw,
    Ref,
    Refs,
    Unsupported,
)
from migrate.cuda.types import Array as ArrayType
from migrate.cuda.types import (
    Pointer,
    Routine,
    Scalar,
    Struct,
    Type,
    Vector,
    all_parts,
    part_types,
)
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
            case Vector() | Struct() | ArrayType() if isinstance(value, tuple):
                kinds = part_types(kind)
                return tuple(self.spread(p, k) for p, k in zip(value, kinds, strict=True))
            case Scalar(is_float=True):
                if self.domain.shape(value) == shape:
                    return value
                return self.domain.broadcast(value, shape)
            case Pointer() if isinstance(value, Refs):
                return value
            case Pointer():
                return Ref(value.buffer, np.broadcast_to(value.offset, shape))
            case _:
                return np.broadcast_to(value, shape)

    def opened(self, value: Any, kind: Type, span: Span) -> Any:
        """A value of its own type where memory gave what it really holds."""
        if not isinstance(value, Raw):
            return value
        if value.scalar == kind and len(value.parts) == 1:
            return value.parts[0]
        words = [as_bits(part, value.scalar, self.domain) for part in value.parts]
        return self._leaf(words, value.scalar.size, kind, 0, span)

    def _leaf(self, words: list[Array], size: int, kind: Type, at: int, span: Span) -> Any:
        match kind:
            case Scalar():
                grouped = regrouped(words, size, kind.size)
                if at % kind.size or at // kind.size >= len(grouped):
                    raise self.unsupported(f"memory that is not aligned for {kind}", span)
                return from_bits(np.asarray(grouped[at // kind.size]), kind, self.domain)
            case Vector() | Struct() | ArrayType():
                return tuple(
                    self._leaf(words, size, part.type, at + part.offset, span)
                    for part in all_parts(kind)
                )
            case _:
                raise self.unsupported(f"bits read as {kind}", span)

    def select(self, mask: Array, then: Any, otherwise: Any, kind: Type, span: Span) -> Any:
        """`then` where the mask holds."""
        if isinstance(then, Raw) and isinstance(otherwise, Raw):
            if then.scalar == otherwise.scalar and len(then.parts) == len(otherwise.parts):
                return self._select_raw(mask, then, otherwise, span)
        then, otherwise = self.opened(then, kind, span), self.opened(otherwise, kind, span)
        match kind:
            case Vector() | Struct() | ArrayType():
                return tuple(
                    self.select(mask, a, b, part, span)
                    for a, b, part in zip(then, otherwise, part_types(kind), strict=True)
                )
            case Pointer():
                return self._select_pointer(mask, then, otherwise)
            case Scalar(is_float=True):
                return self.domain.select(mask, then, otherwise)
            case _:
                return np.where(mask, then, otherwise)

    def _select_pointer(self, mask: Array, then: Any, otherwise: Any) -> Any:
        if isinstance(then, Ref) and isinstance(otherwise, Ref):
            if then.buffer is otherwise.buffer:
                return Ref(then.buffer, np.where(mask, then.offset, otherwise.offset))
        shape = (self.lanes.total,)
        chosen = np.broadcast_to(mask, shape)
        found: list[tuple[Mask, Ref]] = []
        for value, lanes in ((then, chosen), (otherwise, ~chosen)):
            parts = value.parts if isinstance(value, Refs) else ((lanes, value),)
            for where, part in parts:
                here = where & lanes
                if not here.any():
                    continue
                known = next((n for n, (_, r) in enumerate(found) if r.buffer is part.buffer), None)
                if known is None:
                    found.append((here, part))
                    continue
                before, ref = found[known]
                offset = np.where(here, part.offset, ref.offset)
                found[known] = (before | here, Ref(part.buffer, offset))
        if not found:
            return then
        return found[0][1] if len(found) == 1 else Refs(tuple(found))

    def _select_raw(self, mask: Array, then: Raw, otherwise: Raw, span: Span) -> Raw:
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
        old = self.opened(old, kind, span)
        match kind:
            case Vector() | Struct() | ArrayType():
                triples = zip(new, old, part_types(kind), strict=True)
                return tuple(self.chosen(real, unsure, a, b, p, span) for a, b, p in triples)
            case Scalar(is_float=True):
                which = self.domain.mark(self.domain.from_array(real, DType.BOOL), unsure)
                return self.domain.select(which, new, old)
            case _:
                return self.select(real, new, old, kind, span)

    def cast(self, value: Any, frm: Type, to: Type, span: Span) -> Any:
        match frm, to:
            case Scalar(), Scalar():
                if frm.dtype is to.dtype:
                    return value
                value = self.opened(value, frm, span)
                if to.is_bool:
                    return self.domain.truth(value)[0] if frm.is_float else value != 0
                if frm.is_float and to.is_float:
                    # PTX has one conversion to tf32, cvt.rna.
                    away = to.dtype is DType.TFLOAT32
                    rule = Rule.NEAREST_AWAY if away else Rule.CUDA
                    return self.domain.cast(value, to.dtype, rule)
                if frm.is_float:
                    converted = self.domain.cast(value, to.dtype, Rule.CUDA)
                    return np.asarray(self.domain.to_array(converted)).astype(to.dtype.numpy)
                if to.is_float:
                    whole = self.domain.from_array(np.asarray(value), frm.dtype)
                    return self.domain.cast(whole, to.dtype, Rule.CUDA)
                return np.asarray(value).astype(to.dtype.numpy)
            case Pointer(), Scalar(is_bool=True):
                return self.not_null(value)
            case _:
                return value

    def not_null(self, value: Ref | Refs) -> Array:
        """Where a pointer points to something."""
        if isinstance(value, Ref):
            return np.asarray(value.buffer is not None)
        whole = np.zeros(self.lanes.total, dtype=np.bool_)
        for where, part in value.parts:
            whole |= where & (part.buffer is not None)
        return whole

    def unary(self, name: str, value: Any, kind: Scalar, span: Span) -> Any:
        value = self.opened(value, kind, span)
        if kind.is_float:
            return self.domain.apply(name, (value,), kind.dtype)
        if name == "logical_not":
            return np.logical_not(value)
        return np.asarray(_integer(name)(value)).astype(kind.dtype.numpy, copy=False)

    def binary(self, name: str, left: Any, right: Any, kind: Scalar, mask: Mask, span: Span) -> Any:
        """An arithmetic operator in `kind`, the type of both operands."""
        left, right = self.opened(left, kind, span), self.opened(right, kind, span)
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

    def compare(
        self, name: str, left: Any, right: Any, kind: Scalar, span: Span
    ) -> tuple[Array, Mask | None]:
        """Where the comparison holds, and where that is within the error bound."""
        left, right = self.opened(left, kind, span), self.opened(right, kind, span)
        if kind.is_float:
            return self.domain.compare(name, left, right)
        return np.asarray(_integer(name)(left, right)), None

    def intrinsic(
        self, entry: IntrinsicEntry, values: tuple[Any, ...], kind: Scalar, span: Span
    ) -> Any:
        assert entry.operator is not None
        values = tuple(self.opened(value, kind, span) for value in values)
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
            case Vector() | Struct() | ArrayType():
                return tuple(self.nothing(part, span) for part in part_types(kind))
            case Pointer():
                return Ref(None, np.asarray(0, dtype=np.int64))
            case Routine():
                return np.asarray(0)
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
