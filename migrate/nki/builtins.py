"""Host functions that kernels call while they are specialised."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import TypeAlias

from migrate.nki import device_loops
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.operations import (
    integer,
    items_of,
    iteration,
    key_of,
    least,
    number,
    text_of,
    truth,
)
from migrate.nki.registers import DeviceSlice, Register, settled
from migrate.nki.symbols import ArithmeticFault, Number, Origin, binary, constant, unary
from migrate.nki.symbols import axis as position
from migrate.nki.values import (
    MAX_ITEMS,
    Builtin,
    DynamicSlice,
    Function,
    Iteration,
    Memory,
    Range,
    Slice,
    View,
    describe,
)
from migrate.numerics.dtypes import DType

MAX_DIGITS = 400
"""Digits to round to: more than a float has on either side of its point."""

Host: TypeAlias = Callable[[Frame, tuple[object, ...], dict[str, object], Origin], object]


def positional(
    name: str, args: tuple[object, ...], keywords: dict[str, object], origin: Origin, *counts: int
) -> tuple[object, ...]:
    """The arguments of a call without keywords, of which there are one of `counts`."""
    if keywords or len(args) not in counts:
        raise KernelFault("type", f"{name} is called with the wrong arguments", origin)
    return args


def ranged(iterator: str) -> Host:
    """`range` and the loop iterators of `nki.language`, which are the same thing."""

    def make(
        frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
    ) -> object:
        given = dict(zip(("start", "stop", "step"), args, strict=False))
        given.update(keywords)
        if iterator != "range":
            given.pop("directives", None)  # advice to the scheduler (NKI 0.1)
        if iterator != "range" and frame.run.legacy:
            # NKI 0.1: affine_range(*args, **kwargs), whatever the keywords.
            given = {name: given[name] for name in ("start", "stop", "step") if name in given}
        wrong = len(args) > 3 or not given.keys() <= {"start", "stop", "step"}
        if wrong or given.get("start") is None:
            raise KernelFault("type", f"{iterator} is called with the wrong arguments", origin)
        if iterator != "range" and any(isinstance(v, Register) for v in given.values()):
            start, stop = given.get("start", constant(0, origin)), given.get("stop")
            if stop is None:
                start, stop = constant(0, origin), start
            step = given.get("step", constant(1, origin))
            return device_loops.ranged(frame, iterator, start, stop, step, origin)
        bounds = {
            name: integer(value, origin) for name, value in given.items() if value is not None
        }
        if "stop" not in bounds:
            bounds = {**bounds, "start": constant(0, origin), "stop": bounds["start"]}
        start, stop = bounds["start"], bounds["stop"]
        step = bounds.get("step", constant(1, origin))
        if step.value == 0:
            raise KernelFault("value", f"{iterator} with step 0", origin)
        return Range(iterator, start, step, trips(start, stop, step, origin))

    return make


def trips(start: Number, stop: Number, step: Number, origin: Origin) -> Number:
    """How many numbers a range has."""
    distance, stride = int(stop.value) - int(start.value), int(step.value)
    count = max(0, -(-distance // stride))
    if stride < 0:
        return constant(count, origin)
    span = binary("-", stop, start, origin) if start.value or start.symbolic else stop
    if step.value != 1 or step.symbolic:
        span = binary("//", binary("+", span, binary("-", step, constant(1))), step, origin)
    # An empty range has a negative span: then the count is only a value.
    return span if span.value == count else constant(count, origin)


def dynamic_slice(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    given = dict(zip(("start", "size"), args, strict=False)) | keywords
    if given.keys() != {"start", "size"}:
        raise KernelFault("type", "nl.ds is called with the wrong arguments", origin)
    start = given["start"]
    if isinstance(start, Register):
        start = settled(frame.run, start)
    size = integer(given["size"], origin)
    if isinstance(start, Register | View):
        return DeviceSlice(start, size)
    return DynamicSlice(integer(start, origin), size)


def program_id(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nl.program_id(axis=0)`: the program's position in the grid."""
    given = dict(zip(("axis",), args, strict=False)) | keywords
    if len(args) > 1 or not given.keys() <= {"axis"}:
        raise KernelFault("type", "program_id is called with the wrong arguments", origin)
    axis = int(integer(given.get("axis", constant(0)), origin).value)
    programs = frame.run.programs
    if not programs:
        return constant(0, origin)
    if not 0 <= axis < len(programs):
        raise Unsupported(f"axis {axis} of a grid with {len(programs)} axes", origin)
    value = programs[axis]
    return position(value.loop, value.iteration, origin)


