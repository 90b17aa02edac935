"""What a kernel computes and how it spreads the work, in the words of a census of kernels.

Both are coarse labels for search and statistics: the first that fits, `other` where none
does.  They rest on constructs and index expressions alone, never on names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, cast

from migrate.ir import spread
from migrate.ir.constructs import Construct, constructs
from migrate.ir.index import Quotient
from migrate.ir.nodes import (
    AxisKind,
    Carried,
    Fill,
    Gather,
    Guard,
    Kernel,
    Load,
    Map,
    Scatter,
    Store,
    Value,
    operands,
)
from migrate.ir.reordering import order_of
from migrate.ir.scene import Scene
from migrate.ir.spread import WorkMapping
from migrate.ir.windows import running, windowed

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

_MOST: Final = 0.65
"""Coverage under which the source tells more of the mapping than what was lifted."""


def computes(kernel: Kernel) -> Computes:
    """What the kernel computes."""
    own = _computes(kernel)
    if not kernel.told.computes:
        return own
    return _of_both(own, cast("Computes", kernel.told.computes), kernel.statements.coverage)


def _of_both(own: Computes, told: Computes, coverage: float) -> Computes:
    """What the IR of a kernel with gaps and its source tell together."""
    match told:
        case "GEMM/GEMV":
            # Products that were not lifted; those that were may tell what stands between.
            return own if own == "attention" else told
        case "gather/scatter/index" if own == "elementwise":
            return told if coverage < _MOST else own
        case "elementwise" | "gather/scatter/index":
            return told if own == "other" else own
        case _:
            return told


def _computes(kernel: Kernel) -> Computes:
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
    if "scan" in kinds or running(scene):
        return "scan/prefix"
    if "reduction" not in kinds and _counts(scene):
        return "histogram/atomic"
    if _counted_up(scene) and "reduction" not in kinds:
        return "gather/scatter/index" if _adds_elements(scene) else "histogram/atomic"
    if windowed(scene):
        return "conv/pool/stencil"
    if "contraction" in kinds:
        products = sum(construct.kind == "contraction" for construct in found)
        if "opaque" in kinds and _exponents_of_products(found):
            return "attention"
        if _weighs_by_exponents(found):
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
    given = kernel.told.mapping
    if given and kernel.statements.coverage < _MOST:
        return cast("WorkMapping", given)
    own = _work_mapping(kernel)
    if given and own == "other":
        return cast("WorkMapping", given)
    if (own, given) == ("block tile 1-D", "block tile 2-D"):
        # Two dimensions that the source numbers are more than the one that was lifted.
        return "block tile 2-D"
    return own


def _work_mapping(kernel: Kernel) -> WorkMapping:
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


def _weighs_by_exponents(found: tuple[Construct, ...]) -> bool:
    """Whether exponents of products meet elements of a tensor that is not in the products."""
    by_id = {construct.id: construct for construct in found}
    exponents: dict[str, set[str]] = {}
    for construct in found:
        if any(op.startswith("exp") for op in construct.operators):
            above = _above(construct, by_id)
            products = {id_ for id_ in above if by_id[id_].kind == "contraction"}
            if products and any(by_id[id_].kind == "reduction" for id_ in above):
                exponents[construct.id] = _inputs(products, by_id)
    for construct in found:
        if construct.kind not in {"elementwise", "reduction", "contraction"}:
            continue
        direct = [by_id[id_] for id_ in construct.after]
        loaded = {t for c in direct if c.kind in {"stage-in", "gather"} for t in c.tensors}
        for id_, tensors in exponents.items():
            after = construct.operators
            if id_ == construct.id:
                last = max(n for n, op in enumerate(after) if op.startswith("exp"))
                after = after[last:]
            elif id_ not in _above(construct, by_id):
                continue
            if loaded - tensors and {"multiply", "fma"} & set(after):
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


def _counts(scene: Scene) -> bool:
    """Whether atomics combine numbers that no tensor was read for, as a counter does."""
    combined = [op for op in scene.ops if isinstance(op, Scatter) and op.combine is not None]
    return any(scene.outside(op.into) for op in combined) and not any(
        isinstance(op, Load | Gather) and scene.outside(op.source) for op in scene.ops
    )


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
