"""Expressions lifted: indices stay symbolic, the rest becomes operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from migrate.cuda import ast
from migrate.cuda.ast import COMPARISONS
from migrate.cuda.lifting.memory import is_place
from migrate.cuda.lifting.places import Places
from migrate.cuda.lifting.symbolic import (
    Data,
    Number,
    Parts,
    Pointer,
    Symbolic,
    Truth,
    Unknown,
    Unset,
    chosen,
    from_here,
    merged,
)
from migrate.cuda.types import BOOL, INT, Array, Scalar, Type
from migrate.cuda.types import Pointer as PointerType
from migrate.ir.index import Index, TooComplex, maximum, minimum
from migrate.ir.nodes import (
    Cast,
    Condition,
    Fill,
    Guard,
    Map,
    Merge,
    Position,
    Select,
    Value,
    Version,
)
from migrate.ir.predicate import (
    FALSE,
    TRUE,
    Predicate,
    at_least,
    both,
    either,
    equal,
    indices,
    less,
    negate,
)
from migrate.numerics.dtypes import DType
from migrate.source import Span

ALIGNED = 256
"""Bytes that every array's address is a multiple of (CUDA C++ Programming Guide, "Size and
Alignment Requirement"), which lets a kernel ask whether a wider access may be made."""

PURE = (Map, Cast, Fill, Position, Select)


