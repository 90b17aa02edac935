"""Arithmetic on symbolics: what an operator or a conversion makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from migrate.budget import Meter
from migrate.cuda import ast
from migrate.cuda.lifting.scan import Scans
from migrate.cuda.lifting.symbolic import (
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
    merged,
)
from migrate.cuda.types import Pointer as PointerType
from migrate.cuda.types import Scalar, Struct, Type, Vector
from migrate.ir.index import Index
from migrate.ir.nodes import (
    Buffer,
    Cast,
    Condition,
    Fill,
    Map,
    Op,
    Position,
    Rounding,
    Select,
    Value,
    Version,
)
from migrate.ir.predicate import (
    FALSE,
    TRUE,
    Predicate,
    equal,
    negate,
)
from migrate.numerics.dtypes import DType
from migrate.source import Frame as SpanFrame
from migrate.source import Span

Key = tuple[int, int]


RETURNED = -1_000_000
"""The variable, of every frame, that holds what was returned."""

STAYS = -1_000_001
"""The variable that says whether the thread has not returned from inside a loop."""

GOES_ON = -1_000_002
"""The variable of the outermost loop that says whether it was not left by `break`.

Loops inside have the numbers below.
"""


@dataclass(slots=True)
class State:
    """What lifting knows at a point of the program."""

    variables: dict[Key, Symbolic] = field(default_factory=dict)
    versions: dict[str, Version] = field(default_factory=dict)

    def copy(self) -> State:
        return State(dict(self.variables), dict(self.versions))


def part_types(kind: Type) -> tuple[Type, ...]:
    """The types of a vector's components, or of a struct's members; none for what has no parts."""
    match kind:
        case Vector(element=element, lanes=lanes):
            return (element,) * lanes
        case Struct():
            return tuple(member.type for member in kind.members)
        case _:
            return ()


class Base:
    """The state of lifting, and operations on symbolics."""

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
        # What a reference names: a place in memory, or a variable (or a part of one) of a frame.
        self.references: dict[Key, tuple[ast.Expression, int] | Pointer] = {}
        self.places: dict[Key, str] = {}
        self.frame = 0
        self.calls: list[SpanFrame] = []
        self.made = 0
        self.frames = 0
        self.scans = Scans()

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

    @contextmanager
    def in_frame(self, frame: int) -> Iterator[None]:
        outer, self.frame = self.frame, frame
        try:
            yield
        finally:
            self.frame = outer

    def key(self, variable: ast.Variable) -> Key:
        return (self.frame if variable.id >= 0 else -1, variable.id)

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
            case Raw(scalar=scalar):
                raise self.not_lifted(f"memory of {scalar} accessed as {kind}", span)
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

    def lift(self, expression: ast.Expression) -> Symbolic:
        """An expression; raises `NotLifted`."""
        raise NotImplementedError

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

    def _map(
        self, operator: str, args: tuple[Value, ...], dtype: DType, span: Span, mapping: str = ""
    ) -> Data:
        result = self.fresh(dtype)
        self.emit(Map(result, operator, args, self.at(span), mapping))
        return Data(result)

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

    def _select(
        self, condition: Condition, then: Symbolic, otherwise: Symbolic, kind: Type, span: Span
    ) -> Symbolic:
        if then == otherwise:
            return then
        kinds = part_types(kind)
        if kinds:
            if not (isinstance(then, Parts) and isinstance(otherwise, Parts)):
                raise self.not_lifted(f"a value of {kind}", span)
            parts = zip(then.items, otherwise.items, kinds, strict=True)
            return Parts(tuple(self._select(condition, a, b, k, span) for a, b, k in parts))
        if not isinstance(kind, Scalar):
            raise self.not_lifted("a pointer that depends on a condition", span)
        args = (self.value(then, kind, span), self.value(otherwise, kind, span))
        result = self.fresh(kind.dtype)
        self.emit(Select(result, condition, *args, self.at(span)))
        return Data(result)

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
