"""How well an argument fits a parameter: enough of C++'s rules to choose between overloads."""

from __future__ import annotations

from migrate.cuda import objects
from migrate.cuda.ast import Cast, Expression, Literal
from migrate.cuda.conversions import is_place
from migrate.cuda.library.registers import are_registers
from migrate.cuda.scope import Callee, Scope
from migrate.cuda.types import (
    VOID,
    Array,
    Library,
    Pointer,
    Scalar,
    Struct,
    Type,
    Unknown,
    Vector,
)

PROMOTION, CONVERSION, LOSSY, USER, UNKNOWN = 1, 3, 4, 20, 40


def distance(to: Type, reference: bool, const: bool, value: Expression, scope: Scope) -> int | None:
    """The cost of passing `value`; `None` where it cannot be passed."""
    kind = value.type
    if isinstance(kind, Unknown) or isinstance(to, Unknown):
        return UNKNOWN
    if isinstance(kind, Library) or isinstance(to, Library):
        return 0 if type(kind) is type(to) else 10
    if reference and not const and is_place(value) and not isinstance(to, Struct):
        if isinstance(to, Array) and isinstance(kind, Array):
            fits = to.element == kind.element and to.length in (None, kind.length)
            return 0 if fits or are_registers(kind, to) else None
        return 0 if _equal(to, kind) else None
    if isinstance(to, Array):
        return 0 if isinstance(kind, Array) and to.element == kind.element else None
    if _equal(to, kind):
        return 0
    match kind, to:
        case Scalar(), Scalar():
            return _scalar(kind, to)
        case ((Pointer() | Array()), Pointer()):
            if kind.element == to.element:
                return 0
            if to.element == VOID:
                return CONVERSION
            null = isinstance(value, Cast) and isinstance(value.operand, Literal)
            if null and kind.element == VOID:
                return CONVERSION
            return _base_pointer(kind.element, to.element, scope)
        case Scalar(is_integer=True), Pointer() if isinstance(value, Literal) and not value.value:
            return CONVERSION
        case Pointer() | Array(), Scalar(is_bool=True):
            return LOSSY
        case Struct(), Struct():
            derived = _derives(kind, to, scope)
            return derived if derived is not None else _constructible(to, value, scope)
        case _, Struct():
            return _constructible(to, value, scope)
        case Struct(), Scalar() | Pointer() | Vector():
            owner = scope.classes.of(kind)
            return USER if owner is not None and scope.classes.conversions(owner) else None
        case (Vector(), Scalar()) | (Scalar(), Vector()):
            return LOSSY if are_registers(kind, to) else None
        case Vector(), Vector():
            same = kind.element == to.element and kind.lanes == to.lanes
            return PROMOTION if same else None
        case _:
            return None


def _equal(to: Type, kind: Type) -> bool:
    if isinstance(to, Pointer) and isinstance(kind, Pointer):
        return _equal(to.element, kind.element)
    return to == kind


def _scalar(kind: Scalar, to: Scalar) -> int:
    if kind.is_integer and to.is_integer:
        wider = to.size > kind.size or (to.size == kind.size and not to.is_bool)
        return PROMOTION if to.name == "int" and kind.rank < to.rank else (2 if wider else LOSSY)
    if kind.is_float and to.is_float:
        return PROMOTION if to.size > kind.size else CONVERSION
    return CONVERSION if to.is_float else LOSSY


def _derives(kind: Struct, to: Struct, scope: Scope, depth: int = 0) -> int | None:
    owner = scope.classes.of(kind)
    if owner is None or depth > 8:
        return None
    for base in owner.bases:
        if base.type == to:
            # Only a base that comes first has its members at the places they have alone.
            same_start = kind.members[: len(to.members)] == to.members
            return PROMOTION if same_start else None
        further = _derives(base.type, to, scope, depth + 1)
        if further is not None:
            return further
    return None


def _base_pointer(kind: Type, to: Type, scope: Scope) -> int | None:
    if isinstance(kind, Struct) and isinstance(to, Struct):
        return _derives(kind, to, scope)
    return None


def _constructible(to: Struct, value: Expression, scope: Scope) -> int | None:
    owner = scope.classes.of(to)
    if owner is None or not objects.constructors(owner, scope) or scope.depth > 100:
        return None
    scope.depth += 10
    try:
        fits = scope.resolver.accepts(Callee(owner.constructor, owner=owner), [value], scope)
    finally:
        scope.depth -= 10
    return USER if fits else None