class Expressions(Places):
    """Lifts expressions into a growing list of operations."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._handlers: dict[type, Callable[[Any], Symbolic]] = {
            ast.Literal: self._literal,
            ast.Name: self._name,
            ast.Builtin: self._builtin,
            ast.Unary: self._unary,
            ast.Binary: self._binary,
            ast.Logical: self._logical,
            ast.Conditional: self._conditional,
            ast.Comma: self._comma,
            ast.Assign: self._assign,
            ast.Step: self._step,
            ast.Cast: self._cast,
            ast.Element: self._element,
            ast.Address: self._address,
            ast.Component: self._component,
            ast.MakeVector: self._make_vector,
            ast.Intrinsic: self._intrinsic,
            ast.Call: self._call,
            ast.Atomic: self._atomic,
            ast.Shuffle: self._shuffle,
            ast.OpaqueExpression: self._opaque,
        }

    def truth(self, expression: ast.Expression) -> Condition:
        """An expression as a condition."""
        return self.condition(self.lift(expression), expression.type, expression.span)

    def data(self, expression: ast.Expression) -> Value:
        """An expression as a value of its own type."""
        symbolic = self.lift(expression)
        if not isinstance(expression.type, Scalar):
            raise self.not_lifted(f"a value of {expression.type}", expression.span)
        return self.value(symbolic, expression.type, expression.span)

    def lift(self, expression: ast.Expression) -> Symbolic:
        """An expression; raises `NotLifted`."""
        self.meter.step(20)
        try:
            return self._handlers[type(expression)](expression)
        except TooComplex as error:
            raise self.not_lifted(str(error), expression.span) from None
        except ZeroDivisionError:
            raise self.not_lifted("a division by zero", expression.span) from None

    def _literal(self, node: ast.Literal) -> Symbolic:
        if node.type.is_bool:
            return Truth(TRUE if node.value else FALSE, (self.at(node.span),))
        if node.type.is_integer:
            return Number(Index.of(int(node.value)), (self.at(node.span),))
        result = self.fresh(node.type.dtype)
        self.emit(Fill(result, float(node.value), self.at(node.span)))
        return Data(result)

    def _builtin(self, node: ast.Builtin) -> Symbolic:
        index = self.axes.get((node.which, node.axis))
        if index is None:
            index = self.dimensions[(node.which, node.axis)]
        return Number(index, (self.at(node.span),))

    def _name(self, node: ast.Name) -> Symbolic:
        return self.read(node.variable, node.span)

    def read(self, variable: ast.Variable, span: Span) -> Symbolic:
        key = self.key(variable)
        target = self.references.get(key)
        if isinstance(target, Pointer):
            return (
                target
                if isinstance(variable.type, Array)
                else self.load(target, variable.type, span)
            )
        if target is not None:
            with self.in_frame(target[1]):
                return self.lift(target[0])
        buffer = self.places.get(key)
        if buffer is not None:
            pointer = Pointer(buffer, Number(Index.of(0)))
            if isinstance(variable.type, Array):
                return pointer
            return self.load(pointer, variable.type, span)
        found = self.state.variables.get(key)
        if found is None:
            raise self.not_lifted(f"the value of {variable.name} is not known", span)
        if isinstance(found, Unknown):
            raise self.not_lifted(found.reason, span)
        if isinstance(found, Unset) and isinstance(variable.type, Scalar):
            return Data(self.unwritten(variable.type, span))
        return from_here(found, self.at(span))

    def _opaque(self, node: ast.OpaqueExpression) -> Symbolic:
        raise self.not_lifted(node.reason, node.span)

    def _unary(self, node: ast.Unary) -> Symbolic:
        if node.operator == "logical_not":
            condition = self.truth(node.operand)
            if isinstance(condition, Value):
                return self._map("logical_not", (condition,), DType.BOOL, node.span)
            return Truth(negate(condition), (self.at(node.span),))
        operand = self.lift(node.operand)
        if isinstance(operand, Number) and node.operator == "negate":
            return Number(-operand.index, operand.sources)
        value = self.value(operand, node.type, node.span)
        return self._map(node.operator, (value,), node.type.dtype, node.span)

    def _binary(self, node: ast.Binary) -> Symbolic:
        if node.operator in COMPARISONS:
            return self._comparison(node)
        if isinstance(node.left.type, PointerType):
            return self._pointer_arithmetic(node)
        if node.operator in ("fmod", "bitwise_and"):
            address = _address_in(node.left)
            if address is not None:
                return self._alignment(node, address)
        assert isinstance(node.type, Scalar)
        left, right = self.lift(node.left), self.lift(node.right)
        return self.arithmetic(node.operator, left, right, node.type, node.right.type, node.span)

    def _alignment(self, node: ast.Binary, address: ast.Expression) -> Symbolic:
        """How far an address is beyond a multiple: arrays begin at one of `ALIGNED` bytes."""
        pointer, right = self.lift(address), self.lift(node.right)
        limit = right.index.constant if isinstance(right, Number) else None
        if limit is not None and node.operator == "bitwise_and":
            limit += 1
        known = isinstance(pointer, Pointer) and isinstance(pointer.offset, Number)
        if limit is None or limit < 1 or ALIGNED % limit or not known:
            raise self.not_lifted("an address used as a number", node.span)
        assert isinstance(pointer, Pointer)
        assert isinstance(pointer.offset, Number)
        unit = 1 if pointer.buffer is None else self.scalars[pointer.buffer].size
        offset = pointer.offset.index * unit % limit
        return Number(offset.simplify(self.known.ranges), pointer.offset.sources)

    def _comparison(self, node: ast.Binary) -> Symbolic:
        left, right = self.lift(node.left), self.lift(node.right)
        kind = node.left.type
        if isinstance(left, Pointer) and isinstance(right, Pointer):
            if (left.buffer is None) != (right.buffer is None):
                return Truth(TRUE if node.operator == "not_equal" else FALSE)
            if left.buffer != right.buffer:
                raise self.not_lifted("pointers into different arrays are compared", node.span)
            left, right, kind = left.offset, right.offset, INT
        assert isinstance(kind, Scalar)
        left, right = self._number(left), self._number(right)
        if isinstance(left, Number) and isinstance(right, Number):
            exact = self.known.exact(left.index, kind) and self.known.exact(right.index, kind)
            if exact:
                predicate = _compared(node.operator, left.index, right.index)
                sources = merged((self.at(node.span),), left.sources, right.sources)
                return Truth(self._decided(predicate), sources)
        args = (self.value(left, kind, node.span), self.value(right, kind, node.span))
        return self._map(node.operator, args, DType.BOOL, node.span)

    def _pointer_arithmetic(self, node: ast.Binary) -> Symbolic:
        left, right = self.lift(node.left), self.lift(node.right)
        assert isinstance(node.left.type, PointerType)
        if isinstance(right, Pointer):
            if not isinstance(left, Pointer) or left.buffer != right.buffer:
                raise self.not_lifted("pointers into different arrays", node.span)
            stride = self._stride(left, node.left.type.element, node.span)
            if isinstance(left.offset, Number) and isinstance(right.offset, Number):
                return Number(
                    (left.offset.index - right.offset.index) // stride,
                    merged(left.offset.sources, right.offset.sources),
                )
            raise self.not_lifted("a pointer difference that depends on data", node.span)
        if node.operator == "subtract":
            right = self.arithmetic("subtract", Number(Index.of(0)), right, INT, INT, node.span)
        return self.moved(left, right, node.right.type, node.left.type.element, node.span)

    def _logical(self, node: ast.Logical) -> Symbolic:
        left = self.truth(node.left)
        span = self.at(node.span)
        decisive = node.operator == "and"
        if not isinstance(left, Value):
            with self.under(left if decisive else negate(left)):
                right = self.truth(node.right)
            if not isinstance(right, Value):
                joined = both(left, right) if decisive else either(left, right)
                return Truth(joined, (span,))
            first = self.value(Truth(left), BOOL, node.left.span)
            return self._map(f"logical_{node.operator}", (first, right), DType.BOOL, node.span)
        with self.block() as inside:
            condition = self.truth(node.right)
            if not isinstance(condition, Value):
                condition = self.value(Truth(condition), BOOL, node.right.span)
        if all(isinstance(op, PURE) for op in inside):
            self.ops += inside
            return self._map(f"logical_{node.operator}", (left, condition), DType.BOOL, node.span)
        test = left
        if not decisive:
            test = self._map("logical_not", (left,), DType.BOOL, node.span).value
        with self.block() as outside:
            settled = self.value(Truth(FALSE if decisive else TRUE), BOOL, node.span)
        result = self.fresh(DType.BOOL)
        merge = Merge(result, condition, settled)
        self.emit(Guard(test, tuple(inside), span, tuple(outside), (merge,)))
        return Data(result)

    def _conditional(self, node: ast.Conditional) -> Symbolic:
        condition = self.truth(node.condition)
        if condition == TRUE:
            return self.lift(node.then)
        if condition == FALSE:
            return self.lift(node.otherwise)
        if isinstance(condition, Value):
            return self._data_conditional(node, condition)
        before = self.state.copy()
        with self.under(condition):
            then = self.lift(node.then)
        with self.under(negate(condition)):
            otherwise = self.lift(node.otherwise)
        if self._stored_since(before.versions):
            raise self.not_lifted("a store inside ? :", node.span)
        if isinstance(then, Number) and isinstance(otherwise, Number):
            extremum = _extremum(condition, then, otherwise)
            if extremum is not None:
                return extremum
            # What sizes alone choose may decide how often a loop runs.
            if not any(part.axes() for part in indices(condition)):
                index = chosen(condition, then.index, otherwise.index, self.known)
                return Number(index, merged((node.span,), then.sources, otherwise.sources))
        return self._select(condition, then, otherwise, node.type, node.span)

    def _stored_since(self, before: dict[str, Version]) -> bool:
        """Whether memory was written; memory that is new since then was not there before."""
        return any(self.state.versions[name] != version for name, version in before.items())

    def _data_conditional(self, node: ast.Conditional, condition: Value) -> Symbolic:
        before = dict(self.state.versions)
        with self.block() as first:
            then = self._settled(self.lift(node.then), node.type, node.span)
        with self.block() as second:
            otherwise = self._settled(self.lift(node.otherwise), node.type, node.span)
        if self._stored_since(before):
            raise self.not_lifted("a store inside ? :", node.span)
        if all(isinstance(op, PURE) for op in (*first, *second)):
            self.ops += first
            self.ops += second
            return self._select(condition, then, otherwise, node.type, node.span)
        if not (isinstance(then, Data) and isinstance(otherwise, Data)):
            raise self.not_lifted("vectors chosen by data", node.span)
        result = self.fresh(then.value.dtype)
        merge = Merge(result, then.value, otherwise.value)
        self.emit(Guard(condition, tuple(first), self.at(node.span), tuple(second), (merge,)))
        return Data(result)

    def _settled(self, symbolic: Symbolic, kind: Type, span: Span) -> Symbolic:
        if isinstance(kind, Scalar):
            return Data(self.value(symbolic, kind, span))
        return symbolic

    def _comma(self, node: ast.Comma) -> Symbolic:
        self.lift(node.first)
        return self.lift(node.second)

    def _cast(self, node: ast.Cast) -> Symbolic:
        symbolic = self.lift(node.operand)
        return self.cast(symbolic, node.operand.type, node.type, node.span)

    def _intrinsic(self, node: ast.Intrinsic) -> Symbolic:
        entry = node.entry
        assert entry.operator is not None
        arguments = [self.lift(argument) for argument in node.arguments]
        kind = node.arguments[0].type
        assert isinstance(kind, Scalar)
        if kind.is_integer and all(isinstance(argument, Number) for argument in arguments):
            numbers = [argument for argument in arguments if isinstance(argument, Number)]
            exact = all(self.known.exact(number.index, kind) for number in numbers)
            sources = merged(*(number.sources for number in numbers))
            if exact and entry.operator == "maximum_number":
                return Number(maximum(*(number.index for number in numbers)), sources)
            if exact and entry.operator == "minimum_number":
                return Number(minimum(*(number.index for number in numbers)), sources)
        operator = entry.operator
        if kind.is_integer and operator.endswith("_number"):
            operator = operator.removesuffix("_number")
        pairs = zip(arguments, node.arguments, strict=True)
        values = tuple(self.value(argument, kind, source.span) for argument, source in pairs)
        return self._map(operator, values, node.type.dtype, node.span, entry.name)

    def _component(self, node: ast.Component) -> Symbolic:
        if is_place(node) and self.in_memory(node):
            pointer = self.pointer(node)
            return (
                pointer
                if isinstance(node.type, Array)
                else self.load(pointer, node.type, node.span)
            )
        base = self._current(node.base) if is_place(node.base) else self.lift(node.base)
        if not isinstance(base, Parts) or node.index >= len(base.items):
            raise self.not_lifted(f"a component of {node.base.type}", node.span)
        item = base.items[node.index]
        if isinstance(item, Unset) and isinstance(node.type, Scalar):
            return Data(self.unwritten(node.type, node.span))
        if isinstance(item, Unknown):
            raise self.not_lifted(item.reason, node.span)
        return item

    def _make_vector(self, node: ast.MakeVector) -> Symbolic:
        return Parts(tuple(self.lift(part) for part in node.parts))

    def _element(self, node: ast.Element) -> Symbolic:
        pointer = self.pointer(node)
        if isinstance(node.type, Array):
            return pointer
        return self.load(pointer, node.type, node.span)

    def _atomic(self, node: ast.Atomic) -> Symbolic:
        raise self.not_lifted(f"the old value of {node.entry.name} is used", node.span)

    def atomic(self, node: ast.Atomic) -> None:
        """An atomic whose old value nobody uses."""
        operators = {
            "add": "add",
            "subtract": "subtract",
            "maximum_number": "maximum",
            "minimum_number": "minimum",
            "bitwise_and": "bitwise_and",
            "bitwise_or": "bitwise_or",
            "bitwise_xor": "bitwise_xor",
        }
        combine = operators.get(node.entry.operator)
        if combine is None:
            raise self.not_lifted(f"{node.entry.name} is not put into the IR", node.span)
        pointer = self.lift(node.pointer)
        if not isinstance(pointer, Pointer):
            raise self.not_lifted("an atomic on a pointer that is not known", node.span)
        value = self.lift(node.values[0])
        self.store(pointer, value, node.type, node.span, combine)

    def _shuffle(self, node: ast.Shuffle) -> Symbolic:
        raise NotImplementedError

    def _call(self, node: ast.Call) -> Symbolic:
        raise NotImplementedError


def _address_in(expression: ast.Expression) -> ast.Expression | None:
    """The pointer that an integer is made from; `None` where it is made from something else."""
    while isinstance(expression, ast.Cast) and isinstance(expression.type, Scalar):
        if isinstance(expression.operand.type, PointerType):
            return expression.operand
        expression = expression.operand
    return None


def _compared(operator: str, left: Index, right: Index) -> Predicate:
    match operator:
        case "less":
            return less(left, right)
        case "less_equal":
            return at_least(right - left)
        case "greater":
            return less(right, left)
        case "greater_equal":
            return at_least(left - right)
        case "equal":
            return equal(left, right)
        case _:
            return negate(equal(left, right))


def _extremum(condition: Predicate, then: Number, otherwise: Number) -> Number | None:
    """`a < b ? a : b` as a minimum."""
    a, b = then.index, otherwise.index
    sources = merged(then.sources, otherwise.sources)
    if condition in (less(a, b), at_least(b - a)):
        return Number(minimum(a, b), sources)
    if condition in (less(b, a), at_least(a - b)):
        return Number(maximum(a, b), sources)
    return None
