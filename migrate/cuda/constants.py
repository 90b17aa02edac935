"""Conditions of `#if`, evaluated as C constant expressions ([cpp.cond])."""

from __future__ import annotations

from migrate.cuda.macros import Allowance, Table, expand
from migrate.cuda.tokens import Token

MAX_TOKENS = 400
_MAX_DEPTH = 200

Number = int | float

# Binary operators by how closely they bind.
_LEVELS: dict[str, int] = {
    operator: level
    for level, operators in enumerate(
        (
            ("||",),
            ("&&",),
            ("|",),
            ("^",),
            ("&",),
            ("==", "!="),
            ("<", "<=", ">", ">="),
            ("<<", ">>"),
            ("+", "-"),
            ("*", "/", "%"),
        )
    )
    for operator in operators
}
_PAIRS = frozenset({"||", "&&", "==", "!=", "<=", ">=", "<<", ">>"})
_WORDS = {b"and": "&&", b"or": "||", b"not": "!", b"true": "1"}


def evaluate_condition(line: list[Token], table: Table, allowance: Allowance) -> bool:
    """Whether a `#if` line holds.

    Names that are no macros are 0, as the language says; so is a line that is no constant
    expression, and one longer than `MAX_TOKENS`.  Raises `TooLarge`.
    """
    expanded = expand(_resolve_defined(line, table), table, allowance)
    if not expanded or len(expanded) > MAX_TOKENS:
        return False
    return bool(_evaluate(_words(expanded)))


def _resolve_defined(line: list[Token], table: Table) -> list[Token]:
    out: list[Token] = []
    position = 0
    while position < len(line):
        token = line[position]
        if token.text in (b"defined", b"__has_include"):
            rest = [piece.text for piece in line[position + 1 : position + 4]]
            if rest[:1] == [b"("] and len(rest) > 1:
                name = rest[1]
                closing = position + 1
                while closing < len(line) and line[closing].text != b")":
                    closing += 1
                position = closing + 1
            else:
                name = rest[0] if rest else b""
                position += 2
            known = token.text == b"defined" and table.get(name) is not None
            out.append(token._replace(kind="number", text=b"1" if known else b"0"))
            continue
        out.append(token)
        position += 1
    return out


def _words(line: list[Token]) -> list[str | Number | None]:
    """Operators as text, everything else as its value."""
    out: list[str | Number | None] = []
    for token in line:
        text = token.text.decode("ascii", "replace")
        if token.kind == "name":
            word = _WORDS.get(token.text)
            out.append((1 if word == "1" else word) if word is not None else 0)
        elif token.kind == "number":
            out.append(_number(text.replace("'", "")))
        elif token.kind == "string":
            out.append(ord(text[1]) if len(text) == 3 and text[0] == "'" else None)
        elif out and not token.spaced and f"{out[-1]}{text}" in _PAIRS:
            # Operators come as single characters: only what was apart stays apart.
            out[-1] = f"{out[-1]}{text}"
        else:
            out.append(text)
    return out


def _number(text: str) -> Number | None:
    plain = text.rstrip("uUlLzZ")
    try:
        if len(plain) > 1 and plain[0] == "0" and plain[1:].isdigit():
            return int(plain, 8)
        return int(plain, 0)
    except ValueError:
        pass
    try:
        return float(text.rstrip("fFlL"))
    except ValueError:
        return None


class _NoConstant(Exception):
    pass


def _evaluate(words: list[str | Number | None]) -> Number:
    reader = _Reader(words)
    try:
        value = reader.ternary(0)
    except (_NoConstant, OverflowError):
        return 0
    return value if reader.position == len(words) else 0


class _Reader:
    """Precedence climbing; what is not evaluated (`0 && 1 / 0`) may be anything."""

    def __init__(self, words: list[str | Number | None]) -> None:
        self.words = words
        self.position = 0

    def peek(self) -> str | Number | None:
        return self.words[self.position] if self.position < len(self.words) else None

    def take(self, expected: str) -> None:
        if self.peek() != expected:
            raise _NoConstant
        self.position += 1

    def ternary(self, depth: int) -> Number:
        if depth > _MAX_DEPTH:
            raise _NoConstant
        condition = self.binary(0, depth + 1)
        if self.peek() != "?":
            return _value(condition)
        self.position += 1
        then = self._branch(depth)
        self.take(":")
        otherwise = self._branch(depth)
        return _value(then if _value(condition) else otherwise)

    def _branch(self, depth: int) -> Number | None:
        return self.ternary(depth + 1)

    def binary(self, level: int, depth: int) -> Number | None:
        left = self.unary(depth)
        while True:
            operator = self.peek()
            binds = _LEVELS.get(operator) if isinstance(operator, str) else None
            if binds is None or binds < level or not isinstance(operator, str):
                return left
            self.position += 1
            right = self.binary(binds + 1, depth + 1) if depth <= _MAX_DEPTH else None
            left = _combined(operator, left, right)

    def unary(self, depth: int) -> Number | None:
        if depth > _MAX_DEPTH:
            raise _NoConstant
        word = self.peek()
        self.position += 1
        match word:
            case "(":
                value = self.ternary(depth + 1)
                self.take(")")
                return value
            case "-" | "+" | "!" | "~":
                operand = self.unary(depth + 1)
                return None if operand is None else _unary(word, operand)
            case int() | float():
                return word
            case _:
                raise _NoConstant


def _value(value: Number | None) -> Number:
    if value is None:
        raise _NoConstant
    return value


def _combined(operator: str, left: Number | None, right: Number | None) -> Number | None:
    if operator == "&&" and left is not None and not left:
        return 0
    if operator == "||" and left:
        return 1
    if left is None or right is None:
        return None
    return _binary(operator, left, right)


def _unary(operator: str, operand: Number) -> Number | None:
    match operator:
        case "-":
            return -operand
        case "+":
            return operand
        case "!":
            return int(not operand)
        case _:
            return ~operand if isinstance(operand, int) else None


def _binary(operator: str, left: Number, right: Number) -> Number | None:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right if abs(left) < 2**64 and abs(right) < 2**64 else None
        case "==":
            return int(left == right)
        case "!=":
            return int(left != right)
        case "<":
            return int(left < right)
        case "<=":
            return int(left <= right)
        case ">":
            return int(left > right)
        case ">=":
            return int(left >= right)
        case "&&":
            return int(bool(left) and bool(right))
        case "||":
            return int(bool(left) or bool(right))
        case _:
            return _integral(operator, left, right)


def _integral(operator: str, left: Number, right: Number) -> Number | None:
    if not isinstance(left, int) or not isinstance(right, int):
        return left / right if operator == "/" and right else None
    match operator:
        case "/" | "%":
            if right == 0:
                return None
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return quotient if operator == "/" else left - quotient * right
        case "<<":
            return left << right if 0 <= right < 64 and abs(left) < 2**64 else None
        case ">>":
            return left >> right if 0 <= right < 64 else None
        case "&":
            return left & right
        case "|":
            return left | right
        case _:
            return left ^ right
