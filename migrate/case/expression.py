"""Size expressions of a case: `"ceil_div(N, 256)"` over the case's sizes.

    expression := unary { operator unary }        operator: + - * // %
    unary      := '-' unary | primary
    primary    := integer | name | '(' expression ')' | call
    call       := ('min' | 'max' | 'ceil_div') '(' expression { ',' expression } ')'

`//` and `%` round toward negative infinity, as in Python.  Everything is bounded: the
text by `MAX_LENGTH`, nesting by `MAX_NESTING`, every intermediate value by
`MAX_MAGNITUDE`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from migrate.ir import index as ix
from migrate.ir.index import Index

MAX_LENGTH: Final = 1000
MAX_NESTING: Final = 50
MAX_MAGNITUDE: Final = 2**62

Operator = Literal["+", "-", "*", "//", "%"]
Function = Literal["min", "max", "ceil_div"]

_TOKEN = re.compile(r"\s*(?:(?P<int>[0-9]+)|(?P<name>[^\W\d]\w*)|(?P<mark>//|[-+*%(),]))")
_BINDING: Final[dict[str, int]] = {"+": 10, "-": 10, "*": 20, "//": 20, "%": 20}
_ARITY: Final[dict[str, tuple[int, int]]] = {"min": (1, 16), "max": (1, 16), "ceil_div": (2, 2)}


class ExpressionError(ValueError):
    """What is wrong with an expression, and where: `position` counts characters from 0."""

    def __init__(self, message: str, text: str, position: int) -> None:
        super().__init__(f"{message} (at character {position + 1} of {text!r})")
        self.message = message
        self.text = text
        self.position = position


@dataclass(frozen=True, slots=True)
class Number:
    value: int
    position: int


@dataclass(frozen=True, slots=True)
class Name:
    name: str
    position: int


@dataclass(frozen=True, slots=True)
class Negative:
    operand: Node
    position: int


@dataclass(frozen=True, slots=True)
class Binary:
    operator: Operator
    left: Node
    right: Node
    position: int


@dataclass(frozen=True, slots=True)
class Call:
    function: Function
    arguments: tuple[Node, ...]
    position: int


Node: TypeAlias = Number | Name | Negative | Binary | Call


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression."""

    text: str
    root: Node

    def names(self) -> frozenset[str]:
        """The sizes it mentions."""
        found: set[str] = set()
        pending: list[Node] = [self.root]
        while pending:
            match pending.pop():
                case Name(name):
                    found.add(name)
                case Negative(operand):
                    pending.append(operand)
                case Binary(_, left, right):
                    pending += (left, right)
                case Call(_, arguments):
                    pending += arguments
                case Number():
                    pass
        return frozenset(found)

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """The value.

        Raises `ExpressionError` for an unknown name, a division by zero and a value
        beyond `MAX_MAGNITUDE`.
        """
        return _evaluate(self.root, sizes, self.text)

    def index(self) -> Index:
        """The same as a canonical index expression, names as sizes.

        Raises `TooComplex` (of `migrate.ir.index`) where it outgrows those.
        """
        return _index(self.root)


