"""What stands around the work of a kernel: the axes it is spread over, and its edges.

An *axis* counts if a tensor outside is accessed through it.  An *edge* is kept by a
condition (`if (i < n)`), by an extent with a bound in it (`min(128, rows - row)`), or by
a region of its own for what the whole tiles leave over.
"""

from __future__ import annotations

from migrate.ir.index import Extremum, Index
from migrate.ir.nodes import (
    Axis,
    AxisKind,
    Carried,
    Contract,
    Fold,
    Gather,
    Guard,
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
from migrate.ir.predicate import TRUE, All, AtLeast, Never, Predicate, Zero
from migrate.ir.scene import Draft, Scene, place
from migrate.source import Span

_TILES = frozenset({AxisKind.PARTITION, AxisKind.FREE})


def surroundings(scene: Scene) -> tuple[Draft, ...]:
    """The iteration as one draft, then the edges in program order."""
    touching = _touching(scene)
    return (*_iteration(scene, touching), *_conditions(scene), *_ragged(scene), *_rest(scene))


def _touching(scene: Scene) -> dict[Axis, tuple[str, ...]]:
    """The axes through which tensors outside are accessed, with those tensors."""
    found: dict[Axis, dict[str, None]] = {}
    for op in scene.ops:
        for tensor, index in scene.touched(op):
            for axis in _named(scene, op, index):
                found.setdefault(axis, {})[tensor] = None
    return {axis: tuple(tensors) for axis, tensors in found.items()}


def _named(scene: Scene, op: Op, index: tuple[Index, ...]) -> tuple[Axis, ...]:
    """The axes that an op's positions vary over, outer first."""
    names = {name for part in index for name in part.axes()}
    return tuple(axis for name, axis in scene.axes_at(op).items() if name in names)


def _iteration(scene: Scene, touching: dict[Axis, tuple[str, ...]]) -> tuple[Draft, ...]:
    used = [axis for axis in dict.fromkeys(scene.axes) if axis in touching]
    if not used:
        return ()
    # Each access of a tile has axes of its own; alike ones are the same to a reader.
    at: dict[Span, dict[str, None]] = {}
    for axis in used:
        at.setdefault(place(_seen(axis)), {})[f"{axis.kind.value} {axis.extent}"] = None
    kinds = dict.fromkeys(word for words in at.values() for word in words)
    spans = tuple(dict.fromkeys(axis.span for axis in used))
    sources = tuple(dict.fromkeys(source for axis in used for source in axis.sources))
    return (
        Draft(
            kind="tile-axis",
            ops=(),
            order=-1,
            summary=" × ".join(kinds),
            attributes=tuple((axis.name, f"{axis.kind.value} {axis.extent}") for axis in used),
            sources=sources,
            spans=tuple(dict.fromkeys((*spans, *sources))),
            axes=tuple(used),
            parts=tuple((span, " × ".join(words)) for span, words in at.items()),
        ),
    )


def _seen(axis: Axis) -> Span:
    """Where a reader sees an axis: at its loop; that of a tile where its size is decided."""
    return axis.sources[0] if axis.kind in _TILES and axis.sources else axis.span


def _conditions(scene: Scene) -> tuple[Draft, ...]:
    """One draft for each different condition, wherever it is asked."""
    found: dict[str, list[Op]] = {}
    for op in scene.ops:
        condition = _condition(op)
        if condition is not None:
            found.setdefault(condition, []).append(op)
    drafts: list[Draft] = []
    for text, ops in found.items():
        spans = tuple(dict.fromkeys(op.span for op in ops))
        tensors = dict.fromkeys(t for op in ops for t in _guarded(scene, op))
        data = any(isinstance(op, Guard) and isinstance(op.condition, Value) for op in ops)
        # Without a tensor outside it chooses among threads: who stores into shared memory.
        on = "data" if data else "position" if tensors else "onchip"
        drafts.append(
            Draft(
                kind="mask",
                ops=(),
                order=scene.position[id(ops[0])],
                summary=text,
                tensors=tuple(tensors),
                attributes=(("on", on), ("form", "condition")),
                spans=spans,
            )
        )
    return tuple(drafts)


def _condition(op: Op) -> str | None:
    match op:
        case Guard(condition=Value() as value):
            return f"if {value}"
        case Guard(condition=condition) if not isinstance(condition, Value):
            return _text(condition)
        case (
            Parallel(where=where)
            | Fold(where=where)
            | Reduce(where=where)
            | Contract(where=where)
            | Load(where=where)
            | Store(where=where)
            | Gather(where=where)
            | Scatter(where=where)
        ) if where != TRUE:
            return _text(where)
        case _:
            return None


def _text(condition: Predicate) -> str:
    """A condition as a reader would write it: `4*b + t < n` rather than `n - 4*b - t > 0`."""
    match condition:
        case AtLeast(index):
            left = Index((m, -c) for m, c in index.terms if m and c < 0)
            right = Index((m, c) for m, c in index.terms if c > 0 or not m)
            if left.terms:
                return f"{left} < {right + 1}"
            return str(condition)
        case Zero(index):
            return f"{_positive(index)} == 0"
        case Never(Zero(index)):
            return f"{_positive(index)} != 0"
        case All(items) if items:
            return " and ".join(_text(item) for item in items)
        case _:
            return str(condition)


def _positive(index: Index) -> Index:
    """The expression or its negative, whichever reads without a leading minus."""
    return -index if str(index).startswith("-") else index


def _guarded(scene: Scene, op: Op) -> tuple[str, ...]:
    """The tensors outside that are accessed under an op's condition."""
    tensors = dict.fromkeys(tensor for tensor, _ in scene.touched(op))
    # What an op contains follows it directly.
    for inner in scene.ops[scene.position[id(op)] + 1 :]:
        if not any(region is op for region in scene.inside[id(inner)]):
            break
        tensors.update(dict.fromkeys(tensor for tensor, _ in scene.touched(inner)))
    return tuple(tensors)


def _ragged(scene: Scene) -> tuple[Draft, ...]:
    """One draft for each different extent with a bound in it."""
    touching = _touching(scene)
    found: dict[str, list[Axis]] = {}
    for axis in touching:
        if axis.kind in _TILES and _limited(axis.extent):
            found.setdefault(f"{axis.kind.value} {axis.extent}", []).append(axis)
    order = _first_use(scene)
    drafts: list[Draft] = []
    for text, axes in found.items():
        tensors = dict.fromkeys(t for axis in axes for t in touching[axis])
        seen = dict.fromkeys(place(_seen(axis)) for axis in axes)
        drafts.append(
            Draft(
                kind="mask",
                ops=(),
                order=min(order[axis] for axis in axes),
                summary=text,
                tensors=tuple(tensors),
                attributes=(("on", "position"), ("form", "bound")),
                sources=tuple(dict.fromkeys(s for axis in axes for s in axis.sources)),
                spans=tuple(dict.fromkeys(s for a in axes for s in (_seen(a), a.span))),
                axes=tuple(axes),
                parts=tuple((span, text) for span in seen),
            )
        )
    return tuple(drafts)


def _first_use(scene: Scene) -> dict[Axis, int]:
    return {
        axis: scene.position[id(op)]
        for op in reversed(scene.ops)
        if isinstance(op, Parallel | Fold | Reduce | Contract)
        for axis in op.axes
    }


def _limited(extent: Index) -> bool:
    """Whether an extent has a bound in it, as a shortened last tile has."""
    return any(
        isinstance(atom, Extremum) and atom.which == "min"
        for monomial, _ in extent.terms
        for atom in monomial
    )


def _rest(scene: Scene) -> tuple[Draft, ...]:
    """Regions that do to what is left over what another region does to whole tiles.

    Both write the same tensor after the same operators, from regions that follow one
    another, over different extents.
    """
    written: dict[str, list[Store]] = {}
    for op in scene.ops:
        if isinstance(op, Store) and scene.outside(op.into):
            written.setdefault(op.into.buffer, []).append(op)
    drafts: list[Draft] = []
    for tensor, stores in written.items():
        by_way: dict[tuple[str, ...], list[Store]] = {}
        for store in stores:
            by_way.setdefault(_way(scene, store), []).append(store)
        for alike in by_way.values():
            main = max(alike, key=lambda store: _loops(scene, store))
            for store in alike:
                if store is main or not _apart(scene, store, main):
                    continue
                drafts.append(_rest_of(scene, tensor, store))
    return tuple(drafts)


def _rest_of(scene: Scene, tensor: str, store: Store) -> Draft:
    axes = _named(scene, store, store.index)
    extents = " × ".join(str(axis.extent) for axis in axes)
    seen = _seen(axes[-1]) if axes else store.span
    return Draft(
        kind="mask",
        ops=(),
        order=scene.position[id(store)],
        summary=f"the rest: {extents}" if extents else "the rest",
        tensors=(tensor,),
        attributes=(("on", "position"), ("form", "rest")),
        sources=tuple(dict.fromkeys(source for axis in axes for source in axis.sources)),
        spans=(seen, store.span) if seen != store.span else (seen,),
        axes=axes,
    )


def _loops(scene: Scene, op: Op) -> int:
    """How many loops over tiles an op stands in, sequential or not."""
    kinds = {AxisKind.TILE, AxisKind.SEQUENTIAL, AxisKind.PARALLEL}
    return sum(axis.kind in kinds for axis in scene.axes_at(op).values())


def _apart(scene: Scene, store: Store, main: Store) -> bool:
    """Whether two stores are in regions that follow one another, of different extents."""
    around, other = scene.inside[id(store)], scene.inside[id(main)]
    if not around or not other or around[0] is other[0]:
        return False
    return _extents(scene, store) != _extents(scene, main)


def _extents(scene: Scene, store: Store) -> tuple[str, ...]:
    return tuple(str(axis.extent) for axis in _named(scene, store, store.index))


def _way(scene: Scene, store: Store) -> tuple[str, ...]:
    """The operators between the loads and a store, in the order they are met backwards."""
    found: list[str] = []
    pending: list[Carried] = [store.value]
    seen: set[Carried] = set()
    while pending:
        current = pending.pop()
        op = scene.maker.get(current)
        if op is None or current in seen:
            continue
        seen.add(current)
        if isinstance(op, Map):
            found.append(op.operator)
        if isinstance(op, Load):
            # Within one buffer on chip: what was stored there, not every earlier version.
            if not scene.outside(op.source):
                made = scene.maker.get(op.source)
                if isinstance(made, Store):
                    pending.append(made.value)
            continue
        pending.extend(used for used in operands(op) if isinstance(used, Value))
    return tuple(found)
