"""Calls: intrinsics, atomics, warp exchanges, loads, vector makers and device functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tree_sitter import Node

from migrate.cuda.ast import (
    Assign,
    Atomic,
    Call,
    Element,
    Expression,
    Intrinsic,
    Literal,
    MakeVector,
    OpaqueExpression,
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
    IntrinsicEntry,
    ShuffleEntry,
)
from migrate.cuda.scope import Scope
from migrate.cuda.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    NAMED,
    UNSIGNED,
    VOID,
    Pointer,
    Scalar,
    Type,
    Unknown,
    Vector,
    common,
)


def call(
    name: str,
    template: Sequence[Type | int | float | bool],
    arguments: list[Expression],
    node: Node,
    scope: Scope,
) -> Expression:
    """A call by name, its arguments built already.

    A device function of the file hides an intrinsic of the same name, as it would for nvcc.
    """
    unclear = next((value for value in arguments if isinstance(value.type, Unknown)), None)
    if name in scope.program.functions:
        return _device_function(name, template, arguments, node, scope)
    if unclear is not None:
        return unclear
    if name in ELEMENTWISE:
        return _elementwise(ELEMENTWISE[name], arguments, node, scope)
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
    if name in _SPECIAL:
        return _SPECIAL[name](arguments, node, scope)
    if name in BARRIERS:
        return scope.opaque(node, f"{name} is used inside an expression", VOID)
    return scope.opaque(node, f"{name} is neither defined in this file nor known")


def vector(kind: Vector, arguments: list[Expression], node: Node, scope: Scope) -> Expression:
    """`make_float4(a, b, c, d)`, `dim3(a, b)`."""
    filler = Literal(1, kind.element, scope.span(node))
    short = kind.name == "dim3" and 1 <= len(arguments) <= 3
    if len(arguments) != kind.lanes and not short:
        return scope.opaque(node, f"{kind} takes {kind.lanes} components", kind)
    if any(not isinstance(value.type, Scalar) for value in arguments):
        return scope.opaque(node, f"the components of {kind} are not scalars", kind)
    parts = [convert(value, kind.element) for value in arguments]
    parts += [filler] * (kind.lanes - len(parts))
    return MakeVector(tuple(parts), kind, scope.span(node))


def _elementwise(
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
    span = scope.span(node)
    if entry.operator is None:
        result = entry.result if entry.result is not None else operand
        return convert(values[0], result, written=True)
    if entry.result is not None and entry.result.is_bool:
        return Intrinsic(entry, values, BOOL, span)
    computed = Intrinsic(entry, values, operand, span)
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
    span = scope.span(node)
    return Element(pointer, Literal(0, INT, span), kind, span)


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
    return Assign(target, None, convert(value, kind), kind, kind, scope.span(node))


def _atomic(name: str, arguments: list[Expression], node: Node, scope: Scope) -> Expression:
    entry = ATOMICS[name]
    pointer = decay(arguments[0]) if arguments else None
    kind = _pointee(pointer) if pointer is not None else None
    if pointer is None or len(arguments) != 1 + entry.arguments or not isinstance(kind, Scalar):
        return scope.opaque(node, f"{name} of these arguments is not understood")
    values = tuple(convert(value, kind) for value in arguments[1:])
    return Atomic(entry, pointer, values, kind, scope.span(node))


def _shuffle(
    entry: ShuffleEntry, arguments: list[Expression], node: Node, scope: Scope
) -> Expression:
    span = scope.span(node)
    rest = list(arguments)
    participants: Expression = Literal(0xFFFFFFFF, UNSIGNED, span)
    if entry.masked and rest:
        participants = convert(rest.pop(0), UNSIGNED)
    exchange = entry.kind in ("index", "up", "down", "xor")
    limits = (2, 3) if exchange else (1, 1)
    if not limits[0] <= len(rest) <= limits[1]:
        return scope.opaque(node, f"{entry.name} does not take {len(arguments)} arguments")
    value = rest[0]
    if not isinstance(value.type, Scalar):
        return scope.opaque(node, f"{entry.name} of {value.type} is not understood")
    if entry.kind in ("any", "all", "ballot"):
        kind = UNSIGNED if entry.kind == "ballot" else INT
        return Shuffle(entry, participants, convert(value, BOOL), None, None, kind, span)
    lane = convert(rest[1], INT) if exchange else None
    width = convert(rest[2], INT) if len(rest) > 2 else None
    return Shuffle(entry, participants, value, lane, width, value.type, span)


def _device_function(
    name: str,
    template: Sequence[Type | int | float | bool],
    arguments: list[Expression],
    node: Node,
    scope: Scope,
) -> Expression:
    function = scope.instantiate(name, template, arguments)
    if isinstance(function, str):
        return scope.opaque(node, function)
    values: list[Expression] = []
    for parameter, value in zip(function.parameters, arguments, strict=False):
        if parameter.storage == "reference":
            values.append(value)
            continue
        converted = convert(value, parameter.type)
        if isinstance(converted, OpaqueExpression) and converted not in scope.issues:
            return scope.opaque(node, converted.reason, function.result)
        values.append(converted)
    return Call(function, tuple(values), function.result, scope.span(node))


def _nothing(_arguments: list[Expression], node: Node, scope: Scope) -> Expression:
    """Calls that compute nothing: assertions and printing."""
    return Literal(0, INT, scope.span(node))


def _multiply24(arguments: list[Expression], node: Node, scope: Scope) -> Expression:
    from migrate.cuda.ast import Binary

    # On every current architecture the product of values that fit 24 bits is the 32-bit one.
    if len(arguments) != 2:
        return scope.opaque(node, "__mul24 takes 2 arguments", INT)
    left, right = (convert(value, INT) for value in arguments)
    return Binary("multiply", left, right, INT, scope.span(node))


_SPECIAL: dict[str, Callable[[list[Expression], Node, Scope], Expression]] = {
    "assert": _nothing,
    "__builtin_assume": _nothing,
    "printf": _nothing,
    "__mul24": _multiply24,
    "__umul24": _multiply24,
}
