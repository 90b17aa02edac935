"""Operators and conversions on interpreted values, by Python's rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from migrate.nki import formatting, index_arithmetic, indices, sets
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.objects import (
    MISSING,
    Bound,
    Class,
    Cursor,
    Generator,
    Instance,
    Keyed,
    Set,
)
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
    Builtin,
    Function,
    Instructive,
    Iteration,
    Member,
    Memory,
    Namespace,
    OperatorName,
    Range,
    Slice,
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
    if isinstance(value, Instance):
        from migrate.nki import classes

        plain = classes.plain(value)
        if plain is value:
            plain = classes.invoke(value, "__index__", (), origin)
        if isinstance(plain, Number | bool):
            return number(plain, origin)
    raise KernelFault("type", f"{describe(value)} where a number is needed", origin)


def integer(value: object, origin: Origin) -> Number:
    """An integer.  Raises `KernelFault` for anything else."""
    found = number(value, origin)
    if not found.integral:
        raise KernelFault("type", f"{describe(value)} where an integer is needed", origin)
    return found


def list_part(wanted: Slice, origin: Origin) -> slice:
    """A part of a list, as Python takes it."""
    parts = (wanted.start, wanted.stop, wanted.step)
    start, stop, step = (None if p is None else int(integer(p, origin).value) for p in parts)
    if step == 0:
        raise KernelFault("value", "slice step cannot be zero", origin)
    return slice(start, stop, step)


def replace_part(values: list[object], part: slice, given: object, origin: Origin) -> None:
    """`values[part] = given`."""
    items = items_of(given, origin)
    if len(values) + len(items) > MAX_ITEMS:
        raise Unsupported("a very long list", origin)
    if part.step not in (None, 1) and len(values[part]) != len(items):
        raise KernelFault("value", f"{len(items)} values for {len(values[part])} places", origin)
    values[part] = items


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
    if isinstance(left, Instance) or isinstance(right, Instance):
        a, b = _plain(left), _plain(right)
        if a is not left or b is not right:
            return arithmetic(sign, a, b, origin)
    match sign, left, right:
        case "|" | "&" | "-" | "^", Set(), Set():
            return sets.combined(sign, left, right)
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
            return formatting.percent(left, right, origin)
        case "|", dict(), dict():
            return {**left, **right}
    for side in (left, right):
        if isinstance(side, Unknown):
            raise Unsupported(f"{side.text}: {side.reason}", origin)
        if isinstance(side, Instance) and side.cls.stranger is not None:
            raise Unsupported(f"{sign} of an object of {side.cls.name}", origin)
    raise KernelFault("type", f"{describe(left)} {sign} {describe(right)}", origin)


def _plain(value: object) -> object:
    """The number or string that a member of an enum also is, the tuple that a named one is."""
    if not isinstance(value, Instance):
        return value
    from migrate.nki import classes

    found = classes.items(value)
    return classes.plain(value) if found is None else found


def _generation(value: object) -> object:
    """The number of a generation of cores: kernels order them, also against numbers."""
    if isinstance(value, Member) and value.enum == "nc_version":
        return constant(int(value.name.removeprefix("gen")))
    return value


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
        case Range() | Iteration():
            return int(value.trips.value) > 0
        case Set():
            return bool(value.entries)
        case Instance():
            return _object_truth(value, origin)
        case indices.Condition():
            raise KernelFault("type", "a mask over index tensors decides no branch", origin)
        case Unknown():
            raise Unsupported(f"{value.text}: {value.reason}", origin)
        case _:
            if _is_register(value):
                raise KernelFault("type", "a register decides no branch", origin)
            return True


def _is_register(value: object) -> bool:
    """Whether a value is an integer that only the device knows."""
    from migrate.nki.registers import Register

    return isinstance(value, Register)


def _object_truth(value: Instance, origin: Origin) -> bool:
    from migrate.nki import classes

    plain = _plain(value)
    if plain is not value:
        return truth(plain, origin)
    for name in ("__bool__", "__len__"):
        found = classes.invoke(value, name, (), origin)
        if isinstance(found, bool | Number):
            return truth(found, origin)
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
        case ((str() | DType() | Memory() | Member() | OperatorName() | None), _) if not isinstance(
            right, Instance
        ):
            return left == right
        case Set(), Set():
            return left.entries.keys() == right.entries.keys()
        case (Instance(), _) | (_, Instance()):
            return _same_objects(left, right, origin, depth, room)
        case Bound(), Bound():
            return left.function is right.function and left.receiver is right.receiver
    return left is right


def _same_objects(
    left: object, right: object, origin: Origin, depth: int, room: Room | None
) -> bool:
    from migrate.nki import classes

    if left is right:
        return True
    for value, other in ((left, right), (right, left)):
        if isinstance(value, Instance):
            found = classes.invoke(value, "__eq__", (other,), origin)
            if found is not MISSING and found is not NotImplemented:
                return truth(found, origin)
    a, b = _plain(left), _plain(right)
    if a is not left or b is not right:
        return equal(a, b, origin, depth + 1, room)
    if isinstance(left, Instance) and isinstance(right, Instance) and left.cls is right.cls:
        mine, theirs = classes.compared(left), classes.compared(right)
        if mine is not None and theirs is not None:
            return equal(mine, theirs, origin, depth + 1, room)
    return False


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
    left, right = _plain(_generation(left)), _plain(_generation(right))
    if isinstance(left, str) and isinstance(right, str):
        ordered = (left > right) - (left < right)
    elif isinstance(left, tuple | list) and type(left) is type(right):
        ordered = _lexical(left, right, origin)
    elif isinstance(left, View) or isinstance(right, View):
        raise Unsupported("comparing tensors", origin)
    elif isinstance(left, Set) and isinstance(right, Set):
        return sets.included(sign, left, right)
    elif isinstance(left, Instance) or isinstance(right, Instance):
        return _ordered_objects(sign, left, right, origin)
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


def _ordered_objects(sign: str, left: object, right: object, origin: Origin) -> bool:
    """Dataclass instances with `order=True` compare field by field."""
    from migrate.nki import classes

    if isinstance(left, Instance) and isinstance(right, Instance) and left.cls is right.cls:
        mine, theirs = classes.compared(left), classes.compared(right)
        if left.cls.ordered and mine is not None and theirs is not None:
            return compare(sign, mine, theirs, origin)
    raise KernelFault("type", f"{describe(left)} {sign} {describe(right)}", origin)


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
        case Set():
            return key_of(item, origin) in container.entries
        case Class() if container.kind == "enum":
            return any(equal(item, member, origin) for member in container.members.values())
        case Instance() | Iteration() | Cursor():
            found = _contained(container, item, origin)
            if found is not None:
                return found
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
        case Namespace():
            raise Unsupported(f"in {describe(container)}", origin)
    raise KernelFault("type", f"in {describe(container)}", origin)


def _contained(container: object, item: object, origin: Origin) -> bool | None:
    from migrate.nki import classes

    if isinstance(container, Instance):
        found = classes.invoke(container, "__contains__", (item,), origin)
        if found is not MISSING:
            return truth(found, origin)
        if classes.items(container) is None and classes.special(container, "__iter__") is None:
            return None
    return any(equal(item, other, origin) for other in items_of(container, origin))


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
        case Class() | Function() | Builtin() | Instructive() | Range():
            return value
        case Instance():
            room = room if room is not None else Room()
            room.enter(depth, "a key of", origin)
            return _object_key(value, origin, depth, room)
        case Set(frozen=True):
            return Keyed(frozenset(value.entries), value)
        case Unknown():
            raise Unsupported(f"{value.text}: {value.reason}", origin)
    raise Unsupported(f"{describe(value)} as a dictionary key", origin)


def _object_key(value: Instance, origin: Origin, depth: int, room: Room) -> object:
    """As a key, an object is itself unless its class says what makes it equal to others."""
    from migrate.nki import classes

    plain = _plain(value)
    if plain is not value:
        return Keyed(key_of(plain, origin, depth + 1, room), value)
    if classes.special(value, "__eq__") or classes.special(value, "__hash__"):
        raise Unsupported("a key with __eq__ or __hash__", origin)
    fields = classes.compared(value)
    if fields is None:
        return value
    if not value.cls.frozen:
        raise KernelFault("type", f"an object of {value.cls.name} as a dictionary key", origin)
    return Keyed((value.cls, key_of(fields, origin, depth + 1, room)), value)


def from_key(key: object, origin: Origin) -> object:
    """The value that a plain key stands for."""
    if isinstance(key, bool) or key is None:
        return key
    if isinstance(key, Keyed):
        return key.value
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
        case Set():
            return iteration(tuple(value.entries.values()), origin)
        case Class() | Instance() | Generator() | Cursor():
            return iteration(_through(value, origin), origin)
        case Unknown():
            raise Unsupported(f"{value.text}: {value.reason}", origin)
        case View():
            raise Unsupported("a loop over a tensor", origin)
        case indices.IndexTensor() | indices.IndexGrid():
            return iteration(indices.elements(value, origin), origin)
    raise KernelFault("type", f"a loop over {describe(value)}", origin)


def _through(value: object, origin: Origin) -> object:
    """What a loop over an object runs over."""
    from migrate.nki import classes, generators

    match value:
        case Generator() | Cursor():
            return tuple(generators.remaining(value, origin))
        case Class() if value.kind == "enum":
            return tuple(value.members.values())
        case Instance():
            found = classes.items(value)
            if found is not None:
                return found
            made = classes.invoke(value, "__iter__", (), origin)
            if made is value:
                return generators.stepped(value, origin)
            if made is not MISSING:
                return made
            if value.cls.stranger is not None:
                raise Unsupported(f"a loop over an object of {value.cls.name}", origin)
            if classes.special(value, "__getitem__") is not None:
                return generators.indexed(value, origin)
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
            cut = value if depth == 0 or len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]}..."
            return cut if depth == 0 else repr(cut)
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
        case Instance():
            from migrate.nki import classes

            return classes.shown(value, depth, False)
        case dict() if depth < MAX_NESTING and len(seen) < MAX_SHOWN:
            seen.append(None)
            return formatting.entries(value, depth, seen)
        case Set() if depth < MAX_NESTING and len(seen) < MAX_SHOWN:
            seen.append(None)
            shown = (text_of(item, depth + 1, seen) for item in list(value.entries.values())[:64])
            return f"{{{', '.join(shown)}}}" if value.entries else "set()"
        case Memory():
            return value.value
        case Member():
            return f"{value.enum}.{value.name}"
        case Class():
            return f"<class '{value.name}'>"
        case _:
            return f"<{describe(value)}>"
