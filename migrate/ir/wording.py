"""Expressions in the words of the trade: infix, sums and extrema with their ranges."""

from __future__ import annotations

from migrate.ir.forms import (
    Apply,
    Combine,
    Element,
    Form,
    Hashed,
    Missing,
    Number,
    Part,
    Table,
    Unknown,
    Varying,
)

_SUM, _PRODUCT, _ATOM = 1, 2, 3

_INFIX = {
    "equal": "==",
    "not_equal": "!=",
    "greater": ">",
    "greater_equal": ">=",
    "less": "<",
    "less_equal": "<=",
}
_SHORT = {
    "maximum": "max",
    "minimum": "min",
    "logical_and": "and",
    "logical_or": "or",
    "logical_not": "not",
}


def said(form: Form, *, most: int = 100) -> str:
    """The expression as a reader would write it, cut to `most` characters."""
    text = _said(form, 0)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _said(form: Form, binding: int) -> str:
    # As deep as the expression, which `ir.normal` bounds.
    match form:
        case Element(tensor=tensor, index=index):
            places = ["…" if isinstance(place, Table) else str(place) for place in index]
            return f"{tensor}[{', '.join(places)}]" if places else tensor
        case Number(value=number):
            return f"{number:g}"
        case Apply(operator="select", args=(condition, then, otherwise)):
            text = f"{_said(then, _SUM)} if {_said(condition, _SUM)} else {_said(otherwise, _SUM)}"
            return f"({text})" if binding else text
        case Apply(operator=operator, args=(left, right)) if operator in _INFIX:
            text = f"{_said(left, _SUM)} {_INFIX[operator]} {_said(right, _SUM)}"
            return f"({text})" if binding else text
        case Apply(operator=operator, args=args):
            return f"{_SHORT.get(operator, operator)}({', '.join(_said(a, 0) for a in args)})"
        case Combine(operator="add", parts=parts):
            return _sum(parts, binding)
        case Combine(operator="multiply", parts=parts):
            return _product(parts, binding)
        case Combine(operator=operator, parts=parts):
            return _call(_SHORT.get(operator, operator), parts)
        case Missing():
            return "nothing"
        case Hashed():
            return "a large expression"
        case Unknown():
            return "something not understood"
        case Varying():
            return "the index"


def _sum(parts: tuple[Part, ...], binding: int) -> str:
    ordered = sorted(parts, key=lambda part: (part.power < 0, part.count > 1, str(part.form)))
    text = ""
    for part in ordered:
        size = abs(part.power)
        shown = _ranged("sum", part, _PRODUCT)
        if size != 1:
            shown = f"{size} * {shown}"
        if not text:
            text = f"-{shown}" if part.power < 0 else shown
        else:
            text += f" {'-' if part.power < 0 else '+'} {shown}"
    return f"({text})" if binding > _SUM and len(parts) > 1 else text or "0"


def _product(parts: tuple[Part, ...], binding: int) -> str:
    above = [_power(part) for part in _sorted(parts) if part.power > 0]
    below = [_power(part) for part in _sorted(parts) if part.power < 0]
    text = " * ".join(above) or "1"
    for divisor in below:
        text += f" / {divisor}"
    return f"({text})" if binding > _PRODUCT and len(parts) > 1 else text


def _sorted(parts: tuple[Part, ...]) -> list[Part]:
    return sorted(parts, key=lambda part: (part.count > 1, str(part.form)))


def _power(part: Part) -> str:
    shown = _ranged("product", part, _ATOM)
    return shown if abs(part.power) == 1 else f"{shown}^{abs(part.power)}"


def _call(name: str, parts: tuple[Part, ...]) -> str:
    if len(parts) == 1 and parts[0].count > 1:
        return _ranged(name, parts[0], 0)
    return f"{name}({', '.join(_ranged(name, part, 0) for part in _sorted(parts))})"


def _ranged(name: str, part: Part, binding: int) -> str:
    if part.count == 1:
        return _said(part.form, binding)
    return f"{name} of {part.count} ({_said(part.form, 0)})"
