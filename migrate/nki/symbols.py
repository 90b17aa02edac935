"""Numbers that know where they came from.

The specialiser works with concrete values, so loops unroll and conditions resolve, but a
finding must be able to say `M // 128` and to point at the line `TILE = 64`.  A `Number`
is therefore a value, the expression that made it, and the place of that expression.
Expressions are kept as small trees and turned into canonical `Index` form only when
asked for: most numbers are never asked.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from migrate.ir.index import Index, TooComplex, maximum, minimum
from migrate.source import Frame, Source, Span

MAX_WEIGHT = 96
"""Nodes of an expression tree before it is cut to its value.  Longer ones come from
counters carried round a loop; folding recovers those from their values."""

MAX_SOURCES = 12
"""Places that `sources` returns at most."""

MAX_BITS = 64
"""Integers are 32-bit in kernels; host arithmetic on addresses may need more."""


@dataclass(slots=True, eq=False)
class Origin:
    """An expression in the source, its span computed when first asked for."""

    source: Source
    node: ast.expr | ast.stmt | ast.arg
    _span: Span | None = field(default=None, repr=False)

    @property
    def span(self) -> Span:
        if self._span is None:
            node = self.node
            self._span = self.source.span_of_lines(
                node.lineno,
                node.col_offset,
                node.end_lineno or node.lineno,
                node.end_col_offset or node.col_offset,
            )
        return self._span


@dataclass(slots=True, eq=False)
class CallStack:
    """The calls that led to a function body, innermost first; interned by the run."""

    outer: CallStack | None
    origin: Origin
    function: str
    depth: int

    def frames(self) -> tuple[Frame, ...]:
        """The chain for `Span.via`, outermost first."""
        found: list[Frame] = []
        here: CallStack | None = self
        while here is not None:
            span = here.origin.span
            found.append(
                Frame(
                    kind="call",
                    name=here.function,
                    file=span.file,
                    line=span.start_line,
                    column=span.start_column,
                )
            )
            here = here.outer
        return tuple(reversed(found))


@dataclass(slots=True, eq=False)
class Loop:
    """One loop of the specialised program: a source loop reached by one chain of calls.

    `axis` is unique in a run.  `iterator` says what it runs over; `counted` is false for
    loops whose variable is no affine function of the iteration (over a list, `while`).
    """

    axis: str
    iterator: str
    span: Span
    counted: bool

    @property
    def on_device(self) -> bool:
        """Whether only the device knows the trips; `while` is a loop of the host's."""
        return not self.counted and self.iterator in _DEVICE_ITERATORS


_DEVICE_ITERATORS = frozenset(
    {"affine_range", "dynamic_range", "fori_loop", "register_while", "sequential_range"}
    | {"while_loop"}
)

Value: TypeAlias = int | float


class Number:
    """An integer or float of the specialised program.

    `symbolic` is false where the expression has no size or axis in it: then `args` are
    kept for their places only.
    """

    __slots__ = ("_index", "args", "op", "origin", "symbol", "symbolic", "value", "weight")

    def __init__(
        self,
        value: Value,
        op: str = "constant",
        args: tuple[Number, ...] = (),
        origin: Origin | None = None,
        symbol: str = "",
    ) -> None:
        self.value = value
        self.op = op
        self.origin = origin
        self.symbol = symbol
        self.symbolic = bool(symbol)
        self.args = args
        self.weight = 1
        weight = 1
        for arg in args:
            weight += arg.weight
            if arg.symbolic:
                self.symbolic = True
        if weight > MAX_WEIGHT:
            self.args, self.op, self.symbolic, weight = (), "cut", False, 1
        self.weight = weight
        self._index: Index | None = None

    def __repr__(self) -> str:
        return f"Number({self.value}, {self.op!r})"

    @property
    def integral(self) -> bool:
        return isinstance(self.value, int)

    def index(self) -> Index:
        """The canonical expression; the plain value where there is none.

        Raises `TypeError` for a float.
        """
        if self._index is None:
            if not isinstance(self.value, int):
                raise TypeError("a float has no index expression")
            try:
                self._index = _index(self)
            except TooComplex:
                self._index = Index.of(self.value)
        return self._index

    def sources(self) -> tuple[Span, ...]:
        """The places that decided the value, nearest first."""
        return sources((self,))


def sources(numbers: Iterable[Number]) -> tuple[Span, ...]:
    """The places that decided some values: nearest first, what they rest on last."""
    found: dict[Span, None] = {}
    pending = list(numbers)
    seen: set[int] = set()
    while pending and len(found) < MAX_SOURCES:
        following: list[Number] = []
        for number in pending:
            if id(number) not in seen:
                seen.add(id(number))
                if number.origin is not None:
                    found.setdefault(number.origin.span)
                following.extend(number.args)
        pending = following
    return tuple(found)[:MAX_SOURCES]


def over(number: Number, limit: int) -> tuple[Span, ...]:
    """The places that made a number larger than a limit, the cause first.

    That is the nearest constant over the limit that it rests on: in `min(256, n - i)` the
    256 where 128 is allowed.  Without one, nothing bounds the number, and its own place is it.
    """
    found = number.sources()
    pending = [number]
    seen: set[int] = set()
    while pending and len(seen) < MAX_WEIGHT:
        following: list[Number] = []
        for part in pending:
            if id(part) in seen:
                continue
            seen.add(id(part))
            constant = not part.symbolic and part.op != "cut"
            if constant and part.origin is not None and part.value > limit:
                return tuple(dict.fromkeys((part.origin.span, *found)))
            following.extend(part.args)
        pending = following
    return found


