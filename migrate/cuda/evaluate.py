"""Expressions on lanes."""

from __future__ import annotations

from collections.abc import Callable
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
)
from migrate.cuda.conversions import is_place
from migrate.cuda.machine import Machine
from migrate.cuda.places import ComponentPlace, MemoryPlace, Place, Places, VariablePlace
from migrate.cuda.runtime import Array, Frame, Mask, Ref, Refs
from migrate.cuda.types import (
    BOOL,
    UNSIGNED_LONG,
    VOID,
    Member,
    Pointer,
    Scalar,
    parts_of,
)
from migrate.cuda.types import (
    Array as ArrayType,
)

_LEAVES = frozenset({Literal, Name, Builtin})


class Evaluator(Places):
    """Evaluates expressions for the lanes of a mask.

    `invoke` runs a device function's body; it is the statement executor's.
    """

    def __init__(
        self,
        machine: Machine,
        file_scope: Frame,
        invoke: Callable[[Call, Mask], Any],
    ) -> None:
        super().__init__(machine, file_scope)
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
            holds = self._number(expression, mask)
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

    def _opaque(self, node: OpaqueExpression, _mask: Mask) -> Any:
        raise self.machine.unsupported(node.reason, node.span)

    # Operators

    def _unary(self, node: Unary, mask: Mask) -> Any:
        value = self.value(node.operand, mask)
        return self.machine.unary(node.operator, value, node.type, node.span)

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
            a, b = self._number(product.left, mask), self._number(product.right, mask)
            c = self._number(right, mask)
            if operator == "subtract":
                c = domain.apply("negate", (c,), kind.dtype)
        else:
            c = self._number(left, mask)
            a, b = self._number(product.left, mask), self._number(product.right, mask)
            if operator == "subtract":
                a = domain.apply("negate", (a,), kind.dtype)
        return domain.apply("fma", (a, b, c), kind.dtype)

    def _number(self, expression: Expression, mask: Mask) -> Any:
        value = self.value(expression, mask)
        return self.machine.opened(value, expression.type, expression.span)

    def _compared(self, node: Binary, mask: Mask) -> tuple[Array, Mask | None]:
        left = self.value(node.left, mask)
        right = self.value(node.right, mask)
        if isinstance(node.left.type, Pointer):
            if isinstance(left, Refs) or isinstance(right, Refs) or left.buffer is not right.buffer:
                a, b = self.machine.address(left), self.machine.address(right)
            else:
                a, b = left.offset, right.offset
            return self.machine.compare(node.operator, a, b, UNSIGNED_LONG, node.span)
        assert isinstance(node.left.type, Scalar)
        return self.machine.compare(node.operator, left, right, node.left.type, node.span)

    def _pointer_arithmetic(self, node: Binary, mask: Mask) -> Any:
        left = self.value(node.left, mask)
        right = self.value(node.right, mask)
        assert isinstance(node.left.type, Pointer)
        element = node.left.type.element
        if isinstance(node.right.type, Pointer):
            if isinstance(left, Refs) or isinstance(right, Refs) or left.buffer is not right.buffer:
                a, b = self.machine.address(left), self.machine.address(right)
                return (a.astype(np.int64) - b.astype(np.int64)) // element.size
            return np.asarray((left.offset - right.offset) // element.size)
        index = self.machine.opened(right, node.right.type, node.span).astype(np.int64)
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
        frm, to = node.operand.type, node.type
        if isinstance(frm, Pointer) and isinstance(to, Scalar) and not to.is_bool:
            return self.machine.address(value).astype(to.dtype.numpy)
        if isinstance(frm, Scalar) and isinstance(to, Pointer):
            number = self.machine.opened(value, frm, node.span)
            return self.machine.pointer(number, mask, node.span)
        return self.machine.cast(value, frm, to, node.span)

    def _intrinsic(self, node: Intrinsic, mask: Mask) -> Any:
        values = tuple(self.value(argument, mask) for argument in node.arguments)
        kind = node.arguments[0].type
        assert isinstance(kind, Scalar)
        if node.entry.operator in COMPARISONS:
            return self.machine.compare(node.entry.operator, values[0], values[1], kind, node.span)[
                0
            ]
        if node.type.is_bool:
            assert node.entry.operator is not None
            values = tuple(self.machine.opened(value, kind, node.span) for value in values)
            seen = self.machine.domain.apply(node.entry.operator, values, BOOL.dtype)
            return np.asarray(self.machine.domain.to_array(seen)) != 0
        return self.machine.intrinsic(node.entry, values, kind, node.span)

    # Vectors

    def _component(self, node: Component, mask: Mask) -> Any:
        if is_place(node.base):
            # Only the component is read, where it is memory.
            return self.read(self.find(node, mask), mask, node.span)
        whole = self.machine.opened(self.value(node.base, mask), node.base.type, node.span)
        return whole[node.index]

    def _make_vector(self, node: MakeVector, mask: Mask) -> tuple[Any, ...]:
        return tuple(self.value(part, mask) for part in node.parts)

    # Memory

    def _element(self, node: Element, mask: Mask) -> Any:
        if isinstance(node.base.type, ArrayType):
            base = self.value(node.base, mask)
            if isinstance(base, tuple):
                return self._chosen_element(node, base, mask)
            index = self.value(node.index, mask)
            index = self.machine.opened(index, node.index.type, node.span)
            ref = self.machine.moved(base, index, node.type, node.span)
        else:
            ref = self._element_ref(node, mask)
        if isinstance(node.type, ArrayType):
            return ref
        return self.machine.load(ref, node.type, mask, node.span)

    def _chosen_element(self, node: Element, parts: tuple[Any, ...], mask: Mask) -> Any:
        """An element of an array that a function returned."""
        index = self.machine.opened(self.value(node.index, mask), node.index.type, node.span)
        number = np.broadcast_to(index.astype(np.int64), mask.shape)
        outside = ((number < 0) | (number >= len(parts))) & self.machine.real(mask)
        if outside.any() or not parts:
            raise self.machine.unsupported("an element outside of an array", node.span)
        made = parts[0]
        for position in range(1, len(parts)):
            here = number == position
            if here.any():
                made = self.machine.select(here, parts[position], made, node.type, node.span)
        return made

    def _address(self, node: Address, mask: Mask) -> Ref | Refs:
        place = self.find(node.place, mask)
        match place:
            case MemoryPlace(ref=ref):
                return ref
            case VariablePlace(frame=frame, variable=variable):
                return self._spill(frame, variable, node.span)
            case ComponentPlace():
                parts: list[Member] = []
                inner: Place = place
                while isinstance(inner, ComponentPlace):
                    parts.append(parts_of(inner.whole)[inner.index])
                    inner = inner.base
                assert isinstance(inner, VariablePlace)
                whole = self._spill(inner.frame, inner.variable, node.span)
                for part in reversed(parts):
                    whole = self.machine.member(whole, part)
                return whole

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
            index = self._number(node.value, mask).astype(np.int64)
            moved = -index if node.operator == "subtract" else index
            value = self.machine.moved(old, moved, node.compute.element, node.span)
        else:
            assert isinstance(node.compute, Scalar)
            left = self.machine.opened(old, node.target.type, node.span)
            left = self.machine.cast(left, node.target.type, node.compute, node.span)
            made = self._combined(node, left, node.compute, mask)
            value = self.machine.cast(made, node.compute, node.type, node.span)
        self.write(place, value, mask, node.span)
        return value

    def _combined(self, node: Assign, left: Any, kind: Scalar, mask: Mask) -> Any:
        assert node.operator is not None
        fusable = node.operator in ("add", "subtract") and self.machine.fma and kind.is_float
        product = _product(node.value, kind) if fusable else None
        if product is not None:
            domain = self.machine.domain
            a, b = self._number(product.left, mask), self._number(product.right, mask)
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
        values = tuple(self._number(value, mask) for value in node.values)
        return warp.atomic(self.machine, node, pointer, values, mask, wanted=wanted)

    def _holding(self, given: Expression, mask: Mask) -> Mask:
        """The lanes that have a value to exchange: often only one of them has, which all read."""
        while isinstance(given, Cast):
            given = given.operand
        if isinstance(given, Name) and given.variable.id >= 0:
            slot = self.frame.slots.get(given.variable.id)
            if slot is not None and slot.defined is not None:
                return mask & slot.defined
        return mask

    def _shuffle(self, node: Shuffle, mask: Mask) -> Any:
        warp.check_participants(self.machine, node, self.value(node.participants, mask), mask)
        value = self._number(node.value, self._holding(node.value, mask))
        lane = self._number(node.lane, mask) if node.lane is not None else None
        width = self._number(node.width, mask) if node.width is not None else None
        return warp.shuffle(self.machine, node, value, lane, width, mask)


def _product(expression: Expression, kind: Scalar) -> Binary | None:
    """The expression if it is a product of two `kind`s."""
    if isinstance(expression, Binary) and expression.operator == "multiply":
        return expression if expression.type == kind else None
    return None
