"""Cooperative groups (CUDA C++ Programming Guide, "Cooperative Groups").

A group has no state: `thread_rank` and its like are arithmetic on the built-in variables, exchanges
are shuffles of the tile's width, `sync` is a barrier.  `coalesced_threads` alone holds something,
the mask of the lanes that were active, which becomes a variable.

`cg::reduce` and the scans are trees of shuffles.  NVIDIA leaves their order open; ours is that of
its header for a tile (cooperative_groups/details/reduce.h): partners at half the width first,
then half of that.  `cg::less` and `cg::greater` are taken as `fminf` and `fmaxf`, from which they
differ for NaN alone.

For the lifter: ranks are index arithmetic, exchanges `Shuffle` nodes, a reduction is a call of a
function named `cg::reduce` with a loop of them.
"""

from __future__ import annotations

from collections.abc import Callable

from migrate.cuda.ast import (
    Barrier,
    Declare,
    Expression,
    Literal,
    Name,
    Shuffle,
    Statement,
)
from migrate.cuda.conversions import convert
from migrate.cuda.intrinsics import SHUFFLES
from migrate.cuda.library.build import (
    arithmetic,
    dimensions,
    integer,
    linear,
    volume,
)
from migrate.cuda.library.exchanges import EXCHANGES, VOTES, exchange
from migrate.cuda.library.operators import combiner
from migrate.cuda.library.request import Lowered, Parameters, Request, thing, unclear
from migrate.cuda.library.text import inlined
from migrate.cuda.origins import Where
from migrate.cuda.types import (
    BOOL,
    UNSIGNED,
    UNSIGNED_LONG_LONG,
    Library,
    Type,
)

BLOCK = Library("thread_block")
GRID = Library("grid_group")
_TILES = (1, 2, 4, 8, 16, 32)


def tile(width: int) -> Library:
    return Library("thread_block_tile", (width,))


# Types


def _tile_type(parameters: Parameters) -> Type | None:
    width = parameters[0] if parameters else None
    if isinstance(width, int) and width in _TILES:
        return tile(width)
    return None


# Functions


def _this_thread_block(request: Request) -> Lowered:
    return thing(BLOCK, "this_thread_block()", request.where)


def _this_grid(request: Request) -> Lowered:
    return thing(GRID, "this_grid()", request.where)


def _this_thread(request: Request) -> Lowered:
    return thing(tile(1), "this_thread()", request.where)


def _cluster(request: Request) -> Lowered:
    return request.opaque("thread block clusters are not understood")


def _partition(request: Request) -> Lowered:
    """`tiled_partition<N>(group)` and `tiled_partition(group, N)`."""
    width: object = request.parameter(0)
    if width is None:
        width = request.constant(1)
    if not request.arguments:
        return None
    parent = request.value(0).type
    if not isinstance(parent, Library):
        return None
    if not isinstance(width, int) or width not in _TILES:
        return request.opaque(f"a tile of {width} threads is not understood")
    whole = parent.parameters[0] if parent.name == "thread_block_tile" else 32
    if parent.name not in ("thread_block", "thread_block_tile") or not isinstance(whole, int):
        return request.opaque(f"a partition of {parent} is not understood")
    if width > whole:
        return request.opaque(f"a tile of {width} threads does not fit in {parent}")
    return thing(tile(width), "tiled_partition", request.where)


def _coalesced(request: Request) -> Lowered:
    """The active lanes: their mask becomes a variable where the group is declared."""
    where = request.where
    everyone = Literal(True, BOOL, where)
    ballot = SHUFFLES["__ballot_sync"]
    full = integer(0xFFFFFFFF, where, UNSIGNED)
    mask = Shuffle(ballot, full, everyone, None, None, UNSIGNED, where)
    variable = request.scope.declare("(active lanes)", UNSIGNED, "local", where)
    declared = Declare(variable, mask, where)
    return thing(Library("coalesced_group", (declared,)), "coalesced_threads()", where)


def _sync(request: Request) -> Lowered:
    """`cg::sync(group)`."""
    group = request.value(0).type if len(request.arguments) == 1 else None
    return _barrier(group, request) if isinstance(group, Library) else None


