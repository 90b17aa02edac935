"""Conditions of `#if`, evaluated as C constant expressions."""

from __future__ import annotations

from migrate.cuda.macros import Allowance, Table, expand
from migrate.cuda.tokens import Token

MAX_TOKENS = 400
_MAX_DEPTH = 60


def evaluate_condition(line: list[Token], table: Table, allowance: Allowance) -> bool:
    """Whether a `#if` line holds.

    Names that are no macros are 0, as the language says; so is a line that is no constant
    expression, and one longer than `MAX_TOKENS`.  Raises `TooLarge`.
    """
    resolved = _resolve_defined(line, table)
    expanded = expand(resolved, table, allowance)
    if not expanded or len(expanded) > MAX_TOKENS:
        return False
    words = [_word(token) for token in expanded]
    if len(words) == 1:
        return _number(words[0]) not in (None, 0)
    # Operators come as single characters: only what was apart may be set apart.
    text = "".join(
        f" {word}" if token.spaced or token.kind in ("name", "number") else word
        for word, token in zip(words, expanded, strict=True)
    )
    return bool(evaluate_expression(text))


def evaluate_expression(text: str) -> int | float | None:
    """The value of a C constant expression in numbers; `None` where it is none."""
    if text.count("(") > _MAX_DEPTH:
        return None
    from pycparser import c_ast, c_parser

    try:
        tree = c_parser.CParser().parse(f"int v = ({text});")
    except (c_parser.ParseError, AssertionError, RecursionError):
        return None
    declared = tree.ext[0]
    if len(tree.ext) != 1 or not isinstance(declared, c_ast.Decl):
        return None
    return _value(declared.init, 0)


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


def _word(token: Token) -> str:
    if token.kind == "name":
        return "1" if token.text == b"true" else "0"
    if token.kind == "number":
        return token.text.decode("ascii", "replace").replace("'", "")
    return token.text.decode("ascii", "replace")


def _number(text: str) -> int | float | None:
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


def _value(node: object, depth: int) -> int | float | None:
    from pycparser import c_ast

    if depth > _MAX_DEPTH:
        return None
    match node:
        case c_ast.Constant():
            return _number(node.value)
        case c_ast.UnaryOp():
            operand = _value(node.expr, depth + 1)
            return None if operand is None else _unary(node.op, operand)
        case c_ast.BinaryOp():
            left = _value(node.left, depth + 1)
            if left is None or (node.op == "&&" and not left):
                return None if left is None else 0
            if node.op == "||" and left:
                return 1
            right = _value(node.right, depth + 1)
            return None if right is None else _binary(node.op, left, right)
        case c_ast.TernaryOp():
            condition = _value(node.cond, depth + 1)
            if condition is None:
                return None
            return _value(node.iftrue if condition else node.iffalse, depth + 1)
        case _:
            return None


def _unary(operator: str, operand: int | float) -> int | float | None:
    match operator:
        case "-":
            return -operand
        case "+":
            return operand
        case "!":
            return int(not operand)
        case "~":
            return ~operand if isinstance(operand, int) else None
        case _:
            return None


def _binary(operator: str, left: int | float, right: int | float) -> int | float | None:
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


def _integral(operator: str, left: int | float, right: int | float) -> int | float | None:
    if not isinstance(left, int) or not isinstance(right, int):
        return left / right if operator == "/" and right else None
    match operator:
        case "/" | "%":
            if right == 0:
                return None
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return quotient if operator == "/" else left - quotient * right
        case "<<":
            return left << right if 0 <= right < 64 else None
        case ">>":
            return left >> right if 0 <= right < 64 else None
        case "&":
            return left & right
        case "|":
            return left | right
        case "^":
            return left ^ right
        case _:
            return None