def size(name: str, value: int) -> Number:
    """An integer that is fixed for a run and known by name."""
    return Number(value, "symbol", symbol=name)


def axis(loop: Loop, iteration: int, origin: Origin | None = None) -> Number:
    """The position of a loop, counted from 0."""
    return Number(iteration, "axis", (), origin, loop.axis)


def placed(number: Number, origin: Origin) -> Number:
    """The number as it is named at another place: `sources` leads there first."""
    if number.origin is not None and number.origin.node is origin.node:
        return number
    return Number(number.value, "same", (number,), origin)


def sizes_of(number: Number) -> frozenset[str]:
    """The names of the sizes in the expression of a number."""
    found: set[str] = set()
    pending = [number]
    while pending:
        part = pending.pop()
        if part.op == "symbol":
            found.add(part.symbol)
        elif part.symbolic:
            pending.extend(part.args)
    return frozenset(found)


def constant(value: Value, origin: Origin | None = None) -> Number:
    return Number(value, "constant", (), origin)


class ArithmeticFault(Exception):
    """An operation that Python itself would refuse, or that outgrows the bounds."""


def _checked(value: Value) -> Value:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ArithmeticFault(f"an integer needs more than {MAX_BITS} bits")
    return value


def _power(left: Value, right: Value) -> Value:
    if isinstance(left, int) and isinstance(right, int):
        if right >= 0 and left.bit_length() * right > MAX_BITS * 2:
            raise ArithmeticFault(f"an integer needs more than {MAX_BITS} bits")
        result: Value = left**right
        return result
    power = left**right
    if isinstance(power, complex):
        raise ArithmeticFault("a negative number to a fractional power")
    return float(power)


def _shift(left: Value, right: Value) -> int:
    if not isinstance(left, int) or not isinstance(right, int):
        raise ArithmeticFault("shifts take integers")
    if right < 0 or right > MAX_BITS:
        raise ArithmeticFault(f"shift by {right}")
    return left << right


def _whole(left: Value, right: Value) -> tuple[int, int]:
    if not isinstance(left, int) or not isinstance(right, int):
        raise ArithmeticFault("bit operations take integers")
    return left, right


_BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": _power,
    "<<": _shift,
    ">>": lambda a, b: _whole(a, b)[0] >> min(_whole(a, b)[1], 4096),
    "&": lambda a, b: _whole(a, b)[0] & b,  # type: ignore[operator]
    "|": lambda a, b: _whole(a, b)[0] | b,  # type: ignore[operator]
    "^": lambda a, b: _whole(a, b)[0] ^ b,  # type: ignore[operator]
}


def binary(sign: str, left: Number, right: Number, origin: Origin | None = None) -> Number:
    """`left sign right` by Python's rules.  Raises `ArithmeticFault`."""
    try:
        value = _checked(_BINARY[sign](left.value, right.value))
    except OverflowError:
        raise ArithmeticFault("a float is too large") from None
    except (ZeroDivisionError, ValueError) as error:
        raise ArithmeticFault(str(error)) from None
    return Number(value, sign, (left, right), origin)


def unary(sign: str, operand: Number, origin: Origin | None = None) -> Number:
    """`-x`, `+x`, `~x`, `abs`, `int`, `float` or `round` of a number."""
    value = operand.value
    result: Value
    try:
        match sign:
            case "-":
                result = -value
            case "+":
                result = value
            case "abs":
                result = abs(value)
            case "int":
                result = int(value)
            case "float":
                result = float(value)
            case "ceil":
                result = math.ceil(value)
            case "floor":
                result = math.floor(value)
            case "~" if isinstance(value, int):
                result = ~value
            case _:
                raise ArithmeticFault(f"{sign} of a float")
    except (OverflowError, ValueError) as error:
        raise ArithmeticFault(str(error)) from None
    return Number(_checked(result), sign, (operand,), origin)


def extremum(which: str, args: tuple[Number, ...], origin: Origin | None = None) -> Number:
    """`min` or `max` of numbers."""
    values = [arg.value for arg in args]
    chosen = min(values) if which == "min" else max(values)
    return Number(chosen, which, args, origin)


def _named(number: Number) -> Number:
    """The number that names at other places stand for."""
    while number.op == "same":
        number = number.args[0]
    return number


def _index(number: Number) -> Index:
    """Canonical form; subtrees without one stand for their value."""
    value = number.value
    assert isinstance(value, int)
    if number.op == "axis":
        return Index.axis(number.symbol)
    if number.op == "symbol":
        return Index.size(number.symbol)
    if not number.symbolic:
        return Index.of(value)
    if number.op in {"ceil", "floor", "int"} and (quotient := _named(number.args[0])).op == "/":
        # `math.ceil(n / 128)`: exact for the integers that a float holds exactly.
        top, bottom = quotient.args
        if top.integral and bottom.integral and bottom.value > 0 and top.value >= 0:
            rounding = bottom.index() - 1 if number.op == "ceil" else 0
            return (top.index() + rounding) // bottom.index()
    if not all(arg.integral for arg in number.args):
        return Index.of(value)
    args = [arg.index() for arg in number.args]
    match number.op:
        case "+" if len(args) == 2:
            return args[0] + args[1]
        case "-" if len(args) == 2:
            return args[0] - args[1]
        case "-":
            return -args[0]
        case "+" | "int" | "same":
            return args[0]
        case "*":
            return args[0] * args[1]
        case "//":
            return args[0] // args[1]
        case "%":
            return args[0] % args[1]
        case "min":
            return minimum(*args)
        case "max":
            return maximum(*args)
        case _:
            return Index.of(value)