def _barrier(group: Library, request: Request) -> tuple[Statement, ...] | Expression:
    match group.name:
        case "thread_block":
            return (Barrier("block", request.where),)
        case "thread_block_tile" | "coalesced_group":
            return (Barrier("warp", request.where),)
        case "grid_group":
            return (Barrier("grid", request.where),)
        case _:
            return request.opaque(f"a barrier of {group} is not understood")


def _rank_function(name: str) -> Callable[[Request], Lowered]:
    def handler(request: Request) -> Lowered:
        group = request.value(0).type if len(request.arguments) == 1 else None
        return _query(group, name, request) if isinstance(group, Library) else None

    return handler


_TREE = """
template <typename T, int N> __device__ T reduce(T value) {
  for (int distance = N / 2; distance > 0; distance /= 2) {
    T other = __shfl_xor_sync(0xffffffffu, value, distance, N);
    value = combine(value, other);
  }
  return value;
}
template <typename T, int N> __device__ T inclusive_scan(T value, unsigned rank) {
  for (int distance = 1; distance < N; distance *= 2) {
    T before = __shfl_up_sync(0xffffffffu, value, distance, N);
    if (rank >= distance) value = combine(before, value);
  }
  return value;
}
template <typename T, int N> __device__ T exclusive_scan(T value, unsigned rank) {
  T sum = inclusive_scan<T, N>(value, rank);
  T before = __shfl_up_sync(0xffffffffu, sum, 1, N);
  return rank == 0 ? (T)0 : before;
}
"""


def _collective(request: Request) -> Lowered:
    """`reduce(tile, value, operator)` and the scans over a tile."""
    if not 2 <= len(request.arguments) <= 3:
        return None
    group = request.value(0)
    if not isinstance(group.type, Library):
        return None
    name = f"cg::{request.name}"
    if group.type.name != "thread_block_tile":
        return request.opaque(f"{name} over {group.type} is not understood")
    value = request.value(1)
    if isinstance(bad := unclear([value]), Expression):
        return bad
    combine = combiner("add")
    if len(request.arguments) == 3:
        combine = combiner(request.value(2), request)
    if isinstance(combine, str):
        return request.opaque(f"{name}: {combine}", value.type)
    if len(request.arguments) == 3 and request.name == "exclusive_scan":
        return request.opaque(f"{name} with an operator is not understood", value.type)
    width = group.type.parameters[0]
    assert isinstance(width, int)
    arguments = [value]
    if request.name != "reduce":
        arguments.append(_rank(group.type, request.where))
    made = inlined(
        _TREE,
        request.name,
        {"T": value.type, "N": width},
        arguments,
        request.where,
        name,
        combine,
    )
    return request.opaque(made, value.type) if isinstance(made, str) else made


# Members


def _rank(group: Library, where: Where) -> Expression:
    rank = linear("threadIdx", "blockDim", where)
    if group.name == "thread_block_tile":
        width = group.parameters[0]
        assert isinstance(width, int)
        return arithmetic("fmod", rank, integer(width, where, UNSIGNED))
    return rank


def _member(request: Request) -> Lowered:
    assert request.base is not None
    group = request.base.type
    assert isinstance(group, Library)
    if request.name == "sync":
        return _barrier(group, request)
    if request.name in EXCHANGES or request.name in VOTES:
        return exchange(group, request)
    return _query(group, request.name, request) if not request.arguments else None


def _query(group: Library, name: str, request: Request) -> Lowered:
    """A number that a group knows about itself."""
    match group.name:
        case "thread_block":
            return _block_query(name, request.where)
        case "thread_block_tile":
            return _tile_query(group, name, request.where)
        case "grid_group":
            return _grid_query(name, request.where)
        case "coalesced_group":
            return _active_query(group, name, request.where)
        case _:
            return None


def _block_query(name: str, where: Where) -> Expression | None:
    match name:
        case "thread_rank":
            return linear("threadIdx", "blockDim", where)
        case "size" | "num_threads":
            return volume("blockDim", where)
        case "group_index":
            return dimensions("blockIdx", where)
        case "thread_index":
            return dimensions("threadIdx", where)
        case "group_dim" | "dim_threads":
            return dimensions("blockDim", where)
        case _:
            return None


