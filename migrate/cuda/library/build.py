"""Typed trees made by hand, for what a library function stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from migrate.cuda.ast import (
    Binary,
    Block,
    Builtin,
    Call,
    Component,
    Element,
    Expression,
    Function,
    Literal,
    MakeVector,
    Name,
    Return,
    Variable,
)
from migrate.cuda.origins import Where, span_of
from migrate.cuda.types import DIM3, INT, UNSIGNED, Pointer, Scalar, Struct, Type, Vector

WARP = 32


def integer(value: int, where: Where, kind: Scalar = INT) -> Literal:
    return Literal(value, kind, where)


def arithmetic(operator: str, left: Expression, right: Expression) -> Binary:
    """An operator on two values of one type, which the result has."""
    return Binary(operator, left, right, left.type, left.where)


def dimensions(which: str, where: Where) -> MakeVector:
    """`threadIdx`, `blockIdx`, `blockDim` or `gridDim` as a `dim3`."""
    return MakeVector(tuple(builtin(which, axis, where) for axis in range(3)), DIM3, where)


def builtin(which: str, axis: int, where: Where) -> Builtin:
    match which:
        case "threadIdx" | "blockIdx" | "blockDim" | "gridDim":
            return Builtin(which, axis, UNSIGNED, where)
        case _:
            raise ValueError(f"{which} is no built-in variable")


def linear(index: str, extent: str, where: Where) -> Expression:
    """A thread's number in its block, or a block's in the grid: x fastest, `unsigned`."""
    made: Expression = builtin(index, 2, where)
    for axis in (1, 0):
        scaled = arithmetic("multiply", made, builtin(extent, axis, where))
        made = arithmetic("add", scaled, builtin(index, axis, where))
    return made


def volume(extent: str, where: Where) -> Expression:
    """Threads in a block, or blocks in the grid, `unsigned`."""
    made: Expression = builtin(extent, 0, where)
    for axis in (1, 2):
        made = arithmetic("multiply", made, builtin(extent, axis, where))
    return made


def lane(where: Where) -> Expression:
    """The thread's place in its warp."""
    rank = linear("threadIdx", "blockDim", where)
    return arithmetic("fmod", rank, integer(WARP, where, UNSIGNED))


def element(base: Expression, index: int, kind: Type) -> Element:
    return Element(base, integer(index, base.where), kind, base.where)


def target(pointer: Expression) -> Element:
    """What a pointer points to."""
    kind = pointer.type
    if not isinstance(kind, Pointer):
        raise TypeError(f"{kind} is no pointer")
    return element(pointer, 0, kind.element)


def component(value: Expression, index: int) -> Expression:
    """One component of a vector or member of a struct; of one just made, the part."""
    if isinstance(value, MakeVector):
        return value.parts[index]
    match value.type:
        case Vector(element=kind):
            return Component(value, index, kind, value.where)
        case Struct(members=members):
            return Component(value, index, members[index].type, value.where)
        case kind:
            raise TypeError(f"{kind} has no components")


def is_plain(value: Expression) -> bool:
    """Whether a value may be written twice: reading it does nothing and costs nothing."""
    match value:
        case Literal() | Name() | Builtin():
            return True
        case Component(base=base):
            return is_plain(base)
        case MakeVector(parts=parts):
            return all(is_plain(part) for part in parts)
        case _:
            return False


def let(
    name: str,
    values: Sequence[Expression],
    make: Callable[[Sequence[Expression]], Expression],
    where: Where,
) -> Expression:
    """`make` of values that each are evaluated once, as an inlined function where needed."""
    if all(is_plain(value) for value in values):
        return make(values)
    variables = [
        Variable(position, f"value{position}", value.type, "parameter", where)
        for position, value in enumerate(values)
    ]
    result = make([Name(variable, variable.type, where) for variable in variables])
    body = Block((Return(result, where),), where)
    function = Function(name, tuple(variables), result.type, body, span_of(where), kernel=False)
    return Call(function, tuple(values), result.type, where)


def by_component(
    name: str,
    values: Sequence[Expression],
    make: Callable[[Sequence[Expression]], Expression],
    kind: Vector | Struct,
    where: Where,
) -> Expression:
    """A function of scalars on each component of vectors, or each member of structs.

    Values of other types serve all components.
    """
    count = kind.lanes if isinstance(kind, Vector) else len(kind.members)

    def built(given: Sequence[Expression]) -> Expression:
        parts = [
            make([component(value, at) if value.type == kind else value for value in given])
            for at in range(count)
        ]
        return MakeVector(tuple(parts), kind, where)

    return let(name, values, built, where)
