"""Calls in host expressions: casts, rounding, extremes, and helpers of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.cuda.launches.declare import Body, parameters
from migrate.cuda.launches.host import Constant, HostExpression, Operation, Symbol
from migrate.cuda.launches.names import Mark
from migrate.cuda.launches.terms import MAX_SYMBOL, Term, Unread, cast, is_extent, whole
from migrate.cuda.types import Scalar, named

if TYPE_CHECKING:
    from migrate.cuda.launches.reader import Reader

ROUNDING = {
    "ceil": "ceil", "ceilf": "ceil", "floor": "floor", "floorf": "floor", "trunc": "trunc",
}  # fmt: skip
EXTREMES = {
    "min": "min", "max": "max", "MIN": "min", "MAX": "max", "fmin": "min", "fmax": "max",
}  # fmt: skip
CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast", "narrow_cast"})
CEIL_DIV = frozenset({("at", "ceil_div"), ("cuda", "ceil_div"), ("cuda", "ATenCeilDiv")})
"""Quotients rounded up: ATen/ceil_div.h, ATen/cuda/DeviceUtils.cuh, libcu++'s cuda/cmath."""


def call(
    reader: Reader,
    words: list[str],
    template: tuple[int, int],
    start: int,
    given: tuple[int, int],
) -> Term:
    """A call `words<template>(given)` whose name stands at `start`.  Raises `Unread`."""
    name = words[-1]
    text = reader.text
    arguments = text.split(*given) if given[0] < given[1] else []
    kind = _cast_type(name, text.text(*template))
    if kind is not None and len(arguments) == 1:
        return cast(kind, reader.inner().term(*arguments[0]))
    if name in CASTS and len(arguments) == 1:
        return reader.inner().term(*arguments[0])
    for opening, made in reader.names.functions.get(name, ()):
        found = _helper(reader, opening, made, template, given)
        if found is not None:
            return found
    if reader.outer is not None and reader.outer[0].names.functions.get(name):
        found = _helper_of_file(reader, name, template, given)
        if found is not None:
            return found
    expanded = text.expanded(start, given[1] + 1)
    if expanded is not None:
        return reader.within(expanded, start).term(0, len(expanded.words))
    if name in ROUNDING and len(arguments) == 1:
        inner = reader.inner().term(*arguments[0])
        value = Operation(ROUNDING[name], (inner.value,)) if inner.real else inner.value
        return Term(value, True)
    if name in EXTREMES and len(arguments) == 1 and text.words[arguments[0][0]] == "{":
        first, last = arguments[0]
        arguments = text.split(first + 1, last - 1)
    if name in EXTREMES and len(arguments) > 1:
        terms = [reader.inner().term(*part) for part in arguments]
        values = tuple(term.value for term in terms)
        return Term(Operation(EXTREMES[name], values), any(term.real for term in terms))
    if tuple(words[-2:]) in CEIL_DIV and len(arguments) == 2:
        top, bottom = (whole(reader.inner().term(*part)) for part in arguments)
        less = Operation("-", (Operation("+", (top, bottom)), Constant(1)))
        return Term(Operation("/", (less, bottom)))
    shown = text.text(start, given[1] + 1)
    if len(shown) > MAX_SYMBOL:
        raise Unread
    return Term(Symbol(shown, "given" if is_extent(shown) else "result"))


def _cast_type(name: str, template: str) -> Scalar | None:
    found = named(template if name in CASTS else name)
    return found if isinstance(found, Scalar) else None


def _helper_of_file(
    reader: Reader, name: str, template: tuple[int, int], given: tuple[int, int]
) -> Term | None:
    """A helper of the file that is called in the words of a macro."""
    assert reader.outer is not None
    outer = reader.outside(reader.outer[0])
    for opening, made in outer.names.functions.get(name, ()):
        entered = outer.enter(made.parameters, given, reader)
        if entered is not None:
            found = _returned(entered, opening)
            if found is not None:
                return found
    return None


def _helper(
    reader: Reader, opening: int, made: Body, template: tuple[int, int], given: tuple[int, int]
) -> Term | None:
    """What a function of the file returns, read with the call's arguments."""
    try:
        entered = reader.enter(made.parameters, given, reader)
        if entered is None:
            return None
        entered = _with_template(reader, entered, made, template)
        return _returned(entered, opening)
    except Unread:
        return None


def _with_template(
    reader: Reader, entered: Reader, made: Body, template: tuple[int, int]
) -> Reader:
    if template[0] >= template[1]:
        return entered
    one = Constant(1)
    bound = dict(entered.bound)
    names = parameters(reader.text, *made.template, template=True)
    for parameter, part in zip(names, reader.text.split(*template), strict=False):
        bound[parameter.at] = (reader.expression(*part), one, one)
    return entered.inner(bound=bound)


def _returned(reader: Reader, opening: int) -> Term | None:
    """The value of a function's returns, where only branches choose among them."""
    text = reader.text
    close = text.closing(opening, len(text.words))
    places = text.places("return", opening, close)
    if not places or len(places) > 8:
        return None
    outside = reader.names.marks(opening + 1) if opening + 1 < close else []
    value: HostExpression | None = None
    real = False
    for place in reversed(places):
        beyond = [mark for mark in reader.names.marks(place) if mark not in outside]
        if any(mark.kind != "if" for mark in beyond):
            return None
        end = place + 1
        while end < close and text.words[end] != ";":
            end = text.closing(end, close) + 1 if text.words[end] in ("(", "[", "{") else end + 1
        term = reader.inner().term(place + 1, end)
        real = real or term.real
        if value is None:
            value = term.value
        else:
            value = _selected(reader, beyond, term.value, value)
    returns = text.words[text.statement(opening) : opening]
    if value is None:
        return None
    if "float" in returns or "double" in returns or "auto" in returns:
        return Term(value, real)
    return Term(whole(Term(value, real)))


def _selected(
    reader: Reader, marks: list[Mark], then: HostExpression, otherwise: HostExpression
) -> HostExpression:
    for mark in marks:
        condition = reader.inner().term(mark.start, mark.end).value
        args = (condition, then, otherwise) if mark.taken else (condition, otherwise, then)
        then = Operation("?:", args)
    return then
