"""What a kernel computes and how it spreads the work, in the words of a census of kernels.

Both are coarse labels for search and statistics: the first that fits, `other` where none
does.  They rest on constructs and index expressions alone, never on names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

from migrate.ir import spread
from migrate.ir.constructs import Construct, constructs
from migrate.ir.index import Index, Quotient, Symbol
from migrate.ir.nodes import (
    Axis,
    AxisKind,
    Carried,
    Contract,
    Fill,
    Fold,
    Gather,
    Guard,
    Kernel,
    Load,
    Map,
    Op,
    Parallel,
    Reduce,
    Scatter,
    Store,
    Value,
    operands,
)
from migrate.ir.reordering import order_of
from migrate.ir.scene import Scene
from migrate.ir.spread import WorkMapping

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
_ENOUGH: Final = 0.4
"""Coverage under which nothing is said of what a kernel computes."""

_GIVEN: Final = frozenset({"in", "inout"})

_SURE: Final = 0.45
"""Coverage under which a result that rests on something not understood is not labelled."""

_TELLING: Final = frozenset(
    {"contraction", "reduction", "scan", "gather", "scatter", "transpose", "elementwise"}
)

_SOME: Final = 0.2
"""Coverage under which nothing is said of how it spreads its work: a few accesses tell that."""


def computes(kernel: Kernel) -> Computes:
    """What the kernel computes."""
    if kernel.statements.coverage < _ENOUGH:
        return "other"
    scene = Scene(kernel)
    found = constructs(kernel)
    kinds = {construct.kind for construct in found}
    if _unread(found) and (kernel.statements.coverage < _SURE or not kinds & _TELLING):
        return "other"
    by_data = any(
        any(isinstance(part, Value) for part in op.index)
        for op in scene.ops
        if isinstance(op, Scatter) and (scene.outside(op.into) or op.combine is not None)
    )
    if "random" in kinds or ("opaque" not in kinds and _out_of_nothing(scene)):
        return "RNG"
    if "scan" in kinds:
        return "scan/prefix"
    if _counted_up(scene) and "reduction" not in kinds:
        return "gather/scatter/index" if _adds_elements(scene) else "histogram/atomic"
    if _windowed(scene):
        return "conv/pool/stencil"
    if "contraction" in kinds:
        products = sum(construct.kind == "contraction" for construct in found)
        if products > 1 and "opaque" in kinds and _exponents_of_products(found):
            return "attention"
        if products > 1 and _normalises(found):
            return "attention" if _between_products(found) else "softmax/norm"
        return "GEMM/GEMV"
    if _normalises(found) or _standardises(scene):
        return "softmax/norm"
    if _reduces(found) or "scatter" in kinds or _flags(scene):
        return "row/full reduce"
    if "output-store" not in kinds:
        return "other"
    if "elementwise" not in kinds and "gather" not in kinds:
        moved = order_of(scene)
        if "transpose" in kinds or moved == "permuted":
            return "transpose/permute"
        if moved == "picked":
            return "gather/scatter/index"
    if "gather" in kinds or by_data:
        return "gather/scatter/index"
    return "transpose/permute" if "transpose" in kinds else "elementwise"


def work_mapping(kernel: Kernel) -> WorkMapping:
    """How the kernel spreads the work over threads, or over tiles."""
    if kernel.statements.coverage < _SOME:
        return "other"
    scene = Scene(kernel)
    kinds = {axis.kind for axis in scene.axes}
    if kinds & {AxisKind.PARTITION, AxisKind.FREE}:
        stores = [
            op for op in scene.ops if isinstance(op, Store | Scatter) and scene.outside(op.into)
        ]
        return _tiles(scene, stores) if stores else "other"
    return spread.work_mapping(scene, constructs(kernel))


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

    for construct in found:
        if construct.kind != "elementwise":
            continue
        reductions = [id_ for id_ in construct.after if by_id[id_].kind == "reduction"]
        direct = _inputs({id_ for id_ in construct.after if id_ not in reductions}, by_id)
        if any(direct & _inputs({reduction}, by_id) for reduction in reductions):
            return True
    return False


def _between_products(found: tuple[Construct, ...]) -> bool:
    """Whether a product is taken of what was made, by a function, of another product."""
    by_id = {construct.id: construct for construct in found}
    for construct in found:
        if construct.kind != "contraction":
            continue
        above = [by_id[id_] for id_ in _above(construct, by_id)]
        if any(other.kind == "contraction" for other in above) and any(
            other.kind == "elementwise" and any(op.startswith("exp") for op in other.operators)
            for other in above
        ):
            return True
    return False


def _exponents_of_products(found: tuple[Construct, ...]) -> bool:
    """Whether there is all of a softmax between products, where gaps hide how it is connected."""
    operators = {
        construct.attribute("operator") for construct in found if construct.kind == "reduction"
    }
    functions = {op for c in found if c.kind == "elementwise" for op in c.operators}
    return {"maximum", "add"} <= {str(op).removesuffix("_number") for op in operators} and any(
        op.startswith("exp") for op in functions
    )


def _reduces(found: tuple[Construct, ...]) -> bool:
    """Whether elements are combined, rather than the digits of a position added up."""
    reductions = [construct for construct in found if construct.kind == "reduction"]
    stored = [
        construct for construct in found if construct.kind in {"output-store", "scatter", "gather"}
    ]
    by_id = {construct.id: construct for construct in found}
    for reduction in reductions:
        if not reduction.dtypes or any(not dtype.is_integer for dtype in reduction.dtypes):
            return True
        users = [c for c in found if reduction.id in _above(c, by_id) and c.kind == "elementwise"]
        if not stored or any(not d.is_integer for c in users for d in c.dtypes):
            return True
    floats = any(not d.is_integer for c in found if c.kind == "stage-in" for d in c.dtypes)
    return bool(reductions) and not floats


def _flags(scene: Scene) -> bool:
    """Whether one cell is set to a number by any thread whose elements ask for it."""
    for op in scene.ops:
        if not isinstance(op, Store) or not scene.outside(op.into):
            continue
        if any(part.axes() for part in op.index) or not isinstance(
            scene.through_casts(op.value), Fill
        ):
            continue
        if any(
            isinstance(region, Guard) and isinstance(region.condition, Value)
            for region in scene.inside[id(op)]
        ):
            return True
    return False


def _standardises(scene: Scene) -> bool:
    """`(x - mean) * scale` with a mean and a scale for each row, made by somebody else."""
    for op in scene.ops:
        if not isinstance(op, Map) or op.operator not in ("multiply", "fma", "divide"):
            continue
        for own, other in (op.args[:2], op.args[1::-1]):
            centred, scale = scene.through_casts(own), scene.through_casts(other)
            if not (isinstance(centred, Map) and centred.operator == "subtract"):
                continue
            element, mean = (scene.through_casts(arg) for arg in centred.args)
            loads = (element, mean, scale)
            if all(isinstance(load, Load) and scene.outside(load.source) for load in loads):
                assert isinstance(element, Load)
                assert isinstance(mean, Load)
                assert isinstance(scale, Load)
                if mean.index == scale.index != element.index and mean.index[-1].axes():
                    return mean.source.buffer != scale.source.buffer
    return False


def _inputs(ids: set[str], by_id: Mapping[str, Construct]) -> set[str]:
    """The tensors that some constructs rest on, however far away, not through reductions."""
    tensors: set[str] = set()
    seen: set[str] = set()
    pending = list(ids)
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        construct = by_id[current]
        if construct.kind in {"stage-in", "gather"}:
            tensors |= set(construct.tensors)
        pending.extend(
            id_ for id_ in construct.after if id_ in ids or by_id[id_].kind != "reduction"
        )
    return tensors


def _windowed(scene: Scene) -> bool:
    """Whether outputs come from neighbourhoods of one input."""
    stored = {
        axis.name
        for op in scene.ops
        if isinstance(op, Store | Scatter) and scene.outside(op.into)
        for axis in _varying(scene, op)
    }
    shifted: dict[tuple[str, str, int], set[int]] = {}
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
            _note(shifted, op.source.buffer, op.index[0], _step(op.index[0], stored))
    # Neighbours written out reach into those of the next element.
    return any(
        len(offsets) > 2 and max(offsets) - min(offsets) >= step
        for (_, _, step), offsets in shifted.items()
    ) and not _unrolled(scene)


def _step(moving: Index, stored: set[str]) -> int:
    """How far an access moves at least from one output to the next."""
    weights = [
        abs(coefficient)
        for monomial, coefficient in moving.terms
        if len(monomial) == 1 and isinstance(monomial[0], Symbol) and monomial[0].name in stored
    ]
    return min(weights, default=1)


def _unrolled(scene: Scene) -> bool:
    """Whether each thread stores at as many places as it loads from."""
    written: dict[tuple[str, str, int], set[int]] = {}
    read: dict[tuple[str, str, int], set[int]] = {}
    for op in scene.ops:
        if isinstance(op, Store) and scene.outside(op.into) and len(op.index) == 1:
            _note(written, op.into.buffer, op.index[0], 0)
        elif isinstance(op, Load) and scene.outside(op.source) and len(op.index) == 1:
            _note(read, op.source.buffer, op.index[0], 0)
    most = max(map(len, written.values()), default=1)
    return max(map(len, read.values()), default=0) <= 2 * most and most > 1


def _note(
    found: dict[tuple[str, str, int], set[int]], buffer: str, moving: Index, step: int
) -> None:
    """Sort a position by what it is but for a constant."""
    constant = dict(moving.terms).get((), 0)
    found.setdefault((buffer, str(moving - constant), step), set()).add(constant)


def _axes(op: Op) -> tuple[Axis, ...]:
    match op:
        case Parallel(axes=axes) | Fold(axes=axes) | Reduce(axes=axes) | Contract(axes=axes):
            return axes
        case _:
            return ()


def _counted_up(scene: Scene) -> bool:
    """Whether elements are added to at places that data or remainders choose."""
    for op in scene.ops:
        if not isinstance(op, Scatter) or op.combine is None:
            continue
        for part in op.index:
            if isinstance(part, Value):
                return True
            if any(isinstance(atom, Quotient) for monomial, _ in part.terms for atom in monomial):
                return True
    return False


def _adds_elements(scene: Scene) -> bool:
    """Whether what is added comes from a tensor, rather than being counted."""
    for op in scene.ops:
        if isinstance(op, Scatter) and op.combine is not None:
            source = scene.through_casts(op.value)
            if isinstance(source, Load | Gather) and scene.outside(source.source):
                return True
    return False


def _out_of_nothing(scene: Scene) -> bool:
    """Whether all that is stored is made by shuffling the bits of an element's number."""
    bits = False
    for op in scene.ops:
        if not isinstance(op, Store | Scatter) or not scene.outside(op.into):
            continue
        if isinstance(op, Scatter) and op.combine is not None:
            return False
        pending: list[Carried] = [op.value]
        seen: set[Carried] = set()
        while pending:
            current = pending.pop()
            made = scene.maker.get(current)
            if current in seen or made is None:
                continue
            seen.add(current)
            if isinstance(made, Load | Gather) and scene.outside(made.source):
                if scene.roles[made.source.buffer] in _GIVEN:
                    return False
            if isinstance(made, Map) and made.result.dtype.is_integer:
                bits |= made.operator.startswith("bitwise_") or "shift" in made.operator
                bits |= made.operator == "fmod"
            pending += operands(made)
    return bits
