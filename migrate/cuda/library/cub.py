"""CUB's warp and block collectives (CUB API reference).

Each call becomes a call of a function written in CUDA: shuffles within a warp, one cell of shared
memory for each warp, a barrier.  Where CUB leaves the result to one thread (`BlockReduce`: thread
0) the others get a partial one, as there.

The order of a floating-point reduction is not part of CUB's interface.  Ours: a thread's own items
in order, then neighbours at distance 1, 2, 4, 8, 16 within the warp, then the warps in order, which
is what its algorithm `BLOCK_REDUCE_WARP_REDUCTIONS`, the default, does.  Scans: a thread's items,
the warp at distance 1, 2, 4, 8, 16, the warps in order.

For the lifter: a call of a function named `cub::BlockReduce::Sum` (and so on) with loops, shuffles
and a shared array as a hand-written one has.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrate.cuda.ast import Expression, Literal
from migrate.cuda.conversions import convert, decay
from migrate.cuda.library.build import arithmetic, integer, linear
from migrate.cuda.library.cub_text import MOVE, REDUCE, SCAN
from migrate.cuda.library.operators import combiner, prefixing
from migrate.cuda.library.request import Handler, Lowered, Parameters, Request, TypeMaker, unclear
from migrate.cuda.library.text import Binding, Combine, inlined
from migrate.cuda.types import INT, VOID, Array, Library, Pointer, Scalar, Struct, Type, Vector

# The algorithms by the numbers of their enumerators.  All load and store the same blocked
# arrangement but the striped one; all reduce and scan the same.
_ALGORITHMS = {
    **{
        f"BLOCK_{verb}_{name}": number
        for verb in ("LOAD", "STORE")
        for number, name in enumerate(
            (
                "DIRECT",
                "STRIPED",
                "VECTORIZE",
                "TRANSPOSE",
                "WARP_TRANSPOSE",
                "WARP_TRANSPOSE_TIMESLICED",
            )
        )
    },
    "BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY": 0,
    "BLOCK_REDUCE_RAKING": 1,
    "BLOCK_REDUCE_WARP_REDUCTIONS": 2,
    "BLOCK_SCAN_RAKING": 0,
    "BLOCK_SCAN_RAKING_MEMOIZE": 1,
    "BLOCK_SCAN_WARP_SCANS": 2,
}


# Types


def _block_type(name: str, sizes: tuple[int, ...]) -> TypeMaker:
    """A class by name whose parameters are its element type and numbers at some positions.

    `sizes` are the positions of the block's dimensions.
    """

    def make(parameters: Parameters) -> Type | None:
        if not parameters or not isinstance(parameters[0], Scalar | Vector | Struct):
            return None
        threads = 1
        for position in sizes:
            if position < len(parameters):
                extent = parameters[position]
                if isinstance(extent, bool) or not isinstance(extent, int) or extent < 1:
                    return None
                threads *= extent
        kept: list[object] = [parameters[0], threads]
        if name in ("BlockLoad", "BlockStore"):
            items = parameters[2] if len(parameters) > 2 else None
            if isinstance(items, bool) or not isinstance(items, int):
                return None
            algorithm = parameters[3] if len(parameters) > 3 else _ALGORITHMS["BLOCK_LOAD_DIRECT"]
            if not isinstance(algorithm, int):
                return None
            kept += [items, algorithm == _ALGORITHMS["BLOCK_LOAD_STRIPED"]]
        return Library(name, tuple(kept)) if threads <= 1024 else None

    return make


def _warp_type(parameters: Parameters) -> Type | None:
    if not parameters or not isinstance(parameters[0], Scalar | Vector | Struct):
        return None
    width = parameters[1] if len(parameters) > 1 else 32
    if isinstance(width, int) and width in (1, 2, 4, 8, 16, 32):
        return Library("WarpReduce", (parameters[0], width))
    return None


# Members


def _parts(request: Request) -> tuple[Type, int]:
    assert request.base is not None
    kind = request.base.type
    assert isinstance(kind, Library)
    element, count = kind.parameters[:2]
    assert isinstance(element, Scalar | Vector | Struct)
    assert isinstance(count, int)
    return element, count


def _thread(request: Request) -> Expression:
    return convert(linear("threadIdx", "blockDim", request.where), INT)


def _finish(
    request: Request,
    text: str,
    function: str,
    bindings: dict[str, Binding],
    arguments: Sequence[Expression],
    combine: Combine | None,
    prefix: Combine | None = None,
) -> Expression:
    assert request.base is not None
    kind = request.base.type
    assert isinstance(kind, Library)
    name = f"cub::{kind.name}::{request.name}"
    made = inlined(text, function, bindings, arguments, request.where, name, combine, prefix)
    return request.opaque(made) if isinstance(made, str) else made


def _operator(request: Request, summing: bool, position: int) -> Combine | str:
    """How two values are combined: a sum, or what an argument says."""
    if summing:
        return combiner("add")
    if position >= len(request.arguments):
        return f"{request.name} needs an operator"
    return combiner(request.value(position), request)


def _block_reduce(request: Request) -> Lowered:
    """`Sum(value)`, `Sum(value, valid)`, `Sum(items)`, `Reduce(value, operator, valid)`."""
    if request.name not in ("Sum", "Reduce") or not request.arguments:
        return None
    element, threads = _parts(request)
    summing = request.name == "Sum"
    combine = _operator(request, summing, 1)
    if isinstance(combine, str):
        return request.opaque(combine, element)
    value = request.value(0)
    bad = unclear([value])
    if bad is not None:
        return bad
    rest = request.arguments[1 if summing else 2 :]
    bindings: dict[str, Binding] = {"T": element, "THREADS": threads}
    thread = _thread(request)
    if isinstance(value.type, Array) and not rest:
        bindings["ITEMS"] = value.type.length or 0
        return _finish(request, REDUCE, "block_reduce_items", bindings, [value, thread], combine)
    if len(rest) == 1:
        valid = request.value(len(request.arguments) - 1)
        given = [value, thread, valid]
        return _finish(request, REDUCE, "block_reduce_some", bindings, given, combine)
    if rest:
        return None
    return _finish(request, REDUCE, "block_reduce", bindings, [value, thread], combine)


def _warp_reduce(request: Request) -> Lowered:
    """`Sum(value)`, `Sum(value, valid)`, `Reduce(value, operator)`."""
    if request.name not in ("Sum", "Reduce") or not request.arguments:
        return None
    element, width = _parts(request)
    summing = request.name == "Sum"
    combine = _operator(request, summing, 1)
    if isinstance(combine, str):
        return request.opaque(combine, element)
    value = request.value(0)
    rest = request.arguments[1 if summing else 2 :]
    bindings: dict[str, Binding] = {"T": element, "WIDTH": width}
    if not rest:
        return _finish(request, REDUCE, "warp_reduce", bindings, [value], combine)
    if len(rest) > 1:
        return None
    lane = arithmetic("fmod", _thread(request), integer(width, request.where))
    valid = request.value(len(request.arguments) - 1)
    return _finish(request, REDUCE, "warp_reduce_some", bindings, [value, lane, valid], combine)


def _block_scan(request: Request) -> Lowered:
    """Inclusive and exclusive sums and scans, of one value or an array of items a thread.

    After the operands may come a place for the total, or a function object that makes of the
    total what stands before the block's values.
    """
    if request.name not in ("InclusiveSum", "ExclusiveSum", "InclusiveScan", "ExclusiveScan"):
        return None
    exclusive, summing = request.name.startswith("Exclusive"), request.name.endswith("Sum")
    element, threads = _parts(request)
    values = request.values()
    bad = unclear(values)
    if bad is not None:
        return bad
    given, rest = values[:2], values[2:]
    # Without an initial value an exclusive scan has a function for it.
    starts = exclusive and not summing and len(rest) > 1 and rest[0].type == element
    initial = rest.pop(0) if starts else None
    operator = combiner("add") if summing else combiner(rest.pop(0), request) if rest else ""
    if isinstance(operator, str) or len(given) < 2 or len(rest) > 1:
        reason = operator or f"this form of {request.name} is not understood"
        return request.opaque(str(reason), VOID)
    last = rest[0] if rest else None
    following = last is not None and last.type != element
    if exclusive and not summing and not (starts or following):
        return request.opaque(f"{request.name} without an initial value is not understood", VOID)
    if exclusive and summing and not following:
        initial = _zero(element, request)
        if initial is None:
            return request.opaque(f"an exclusive sum of {element} is not understood", VOID)
    bindings: dict[str, Binding] = {"T": element, "THREADS": threads}
    arguments = [*given, *([initial] if initial is not None and not following else [])]
    function = "exclusive" if exclusive else "inclusive"
    if isinstance(given[0].type, Array):
        bindings["ITEMS"] = given[0].type.length or 0
        function += "_items"
    prefix: Combine | None = None
    if last is not None and following:
        found = prefixing(last, request)
        if isinstance(found, str):
            return request.opaque(found, VOID)
        prefix = found
        function += "_after"
    elif last is not None:
        if "ITEMS" in bindings:
            return request.opaque("a total over items is not understood", VOID)
        function += "_total"
        arguments.append(last)
    arguments.append(_thread(request))
    return _finish(request, SCAN, function, bindings, arguments, operator, prefix)


def _zero(kind: Type, request: Request) -> Expression | None:
    return Literal(0, kind, request.where) if isinstance(kind, Scalar) else None


def _move(request: Request) -> Lowered:
    """`Load(from, items, valid, otherwise)` and `Store(to, items, valid)`."""
    assert request.base is not None
    kind = request.base.type
    assert isinstance(kind, Library)
    storing = kind.name == "BlockStore"
    if request.name != ("Store" if storing else "Load"):
        return None
    count = len(request.arguments)
    if not 2 <= count <= (3 if storing else 4):
        return None
    element, threads = _parts(request)
    items, striped = kind.parameters[2:4]
    assert isinstance(items, int)
    values = request.values()
    bad = unclear(values)
    if bad is not None:
        return bad
    memory = decay(values[0])
    if not isinstance(memory.type, Pointer):
        return request.opaque(f"{request.name} through {memory.type} is not understood", VOID)
    bindings: dict[str, Binding] = {
        "T": element,
        "S": memory.type.element,
        "STEP": 1 if striped else items,
        "STRIDE": threads if striped else 1,
        "ITEMS": items,
    }
    function = "store" if storing else "load"
    function += ("", "", "", "_some", "_or")[count]
    arguments = [memory, decay(values[1]), *values[2:], _thread(request)]
    return _finish(request, MOVE, function, bindings, arguments, None)


FUNCTIONS: dict[str, Handler] = {}

MEMBERS = {
    "BlockReduce": _block_reduce,
    "WarpReduce": _warp_reduce,
    "BlockScan": _block_scan,
    "BlockLoad": _move,
    "BlockStore": _move,
}

TYPES = {
    "BlockReduce": _block_type("BlockReduce", (1, 3, 4)),
    "WarpReduce": _warp_type,
    "BlockScan": _block_type("BlockScan", (1, 3, 4)),
    "BlockLoad": _block_type("BlockLoad", (1, 4, 5)),
    "BlockStore": _block_type("BlockStore", (1, 4, 5)),
}

CONSTANTS = _ALGORITHMS
