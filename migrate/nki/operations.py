"""Operators and conversions on interpreted values, by Python's rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from migrate.nki import index_arithmetic, indices
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.symbols import (
    ArithmeticFault,
    Number,
    Origin,
    binary,
    constant,
    extremum,
    unary,
)
from migrate.nki.values import (
    MAX_ITEMS,
    Iteration,
    Member,
    Memory,
    OperatorName,
    Range,
    Unknown,
    View,
    describe,
)
from migrate.numerics.dtypes import DType

MAX_VISITED = 10_000
"""Containers inside containers that a comparison goes through."""

MAX_SHOWN = 256
"""Containers inside containers that a message shows."""

MAX_TEXT = 1000
"""Characters that a message shows of a string in a container."""

MAX_NESTING = 32
"""Containers inside containers that a comparison or a message looks into."""

INDICES = (indices.IndexTensor, indices.IndexGrid, indices.Condition)
"""What index arithmetic is done on."""

_NOT_NUMERIC = "arithmetic on tensors is no NKI instruction; call nki.isa or nki.language"


def number(value: object, origin: Origin) -> Number:
    """A number or bool as a number."""
    if isinstance(value, Number):
        return value
    if isinstance(value, bool):
        return constant(int(value), origin)
    if isinstance(value, Unknown):
        raise Unsupported(f"{value.text}: {value.reason}", origin)
    raise KernelFault("type", f"{describe(value)} where a number is needed", origin)


def integer(value: object, origin: Origin) -> Number:
    """An integer.  Raises `KernelFault` for anything else."""
    found = number(value, origin)
    if not found.integral:
        raise KernelFault("type", f"{describe(value)} where an integer is needed", origin)
    return found


def arithmetic(sign: str, left: object, right: object, origin: Origin) -> object:
    """`left sign right`."""
    if isinstance(left, Number) and isinstance(right, Number):
        try:
            return binary(sign, left, right, origin)
        except ArithmeticFault as fault:
            raise KernelFault("value", str(fault), origin) from None
    if isinstance(left, INDICES) or isinstance(right, INDICES):
        return index_arithmetic.arithmetic(sign, left, right, origin)
    if isinstance(left, View) or isinstance(right, View):
        raise Unsupported(_NOT_NUMERIC, origin)
    match sign, left, right:
        case _, bool() | Number(), bool() | Number():
            return arithmetic(sign, number(left, origin), number(right, origin), origin)
        case "+", str(), str():
            return _bounded(left, right, origin)
        case "+", tuple(), tuple():
            return _bounded(left, right, origin)
        case "+", list(), list():
            return _bounded(left, right, origin)
        case "*", (str() | tuple() | list()), (bool() | Number()):
            return _repeated(left, integer(right, origin), origin)
        case "*", (bool() | Number()), (str() | tuple() | list()):
            return _repeated(right, integer(left, origin), origin)
        case "%", str(), _:
            raise Unsupported("formatting with %", origin)
        case "|", dict(), dict():
            return {**left, **right}
    for side in (left, right):
        if isinstance(side, Unknown):
            raise Unsupported(f"{side.text}: {side.reason}", origin)
    raise KernelFault("type", f"{describe(left)} {sign} {describe(right)}", origin)


def _bounded(
    left: str | tuple[object, ...] | list[object], right: object, origin: Origin
) -> object:
    joined = left + right  # type: ignore[operator]
    if len(joined) > MAX_ITEMS:
        raise Unsupported(f"a sequence of more than {MAX_ITEMS:,} items", origin)
    return joined


def _repeated(
    items: str | tuple[object, ...] | list[object], count: Number, origin: Origin
) -> object:
    if len(items) * max(int(count.value), 0) > MAX_ITEMS:
        raise Unsupported(f"a sequence of more than {MAX_ITEMS:,} items", origin)
    return items * int(count.value)


def signed(sign: str, operand: object, origin: Origin) -> object:
    """Unary `-`, `+`, `~`."""
    if isinstance(operand, INDICES):
        return index_arithmetic.signed(sign, operand, origin)
    if isinstance(operand, View):
        raise Unsupported(_NOT_NUMERIC, origin)
    try:
        return unary(sign, number(operand, origin), origin)
    except ArithmeticFault as fault:
        raise KernelFault("value", str(fault), origin) from None


def negated(operand: object, origin: Origin) -> object:
    """`not operand`, of a mask the opposite one."""
    if isinstance(operand, indices.Condition):
        return index_arithmetic.opposite(operand, origin)
    return not truth(operand, origin)


def least(which: str, values: Sequence[object], origin: Origin) -> object:
    """`min` or `max` of several values."""
    if not values:
        raise KernelFault("value", f"{which} of nothing", origin)
    if all(isinstance(value, str) for value in values):
        return min(values, key=str) if which == "min" else max(values, key=str)
    return extremum(which, tuple(number(value, origin) for value in values), origin)


def truth(value: object, origin: Origin) -> bool:
    """Truth as Python has it; tensors are true (they are objects, not arrays)."""
    match value:
        case bool():
            return value
        case None:
            return False
        case Number():
            return bool(value.value)
        case str() | tuple() | list() | dict():
            return bool(value)
        case Range():
            return int(value.trips.value) > 0
        case indices.Condition():
            raise KernelFault("type", "a mask over index tensors decides no branch", origin)
        case Unknown():
            raise Unsupported(f"{value.text}: {value.reason}", origin)
        case _:
            return True


class Room:
    """How much of nested containers an operation may still look at.

    Containers may hold one another many times over, so depth alone bounds nothing.
    """

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_VISITED

    def enter(self, depth: int, doing: str, origin: Origin) -> None:
        """Raises `Unsupported` where it is too deep or too much."""
        self.left -= 1
        if depth > MAX_NESTING or self.left < 0:
            raise Unsupported(f"{doing} large nested containers", origin)


def equal(
    left: object, right: object, origin: Origin, depth: int = 0, room: Room | None = None
) -> bool:
    """`==` on interpreted values."""
    match left, right:
        case Number(), Number():
            return left.value == right.value
        case ((bool() | Number()), (bool() | Number())):
            return number(left, origin).value == number(right, origin).value
        case (tuple(), tuple()) | (list(), list()):
            assert isinstance(left, list | tuple)
            assert isinstance(right, list | tuple)
            room = room if room is not None else Room()
            room.enter(depth, "comparing", origin)
            return len(left) == len(right) and all(
                equal(a, b, origin, depth + 1, room) for a, b in zip(left, right, strict=True)
            )
        case dict(), dict():
            room = room if room is not None else Room()
            room.enter(depth, "comparing", origin)
            return left.keys() == right.keys() and all(
                equal(left[key], right[key], origin, depth + 1, room) for key in left
            )
        case Unknown(), _:
            raise Unsupported(f"{left.text}: {left.reason}", origin)
        case _, Unknown():
            raise Unsupported(f"{right.text}: {right.reason}", origin)
        case ((str() | DType() | Memory() | Member() | OperatorName() | None), _):
            return left == right
    return left is right


def compare(sign: str, left: object, right: object, origin: Origin) -> bool:
    """A comparison operator."""
    match sign:
        case "==":
            return equal(left, right, origin)
        case "!=":
            return not equal(left, right, origin)
        case "is" | "is not":
            plain = (bool, str, DType, Memory, Member, OperatorName, Number)
            same = left is right
            if not same and isinstance(left, plain) and type(left) is type(right):
                same = equal(left, right, origin)
            return same == (sign == "is")
        case "in" | "not in":
            return contains(right, left, origin) == (sign == "in")
    if isinstance(left, str) and isinstance(right, str):
        ordered = (left > right) - (left < right)
    elif isinstance(left, tuple | list) and type(left) is type(right):
        ordered = _lexical(left, right, origin)
    elif isinstance(left, View) or isinstance(right, View):
        raise Unsupported("comparing tensors", origin)
    else:
        a, b = number(left, origin).value, number(right, origin).value
        if a != a or b != b:
            return False
        ordered = (a > b) - (a < b)
    match sign:
        case "<":
            return ordered < 0
        case "<=":
            return ordered <= 0
        case ">":
            return ordered > 0
        case _:
            return ordered >= 0


def _lexical(left: Iterable[object], right: object, origin: Origin) -> int:
    a = [number(x, origin).value for x in left]
    assert isinstance(right, tuple | list)
    b = [number(x, origin).value for x in right]
    return (a > b) - (a < b)


def contains(container: object, item: object, origin: Origin) -> bool:
    """`item in container`."""
    match container:
        case str() if isinstance(item, str):
            return item in container
        case tuple() | list():
            return any(equal(item, other, origin) for other in container)
        case dict():
            return key_of(item, origin) in container
        case Range():
            wanted = number(item, origin).value
            if isinstance(wanted, float):
                # Python would compare it with every element.
                if not wanted.is_integer():
                    return False
                wanted = int(wanted)
            first = container.start.value
            step, trips = int(container.step.value), int(container.trips.value)
            return wanted in range(int(first), int(first) + step * trips, step)
        case Unknown():
            raise Unsupported(f"{container.text}: {container.reason}", origin)
    raise KernelFault("type", f"in {describe(container)}", origin)


def key_of(value: object, origin: Origin, depth: int = 0, room: Room | None = None) -> object:
    """A plain hashable key that is equal where the values are."""
    match value:
        case Number():
            return value.value
        case None | bool() | str() | DType() | Memory() | Member() | OperatorName():
            return value
        case tuple():
            room = room if room is not None else Room()
            room.enter(depth, "a key of", origin)
            return tuple(key_of(item, origin, depth + 1, room) for item in value)
        case Unknown():
            raise Unsupported(f"{value.text}: {value.reason}", origin)
    raise Unsupported(f"{describe(value)} as a dictionary key", origin)


def from_key(key: object, origin: Origin) -> object:
    """The value that a plain key stands for."""
    if isinstance(key, bool) or key is None:
        return key
    if isinstance(key, int | float):
        return constant(key, origin)
    if isinstance(key, tuple):
        return tuple(from_key(item, origin) for item in key)
    return key


def iteration(value: object, origin: Origin) -> Iteration:
    """How a loop runs over a value."""
    match value:
        case Iteration():
            return value
        case Range():
            return Iteration(value.iterator, value.trips, value.element, True)
        case tuple() | list():
            items = tuple(value)
            count = constant(len(items), origin)
            return Iteration("items", count, lambda k: items[int(k.value)], False)
        case dict():
            keys = tuple(from_key(key, origin) for key in value)
            count = constant(len(keys), origin)
            return Iteration("items", count, lambda k: keys[int(k.value)], False)
        case str():
            text = value
            count = constant(len(text), origin)
            return Iteration("items", count, lambda k: text[int(k.value)], False)
        case Unknown():
            raise Unsupported(f"{value.text}: {value.reason}", origin)
        case View():
            raise Unsupported("a loop over a tensor", origin)
        case indices.IndexTensor() | indices.IndexGrid():
            return iteration(indices.elements(value, origin), origin)
    raise KernelFault("type", f"a loop over {describe(value)}", origin)


def items_of(value: object, origin: Origin) -> list[object]:
    """The elements of anything a loop can run over."""
    if isinstance(value, list | tuple):
        return list(value)
    over = iteration(value, origin)
    count = int(over.trips.value)
    if count > MAX_ITEMS:
        raise Unsupported(f"a sequence of more than {MAX_ITEMS:,} items", origin)
    return [over.element(constant(k, origin)) for k in range(count)]


def text_of(value: object, depth: int = 0, seen: list[None] | None = None) -> str:
    """What `str` gives, for messages and string building; large containers are cut."""
    seen = seen if seen is not None else []
    match value:
        case str():
            return value if depth == 0 or len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]}..."
        case None | bool():
            return str(value)
        case Number():
            return str(value.value)
        case DType():
            return value.value
        case tuple() | list() if depth < MAX_NESTING and len(seen) < MAX_SHOWN:
            seen.append(None)
            body = ", ".join(text_of(item, depth + 1, seen) for item in value[:64])
            if isinstance(value, list):
                return f"[{body}]"
            return f"({body},)" if len(value) == 1 else f"({body})"
        case _:
            return f"<{describe(value)}>"


def formatted(value: object, conversion: int, spec: str, origin: Origin) -> str:
    """One replacement field of an f-string."""
    if any(len(digits) > 3 for digits in re.findall(r"\d+", spec)):
        raise Unsupported("a format specification with a width over 999", origin)
    if conversion == -1 and isinstance(value, Number) and spec:
        try:
            return format(value.value, spec)
        except (ValueError, OverflowError) as error:
            raise KernelFault("value", str(error), origin) from None
    text = text_of(value)
    if conversion in (ord("r"), ord("a")) and isinstance(value, str):
        text = repr(value)
    try:
        return format(text, spec)
    except ValueError as error:
        raise KernelFault("value", str(error), origin) from None
