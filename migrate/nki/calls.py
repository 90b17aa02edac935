"""Calls: functions of the reviewed module are inlined, library functions looked up."""

from __future__ import annotations

import ast

from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import MAX_DEPTH, Frame
from migrate.nki.objects import Bound, Class, Generator, Inert, Instance, Partial, Static
from migrate.nki.operations import number
from migrate.nki.symbols import Origin
from migrate.nki.values import (
    Builtin,
    Function,
    Instructive,
    OperatorName,
    Unknown,
    describe,
)
from migrate.numerics.dtypes import DType

_LAZY = frozenset(
    {"append", "enumerate", "insert", "isinstance", "len", "range", "reversed", "zip"}
)
"""Library functions that do not go through the containers they are given."""


def call(
    function: object,
    args: tuple[object, ...],
    keywords: dict[str, object],
    frame: Frame,
    origin: Origin,
) -> object:
    """Call any callable value."""
    match function:
        case Function():
            return call_function(function, args, keywords, frame, origin)
        case Bound():
            return call(function.function, (function.receiver, *args), keywords, frame, origin)
        case Class() | Instance() | Partial() | Static() | Inert():
            return call_object(function, args, keywords, frame, origin)
        case Instructive() if frame.run.legacy:
            from migrate.nki.language import returning

            return returning.call(function.opcode, args, keywords, frame, origin)
        case Instructive():
            from migrate.nki.issue import issue

            return issue(function.opcode, args, keywords, frame, origin)
        case Builtin():
            frame.run.step()
            if function.name not in _LAZY:
                frame.run.touch(*args)
            return function.call(frame, args, keywords, origin)
        case OperatorName():
            from migrate.nki.language.elementwise import call_operator

            return call_operator(function, args, keywords, frame, origin)
        case DType() if len(args) == 1 and not keywords:
            return number(args[0], origin)
        case Unknown():
            raise Unsupported(f"{function.text}: {function.reason}", origin)
    raise KernelFault("type", f"{describe(function)} is not callable", origin)


def call_function(
    function: Function,
    args: tuple[object, ...],
    keywords: dict[str, object],
    frame: Frame,
    origin: Origin,
) -> object:
    """Interpret a function's body in a new frame."""
    code = function.code
    run = frame.run
    depth = frame.depth + code.depth
    if depth > MAX_DEPTH:
        raise KernelFault("value", "calls are nested too deeply (recursion without end?)", origin)
    run.step()
    if isinstance(function.node, ast.FunctionDef):
        run.functions.setdefault(function.node)
    inner = Frame(run, code, function.scope, run.stack(frame.stack, origin, code.name), depth)
    bind(function, args, keywords, inner, origin)
    if function.owner is not None:
        inner.names["__class__"] = function.owner
    if code.yields:
        return Generator(code, inner)
    outer, run.frame = run.frame, inner
    try:
        return code.body(inner)
    finally:
        run.frame = outer


def call_object(
    value: Class | Instance | Partial | Static | Inert,
    args: tuple[object, ...],
    keywords: dict[str, object],
    frame: Frame,
    origin: Origin,
) -> object:
    """Call a class, an object with `__call__`, a partial function."""
    from migrate.nki import classes

    match value:
        case Class():
            return classes.construct(value, args, keywords, frame, origin)
        case Partial():
            given = {**value.keywords, **keywords}
            return call(value.function, (*value.args, *args), given, frame, origin)
        case Static():
            return call(value.function, args, keywords, frame, origin)
        case Inert():
            return None
        case Instance():
            method = classes.special(value, "__call__")
            if method is not None:
                return call(method, args, keywords, frame, origin)
            if value.cls.stranger is not None:
                raise Unsupported(f"calling an object of {value.cls.name}", origin)
            raise KernelFault("type", f"an object of {value.cls.name} is not callable", origin)


def bind(
    function: Function,
    args: tuple[object, ...],
    keywords: dict[str, object],
    inner: Frame,
    origin: Origin,
) -> None:
    """Bind arguments to parameters by Python's rules."""
    parameters = function.code.parameters
    name = function.code.name
    positional = [arg.arg for arg in (*parameters.posonlyargs, *parameters.args)]
    only_keyword = [arg.arg for arg in parameters.kwonlyargs]
    bound: dict[str, object] = dict(zip(positional, args, strict=False))
    extra = args[len(positional) :]
    if parameters.vararg is not None:
        bound[parameters.vararg.arg] = extra
    elif extra:
        raise KernelFault(
            "type", f"{name} takes {len(positional)} arguments, {len(args)} given", origin
        )
    rest: dict[object, object] = {}
    for key, value in keywords.items():
        if key in positional or key in only_keyword:
            if key in bound:
                raise KernelFault("type", f"{name} is given {key} twice", origin)
            bound[key] = value
        elif parameters.kwarg is not None:
            rest[key] = value
        else:
            raise KernelFault("type", f"{name} has no parameter {key}", origin)
    if parameters.kwarg is not None:
        bound[parameters.kwarg.arg] = rest
    first_default = len(positional) - len(function.defaults)
    for position, parameter in enumerate(positional):
        if parameter not in bound:
            if position < first_default:
                raise KernelFault("type", f"{name} is not given {parameter}", origin)
            bound[parameter] = function.defaults[position - first_default]
    defaults = dict(function.keyword_defaults)
    for parameter in only_keyword:
        if parameter not in bound:
            if parameter not in defaults:
                raise KernelFault("type", f"{name} is not given {parameter}", origin)
            bound[parameter] = defaults[parameter]
    inner.names.update(bound)
