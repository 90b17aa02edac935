"""Calls: intrinsics, atomics, warp exchanges, loads, vector makers and device functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tree_sitter import Node

from migrate.cuda import objects
from migrate.cuda.ast import (
    Address,
    Assign,
    Atomic,
    Cast,
    Comma,
    Element,
    Expression,
    Intrinsic,
    Literal,
    MakeVector,
    Shuffle,
)
from migrate.cuda.conversions import convert, decay
from migrate.cuda.intrinsics import (
    ATOMICS,
    BARRIERS,
    ELEMENTWISE,
    LOADS,
    SHUFFLES,
    STORES,
    WARP_REDUCTIONS,
    IntrinsicEntry,
    ShuffleEntry,
)
from migrate.cuda.library.build import by_component
from migrate.cuda.scope import BRACES, Binding, Callee, Scope, not_understood
from migrate.cuda.special import special
from migrate.cuda.types import (
    BFLOAT16,
    BOOL,
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    LONG_LONG,
    NAMED,
    SHORT,
    UNSIGNED,
    UNSIGNED_SHORT,
    VOID,
    Pointer,
    Scalar,
    Struct,
    Type,
    Unknown,
    Vector,
    common,
)


def call(
    name: str,
    template: Sequence[Binding],
    arguments: list[Expression],
    node: Node,
    scope: Scope,
) -> Expression:
    """A call by name, its arguments built already.

    A device function of the file hides an intrinsic of the same name, as it would for nvcc.
    """
    unclear = next((value for value in arguments if not_understood(value)), None)
    if name in scope.program.functions:
        callee = Callee(name, template)
        # `max(Pair, Pair)` of the file stands beside CUDA's own `max`.
        beside = not template and known(name) and unclear is None
        if not beside or scope.resolver.accepts(callee, arguments, scope):
            return scope.resolver.invoke(callee, arguments, node, scope)
    if unclear is not None:
        return scope.unclear(node, unclear)
    if any(value.type == BRACES for value in arguments):
        return scope.opaque(node, f"braces as an argument of {name} are not understood")
    arguments = [objects.as_scalar(value, None, node, scope) for value in arguments]
    if name in ELEMENTWISE:
        return elementwise(ELEMENTWISE[name], arguments, node, scope)
    if name in ATOMICS:
        return _atomic(name, arguments, node, scope)
    if name in SHUFFLES:
        return _shuffle(SHUFFLES[name], arguments, node, scope)
    if name in LOADS and len(arguments) == 1:
        return _load(arguments[0], node, scope)
    if name in STORES and len(arguments) == 2:
        return _store(arguments[0], arguments[1], node, scope)
    if name.startswith("make_") and isinstance(NAMED.get(name[5:]), Vector):
        kind = NAMED[name[5:]]
        if isinstance(kind, Vector):
            return vector(kind, arguments, node, scope)
    if name in _BITS and len(arguments) == 1:
        kind, to = _BITS[name]
        return bits_as(convert(arguments[0], kind), to, node, scope)
    if name in _SPECIAL:
        return _SPECIAL[name](arguments, node, scope)
    found = special(name, arguments, node, scope)
    if found is not None:
        return found
    if name in BARRIERS:
        return scope.opaque(node, f"{name} is used inside an expression", VOID)
    return scope.opaque(node, f"{name} is neither defined in this file nor known")


def known(name: str) -> bool:
    """Whether CUDA itself has a function of this name."""
    made = name.startswith("make_") and isinstance(NAMED.get(name[5:]), Vector)
    return made or any(name in table for table in (ELEMENTWISE, ATOMICS, SHUFFLES, LOADS, STORES))


def vector(kind: Vector, arguments: list[Expression], node: Node, scope: Scope) -> Expression:
    """`make_float4(a, b, c, d)`, `dim3(a, b)`."""
    filler = Literal(1, kind.element, scope.where(node))
    short = kind.name == "dim3" and 1 <= len(arguments) <= 3
    if len(arguments) != kind.lanes and not short:
        return scope.opaque(node, f"{kind} takes {kind.lanes} components", kind)
    if any(not isinstance(value.type, Scalar) for value in arguments):
        return scope.opaque(node, f"the components of {kind} are not scalars", kind)
    parts = [convert(value, kind.element) for value in arguments]
    parts += [filler] * (kind.lanes - len(parts))
    return MakeVector(tuple(parts), kind, scope.where(node))


def elementwise(
    entry: IntrinsicEntry, arguments: list[Expression], node: Node, scope: Scope
) -> Expression:
    if len(arguments) != entry.arity:
        return scope.opaque(node, f"{entry.name} takes {entry.arity} arguments")
    kinds = [value.type for value in arguments]
    scalars = [kind for kind in kinds if isinstance(kind, Scalar)]
    if len(scalars) != len(kinds):
        return scope.opaque(node, f"{entry.name} of {kinds[0]} is not understood")
    operand = _operand_type(entry, scalars)
    if operand is None:
        return scope.opaque(node, f"{entry.name} has no overload for these arguments")
    values = tuple(convert(value, operand) for value in arguments)
    where = scope.where(node)
    if entry.operator is None:
        result = entry.result if entry.result is not None else operand
        return convert(values[0], result, written=True)
    if entry.result is not None and entry.result.is_bool:
        return Intrinsic(entry, values, BOOL, where)
    computed = Intrinsic(entry, values, operand, where)
    return convert(computed, entry.result, written=True) if entry.result else computed


def _operand_type(entry: IntrinsicEntry, kinds: list[Scalar]) -> Scalar | None:
    match entry.operands:
        case Scalar() as fixed:
            return fixed
        case "own":
            return kinds[0]
        case "common" if entry.arity == 1:
            return common(kinds[0], kinds[0])
    together: Scalar | None = kinds[0]
    for kind in kinds[1:]:
        together = common(together, kind) if together is not None else None
    if together is None or entry.operands == "common":
        return together
    if together.is_integer:
        return DOUBLE
    return together if together.name in ("float", "double") else FLOAT


def _pointee(pointer: Expression) -> Type | None:
    return pointer.type.element if isinstance(pointer.type, Pointer) else None


def _place(pointer: Expression, node: Node, scope: Scope, kind: Type) -> Element:
    where = scope.where(node)
    return Element(pointer, Literal(0, INT, where), kind, where)


def _load(pointer: Expression, node: Node, scope: Scope) -> Expression:
    pointer = decay(pointer)
    kind = _pointee(pointer)
    if kind is None:
        return scope.opaque(node, "a load from what is no pointer")
    return _place(pointer, node, scope, kind)


def _store(pointer: Expression, value: Expression, node: Node, scope: Scope) -> Expression:
    pointer = decay(pointer)
    kind = _pointee(pointer)
    if kind is None:
        return scope.opaque(node, "a store to what is no pointer")
    target = _place(pointer, node, scope, kind)
    return Assign(target, None, convert(value, kind), kind, kind, scope.where(node))


def _atomic(name: str, arguments: list[Expression], node: Node, scope: Scope) -> Expression:
    entry = ATOMICS[name]
    pointer = decay(arguments[0]) if arguments else None
    kind = _pointee(pointer) if pointer is not None else None
    if pointer is None or len(arguments) != 1 + entry.arguments or not isinstance(kind, Scalar):
        return scope.opaque(node, f"{name} of these arguments is not understood")
    values = tuple(objects.fitted(value, kind, node, scope) for value in arguments[1:])
    unclear = next((value for value in values if isinstance(value.type, Unknown)), None)
    if unclear is not None:
        return unclear
    return Atomic(entry, pointer, values, kind, scope.where(node))


def _shuffle(
    entry: ShuffleEntry, arguments: list[Expression], node: Node, scope: Scope
) -> Expression:
    where = scope.where(node)
    rest = list(arguments)
    participants: Expression = Literal(0xFFFFFFFF, UNSIGNED, where)
    if entry.masked and rest:
        participants = convert(rest.pop(0), UNSIGNED)
    exchange = entry.kind in ("index", "up", "down", "xor")
    limits = (2, 3) if exchange else (1, 1)
    if not limits[0] <= len(rest) <= limits[1]:
        return scope.opaque(node, f"{entry.name} does not take {len(arguments)} arguments")
    value = rest[0]
    if isinstance(value.type, Vector | Struct) and exchange:
        first = participants

        def part(given: Sequence[Expression]) -> Expression:
            return _shuffle(entry, [first, *given], node, scope)

        return by_component(entry.name, rest, part, value.type, where)
    if not isinstance(value.type, Scalar):
        return scope.opaque(node, f"{entry.name} of {value.type} is not understood")
    if entry.kind == "match":
        return Shuffle(entry, participants, value, None, None, UNSIGNED, where)
    if entry.kind in WARP_REDUCTIONS:
        if not value.type.is_integer:
            return scope.opaque(node, f"{entry.name} of {value.type} is not understood")
        kind = UNSIGNED if value.type.is_unsigned or entry.kind.startswith("bitwise") else INT
        return Shuffle(entry, participants, convert(value, kind), None, None, kind, where)
    if entry.kind in ("any", "all", "ballot"):
        kind = UNSIGNED if entry.kind == "ballot" else INT
        return Shuffle(entry, participants, convert(value, BOOL), None, None, kind, where)
    lane = convert(rest[1], INT) if exchange else None
    width = convert(rest[2], INT) if len(rest) > 2 else None
    return Shuffle(entry, participants, value, lane, width, value.type, where)


def bits_as(value: Expression, to: Type, node: Node, scope: Scope) -> Expression:
    """The bits of a value as another type of the same size (`std::bit_cast`)."""
    if isinstance(value.type, Unknown):
        return value
    if isinstance(to, Unknown) or value.type.size != to.size:
        return scope.opaque(node, f"the bits of {value.type} as {to} are not understood", to)
    place, setting = objects.stored(value, scope)
    where = scope.where(node)
    pointer = Cast(Address(place, Pointer(value.type), where), Pointer(to), where)
    seen: Expression = Element(pointer, Literal(0, INT, where), to, where)
    return seen if setting is None else Comma(setting, seen, to, where)


def _nothing(_arguments: list[Expression], node: Node, scope: Scope) -> Expression:
    """Calls that compute nothing: assertions and printing."""
    return Literal(0, INT, scope.where(node))


def _multiply24(arguments: list[Expression], node: Node, scope: Scope) -> Expression:
    from migrate.cuda.ast import Binary

    # On every current architecture the product of values that fit 24 bits is the 32-bit one.
    if len(arguments) != 2:
        return scope.opaque(node, "__mul24 takes 2 arguments", INT)
    left, right = (convert(value, INT) for value in arguments)
    return Binary("multiply", left, right, INT, scope.where(node))


# CUDA Math API, "Type Casting Intrinsics": the bits of one type as another.
_BITS: dict[str, tuple[Scalar, Scalar]] = {
    "__float_as_int": (FLOAT, INT),
    "__float_as_uint": (FLOAT, UNSIGNED),
    "__int_as_float": (INT, FLOAT),
    "__uint_as_float": (UNSIGNED, FLOAT),
    "__double_as_longlong": (DOUBLE, LONG_LONG),
    "__longlong_as_double": (LONG_LONG, DOUBLE),
    "__half_as_short": (HALF, SHORT),
    "__half_as_ushort": (HALF, UNSIGNED_SHORT),
    "__short_as_half": (SHORT, HALF),
    "__ushort_as_half": (UNSIGNED_SHORT, HALF),
    "__bfloat16_as_short": (BFLOAT16, SHORT),
    "__bfloat16_as_ushort": (BFLOAT16, UNSIGNED_SHORT),
    "__short_as_bfloat16": (SHORT, BFLOAT16),
    "__ushort_as_bfloat16": (UNSIGNED_SHORT, BFLOAT16),
}

_SPECIAL: dict[str, Callable[[list[Expression], Node, Scope], Expression]] = {
    "assert": _nothing,
    "__builtin_assume": _nothing,
    "printf": _nothing,
    "__mul24": _multiply24,
    "__umul24": _multiply24,
}
