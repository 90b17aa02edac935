"""Functions of C++ and CUDA that stand for other expressions: copies, swaps, classifications."""

from __future__ import annotations

from collections.abc import Callable

from tree_sitter import Node

from migrate.cuda import objects
from migrate.cuda.ast import (
    Assign,
    Binary,
    Cast,
    Comma,
    Element,
    Expression,
    Intrinsic,
    Literal,
    Logical,
    Shuffle,
    Unary,
)
from migrate.cuda.conversions import convert, decay, is_place, pure, small
from migrate.cuda.folding import fold
from migrate.cuda.intrinsics import ELEMENTWISE, IntrinsicEntry, ShuffleEntry
from migrate.cuda.origins import Where
from migrate.cuda.scope import Scope
from migrate.cuda.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    LONG_LONG,
    UNSIGNED,
    UNSIGNED_CHAR,
    VOID,
    Array,
    Pointer,
    Scalar,
    Type,
)

Special = Callable[[str, list[Expression], Node, Scope], "Expression | None"]


def special(name: str, arguments: list[Expression], node: Node, scope: Scope) -> Expression | None:
    """What the call stands for; `None` for a name, or arguments, that are not known here."""
    found = _TABLE.get((name, len(arguments)))
    return found(name, arguments, node, scope) if found is not None else None


def _copy(_name: str, arguments: list[Expression], node: Node, scope: Scope) -> Expression | None:
    """`memcpy(to, from, bytes)` of as many bytes as one object has."""
    to, origin = decay(arguments[0]), decay(arguments[1])
    size = fold(arguments[2], scope.known)
    if not isinstance(to.type, Pointer) or not isinstance(origin.type, Pointer):
        return None
    where = scope.where(node)
    origin_size, to_size = _object_size(origin), _object_size(to)
    if size is None:
        return None
    if size == origin_size and not isinstance(_object(origin), Array):
        kind = _object(origin)
    elif size == to_size:
        kind = _object(to)
    elif size == origin_size:
        kind = _object(origin)
    else:
        return None
    target = _seen(to, kind, where)
    value = _seen(origin, kind, where)
    return Comma(Assign(target, None, value, kind, kind, where), to, to.type, where)


def _object(pointer: Expression) -> Type:
    """What a pointer is to: for a decayed array the array."""
    if isinstance(pointer, Cast) and isinstance(pointer.operand.type, Array):
        return pointer.operand.type
    assert isinstance(pointer.type, Pointer)
    return pointer.type.element


def _object_size(pointer: Expression) -> int:
    kind = _object(pointer)
    return 0 if kind == VOID else kind.size


def _seen(pointer: Expression, kind: Type, where: Where) -> Expression:
    """The object of a type that a pointer points to."""
    if isinstance(pointer.type, Pointer) and pointer.type.element != kind:
        pointer = Cast(pointer, Pointer(kind), where)
    return Element(pointer, Literal(0, INT, where), kind, where)


def _clear(_name: str, arguments: list[Expression], node: Node, scope: Scope) -> Expression | None:
    """`memset(to, 0, bytes)` of one object."""
    to = decay(arguments[0])
    size, value = fold(arguments[2], scope.known), fold(arguments[1], scope.known)
    if not isinstance(to.type, Pointer) or size is None or value is None:
        return None
    kind = _object(to)
    where = scope.where(node)
    if value != 0 and not (isinstance(kind, Scalar) and kind.size == 1):
        return None
    if size != _object_size(to):
        if size > objects.MAX_ELEMENTS or value != 0:
            return None
        kind = Array(UNSIGNED_CHAR, int(size))
    zero = objects.zero(kind, where)
    if zero is None:
        return None
    if value:
        zero = convert(arguments[1], kind)
    return Comma(Assign(_seen(to, kind, where), None, zero, kind, kind, where), to, to.type, where)


def _swap(_name: str, arguments: list[Expression], node: Node, scope: Scope) -> Expression | None:
    first, second = arguments
    kind = first.type
    if not (is_place(first) and is_place(second)) or second.type != kind:
        return None
    if isinstance(kind, Array) or not (pure(first) and pure(second)):
        return None
    where = scope.where(node)
    held = scope.temporary(kind, where)

    def put(target: Expression, value: Expression) -> Expression:
        return Assign(target, None, value, kind, kind, where)

    last = Comma(put(first, second), put(second, held), kind, where)
    return Cast(Comma(put(held, first), last, kind, where), VOID, where, written=False)


def _same(_name: str, arguments: list[Expression], _node: Node, _scope: Scope) -> Expression:
    """Functions that give back their first argument: `std::move`, compiler hints."""
    return arguments[0]


def _once(value: Expression, scope: Scope) -> tuple[Expression, Expression | None]:
    if small(value, 12) and pure(value):
        return value, None
    return objects.stored(value, scope)


def _after(setting: Expression | None, value: Expression) -> Expression:
    return value if setting is None else Comma(setting, value, value.type, value.where)


def _finite(_name: str, arguments: list[Expression], node: Node, scope: Scope) -> Expression | None:
    kind = arguments[0].type
    if not isinstance(kind, Scalar):
        return None
    where = scope.where(node)
    if kind.is_integer:
        return Literal(True, BOOL, where)
    wide = kind if kind in (FLOAT, DOUBLE) else FLOAT
    value, setting = _once(convert(arguments[0], wide), scope)
    tests = [Intrinsic(ELEMENTWISE[name], (value,), BOOL, where) for name in ("isnan", "isinf")]
    either = Logical("or", tests[0], tests[1], BOOL, where)
    return _after(setting, Unary("logical_not", either, BOOL, where))


