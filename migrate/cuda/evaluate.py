"""Expressions on lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from migrate.cuda import warp
from migrate.cuda.ast import (
    COMPARISONS,
    Address,
    Assign,
    Atomic,
    Binary,
    Builtin,
    Call,
    Cast,
    Comma,
    Component,
    Conditional,
    Element,
    Expression,
    Intrinsic,
    Literal,
    Logical,
    MakeVector,
    Name,
    OpaqueExpression,
    Shuffle,
    Step,
    Unary,
    Variable,
)
from migrate.cuda.machine import Machine
from migrate.cuda.runtime import Array, Frame, Mask, Raw, Ref, Slot
from migrate.cuda.types import (
    BOOL,
    VOID,
    Pointer,
    Scalar,
    Type,
    Vector,
)
from migrate.cuda.types import (
    Array as ArrayType,
)
from migrate.source import Span


@dataclass(frozen=True, slots=True)
class VariablePlace:
    frame: Frame
    variable: Variable


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    ref: Ref
    type: Type


@dataclass(frozen=True, slots=True)
class ComponentPlace:
    base: Place
    vector: Vector
    index: int


Place = VariablePlace | MemoryPlace | ComponentPlace

_LEAVES = frozenset({Literal, Name, Builtin})


class Evaluator:
    """Evaluates expressions for the lanes of a mask.

    `invoke` runs a device function's body; it is the statement executor's.
    """

    def __init__(
        self,
        machine: Machine,
        file_scope: Frame,
        invoke: Callable[[Call, Mask], Any],
    ) -> None:
        self.machine = machine
        self.frame = file_scope
        self.file_scope = file_scope
        self._invoke = invoke
        # Measured: a step is about half a microsecond of one core, so that loops without end
        # stop in seconds; up to two with many lanes, whose kernels have work to do.
        lanes, effort = machine.lanes.total, machine.domain.effort
        self._integer_steps = 8 + lanes // 2048
        self._float_steps = 16 + 48 * effort + lanes * effort // 384
        self._handlers: dict[type, Callable[[Any, Mask], Any]] = {
            Literal: self._literal,
            Name: self._name,
            Builtin: self._builtin,
            Unary: self._unary,
            Binary: self._binary,
            Logical: self._logical,
            Conditional: self._conditional,
            Comma: self._comma,
            Assign: self._assign,
            Step: self._step,
            Cast: self._cast,
            Element: self._element,
            Address: self._address,
            Component: self._component,
            MakeVector: self._make_vector,
            Intrinsic: self._intrinsic,
            Call: self._call,
            Atomic: self._atomic,
            Shuffle: self._shuffle,
            OpaqueExpression: self._opaque,
        }

    def value(self, expression: Expression, mask: Mask) -> Any:
        """The expression's value; what lanes outside the mask get means nothing."""
        kind = type(expression)
        if kind not in _LEAVES:
            floats = isinstance(expression.type, Scalar) and expression.type.is_float
            self.machine.meter.step(self._float_steps if floats else self._integer_steps)
        return self._handlers[kind](expression, mask)

    def discard(self, expression: Expression, mask: Mask) -> None:
        """Evaluate an expression for what it does."""
        if isinstance(expression, Atomic):
            self.machine.meter.step(self._float_steps)
            self._atomic(expression, mask, wanted=False)
        else:
            self.value(expression, mask)

    def truth(self, expression: Expression, mask: Mask) -> tuple[Mask, Mask | None]:
        """Where a condition holds (of the mask's lanes), and where that is in doubt."""
        doubt: Mask | None = None
        if isinstance(expression, Binary) and expression.operator in COMPARISONS:
            holds, unsure = self._compared(expression, mask)
            doubt = None if unsure is None else np.broadcast_to(unsure, mask.shape) & mask
        elif isinstance(expression, Logical):
            left, first = self.truth(expression.left, mask)
            rest = left if expression.operator == "and" else mask & ~left
            right, second = self.truth(expression.right, rest) if rest.any() else (rest, None)
            both = [part for part in (first, second) if part is not None]
            doubt = None if not both else np.logical_or.reduce(both)
            return right if expression.operator == "and" else left | right, doubt
        elif isinstance(expression, Unary) and expression.operator == "logical_not":
            holds, doubt = self.truth(expression.operand, mask)
            return mask & ~holds, doubt
        else:
            holds = self.value(expression, mask)
        if doubt is not None and not doubt.any():
            doubt = None
        return np.broadcast_to(holds, mask.shape) & mask, doubt

    # Leaves

    def _literal(self, node: Literal, _mask: Mask) -> Any:
        return self.machine.constant(node.value, node.type)

    def _builtin(self, node: Builtin, _mask: Mask) -> Array:
        lanes = self.machine.lanes
        match node.which:
            case "threadIdx":
                return lanes.thread_index[node.axis]
            case "blockIdx":
                return lanes.block_index[node.axis]
            case "blockDim":
                return np.asarray(lanes.block[node.axis], dtype=np.uint32)
            case "gridDim":
                return np.asarray(lanes.grid[node.axis], dtype=np.uint32)

    def _name(self, node: Name, mask: Mask) -> Any:
        return self._read(node.variable, mask, node.span)

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

    def _opaque(self, node: OpaqueExpression, _mask: Mask) -> Any:
        raise self.machine.unsupported(node.reason, node.span)

    # Operators

    def _unary(self, node: Unary, mask: Mask) -> Any:
        return self.machine.unary(node.operator, self.value(node.operand, mask), node.type)

    def _binary(self, node: Binary, mask: Mask) -> Any:
        if node.operator in COMPARISONS:
            return self._compared(node, mask)[0]
        if isinstance(node.left.type, Pointer):
            return self._pointer_arithmetic(node, mask)
        assert isinstance(node.type, Scalar)
        if node.type.is_float and self.machine.fma and node.operator in ("add", "subtract"):
            fused = self._fused(node.operator, node.left, node.right, node.type, mask)
            if fused is not None:
                return fused
        left = self.value(node.left, mask)
        right = self.value(node.right, mask)
        return self.machine.binary(node.operator, left, right, node.type, mask, node.span)

    def _fused(
        self, operator: str, left: Expression, right: Expression, kind: Scalar, mask: Mask
    ) -> Any:
        """`a * b + c` with one rounding, as nvcc contracts by default (-fmad=true).

        Of two products the left one is fused, as LLVM's combiner does.
        """
        domain = self.machine.domain
        product = _product(left, kind) or _product(right, kind)
        if product is None:
            return None
        # The order of evaluation is the source's, whichever side is fused.
        if product is left:
            a, b = self.value(product.left, mask), self.value(product.right, mask)
            c = self.value(right, mask)
            if operator == "subtract":
                c = domain.apply("negate", (c,), kind.dtype)
        else:
            c = self.value(left, mask)
            a, b = self.value(product.left, mask), self.value(product.right, mask)
            if operator == "subtract":
                a = domain.apply("negate", (a,), kind.dtype)
        return domain.apply("fma", (a, b, c), kind.dtype)

    def _compared(self, node: Binary, mask: Mask) -> tuple[Array, Mask | None]:
        left = self.value(node.left, mask)
        right = self.value(node.right, mask)
        if isinstance(node.left.type, Pointer):
            if left.buffer is not right.buffer:
                return np.asarray(node.operator == "not_equal"), None
            return self.machine.compare(node.operator, left.offset, right.offset, BOOL)
        assert isinstance(node.left.type, Scalar)
        return self.machine.compare(node.operator, left, right, node.left.type)

    def _pointer_arithmetic(self, node: Binary, mask: Mask) -> Any:
        left = self.value(node.left, mask)
        right = self.value(node.right, mask)
        assert isinstance(node.left.type, Pointer)
        element = node.left.type.element
        if isinstance(node.right.type, Pointer):
            if left.buffer is not right.buffer:
                raise self.machine.unsupported("pointers into different arrays", node.span)
            stride = self.machine.stride(left, element, node.span)
            return (left.offset - right.offset) // stride
        index = right.astype(np.int64)
        return self.machine.moved(
            left, -index if node.operator == "subtract" else index, element, node.span
        )

    def _logical(self, node: Logical, mask: Mask) -> Array:
        return self.truth(node, mask)[0]

    def _conditional(self, node: Conditional, mask: Mask) -> Any:
        machine = self.machine
        holds, doubt = self.truth(node.condition, mask)
        fails = mask & ~holds
        if doubt is not None:
            with machine.shadowed(doubt & ~holds):
                then = self.value(node.then, holds | doubt)
            with machine.shadowed(doubt & holds):
                otherwise = self.value(node.otherwise, fails | doubt)
            return machine.chosen(holds, doubt, then, otherwise, node.type, node.span)
        if not fails.any():
            return self.value(node.then, mask)
        if not holds.any():
            return self.value(node.otherwise, mask)
        then = self.value(node.then, holds)
        otherwise = self.value(node.otherwise, fails)
        return machine.select(holds, then, otherwise, node.type, node.span)

    def _comma(self, node: Comma, mask: Mask) -> Any:
        self.value(node.first, mask)
        return self.value(node.second, mask)

    def _cast(self, node: Cast, mask: Mask) -> Any:
        value = self.value(node.operand, mask)
        if node.type == VOID:
            return None
        return self.machine.cast(value, node.operand.type, node.type)

    def _intrinsic(self, node: Intrinsic, mask: Mask) -> Any:
        values = tuple(self.value(argument, mask) for argument in node.arguments)
        kind = node.arguments[0].type
        assert isinstance(kind, Scalar)
        if node.entry.operator in COMPARISONS:
            return self.machine.compare(node.entry.operator, values[0], values[1], kind)[0]
        if node.type.is_bool:
            assert node.entry.operator is not None
            seen = self.machine.domain.apply(node.entry.operator, values, BOOL.dtype)
            return np.asarray(self.machine.domain.to_array(seen)) != 0
        return self.machine.intrinsic(node.entry, values, kind)

    # Vectors

    def _component(self, node: Component, mask: Mask) -> Any:
        if isinstance(node.base, Element):
            # Only the component is read from memory.
            return self.read(self.find(node, mask), mask, node.span)
        whole = self.value(node.base, mask)
        if isinstance(whole, Raw):
            reason = f"memory of {whole.scalar} taken apart as {node.base.type}"
            raise self.machine.unsupported(reason, node.span)
        return whole[node.index]

    def _make_vector(self, node: MakeVector, mask: Mask) -> tuple[Any, ...]:
        return tuple(self.value(part, mask) for part in node.parts)

    # Memory

    def _element(self, node: Element, mask: Mask) -> Any:
        ref = self._element_ref(node, mask)
        if isinstance(node.type, ArrayType):
            return ref
        return self.machine.load(ref, node.type, mask, node.span)

    def _element_ref(self, node: Element, mask: Mask) -> Ref:
        base = self.value(node.base, mask)
        index = self.value(node.index, mask)
        return self.machine.moved(base, index, node.type, node.span)

    def _address(self, node: Address, mask: Mask) -> Ref:
        place = self.find(node.place, mask)
        match place:
            case MemoryPlace(ref=ref):
                return ref
            case ComponentPlace(base=MemoryPlace(ref=ref), vector=vector, index=index):
                part = np.asarray(index, dtype=np.int64)
                return self.machine.moved(ref, part, vector.element, node.span)
            case VariablePlace(frame=frame, variable=variable):
                return self._spill(frame, variable, node.span)
            case _:
                raise self.machine.unsupported("the address of a part of a variable", node.span)

    def _spill(self, frame: Frame, variable: Variable, span: Span) -> Ref:
        """Give a variable whose address is taken a place in memory."""
        machine = self.machine
        count = machine.lanes.total
        if isinstance(variable.type, Pointer):
            raise machine.unsupported("the address of a pointer", span)
        from migrate.cuda.types import scalars_in

        slot = frame.slots.pop(variable.id, None)
        held: Type = variable.type
        each = scalars_in(held)
        if slot is not None and isinstance(slot.value, Raw):
            held, each = slot.value.scalar, len(slot.value.parts)
        base = np.arange(count, dtype=np.int64) * each
        buffer = machine.allocate(
            variable.name, held, count, "private", base, each, span=variable.span
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
                if ref is not None:
                    return MemoryPlace(ref, variable.type)
                return VariablePlace(frame, variable)
            case Element():
                return MemoryPlace(self._element_ref(expression, mask), expression.type)
            case Component(base=base, index=index):
                assert isinstance(base.type, Vector)
                return ComponentPlace(self.find(base, mask), base.type, index)
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
                return self.machine.load(ref, kind, mask, span)
            case ComponentPlace(base=MemoryPlace(ref=ref), vector=vector, index=index):
                part = np.asarray(index, dtype=np.int64)
                moved = self.machine.moved(ref, part, vector.element, span)
                return self.machine.load(moved, vector.element, mask, span)
            case ComponentPlace(base=base, index=index):
                return self.read(base, mask, span)[index]

    def write(self, place: Place, value: Any, mask: Mask, span: Span) -> None:
        match place:
            case VariablePlace(frame=frame, variable=variable):
                self.assign(frame, variable, value, mask, span)
            case MemoryPlace(ref=ref, type=kind):
                self.machine.store(ref, value, kind, mask, span)
            case ComponentPlace(base=MemoryPlace(ref=ref), vector=vector, index=index):
                part = np.asarray(index, dtype=np.int64)
                moved = self.machine.moved(ref, part, vector.element, span)
                self.machine.store(moved, value, vector.element, mask, span)
            case ComponentPlace(base=VariablePlace(frame=frame, variable=variable), vector=vector):
                self._write_component(frame, variable, place.index, value, mask, span)
            case _:
                raise self.machine.unsupported("a component of a component", span)

    def _write_component(
        self, frame: Frame, variable: Variable, index: int, value: Any, mask: Mask, span: Span
    ) -> None:
        vector = variable.type
        assert isinstance(vector, Vector)
        slot = frame.slots.get(variable.id)
        old = slot.value if slot is not None else None
        if old is None:
            # Components are assigned one by one; the lanes count as assigned from the first on.
            old = tuple(self.machine.constant(0, vector.element) for _ in range(vector.lanes))
        if isinstance(old, Raw):
            raise self.machine.unsupported("a component of memory of another type", span)
        parts = list(old)
        parts[index] = value
        self.assign(frame, variable, tuple(parts), mask, span)

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

    # Side effects

    def _assign(self, node: Assign, mask: Mask) -> Any:
        if node.operator is None:
            # C++17: the right side is evaluated before the left.
            value = self.value(node.value, mask)
            self.write(self.find(node.target, mask), value, mask, node.span)
            return value
        place = self.find(node.target, mask)
        old = self.read(place, mask, node.target.span)
        if isinstance(node.compute, Pointer):
            index = self.value(node.value, mask).astype(np.int64)
            moved = -index if node.operator == "subtract" else index
            value = self.machine.moved(old, moved, node.compute.element, node.span)
        else:
            assert isinstance(node.compute, Scalar)
            left = self.machine.cast(old, node.target.type, node.compute)
            made = self._combined(node, left, node.compute, mask)
            value = self.machine.cast(made, node.compute, node.type)
        self.write(place, value, mask, node.span)
        return value

    def _combined(self, node: Assign, left: Any, kind: Scalar, mask: Mask) -> Any:
        assert node.operator is not None
        fusable = node.operator in ("add", "subtract") and self.machine.fma and kind.is_float
        product = _product(node.value, kind) if fusable else None
        if product is not None:
            domain = self.machine.domain
            a, b = self.value(product.left, mask), self.value(product.right, mask)
            if node.operator == "subtract":
                a = domain.apply("negate", (a,), kind.dtype)
            return domain.apply("fma", (a, b, left), kind.dtype)
        right = self.value(node.value, mask)
        return self.machine.binary(node.operator, left, right, kind, mask, node.span)

    def _step(self, node: Step, mask: Mask) -> Any:
        place = self.find(node.target, mask)
        old = self.read(place, mask, node.target.span)
        match node.type:
            case Pointer(element=element):
                new = self.machine.moved(old, np.asarray(node.delta), element, node.span)
            case Scalar() as kind:
                one = self.machine.constant(1, kind)
                name = "add" if node.delta > 0 else "subtract"
                new = self.machine.binary(name, old, one, kind, mask, node.span)
            case _:
                raise self.machine.unsupported(f"a step of {node.type}", node.span)
        self.write(place, new, mask, node.span)
        return new if node.prefix else old

    def _call(self, node: Call, mask: Mask) -> Any:
        return self._invoke(node, mask)

    def _atomic(self, node: Atomic, mask: Mask, *, wanted: bool = True) -> Any:
        pointer = self.value(node.pointer, mask)
        values = tuple(self.value(value, mask) for value in node.values)
        return warp.atomic(self.machine, node, pointer, values, mask, wanted=wanted)

    def _shuffle(self, node: Shuffle, mask: Mask) -> Any:
        self.value(node.participants, mask)
        value = self.value(node.value, mask)
        lane = self.value(node.lane, mask) if node.lane is not None else None
        width = self.value(node.width, mask) if node.width is not None else None
        return warp.shuffle(self.machine, node, value, lane, width, mask)


def _product(expression: Expression, kind: Scalar) -> Binary | None:
    """The expression if it is a product of two `kind`s."""
    if isinstance(expression, Binary) and expression.operator == "multiply":
        return expression if expression.type == kind else None
    return None