@lru_cache(maxsize=1024)
def parse(text: str) -> Expression:
    """Parse an expression; raises `ExpressionError` with the position."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            f"is longer than {MAX_LENGTH} characters", text[:40] + "...", MAX_LENGTH
        )
    parser = _Parser(text)
    root = parser.expression(0, 0)
    if parser.kind != "end":
        raise parser.error(f"unexpected {parser.token!r}")
    return Expression(text, root)


def evaluate(expression: int | str, sizes: Mapping[str, int]) -> int:
    """The value of a literal or an expression; raises `ExpressionError`."""
    return expression if isinstance(expression, int) else parse(expression).evaluate(sizes)


class _Parser:
    """A Pratt parser with one token of look-ahead (`kind`, `token`, `start`)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.end = 0
        self.advance()

    def error(self, message: str) -> ExpressionError:
        return ExpressionError(message, self.text, self.start)

    def advance(self) -> None:
        rest = self.text[self.end :]
        self.start = self.end + len(rest) - len(rest.lstrip())
        if not rest.strip():
            self.kind, self.token = "end", ""
            return
        found = _TOKEN.match(self.text, self.end)
        if found is None:
            wrong = self.text[self.start]
            hint = "; division is '//'" if wrong == "/" else ""
            raise self.error(f"unexpected {wrong!r}{hint}")
        self.end = found.end()
        self.kind = str(found.lastgroup)
        self.token = found[self.kind]

    def expect(self, token: str) -> None:
        if self.token != token:
            shown = repr(self.token) if self.token else "the end"
            raise self.error(f"expected {token!r}, found {shown}")
        self.advance()

    def expression(self, binding: int, nesting: int) -> Node:
        if nesting > MAX_NESTING:
            raise self.error(f"is nested more than {MAX_NESTING} deep")
        left = self.prefix(nesting)
        chain = 0
        while (power := _BINDING.get(self.token, 0)) > binding:
            # A chain nests to the left, so that its length is a depth as well.
            chain += 1
            if chain > MAX_NESTING:
                raise self.error(f"has more than {MAX_NESTING} operations in a row")
            position, operator = self.start, self.token
            self.advance()
            right = self.expression(power, nesting + 1)
            left = Binary(operator, left, right, position)  # type: ignore[arg-type]
        return left

    def prefix(self, nesting: int) -> Node:
        position, kind, token = self.start, self.kind, self.token
        if kind == "end":
            raise self.error("ends too early" if self.text.strip() else "is empty")
        self.advance()
        if kind == "int":
            if len(token) > 19 or int(token) > MAX_MAGNITUDE:
                raise ExpressionError("number is too large", self.text, position)
            return Number(int(token), position)
        if kind == "name" and self.token == "(":
            return self.call(token, position, nesting)
        if kind == "name":
            return Name(token, position)
        if token == "-":
            return Negative(self.expression(_BINDING["*"], nesting + 1), position)
        if token == "(":
            inner = self.expression(0, nesting + 1)
            self.expect(")")
            return inner
        raise ExpressionError(f"unexpected {token!r}", self.text, position)

    def call(self, function: str, position: int, nesting: int) -> Node:
        if function not in _ARITY:
            known = ", ".join(_ARITY)
            raise ExpressionError(
                f"unknown function {function!r} (there are {known})", self.text, position
            )
        self.expect("(")
        arguments = [self.expression(0, nesting + 1)]
        while self.token == ",":
            self.advance()
            arguments.append(self.expression(0, nesting + 1))
        self.expect(")")
        least, most = _ARITY[function]
        if not least <= len(arguments) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise ExpressionError(
                f"{function} takes {wanted} arguments, not {len(arguments)}", self.text, position
            )
        return Call(function, tuple(arguments), position)  # type: ignore[arg-type]


def _evaluate(node: Node, sizes: Mapping[str, int], text: str) -> int:
    match node:
        case Number(value):
            result = value
        case Name(name, position):
            if name not in sizes:
                known = ", ".join(sorted(sizes)) or "none"
                raise ExpressionError(f"unknown size {name!r} (known: {known})", text, position)
            result = sizes[name]
        case Negative(operand):
            result = -_evaluate(operand, sizes, text)
        case Binary(operator, left, right, position):
            a, b = _evaluate(left, sizes, text), _evaluate(right, sizes, text)
            if operator in ("//", "%") and b == 0:
                raise ExpressionError("division by zero", text, position)
            result = _combine(operator, a, b)
        case Call(function, arguments, position):
            values = [_evaluate(argument, sizes, text) for argument in arguments]
            if function == "ceil_div" and values[1] == 0:
                raise ExpressionError("division by zero", text, position)
            result = _call(function, values)
    if abs(result) > MAX_MAGNITUDE:
        raise ExpressionError("value is beyond 2^62", text, node.position)
    return result


def _combine(operator: Operator, a: int, b: int) -> int:
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "//":
            return a // b
        case "%":
            return a % b


def _call(function: Function, values: Sequence[int]) -> int:
    match function:
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "ceil_div":
            return -(-values[0] // values[1])


def _index(node: Node) -> Index:
    match node:
        case Number(value):
            return Index.of(value)
        case Name(name):
            return Index.size(name)
        case Negative(operand):
            return -_index(operand)
        case Binary(operator, left, right):
            a, b = _index(left), _index(right)
            match operator:
                case "+":
                    return a + b
                case "-":
                    return a - b
                case "*":
                    return a * b
                case "//":
                    return a // b
                case "%":
                    return a % b
        case Call(function, arguments):
            values = [_index(argument) for argument in arguments]
            match function:
                case "min":
                    return ix.minimum(*values)
                case "max":
                    return ix.maximum(*values)
                case "ceil_div":
                    return ix.ceil_div(values[0], values[1])
