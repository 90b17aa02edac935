"""Asynchronous copies from CUDA C++: `__pipeline_*`, `cg::memcpy_async` and `cg::wait`.

(CUDA C++ Programming Guide, "Asynchronous Data Copies", "Pipeline Primitives Interface".)
`cuda::pipeline` and `cuda::barrier` are not read.

For the lifter: `AsyncCopy` holds the copy as an assignment; `AsyncGroup` orders it.  A copy by a
whole group of threads is a loop over its elements.
"""

from __future__ import annotations

from migrate.cuda.ast import (
    Assign,
    AsyncCopy,
    AsyncGroup,
    Barrier,
    Binary,
    Block,
    Cast,
    Conditional,
    Element,
    Evaluate,
    Expression,
    Literal,
    Statement,
)
from migrate.cuda.conversions import convert, decay
from migrate.cuda.library.build import arithmetic, integer, linear, volume
from migrate.cuda.library.operands import pointed
from migrate.cuda.library.request import Handler, Lowered, Request, TypeMaker, unclear
from migrate.cuda.library.text import inlined
from migrate.cuda.origins import Where
from migrate.cuda.types import (
    ADDRESS,
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    NAMED,
    UNSIGNED,
    UNSIGNED_LONG,
    Library,
    Pointer,
    Scalar,
    Type,
    scalar_of,
)


def copied(
    target: Expression, source: Expression, size: int, some: Expression | None, where: Where
) -> AsyncCopy:
    """A copy of 4, 8 or 16 bytes, of which `some` are read and the rest is zero."""
    held = pointed(source) or pointed(target)
    scalar = (scalar_of(held) if held is not None else None) or UNSIGNED
    made: list[Statement] = []
    if some is None:
        kind = _word(scalar, size)
        made.append(_assigned(_cell(target, 0, kind, where), _cell(source, 0, kind, where), where))
    else:
        for at in range(max(size // scalar.size, 1)):
            behind = Binary(
                "less",
                integer(at * scalar.size, where, LONG),
                convert(some, LONG),
                BOOL,
                where,
            )
            value = Conditional(
                behind, _cell(source, at, scalar, where), Literal(0, scalar, where), scalar, where
            )
            made.append(_assigned(_cell(target, at, scalar, where), value, where))
    return AsyncCopy(Block(tuple(made), where), target, size, where)


def _word(scalar: Scalar, size: int) -> Type:
    """A type of a size to copy through: of the element's own kind where one is that wide."""
    base = {FLOAT: "float", DOUBLE: "double", INT: "int", UNSIGNED: "uint"}.get(scalar, "uint")
    width = 8 if scalar == DOUBLE and size >= 8 else 4
    if width == 4 and scalar == DOUBLE:
        base = "uint"
    count = size // width
    return NAMED[f"{base}{count}"] if count > 1 else NAMED.get(base) or UNSIGNED


def _cell(pointer: Expression, at: int, kind: Type, where: Where) -> Element:
    pointer = decay(pointer)
    assert isinstance(pointer.type, Pointer)
    if pointer.type.element != kind:
        pointer = Cast(pointer, Pointer(kind), where, written=False)
    return Element(pointer, integer(at, where), kind, where)


def _assigned(place: Element, value: Expression, where: Where) -> Statement:
    return Evaluate(Assign(place, None, value, place.type, place.type, where), where)


def _primitive_copy(request: Request) -> Lowered:
    """`__pipeline_memcpy_async(to, from, bytes, zeros)`."""
    if not 3 <= len(request.arguments) <= 4:
        return None
    values = [decay(value) for value in request.values()]
    bad = unclear(values)
    if bad is not None:
        return bad
    size = request.constant(2)
    if size not in (4, 8, 16):
        return request.opaque(f"a copy of {size} bytes is not understood")
    if not all(isinstance(value.type, Pointer) for value in values[:2]):
        return request.opaque("a copy of what is no memory")
    some: Expression | None = None
    if len(values) == 4 and request.constant(3) != 0:
        whole = integer(int(size), request.where, UNSIGNED_LONG)
        some = arithmetic("subtract", whole, convert(values[3], UNSIGNED_LONG))
    return (copied(values[0], values[1], int(size), some, request.where),)


def _commit(request: Request) -> Lowered:
    return (AsyncGroup("commit", 0, False, request.where),)


def _wait_prior(request: Request) -> Lowered:
    pending = request.constant(0)
    if pending is None or isinstance(pending, float):
        return request.opaque("how many copies may be under way is not constant")
    return (AsyncGroup("wait", int(pending), False, request.where),)


_COPY = """
template <typename T> __device__ void copy(T* to, const T* from, int count, int rank, int size) {
  for (int i = rank; i < count; i += size) to[i] = from[i];
}
"""


def _group_copy(request: Request) -> Lowered:
    """`cg::memcpy_async(group, to, from, bytes)`: its threads copy element by element."""
    if len(request.arguments) != 4:
        return None
    group = request.value(0).type
    if not isinstance(group, Library):
        return None
    if group.name != "thread_block":
        return request.opaque(f"a copy by {group} is not understood")
    values = [decay(request.value(position)) for position in (1, 2, 3)]
    bad = unclear(values)
    if bad is not None:
        return bad
    to, source, size = values
    held = to.type.element if isinstance(to.type, Pointer) else None
    if held is None or not isinstance(source.type, Pointer) or source.type.element != held:
        return request.opaque("a copy between types is not understood")
    where = request.where
    width = integer(held.size, where, UNSIGNED_LONG)
    count = convert(arithmetic("divide", convert(size, UNSIGNED_LONG), width), INT)
    rank = convert(linear("threadIdx", "blockDim", where), INT)
    threads = convert(volume("blockDim", where), INT)
    made = inlined(
        _COPY, "copy", {"T": held}, [to, source, count, rank, threads], where, "cg::memcpy_async"
    )
    return request.opaque(made) if isinstance(made, str) else made


def _group_wait(request: Request) -> Lowered:
    """`cg::wait(group)`: the copies are there, and all of the group know."""
    group = request.value(0).type if len(request.arguments) == 1 else None
    if not isinstance(group, Library) or group.name != "thread_block":
        return None
    return (Barrier("block", request.where),)


def _shared_address(request: Request) -> Lowered:
    """`__cvta_generic_to_shared(p)`: an integer in C++, kept as what it points to."""
    if len(request.arguments) != 1:
        return None
    value = decay(request.value(0))
    bad = unclear([value])
    if bad is not None:
        return bad
    if not isinstance(value.type, Pointer):
        return request.opaque("the shared address of what is no pointer")
    return Cast(value, ADDRESS, request.where)


FUNCTIONS: dict[str, Handler] = {
    "__pipeline_memcpy_async": _primitive_copy,
    "__pipeline_commit": _commit,
    "__pipeline_wait_prior": _wait_prior,
    "memcpy_async": _group_copy,
    "wait": _group_wait,
    "__cvta_generic_to_shared": _shared_address,
    "__nvvm_get_smem_pointer": _shared_address,
}

MEMBERS: dict[str, Handler] = {}

TYPES: dict[str, TypeMaker] = {}