# Programming Guide, "Mathematical Functions": hypotf has a maximum error of 3 ulp.
_HYPOT = IntrinsicEntry("hypotf", "sqrt", 1, DOUBLE, ulp=1)


def _hypot(_name: str, arguments: list[Expression], node: Node, scope: Scope) -> Expression | None:
    """Of floats, by way of double, where squares neither overflow nor vanish."""
    if any(value.type != FLOAT for value in arguments):
        return None
    where = scope.where(node)
    squares: list[Expression] = []
    before: list[Expression] = []
    for given in arguments:
        value, setting = _once(convert(given, DOUBLE), scope)
        before += [setting] if setting is not None else []
        squares.append(Binary("multiply", value, value, DOUBLE, where))
    total = Binary("add", squares[0], squares[1], DOUBLE, where)
    made: Expression = Cast(Intrinsic(_HYPOT, (total,), DOUBLE, where), FLOAT, where, written=False)
    for setting in reversed(before):
        made = _after(setting, made)
    return made


def _saturate(
    _name: str, arguments: list[Expression], node: Node, scope: Scope
) -> Expression | None:
    """Clamped to [0, 1], NaN to 0 (CUDA Math API, `__saturatef`)."""
    if not isinstance(arguments[0].type, Scalar):
        return None
    where = scope.where(node)
    value = convert(arguments[0], FLOAT)
    low = Intrinsic(ELEMENTWISE["fmaxf"], (value, Literal(0.0, FLOAT, where)), FLOAT, where)
    return Intrinsic(ELEMENTWISE["fminf"], (low, Literal(1.0, FLOAT, where)), FLOAT, where)


def _sincos(name: str, arguments: list[Expression], node: Node, scope: Scope) -> Expression | None:
    """`sincosf(x, &s, &c)`."""
    plain = name.removeprefix("__")
    kind = FLOAT if plain.endswith("f") else DOUBLE
    targets = [decay(value) for value in arguments[1:]]
    if any(value.type != Pointer(kind) for value in targets):
        return None
    prefix = "__" if name.startswith("__") else ""
    suffix = "f" if kind == FLOAT else ""
    where = scope.where(node)
    value, setting = _once(convert(arguments[0], kind), scope)
    made: list[Expression] = []
    for function, target in zip(("sin", "cos"), targets, strict=True):
        entry = ELEMENTWISE[f"{prefix}{function}{suffix}"]
        place = Element(target, Literal(0, INT, where), kind, where)
        computed = Intrinsic(entry, (value,), kind, where)
        made.append(Assign(place, None, computed, kind, kind, where))
    both = Comma(made[0], made[1], kind, where)
    return Cast(_after(setting, both), VOID, where, written=False)


# ATen/cuda/DeviceUtils.cuh: the value, the lane, and the width and the mask last.
_WARP = {
    "WARP_SHFL": "__shfl_sync",
    "WARP_SHFL_UP": "__shfl_up_sync",
    "WARP_SHFL_DOWN": "__shfl_down_sync",
    "WARP_SHFL_XOR": "__shfl_xor_sync",
}


def _exchange(name: str, arguments: list[Expression], node: Node, scope: Scope) -> Expression:
    from migrate.cuda.calls import call

    mask = arguments[3] if len(arguments) > 3 else Literal(0xFFFFFFFF, UNSIGNED, scope.where(node))
    return call(_WARP[name], (), [mask, *arguments[:3]], node, scope)


def _sign(_name: str, arguments: list[Expression], node: Node, scope: Scope) -> Expression | None:
    """The sign bit, of zeros and NaN too."""
    from migrate.cuda.calls import bits_as

    kind = arguments[0].type
    if kind not in (FLOAT, DOUBLE):
        return None
    whole = INT if kind == FLOAT else LONG_LONG
    bits = bits_as(arguments[0], whole, node, scope)
    where = scope.where(node)
    return Binary("less", bits, convert(Literal(0, INT, where), whole), BOOL, where)


_ACTIVE = ShuffleEntry("__activemask", "active", masked=False)


def _active(_name: str, _arguments: list[Expression], node: Node, scope: Scope) -> Expression:
    where = scope.where(node)
    every = Literal(0xFFFFFFFF, UNSIGNED, where)
    return Shuffle(_ACTIVE, every, Literal(True, BOOL, where), None, None, UNSIGNED, where)


_TABLE: dict[tuple[str, int], Special] = {
    ("memcpy", 3): _copy,
    ("memset", 3): _clear,
    ("swap", 2): _swap,
    ("move", 1): _same,
    ("forward", 1): _same,
    ("launder", 1): _same,
    ("__builtin_assume_aligned", 2): _same,
    ("__builtin_expect", 2): _same,
    ("isfinite", 1): _finite,
    ("hypotf", 2): _hypot,
    ("hypot", 2): _hypot,
    ("__saturatef", 1): _saturate,
    ("sincosf", 3): _sincos,
    ("sincos", 3): _sincos,
    ("__sincosf", 3): _sincos,
    ("__activemask", 0): _active,
    ("signbit", 1): _sign,
    **{(name, count): _exchange for name in _WARP for count in (2, 3, 4)},
}
