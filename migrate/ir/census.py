"""What a kernel computes and how it spreads the work, in the words of a census of kernels.

Both are coarse labels for search and statistics: the first that fits, `other` where none
does.  They rest on constructs and index expressions alone, never on names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

from migrate.ir.constructs import Construct, constructs
from migrate.ir.index import Index
from migrate.ir.nodes import (
    Axis,
    AxisKind,
    Barrier,
    Contract,
    Fold,
    Kernel,
    Load,
    Op,
    Parallel,
    Reduce,
    Scatter,
    Space,
    Store,
    Value,
)
from migrate.ir.scene import Scene

Computes: TypeAlias = Literal[
    "elementwise",
    "row/full reduce",
    "GEMM/GEMV",
    "softmax/norm",
    "gather/scatter/index",
    "conv/pool/stencil",
    "transpose/permute",
    "scan/prefix",
    "attention",
    "histogram/atomic",
    "RNG",
    "other",
]
WorkMapping: TypeAlias = Literal[
    "thread per element, 1-D",
    "thread per element, 2-D/3-D",
    "grid-stride loop",
    "block per row",
    "block tile 1-D",
    "block tile 2-D",
    "thread per row",
    "warp per row",
    "single block",
    "single thread",
    "other",
]

_ENOUGH: Final = 0.5
"""Coverage under which nothing is said."""


def computes(kernel: Kernel) -> Computes:
    """What the kernel computes."""
    if kernel.statements.coverage < _ENOUGH:
        return "other"
    scene = Scene(kernel)
    found = constructs(kernel)
    kinds = {construct.kind for construct in found}
    if _unread(found):
        return "other"
    by_data = any(
        isinstance(op, Scatter) and any(isinstance(part, Value) for part in op.index)
        for op in scene.ops
    )
    if "random" in kinds:
        return "RNG"
    if "scan" in kinds:
        return "scan/prefix"
    if "scatter" in kinds and by_data and "reduction" not in kinds:
        return "histogram/atomic"
    if _windowed(scene):
        return "conv/pool/stencil"
    if "contraction" in kinds:
        products = sum(construct.kind == "contraction" for construct in found)
        return "attention" if products > 1 and _normalises(found) else "GEMM/GEMV"
    if _normalises(found):
        return "softmax/norm"
    if kinds & {"reduction", "scatter"}:
        return "row/full reduce"
    if "gather" in kinds or by_data:
        return "gather/scatter/index"
    if "output-store" not in kinds:
        return "other"
    if "transpose" in kinds or ("elementwise" not in kinds and _permutes(scene)):
        return "transpose/permute"
    return "elementwise"


def work_mapping(kernel: Kernel) -> WorkMapping:
    """How the kernel spreads the work over threads, or over tiles."""
    if kernel.statements.coverage < _ENOUGH:
        return "other"
    scene = Scene(kernel)
    kinds = {axis.kind for axis in scene.axes}
    stores = [op for op in scene.ops if isinstance(op, Store | Scatter) and scene.outside(op.into)]
    if not stores:
        return "other"
    if kinds & {AxisKind.PARTITION, AxisKind.FREE}:
        return _tiles(scene, stores)
    if kinds & {AxisKind.WARP, AxisKind.LANE}:
        return "warp per row"
    if AxisKind.GRID not in kinds:
        return "single block" if AxisKind.BLOCK in kinds else "single thread"
    if any(AxisKind.GRID in _kinds(scene, op) and _strides(scene, op) for op in stores):
        return "grid-stride loop"
    shared = any(buffer.space is Space.ONCHIP for buffer in kernel.buffers)
    dimensions = max(
        sum(axis.kind is kind for axis in _varying(scene, op))
        for op in stores
        for kind in (AxisKind.GRID, AxisKind.BLOCK)
    )
    if shared or any(isinstance(op, Barrier) for op in scene.ops):
        if any(AxisKind.BLOCK not in _kinds(scene, op) for op in stores) or _combines(kernel):
            return "block per row"
        return "block tile 2-D" if dimensions > 1 else "block tile 1-D"
    if any(isinstance(op, Fold | Reduce | Contract) for op in scene.ops):
        return "thread per row"
    if dimensions > 1:
        return "thread per element, 2-D/3-D"
    return "thread per element, 1-D"


def _tiles(scene: Scene, stores: list[Store | Scatter]) -> WorkMapping:
    loops = {AxisKind.GRID, AxisKind.TILE, AxisKind.SEQUENTIAL, AxisKind.PARALLEL}
    if not any(axis.kind in loops for op in stores for axis in scene.axes_at(op).values()):
        return "single block"
    return "block tile 2-D" if any(len(op.index) > 1 for op in stores) else "block tile 1-D"


def _positions(op: Store | Scatter) -> Iterator[Index]:
    return (part for part in op.index if isinstance(part, Index))


def _varying(scene: Scene, op: Store | Scatter) -> tuple[Axis, ...]:
    """The axes that a store's place varies over."""
    names = {name for part in _positions(op) for name in part.axes()}
    return tuple(axis for name, axis in scene.axes_at(op).items() if name in names)