def num_programs(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nl.num_programs(axes=0)`: how many programs there are along axes of the grid."""
    given = dict(zip(("axes",), args, strict=False)) | keywords
    if len(args) > 1 or not given.keys() <= {"axes"}:
        raise KernelFault("type", "num_programs is called with the wrong arguments", origin)
    axes = given.get("axes", constant(0))
    grid = frame.run.grid
    if not frame.run.programs:
        return constant(1, origin)
    count = 1
    for item in items_of(axes, origin) if isinstance(axes, tuple | list) else [axes]:
        axis = int(integer(item, origin).value)
        if not 0 <= axis < len(grid):
            raise Unsupported(f"axis {axis} of a grid with {len(grid)} axes", origin)
        count *= grid[axis]
    return constant(count, origin)


def program_ndim(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nl.program_ndim()`: axes of the grid, 0 without one."""
    positional("program_ndim", args, keywords, origin, 0)
    return constant(len(frame.run.grid), origin)


def memory_test(*names: str) -> Host:
    def test(
        _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
    ) -> object:
        (value,) = positional("a memory test", args, keywords, origin, 1)
        if isinstance(value, View):
            value = value.buffer.memory
        if not isinstance(value, Memory):
            raise KernelFault("type", f"{describe(value)} where a buffer is needed", origin)
        return value.value in names

    return test


def bytes_of(
    _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`sizeinbytes(dtype)`."""
    (value,) = positional("sizeinbytes", args, keywords, origin, 1)
    if not isinstance(value, DType):
        raise KernelFault("type", f"sizeinbytes of {describe(value)}", origin)
    return constant(value.bytes, origin)


def jit(_: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin) -> object:
    """`nki.jit(function)` is that function."""
    if args and isinstance(args[0], Function):
        return args[0]
    return Builtin("jit", jit)


def product(
    _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    (values,) = positional("prod", args, keywords, origin, 1)
    numbers = [number(value, origin) for value in items_of(values, origin)]
    try:
        return reduce(lambda a, b: binary("*", a, b, origin), numbers, constant(1, origin))
    except ArithmeticFault as fault:
        raise KernelFault("value", str(fault), origin) from None


def rounded(name: str) -> Host:
    def compute(
        _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
    ) -> object:
        (value,) = positional(name, args, keywords, origin, 1)
        try:
            return unary(name, number(value, origin), origin)
        except ArithmeticFault as fault:
            raise KernelFault("value", str(fault), origin) from None

    return compute


def floating(function: Callable[[float], float]) -> Host:
    def compute(
        _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
    ) -> object:
        (value,) = positional(function.__name__, args, keywords, origin, 1)
        operand = number(value, origin)
        try:
            result = function(float(operand.value))
        except (ValueError, OverflowError) as error:
            raise KernelFault("value", f"{function.__name__}: {error}", origin) from None
        return Number(result, function.__name__, (operand,), origin)

    return compute


def common_divisor(
    _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    numbers = tuple(integer(value, origin) for value in args)
    return Number(math.gcd(*(int(n.value) for n in numbers)), "gcd", numbers, origin)


def _extremum(which: str) -> Host:
    def compute(
        _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
    ) -> object:
        if keywords:
            raise Unsupported(f"{which} with {', '.join(keywords)}", origin)
        values = items_of(args[0], origin) if len(args) == 1 else list(args)
        return least(which, values, origin)

    return compute


def _length(
    _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    (value,) = positional("len", args, keywords, origin, 1)
    match value:
        case str() | tuple() | list() | dict():
            return constant(len(value), origin)
        case Range():
            return value.trips
        case View() if value.shape:
            return value.shape[0]
    raise KernelFault("type", f"len of {describe(value)}", origin)


def _enumerate(
    _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    start = keywords.pop("start", args[1] if len(args) == 2 else constant(0, origin))
    (values, *_rest) = positional("enumerate", args, keywords, origin, 1, 2)
    first = integer(start, origin)
    inner = iteration(values, origin)

    def element(position: Number) -> object:
        count = binary("+", first, position) if first.value or first.symbolic else position
        return (count, inner.element(position))

    return Iteration("enumerate", inner.trips, element, inner.counted)


def _zip(_: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin) -> object:
    keywords.pop("strict", None)
    if keywords or not args:
        raise Unsupported("zip with these arguments", origin)
    parts = [iteration(value, origin) for value in args]
    shortest = min(parts, key=lambda part: part.trips.value)
    return Iteration(
        "zip",
        shortest.trips,
        lambda position: tuple(part.element(position) for part in parts),
        all(part.counted for part in parts),
    )


def _reversed(
    _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    (value,) = positional("reversed", args, keywords, origin, 1)
    inner = iteration(value, origin)
    last = binary("-", inner.trips, constant(1, origin), origin)
    return Iteration(
        inner.iterator,
        inner.trips,
        lambda position: inner.element(binary("-", last, position)),
        inner.counted,
    )


def _scalar(name: str) -> Host:
    def compute(
        _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
    ) -> object:
        (value,) = positional(name, args, keywords, origin, 1)
        if isinstance(value, str):
            try:
                found = int(value) if name == "int" else float(value)
                return unary("+", constant(found), origin)
            except (ArithmeticFault, ValueError):
                message = f"{name} of a string that is no number"
                raise KernelFault("value", message, origin) from None
        operand = number(value, origin)
        try:
            return unary(name, operand, origin)
        except (ArithmeticFault, ValueError, OverflowError) as fault:
            raise KernelFault("value", str(fault), origin) from None

    return compute


def _boolean(
    _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    (value,) = positional("bool", args, keywords, origin, 1)
    return truth(value, origin)


def _string(
    _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    (value,) = positional("str", args, keywords, origin, 1)
    return text_of(value)


def _divmod(
    _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    a, b = positional("divmod", args, keywords, origin, 2)
    try:
        left, right = number(a, origin), number(b, origin)
        return (binary("//", left, right, origin), binary("%", left, right, origin))
    except ArithmeticFault as fault:
        raise KernelFault("value", str(fault), origin) from None


def _round(
    _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    value, *digits = positional("round", args, keywords, origin, 1, 2)
    operand = number(value, origin)
    places = int(integer(digits[0], origin).value) if digits else None
    if places is not None and abs(places) > MAX_DIGITS:
        raise Unsupported(f"rounding to {places} digits", origin)
    try:
        return Number(round(operand.value, places), "round", (operand,), origin)
    except (ValueError, OverflowError) as error:
        raise KernelFault("value", str(error), origin) from None


def _power(
    _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    a, b = positional("pow", args, keywords, origin, 2)
    try:
        return binary("**", number(a, origin), number(b, origin), origin)
    except ArithmeticFault as fault:
        raise KernelFault("value", str(fault), origin) from None


def _sum(_: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin) -> object:
    values, *start = positional("sum", args, keywords, origin, 1, 2)
    total = number(start[0], origin) if start else constant(0, origin)
    try:
        for value in items_of(values, origin):
            total = binary("+", total, number(value, origin), origin)
    except ArithmeticFault as fault:
        raise KernelFault("value", str(fault), origin) from None
    return total


def _quantifier(name: str) -> Host:
    def compute(
        _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
    ) -> object:
        (values,) = positional(name, args, keywords, origin, 1)
        truths = [truth(value, origin) for value in items_of(values, origin)]
        return any(truths) if name == "any" else all(truths)

    return compute


def _container(name: str) -> Host:
    def compute(
        _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
    ) -> object:
        if name == "dict":
            found: dict[object, object] = {}
            for argument in args:
                if isinstance(argument, dict):
                    found.update(argument)
                else:
                    for pair in items_of(argument, origin):
                        entry = items_of(pair, origin)
                        if len(entry) != 2:
                            raise KernelFault("value", "dict of something else than pairs", origin)
                        found[key_of(entry[0], origin)] = entry[1]
                found.update(keywords)
            return found
        values = positional(name, args, keywords, origin, 0, 1)
        items = items_of(values[0], origin) if values else []
        if len(items) > MAX_ITEMS:
            raise Unsupported("a very long list", origin)
        return tuple(items) if name == "tuple" else list(items)

    return compute


def _print(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    shown = " ".join(text_of(value) for value in args[:32])[:500]
    frame.run.event("print", shown, frame.run.reached(origin.span, frame.stack))
    return None


def _slice(
    _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    given = positional("slice", args, keywords, origin, 1, 2, 3)
    numbers = [None if value is None else integer(value, origin) for value in given]
    if len(numbers) == 1:
        return Slice(None, numbers[0], None)
    return Slice(numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else None)


_HOSTS: dict[str, Host] = {
    "range": ranged("range"),
    "len": _length,
    "min": _extremum("min"),
    "max": _extremum("max"),
    "abs": rounded("abs"),
    "int": _scalar("int"),
    "float": _scalar("float"),
    "bool": _boolean,
    "str": _string,
    "divmod": _divmod,
    "round": _round,
    "pow": _power,
    "sum": _sum,
    "any": _quantifier("any"),
    "all": _quantifier("all"),
    "tuple": _container("tuple"),
    "list": _container("list"),
    "dict": _container("dict"),
    "enumerate": _enumerate,
    "zip": _zip,
    "reversed": _reversed,
    "print": _print,
    "slice": _slice,
}
BUILTINS: dict[str, Builtin] = {name: Builtin(name, host) for name, host in _HOSTS.items()}
