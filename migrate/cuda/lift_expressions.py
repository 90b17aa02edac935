"""Expressions lifted: indices stay symbolic, the rest becomes operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from migrate.budget import Meter
from migrate.cuda import ast
from migrate.cuda.evaluate import COMPARISONS
from migrate.cuda.symbolic import (
    Data,
    Known,
    NotLifted,
    Number,
    Parts,
    Pointer,
    Raw,
    Symbolic,
    Truth,
    Unknown,
    Unset,
    from_here,
    merged,
)
from migrate.cuda.types import BOOL, INT, Array, Scalar, Type, Vector, scalar_of, scalars_in
from migrate.cuda.types import Pointer as PointerType
from migrate.ir.index import Index, TooComplex, maximum, minimum
from migrate.ir.nodes import (
    Axis,
    Buffer,
    Cast,
    Condition,
    Fill,
    Gather,
    Guard,
    Load,
    Map,
    Merge,
    Op,
    Position,
    Rounding,
    Scatter,
    Select,
    Space,
    Store,
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
    less,
    negate,
)
from migrate.numerics.dtypes import DType
from migrate.source import Frame as SpanFrame
from migrate.source import Span

Key = tuple[int, int]
"""A variable: the call it belongs to, and its id there."""

PURE = (Map, Cast, Fill, Position, Select)
RETURNED = -1_000_000


@dataclass(slots=True)
class State:
    """What lifting knows at a point of the program."""

    variables: dict[Key, Symbolic] = field(default_factory=dict)
    versions: dict[str, Version] = field(default_factory=dict)

    def copy(self) -> State:
        return State(dict(self.variables), dict(self.versions))


class Expressions:
    """Lifts expressions into a growing list of operations."""

    def __init__(
        self,
        axes: dict[tuple[str, int], Index],
        dimensions: dict[tuple[str, int], Index],
        known: Known,
        meter: Meter,
    ) -> None:
        self.axes = axes
        self.dimensions = dimensions
        self.known = known
        self.meter = meter
        self.ops: list[Op] = []
        self.state = State()
        self.buffers: dict[str, Buffer] = {}
        self.leading: dict[str, tuple[Index, ...]] = {}
        self.scalars: dict[str, Scalar] = {}
        self.counts: dict[str, int] = {}
        # Versions that still hold what the kernel was given, and the buffers read in that state.
        self.pristine: set[Version] = set()
        self.loaded: set[str] = set()
        self.stored: set[str] = set()
        self.references: dict[Key, tuple[ast.Expression, int]] = {}
        self.places: dict[Key, str] = {}
        self.frame = 0
        self.calls: list[SpanFrame] = []
        self.made = 0
        self.frames = 0
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

    # Names, places and operations

    def at(self, span: Span) -> Span:
        """A span with the calls that led to it."""
        for frame in reversed(self.calls):
            span = span.through(frame)
        return span

    def fresh(self, dtype: DType) -> Value:
        self.made += 1
        return Value(f"v{self.made}", dtype)

    def emit(self, op: Op) -> None:
        self.meter.step()
        self.ops.append(op)

    def not_lifted(self, reason: str, span: Span) -> NotLifted:
        return NotLifted(reason, self.at(span))

    @contextmanager
    def block(self) -> Iterator[list[Op]]:
        """Operations emitted inside go to a list of their own."""
        outer = self.ops
        self.ops = []
        try:
            yield self.ops
        finally:
            self.ops = outer

    @contextmanager
    def under(self, *facts: Predicate) -> Iterator[None]:
        """Conditions that hold for what is lifted inside."""
        outer = self.known
        self.known = outer.under(*facts)
        try:
            yield
        finally:
            self.known = outer

    def key(self, variable: ast.Variable) -> Key:
        return (self.frame if variable.id >= 0 else -1, variable.id)

    # Symbolic to operations

    def value(self, symbolic: Symbolic, kind: Scalar, span: Span) -> Value:
        """A symbolic as a value of a scalar type."""
        place = self.at(span)
        match symbolic:
            case Data(value=value):
                return value
            case Number(index=index):
                if not self.known.exact(index, kind):
                    # Below zero it wraps: that is what the conversion of the number does.
                    number = self.fresh(DType.INT64)
                    self.emit(Position(number, index, place))
                    result = self.fresh(kind.dtype)
                    self.emit(Cast(result, number, place, Rounding.EXACT))
                    return result
                result = self.fresh(kind.dtype)
                constant = index.constant
                if constant is not None:
                    self.emit(Fill(result, constant, place))
                else:
                    self.emit(Position(result, index, place))
                return result
            case Truth(predicate=predicate):
                if predicate in (TRUE, FALSE):
                    result = self.fresh(kind.dtype)
                    self.emit(Fill(result, predicate == TRUE, place))
                    return result
                one, zero = self.fresh(kind.dtype), self.fresh(kind.dtype)
                result = self.fresh(kind.dtype)
                self.emit(Fill(one, True, place))
                self.emit(Fill(zero, False, place))
                self.emit(Select(result, predicate, one, zero, place))
                return result
            case Unset():
                result = self.fresh(kind.dtype)
                self.emit(Fill(result, float("nan") if kind.is_float else 0, place))
                return result
            case Unknown(reason=reason):
                raise self.not_lifted(reason, span)
            case _:
                raise self.not_lifted("a pointer or vector is used as a number", span)

    def condition(self, symbolic: Symbolic, kind: Type, span: Span) -> Condition:
        """A symbolic as a condition."""
        match symbolic:
            case Truth(predicate=predicate):
                return predicate
            case Number(index=index):
                return negate(equal(index, 0))
            case Pointer(buffer=buffer):
                return TRUE if buffer is not None else FALSE
            case Data(value=value):
                if value.dtype is DType.BOOL:
                    return value
                result = self.fresh(DType.BOOL)
                self.emit(Cast(result, value, self.at(span), Rounding.EXACT))
                return result
            case _:
                assert isinstance(kind, Scalar)
                return self.value(symbolic, kind, span)

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
        self.meter.step()
        try:
            return self._handlers[type(expression)](expression)
        except TooComplex as error:
            raise self.not_lifted(str(error), expression.span) from None
        except ZeroDivisionError:
            raise self.not_lifted("a division by zero", expression.span) from None

    # Leaves

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
        if key in self.references:
            place, frame = self.references[key]
            with self.in_frame(frame):
                return self.lift(place)
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
        return from_here(found, self.at(span))

    @contextmanager
    def in_frame(self, frame: int) -> Iterator[None]:
        outer, self.frame = self.frame, frame
        try:
            yield
        finally:
            self.frame = outer

    def _opaque(self, node: ast.OpaqueExpression) -> Symbolic:
        raise self.not_lifted(node.reason, node.span)

    # Operators

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

    def _map(
        self, operator: str, args: tuple[Value, ...], dtype: DType, span: Span, mapping: str = ""
    ) -> Data:
        result = self.fresh(dtype)
        self.emit(Map(result, operator, args, self.at(span), mapping))
        return Data(result)

    def _binary(self, node: ast.Binary) -> Symbolic:
        if node.operator in COMPARISONS:
            return self._comparison(node)
        if isinstance(node.left.type, PointerType):
            return self._pointer_arithmetic(node)
        assert isinstance(node.type, Scalar)
        left, right = self.lift(node.left), self.lift(node.right)
        return self.arithmetic(node.operator, left, right, node.type, node.right.type, node.span)

    def arithmetic(
        self,
        operator: str,
        left: Symbolic,
        right: Symbolic,
        kind: Scalar,
        right_kind: Type,
        span: Span,
    ) -> Symbolic:
        """An operator on two operands of `kind` (a shift's right side has its own type)."""
        left, right = self._number(left), self._number(right)
        if isinstance(left, Number) and isinstance(right, Number):
            index = self._on_indices(operator, left.index, right.index, kind)
            if index is not None:
                return Number(
                    index.simplify(self.known.ranges), merged(left.sources, right.sources)
                )
        other = right_kind if isinstance(right_kind, Scalar) else kind
        args = (self.value(left, kind, span), self.value(right, other, span))
        return self._map(operator, args, kind.dtype, span)

    @staticmethod
    def _number(symbolic: Symbolic) -> Symbolic:
        """A decided condition as 0 or 1."""
        if isinstance(symbolic, Truth) and symbolic.predicate in (TRUE, FALSE):
            return Number(Index.of(int(symbolic.predicate == TRUE)), symbolic.sources)
        return symbolic

    def _on_indices(self, operator: str, left: Index, right: Index, kind: Scalar) -> Index | None:
        """The index that the operator gives; `None` where that is no index expression."""
        match operator:
            case "add":
                return left + right
            case "subtract":
                return left - right
            case "multiply":
                return left * right
        if not (self.known.natural(left) and self.known.natural(right)):
            return self._constant(operator, left, right, kind)
        amount = right.constant
        match operator:
            # Truncation is flooring where nothing is negative.
            case "divide":
                return left // right
            case "fmod":
                return left % right
            case "left_shift" if amount is not None and amount < 31:
                return left * (1 << amount)
            case "right_shift" if amount is not None and amount < 63:
                return left // (1 << amount)
            case "bitwise_and" if amount is not None and amount & (amount + 1) == 0:
                return left % (amount + 1)
            case "bitwise_and" if (mask := left.constant) is not None and mask & (mask + 1) == 0:
                return right % (mask + 1)
            case _:
                return self._constant(operator, left, right, kind)

    @staticmethod
    def _constant(operator: str, left: Index, right: Index, kind: Scalar) -> Index | None:
        from migrate.cuda.folding import fold

        a, b = left.constant, right.constant
        if a is None or b is None:
            return None
        span = Span(file="", start_line=1, start_column=1, end_line=1, end_column=1)
        made = ast.Binary(
            operator, ast.Literal(a, kind, span), ast.Literal(b, kind, span), kind, span
        )
        value = fold(made, {})
        return None if value is None else Index.of(int(value))

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

    def _decided(self, predicate: Predicate) -> Predicate:
        """The condition, or its truth where the ranges alone decide it."""
        from migrate.ir.predicate import AtLeast

        if isinstance(predicate, AtLeast):
            low, high = predicate.index.bounds(self.known.ranges)
            if low is not None and low >= 0:
                return TRUE
            if high is not None and high < 0:
                return FALSE
        return predicate

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

    def moved(
        self, pointer: Symbolic, index: Symbolic, kind: Type, element: Type, span: Span
    ) -> Pointer:
        """`pointer + index` in elements of the pointer's type."""
        if not isinstance(pointer, Pointer):
            raise self.not_lifted("a pointer whose value is not known", span)
        if pointer.buffer is None:
            return pointer
        stride = self._stride(pointer, element, span)
        index = self._number(index)
        if isinstance(index, Number) and isinstance(kind, Scalar):
            if not self.known.exact(index.index, kind):
                index = Data(self.value(index, kind, span))
        if isinstance(index, Number):
            step = Number(index.index * stride, index.sources)
            if isinstance(pointer.offset, Number):
                total = pointer.offset.index + step.index
                return Pointer(
                    pointer.buffer,
                    Number(total, merged(step.sources, pointer.offset.sources)),
                )
            index = step
        elif stride != 1:
            index = self.arithmetic("multiply", index, Number(Index.of(stride)), INT, INT, span)
        if pointer.offset == Number(Index.of(0)) or (
            isinstance(pointer.offset, Number) and pointer.offset.index.constant == 0
        ):
            if isinstance(index, Data):
                return Pointer(pointer.buffer, index)
        added = self.arithmetic("add", pointer.offset, index, INT, INT, span)
        if not isinstance(added, Number | Data):
            raise self.not_lifted("an index that is no number", span)
        return Pointer(pointer.buffer, added)

    def _stride(self, pointer: Pointer, element: Type, span: Span) -> int:
        if pointer.buffer is None:
            return 1
        unit = self.scalars[pointer.buffer]
        if element.size % unit.size:
            raise self.not_lifted(f"memory of {unit} accessed as {element}", span)
        return element.size // unit.size

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
        if before.versions != self.state.versions:
            raise self.not_lifted("a store inside ? :", node.span)
        if isinstance(then, Number) and isinstance(otherwise, Number):
            chosen = _extremum(condition, then, otherwise)
            if chosen is not None:
                return chosen
        return self._select(condition, then, otherwise, node.type, node.span)

    def _data_conditional(self, node: ast.Conditional, condition: Value) -> Symbolic:
        before = dict(self.state.versions)
        with self.block() as first:
            then = self._settled(self.lift(node.then), node.type, node.span)
        with self.block() as second:
            otherwise = self._settled(self.lift(node.otherwise), node.type, node.span)
        if before != self.state.versions:
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

    def _select(
        self, condition: Condition, then: Symbolic, otherwise: Symbolic, kind: Type, span: Span
    ) -> Symbolic:
        if isinstance(kind, Vector):
            if not (isinstance(then, Parts) and isinstance(otherwise, Parts)):
                raise self.not_lifted(f"a value of {kind}", span)
            pairs = zip(then.items, otherwise.items, strict=True)
            return Parts(tuple(self._select(condition, a, b, kind.element, span) for a, b in pairs))
        if then == otherwise:
            return then
        if not isinstance(kind, Scalar):
            raise self.not_lifted("a pointer that depends on a condition", span)
        args = (self.value(then, kind, span), self.value(otherwise, kind, span))
        result = self.fresh(kind.dtype)
        self.emit(Select(result, condition, *args, self.at(span)))
        return Data(result)

    def _comma(self, node: ast.Comma) -> Symbolic:
        self.lift(node.first)
        return self.lift(node.second)

    def _cast(self, node: ast.Cast) -> Symbolic:
        symbolic = self.lift(node.operand)
        return self.cast(symbolic, node.operand.type, node.type, node.span)

    def cast(self, symbolic: Symbolic, frm: Type, to: Type, span: Span) -> Symbolic:
        """A conversion of C++."""
        if isinstance(to, PointerType):
            if isinstance(symbolic, Number):
                return Pointer(None, Number(Index.of(0)))
            return symbolic
        if not isinstance(to, Scalar) or isinstance(frm, Vector):
            return symbolic
        if to.is_bool:
            condition = self.condition(symbolic, frm, span)
            return Data(condition) if isinstance(condition, Value) else Truth(condition)
        if not isinstance(frm, Scalar):
            raise self.not_lifted(f"a conversion from {frm} to {to}", span)
        symbolic = self._number(symbolic)
        if isinstance(symbolic, Number) and to.is_integer:
            return self._integer_cast(symbolic, frm, to, span)
        if frm.dtype is to.dtype:
            return symbolic
        value = self.value(symbolic, frm, span)
        result = self.fresh(to.dtype)
        if to.is_integer:
            rounding = Rounding.TOWARD_ZERO if frm.is_float else Rounding.EXACT
        else:
            rounding = Rounding.NEAREST_EVEN
        self.emit(Cast(result, value, self.at(span), rounding))
        return Data(result)

    def _integer_cast(self, number: Number, frm: Scalar, to: Scalar, span: Span) -> Symbolic:
        if to.size < 4:
            low, high = number.index.bounds(self.known.ranges)
            bits = to.dtype.bits - (0 if to.is_unsigned else 1)
            floor = 0 if to.is_unsigned else -(1 << bits)
            if low is None or high is None or low < floor or high >= 1 << bits:
                result = self.fresh(to.dtype)
                value = self.value(number, frm, span)
                self.emit(Cast(result, value, self.at(span), Rounding.EXACT))
                return Data(result)
        if to.size > frm.size and not self.known.exact(number.index, frm):
            result = self.fresh(to.dtype)
            self.emit(Cast(result, self.value(number, frm, span), self.at(span), Rounding.EXACT))
            return Data(result)
        # Narrowing to 32 bits keeps the value (sizes are below 2^31), and between signed and
        # unsigned the same bits are meant: whoever needs the number checks its sign.
        return number

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

    # Vectors

    def _component(self, node: ast.Component) -> Symbolic:
        if isinstance(node.base, ast.Element):
            return self.load(self.pointer(node), node.type, node.span)
        base = self.lift(node.base)
        if not isinstance(base, Parts):
            raise self.not_lifted(f"a component of {node.base.type}", node.span)
        return base.items[node.index]

    def _make_vector(self, node: ast.MakeVector) -> Symbolic:
        return Parts(tuple(self.lift(part) for part in node.parts))

    # Memory

    def _element(self, node: ast.Element) -> Symbolic:
        pointer = self.pointer(node)
        if isinstance(node.type, Array):
            return pointer
        return self.load(pointer, node.type, node.span)

    def pointer(self, place: ast.Expression) -> Pointer:
        """The pointer to a place in memory."""
        match place:
            case ast.Element(base=base, index=index, type=kind, span=span):
                return self.moved(self.lift(base), self.lift(index), index.type, kind, span)
            case ast.Component(base=base, index=position, type=kind, span=span):
                number = Number(Index.of(position))
                return self.moved(self.pointer(base), number, INT, kind, span)
            case ast.Name(variable=variable):
                key = self.key(variable)
                if key in self.places:
                    return Pointer(self.places[key], Number(Index.of(0)))
                if key in self.references:
                    target, frame = self.references[key]
                    with self.in_frame(frame):
                        return self.pointer(target)
        raise self.not_lifted("the address of a local variable", place.span)

    def _address(self, node: ast.Address) -> Symbolic:
        return self.pointer(node.place)

    def cells(self, pointer: Pointer, part: int, span: Span) -> tuple[Index | Value, ...]:
        """The index of a buffer's cell, `part` scalars on."""
        assert pointer.buffer is not None
        leading = self.leading[pointer.buffer]
        offset = pointer.offset
        if isinstance(offset, Number):
            return (*leading, offset.index + part)
        value = offset.value
        if part:
            moved = self.arithmetic("add", offset, Number(Index.of(part)), INT, INT, span)
            value = self.value(moved, INT, span)
        return (*leading, value)

    def where(self) -> Predicate:
        """The conditions of expressions around (those of statements are guards)."""
        return both(*self.known.facts[self.guarded :])

    guarded = 0
    """How many of the known facts are guards that the operations stand in."""

    def load(self, pointer: Symbolic, kind: Type, span: Span) -> Symbolic:
        if not isinstance(pointer, Pointer) or pointer.buffer is None:
            raise self.not_lifted("a load through a pointer that is not known", span)
        scalar = scalar_of(kind)
        buffer = pointer.buffer
        held = self.scalars[buffer]
        if scalar is None:
            raise self.not_lifted(f"a load of {kind}", span)
        count = scalars_in(kind)
        raw = held.size != scalar.size and kind.size % held.size == 0
        if raw:
            # Through a pointer of another width memory is only passed on.
            scalar, count = held, kind.size // held.size
        elif scalar.dtype is not held.dtype:
            raise self.not_lifted(f"memory of {held} accessed as {kind}", span)
        items: list[Data] = []
        sources = pointer.offset.sources if isinstance(pointer.offset, Number) else ()
        for part in range(count):
            index = self.cells(pointer, part, span)
            result = self.fresh(scalar.dtype)
            version = self.state.versions[buffer]
            if version in self.pristine:
                self.loaded.add(buffer)
            exact = tuple(item for item in index if isinstance(item, Index))
            if len(exact) == len(index):
                self.emit(Load(result, version, exact, self.at(span), self.where(), sources))
            else:
                self.emit(Gather(result, version, index, self.at(span), self.where(), sources))
            items.append(Data(result))
        if raw:
            return Raw(scalar, tuple(items))
        return Parts(tuple(items)) if isinstance(kind, Vector) else items[0]

    def store(
        self, pointer: Pointer, value: Symbolic, kind: Type, span: Span, combine: str | None = None
    ) -> None:
        if pointer.buffer is None:
            raise self.not_lifted("a store through a null pointer", span)
        scalar = value.scalar if isinstance(value, Raw) else scalar_of(kind)
        buffer = pointer.buffer
        if scalar is None or scalar.dtype is not self.scalars[buffer].dtype:
            raise self.not_lifted(f"memory of {self.scalars[buffer]} accessed as {kind}", span)
        self.stored.add(buffer)
        items = value.items if isinstance(value, Parts | Raw) else (value,)
        sources = pointer.offset.sources if isinstance(pointer.offset, Number) else ()
        for part, item in enumerate(items):
            number = self.value(item, scalar, span)
            index = self.cells(pointer, part, span)
            into = self.state.versions[buffer]
            if combine is not None and into in self.pristine:
                self.loaded.add(buffer)
            result = self.next_version(buffer)
            exact = tuple(piece for piece in index if isinstance(piece, Index))
            place, where = self.at(span), self.where()
            if combine is None and len(exact) == len(index):
                self.emit(Store(result, into, exact, number, place, where, None, sources))
            else:
                self.emit(
                    Scatter(result, into, index, number, place, combine, where, None, sources)
                )

    def next_version(self, buffer: str) -> Version:
        """A new version of a buffer, which is the current one from here on."""
        self.counts[buffer] += 1
        version = Version(buffer, self.counts[buffer])
        self.state.versions[buffer] = version
        return version

    def add_buffer(self, buffer: Buffer, scalar: Scalar, leading: tuple[Index, ...] = ()) -> None:
        self.buffers[buffer.name] = buffer
        self.leading[buffer.name] = leading
        self.scalars[buffer.name] = scalar
        self.counts[buffer.name] = 0
        self.state.versions[buffer.name] = Version(buffer.name, 0)
        self.pristine.add(Version(buffer.name, 0))

    def unique(self, name: str) -> str:
        """A buffer name that is not taken."""
        if name not in self.buffers:
            return name
        number = 2
        while f"{name}.{number}" in self.buffers:
            number += 1
        return f"{name}.{number}"

    # Side effects

    def write(self, target: ast.Expression, value: Symbolic, span: Span) -> None:
        """Assign to a place."""
        match target:
            case ast.Name(variable=variable):
                key = self.key(variable)
                if key in self.references:
                    place, frame = self.references[key]
                    with self.in_frame(frame):
                        self.write(place, value, span)
                elif key in self.places:
                    self.store(self.pointer(target), value, variable.type, span)
                else:
                    self.state.variables[key] = from_here(value, self.at(span))
            case ast.Component(base=ast.Name(variable=variable) as base, index=index) if (
                self.key(variable) not in self.places
            ):
                key = self.key(variable)
                if key in self.references:
                    raise self.not_lifted("a component through a reference", span)
                assert isinstance(base.type, Vector)
                old = self.state.variables.get(key, Unset())
                items: list[Symbolic] = [Unset()] * base.type.lanes
                if isinstance(old, Parts):
                    items = list(old.items)
                items[index] = value
                self.state.variables[key] = Parts(tuple(items))
            case _:
                self.store(self.pointer(target), value, target.type, span)

    def _assign(self, node: ast.Assign) -> Symbolic:
        if node.operator is None:
            value = self.lift(node.value)
            if isinstance(node.type, Scalar) and isinstance(value, Truth | Number):
                # Booleans stay conditions, integers stay indices.
                value = (
                    value if node.type.is_integer else Data(self.value(value, node.type, node.span))
                )
            self.write(node.target, value, node.span)
            return value
        old = self.lift(node.target)
        right = self.lift(node.value)
        if isinstance(node.compute, PointerType):
            if node.operator == "subtract":
                right = self.arithmetic("subtract", Number(Index.of(0)), right, INT, INT, node.span)
            made: Symbolic = self.moved(
                old, right, node.value.type, node.compute.element, node.span
            )
        else:
            assert isinstance(node.compute, Scalar)
            left = self.cast(old, node.target.type, node.compute, node.span)
            computed = self.arithmetic(
                node.operator, left, right, node.compute, node.value.type, node.span
            )
            made = self.cast(computed, node.compute, node.type, node.span)
        self.write(node.target, made, node.span)
        return made

    def _step(self, node: ast.Step) -> Symbolic:
        old = self.lift(node.target)
        one = Number(Index.of(node.delta))
        if isinstance(node.type, PointerType):
            new: Symbolic = self.moved(old, one, INT, node.type.element, node.span)
        elif isinstance(node.type, Scalar):
            amount: Symbolic = one
            if node.type.is_float:
                amount = self.lift(ast.Literal(float(node.delta), node.type, node.span))
            new = self.arithmetic("add", old, amount, node.type, node.type, node.span)
        else:
            raise self.not_lifted(f"a step of {node.type}", node.span)
        self.write(node.target, new, node.span)
        return new if node.prefix else old

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

    # Axes of private and shared storage

    def storage(
        self, name: str, kind: Type, space: Space, axes: tuple[Axis, ...], span: Span,
        size: Index | None = None,
    ) -> str:  # fmt: skip
        """A scratch buffer with one instance for each point of the axes."""
        scalar = scalar_of(kind)
        if scalar is None:
            raise self.not_lifted(f"storage of {kind}", span)
        extent = size if size is not None else Index.of(scalars_in(kind))
        unique = self.unique(name)
        shape = (*(axis.extent for axis in axes), extent)
        buffer = Buffer(unique, shape, scalar.dtype, space, "scratch", self.at(span))
        self.add_buffer(buffer, scalar, tuple(Index.axis(axis.name) for axis in axes))
        return unique


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
