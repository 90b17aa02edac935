"""Places: what can be assigned to, found once and then read or written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from migrate.cuda.ast import (
    Component,
    Element,
    Expression,
    Name,
    Variable,
)
from migrate.cuda.machine import Machine
from migrate.cuda.runtime import Frame, Mask, Ref, Refs, Slot
from migrate.cuda.types import (
    Array as ArrayType,
)
from migrate.cuda.types import (
    Struct,
    Type,
    in_memory,
    parts_of,
)
from migrate.source import Span


@dataclass(frozen=True, slots=True)
class VariablePlace:
    frame: Frame
    variable: Variable


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    ref: Ref | Refs
    type: Type


@dataclass(frozen=True, slots=True)
class ComponentPlace:
    """A part of a variable that is no memory."""

    base: VariablePlace | ComponentPlace
    whole: Type
    index: int


Place = VariablePlace | MemoryPlace | ComponentPlace


class Places:
    """The variables and the memory that an expression can name.

    `frame` is that of the call being run; `value` evaluates an expression.
    """

    def __init__(self, machine: Machine, file_scope: Frame) -> None:
        self.machine = machine
        self.frame = file_scope
        self.file_scope = file_scope

    def value(self, expression: Expression, mask: Mask) -> Any:
        """The expression's value."""
        raise NotImplementedError

    def _read(self, variable: Variable, mask: Mask, span: Span) -> Any:
        frame = self.frame if variable.id >= 0 else self.file_scope
        buffer = frame.buffers.get(variable.id)
        if buffer is not None:
            if isinstance(variable.type, ArrayType):
                return buffer
            return self.machine.load(buffer, variable.type, mask, span)
        place = frame.places.get(variable.id)
        if place is not None:
            return self.read(place, mask, span)
        slot = frame.slots.get(variable.id)
        if slot is None and isinstance(variable.type, Struct) and not variable.type.members:
            return ()
        if slot is None:
            raise self.machine.unsupported(f"{variable.name} has no storage here", span)
        if slot.defined is not None:
            undefined = self.machine.real(mask) & ~slot.defined
            if undefined.any():
                self.machine.report(
                    "uninitialised",
                    f"{variable.name} is read before it is assigned",
                    span,
                    int(np.argmax(undefined)),
                )
        return slot.value

    def _element_ref(self, node: Element, mask: Mask) -> Ref | Refs:
        base = self.value(node.base, mask)
        index = self.value(node.index, mask)
        if isinstance(base, tuple):
            raise self.machine.unsupported("an element of an array that is a value", node.span)
        index = self.machine.opened(index, node.index.type, node.span)
        return self.machine.moved(base, index, node.type, node.span)

    def _spill(self, frame: Frame, variable: Variable, span: Span) -> Ref | Refs:
        """Give a variable whose address is taken a place in memory."""
        machine = self.machine
        count = machine.lanes.total
        already = frame.buffers.get(variable.id)
        if already is not None:
            return already
        slot = frame.slots.pop(variable.id, None)
        buffer = machine.allocate(
            variable.name or "a temporary",
            variable.type,
            count,
            "private",
            np.arange(count, dtype=np.int64),
        )
        ref = Ref(buffer, np.asarray(0, dtype=np.int64))
        frame.buffers[variable.id] = ref
        if slot is not None and slot.value is not None:
            mask = machine.lanes.everyone if slot.defined is None else slot.defined
            machine.store(ref, slot.value, variable.type, mask, span)
        return ref

    def find(self, expression: Expression, mask: Mask) -> Place:
        """The place that an expression names, its subscripts evaluated once."""
        match expression:
            case Name(variable=variable):
                frame = self.frame if variable.id >= 0 else self.file_scope
                found = frame.places.get(variable.id)
                if found is not None:
                    return found  # type: ignore[no-any-return]
                ref = frame.buffers.get(variable.id)
                if ref is None and in_memory(variable.type) and variable.id >= 0:
                    # A temporary: it comes into being when it is first written.
                    ref = self._spill(frame, variable, expression.span)
                if ref is not None:
                    return MemoryPlace(ref, variable.type)
                return VariablePlace(frame, variable)
            case Element():
                return MemoryPlace(self._element_ref(expression, mask), expression.type)
            case Component(base=base, index=index):
                place = self.find(base, mask)
                if isinstance(place, MemoryPlace):
                    part = parts_of(base.type)[index]
                    return MemoryPlace(self.machine.member(place.ref, part), part.type)
                return ComponentPlace(place, base.type, index)
            case _:
                raise self.machine.unsupported("this is no place", expression.span)

    def read(self, place: Place, mask: Mask, span: Span) -> Any:
        match place:
            case VariablePlace(frame=frame, variable=variable):
                slot = frame.slots.get(variable.id)
                if slot is not None and slot.defined is None:
                    return slot.value
                current, self.frame = self.frame, frame
                try:
                    return self._read(variable, mask, span)
                finally:
                    self.frame = current
            case MemoryPlace(ref=ref, type=kind):
                if isinstance(kind, ArrayType):
                    return ref
                return self.machine.load(ref, kind, mask, span)
            case ComponentPlace(base=base, whole=whole, index=index):
                held = self.machine.opened(self.read(base, mask, span), whole, span)
                return held[index]

    def write(self, place: Place, value: Any, mask: Mask, span: Span) -> None:
        match place:
            case VariablePlace(frame=frame, variable=variable):
                moved = frame.buffers.get(variable.id)
                if moved is not None:
                    # Its address was taken since the place was found.
                    self.machine.store(moved, value, variable.type, mask, span)
                else:
                    self.assign(frame, variable, value, mask, span)
            case MemoryPlace(ref=ref, type=kind):
                self.machine.store(ref, value, kind, mask, span)
            case ComponentPlace():
                path: list[int] = []
                inner: Place = place
                while isinstance(inner, ComponentPlace):
                    path.append(inner.index)
                    inner = inner.base
                assert isinstance(inner, VariablePlace)
                moved = inner.frame.buffers.get(inner.variable.id)
                if moved is not None:
                    kind = inner.variable.type
                    for index in path[::-1]:
                        part = parts_of(kind)[index]
                        moved, kind = self.machine.member(moved, part), part.type
                    self.machine.store(moved, value, kind, mask, span)
                    return
                self._write_component(inner.frame, inner.variable, path[::-1], value, mask, span)

    def _write_component(
        self,
        frame: Frame,
        variable: Variable,
        path: list[int],
        value: Any,
        mask: Mask,
        span: Span,
    ) -> None:
        slot = frame.slots.get(variable.id)
        old = slot.value if slot is not None else None
        if old is None:
            # Components are assigned one by one; the lanes count as assigned from the first on.
            old = self.machine.nothing(variable.type, span)
        old = self.machine.opened(old, variable.type, span)
        self.assign(frame, variable, _with(old, path, value), mask, span)

    def assign(self, frame: Frame, variable: Variable, value: Any, mask: Mask, span: Span) -> None:
        """Set a variable for the lanes of the mask."""
        machine = self.machine
        slot = frame.slots.get(variable.id)
        if slot is None:
            slot = frame.slots[variable.id] = Slot(None, np.zeros_like(mask))
        real, unsure = machine.real(mask), machine.unsure(mask)
        if slot.value is None or (unsure is None and real.all()):
            slot.value = value
            slot.defined = None if real.all() else real.copy()
            return
        if unsure is None and slot.defined is not None and not (slot.defined & ~real).any():
            # Nobody else has a value to keep.
            slot.value = value
        else:
            slot.value = machine.chosen(real, unsure, value, slot.value, variable.type, span)
        if slot.defined is not None:
            slot.defined = slot.defined | real
            if slot.defined.all():
                slot.defined = None


def _with(value: tuple[Any, ...], path: list[int], part: Any) -> tuple[Any, ...]:
    """A copy of a nested value with one part replaced."""
    index, rest = path[0], path[1:]
    made = _with(value[index], rest, part) if rest else part
    return (*value[:index], made, *value[index + 1 :])