def _tile_query(group: Library, name: str, where: Where) -> Expression | None:
    width = group.parameters[0]
    assert isinstance(width, int)
    size = integer(width, where, UNSIGNED)
    match name:
        case "thread_rank":
            return _rank(group, where)
        case "size" | "num_threads":
            return size
        case "meta_group_rank":
            return arithmetic("divide", linear("threadIdx", "blockDim", where), size)
        case "meta_group_size":
            rest = integer(width - 1, where, UNSIGNED)
            return arithmetic("divide", arithmetic("add", volume("blockDim", where), rest), size)
        case _:
            return None


def _grid_query(name: str, where: Where) -> Expression | None:
    match name:
        case "size" | "num_threads" | "thread_rank":
            blocks = volume("gridDim", where)
            threads = convert(volume("blockDim", where), UNSIGNED_LONG_LONG)
            if name != "thread_rank":
                return arithmetic("multiply", convert(blocks, UNSIGNED_LONG_LONG), threads)
            before = convert(linear("blockIdx", "gridDim", where), UNSIGNED_LONG_LONG)
            own = convert(linear("threadIdx", "blockDim", where), UNSIGNED_LONG_LONG)
            return arithmetic("add", arithmetic("multiply", before, threads), own)
        case "block_rank":
            return convert(linear("blockIdx", "gridDim", where), UNSIGNED_LONG_LONG)
        case "num_blocks":
            return convert(volume("gridDim", where), UNSIGNED_LONG_LONG)
        case "block_index":
            return dimensions("blockIdx", where)
        case "group_dim" | "dim_blocks":
            return dimensions("gridDim", where)
        case "is_valid":
            return Literal(True, BOOL, where)
        case _:
            return None


def _active_query(group: Library, name: str, where: Where) -> Expression | None:
    mask = _active_mask(group, where)
    match name:
        case "size" | "num_threads":
            return _count(mask, where)
        case "thread_rank":
            place = arithmetic(
                "fmod", linear("threadIdx", "blockDim", where), integer(32, where, UNSIGNED)
            )
            one = integer(1, where, UNSIGNED)
            below = arithmetic("subtract", arithmetic("left_shift", one, place), one)
            return _count(arithmetic("bitwise_and", mask, below), where)
        case _:
            return None


def _active_mask(group: Library, where: Where) -> Expression:
    declared = group.parameters[0]
    assert isinstance(declared, Declare)
    return Name(declared.variable, UNSIGNED, where)


_COUNT = """
__device__ unsigned count(unsigned bits) {
  bits = bits - ((bits >> 1) & 0x55555555u);
  bits = (bits & 0x33333333u) + ((bits >> 2) & 0x33333333u);
  return (((bits + (bits >> 4)) & 0x0f0f0f0fu) * 0x01010101u) >> 24;
}
"""


def _count(mask: Expression, where: Where) -> Expression:
    made = inlined(_COUNT, "count", {}, [mask], where, "cg::coalesced_group")
    assert not isinstance(made, str)
    return made


FUNCTIONS = {
    "this_thread_block": _this_thread_block,
    "this_grid": _this_grid,
    "this_thread": _this_thread,
    "this_cluster": _cluster,
    "tiled_partition": _partition,
    "coalesced_threads": _coalesced,
    "sync": _sync,
    "thread_rank": _rank_function("thread_rank"),
    "group_size": _rank_function("size"),
    "reduce": _collective,
    "inclusive_scan": _collective,
    "exclusive_scan": _collective,
}

MEMBERS = {
    "thread_block": _member,
    "thread_block_tile": _member,
    "thread_group": _member,
    "grid_group": _member,
    "coalesced_group": _member,
}

TYPES = {
    "thread_block": lambda _parameters: BLOCK,
    "grid_group": lambda _parameters: GRID,
    "thread_group": lambda _parameters: Library("thread_group"),
    "coalesced_group": lambda _parameters: Library("coalesced_group"),
    "thread_block_tile": _tile_type,
}