def _kinds(scene: Scene, op: Store | Scatter) -> set[AxisKind]:
    return {axis.kind for axis in _varying(scene, op)}


def _strides(scene: Scene, op: Store | Scatter) -> bool:
    """Whether a loop of each thread decides where it stores."""
    own = {AxisKind.SEQUENTIAL, AxisKind.PARALLEL, AxisKind.TILE}
    return any(axis.kind in own for axis in _varying(scene, op))


def _combines(kernel: Kernel) -> bool:
    """Whether a reduction goes over the threads of a block."""
    threads = {"warp", "block", "lane"}
    return any(
        construct.kind == "reduction"
        and threads & set((construct.attribute("scope") or "").split("+"))
        for construct in constructs(kernel)
    )


def _unread(found: tuple[Construct, ...]) -> bool:
    """Whether a result rests on something that was not understood."""
    by_id = {construct.id: construct for construct in found}
    return any(
        by_id[id_].kind == "opaque"
        for construct in found
        if construct.kind in {"output-store", "scatter"}
        for id_ in _above(construct, by_id)
    )


def _above(construct: Construct, by_id: Mapping[str, Construct]) -> set[str]:
    """The constructs that one rests on, however far away."""
    seen: set[str] = set()
    pending = list(construct.after)
    while pending:
        current = pending.pop()
        if current not in seen:
            seen.add(current)
            pending.extend(by_id[current].after)
    return seen


def _normalises(found: tuple[Construct, ...]) -> bool:
    """Whether elements are changed by a number that was reduced from their own kind."""
    by_id = {construct.id: construct for construct in found}

    def loads(ids: set[str] | tuple[str, ...]) -> set[str]:
        return {
            tensor
            for id_ in ids
            if by_id[id_].kind in {"stage-in", "gather"}
            for tensor in by_id[id_].tensors
        }

    for construct in found:
        if construct.kind != "elementwise":
            continue
        reductions = [id_ for id_ in construct.after if by_id[id_].kind == "reduction"]
        direct = loads(construct.after)
        for earlier in construct.after:
            if by_id[earlier].kind == "elementwise":
                direct |= loads(by_id[earlier].after)
        if any(direct & loads(_above(by_id[reduction], by_id)) for reduction in reductions):
            return True
    return False


def _windowed(scene: Scene) -> bool:
    """Whether outputs come from neighbourhoods of one input."""
    stored = {
        axis.name
        for op in scene.ops
        if isinstance(op, Store | Scatter) and scene.outside(op.into)
        for axis in _varying(scene, op)
    }
    shifted: dict[tuple[str, str], set[int]] = {}
    for op in scene.ops:
        if not isinstance(op, Load) or not scene.outside(op.source):
            continue
        folded = {
            axis.name
            for region in scene.inside[id(op)]
            if isinstance(region, Reduce | Contract | Fold)
            for axis in _axes(region)
        } - stored
        for part in op.index:
            linear = part.coefficients()
            if linear is None:
                continue
            weights, _ = linear
            if {weights[a] for a in folded & weights.keys()} & {
                weights[a] for a in stored & weights.keys()
            }:
                return True
        if len(op.index) == 1 and stored & op.index[0].axes():
            _note(shifted, op.source.buffer, op.index[0])
    written: dict[tuple[str, str], set[int]] = {}
    for op in scene.ops:
        if isinstance(op, Store) and scene.outside(op.into) and len(op.index) == 1:
            _note(written, op.into.buffer, op.index[0])
    # Neighbours written out; an unrolled loop stores at as many offsets as it loads from.
    most = max(map(len, written.values()), default=1)
    return any(len(offsets) > 2 * most for offsets in shifted.values())


def _note(found: dict[tuple[str, str], set[int]], buffer: str, moving: Index) -> None:
    """Sort a position by what it is but for a constant."""
    constant = dict(moving.terms).get((), 0)
    found.setdefault((buffer, str(moving - constant)), set()).add(constant)


def _axes(op: Op) -> tuple[Axis, ...]:
    match op:
        case Parallel(axes=axes) | Fold(axes=axes) | Reduce(axes=axes) | Contract(axes=axes):
            return axes
        case _:
            return ()


def _permutes(scene: Scene) -> bool:
    """Whether what is loaded is stored at another place."""
    for op in scene.ops:
        if isinstance(op, Store) and scene.outside(op.into):
            source = scene.through_casts(op.value)
            if isinstance(source, Load) and scene.outside(source.source):
                return source.index != op.index
    return False
