"""How a kernel spreads its work over blocks and threads, from the places it accesses.

A *pace* is how far an access moves with a loop: past all threads of the grid (a grid-stride
loop), past those of a block, or past those of a warp.  A *row* is what a block, a warp or a
thread has for itself: the threads of a block that move by one through what its number selects
share a row; a thread that loops through many elements of its own has one to itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Final, Literal, TypeAlias

from migrate.ir.constructs import Construct
from migrate.ir.index import ONE, Index, Quotient
from migrate.ir.linear import factor_of, forms_of, is_multiple, quotients, unit_of
from migrate.ir.nodes import (
    AsyncCopy,
    Axis,
    AxisKind,
    Barrier,
    Carried,
    Contract,
    Fold,
    Gather,
    Guard,
    Load,
    Op,
    Parallel,
    Position,
    Reduce,
    Scatter,
    Space,
    Store,
    Value,
    Version,
    operands,
)
from migrate.ir.predicate import All, Predicate, Zero, indices
from migrate.ir.scene import Scene

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

WARP: Final = 32

SHORT: Final = 16
"""Rounds up to which a loop of known length is a thread's handful of elements, not a row."""

_FAR: Final = 64
"""Values followed backwards to see where a place comes from."""


def work_mapping(scene: Scene, found: tuple[Construct, ...]) -> WorkMapping:
    """The label of a kernel whose blocks and threads are axes."""
    return _Spread(scene, found).label()


@dataclass(frozen=True, slots=True)
class _Access:
    """A place outside that an op touches: everything linear in it, and the axes it names."""

    op: Op
    forms: tuple[Index, ...]
    axes: tuple[Axis, ...]
    writes: bool


class _Spread:
    def __init__(self, scene: Scene, found: tuple[Construct, ...]) -> None:
        self.scene = scene
        self.found = found
        self.accesses = tuple(self._accesses())
        used = self._used()
        # Not those of a reduction that a library call does.
        apart = {a.name for op in scene.ops if isinstance(op, Parallel) for a in op.axes}
        self.blocks = {a.name: a for a in used if a.kind is AxisKind.GRID}
        self.threads = {a.name: a for a in used if a.kind is AxisKind.BLOCK and a.name in apart}
        self.width = _product(self.threads)
        self.all = self.width * _product(self.blocks)

    def label(self) -> WorkMapping:
        if not self.accesses:
            return "other"
        if self._paced(self.all, grid=True):
            return "grid-stride loop"
        if self._alone():
            return "single thread"
        onchip = any(buffer.space is Space.ONCHIP for buffer in self.scene.kernel.buffers)
        contracts = any(construct.kind == "contraction" for construct in self.found)
        together = onchip or any(
            isinstance(op, Barrier) and op.scope != "warp" for op in self.scene.ops
        )
        strides = self._paced(self.width, grid=False)
        if not self._named(AxisKind.GRID) and (together or strides):
            return "single block"
        if self._warps() and not (onchip and contracts):
            return "warp per row"
        if together:
            return self._together(contracts)
        if strides:
            return "block per row" if not self._tiled() else "block tile 1-D"
        if self._dimensions() > 1 and not self._writes_a_row():
            return "thread per element, 2-D/3-D"
        return "thread per row" if self._loops() else "thread per element, 1-D"

    # -- what is accessed -----------------------------------------------------------

    def _accesses(self) -> Iterator[_Access]:
        for op in self.scene.ops:
            places: tuple[Index | Value, ...]
            match op:
                case Load(source=version, index=places) | Gather(source=version, index=places):
                    if self.scene.outside(version):
                        yield self._access(op, places, writes=False)
                case Store(into=version, index=places) | Scatter(into=version, index=places):
                    if self.scene.outside(version):
                        yield self._access(op, places, writes=True)
                case AsyncCopy(source=version, source_index=given):
                    if self.scene.outside(version):
                        yield self._access(op, given, writes=False)
                case _:
                    pass

    def _used(self) -> tuple[Axis, ...]:
        """The axes that decide anything: a place, a condition, how often a loop runs."""
        names = {axis.name for access in self.accesses for axis in access.axes}
        for op in self.scene.ops:
            if isinstance(op, Guard) and not isinstance(op.condition, Value):
                names |= {name for index in indices(op.condition) for name in index.axes()}
        for axis in self.scene.axes:
            names |= axis.extent.axes()
        return tuple(axis for axis in self.scene.axes if axis.name in names)

    def _access(self, op: Op, places: tuple[Index | Value, ...], *, writes: bool) -> _Access:
        parts = [part for part in places if isinstance(part, Index)]
        for part in places:
            if isinstance(part, Value):
                parts += self._positions(part)
        forms = tuple(dict.fromkeys(form for part in parts for form in forms_of(part)))
        names = {name for form in forms for name in form.axes()}
        axes = tuple(a for name, a in self.scene.axes_at(op).items() if name in names)
        return _Access(op, forms, axes, writes)

    def _positions(self, value: Value) -> list[Index]:
        """The indices that a computed place is made from."""
        found: list[Index] = []
        pending: list[Carried] = [value]
        seen: set[Carried] = set()
        while pending and len(seen) < _FAR:
            current = pending.pop()
            op = self.scene.maker.get(current)
            if current in seen or op is None:
                continue
            seen.add(current)
            if isinstance(op, Position):
                found.append(op.index)
            elif isinstance(op, Load | Gather):
                found += [part for part in op.index if isinstance(part, Index)]
            pending += [used for used in operands(op) if not isinstance(used, Version)]
        return found

    def _named(self, kind: AxisKind) -> set[str]:
        return {axis.name for access in self.accesses for axis in access.axes if axis.kind is kind}

    def _alone(self) -> bool:
        """Whether one thread does everything that can be seen outside."""
        everybody = any(
            isinstance(access.op, Scatter) and access.op.combine is not None
            for access in self.accesses
        ) and any(axis.kind is AxisKind.BLOCK for axis in self.scene.axes)
        if not self.threads and not self.blocks:
            return not everybody
        for access in self.accesses:
            if not access.writes:
                continue
            fixed = self._fixed(access.op)
            if any(a.kind in (AxisKind.GRID, AxisKind.BLOCK) for a in access.axes):
                if not fixed >= set(self.threads):
                    return False
            elif not fixed >= set(self.threads) and (self.threads or self.blocks):
                return False
        reads = [access for access in self.accesses if not access.writes]
        return all(self._fixed(access.op) >= set(self.threads) for access in reads) and (
            not self._named(AxisKind.GRID) or self._fixed_blocks()
        )

    def _fixed_blocks(self) -> bool:
        return all(self._fixed(access.op) >= set(self.blocks) for access in self.accesses)

    def _fixed(self, op: Op) -> set[str]:
        """The axes that conditions around an op hold at one number."""
        fixed: set[str] = set()
        for region in self.scene.inside[id(op)]:
            if isinstance(region, Guard) and not isinstance(region.condition, Value):
                fixed |= _held(region.condition)
        where = getattr(op, "where", None)
        return fixed | (_held(where) if where is not None else set())

    # -- loops ------------------------------------------------------------------------

    def _paced(self, pace: Index, *, grid: bool) -> bool:
        """Whether a loop moves accesses past so many threads at a time."""
        if pace.constant == 1:
            return False
        for axis in self._loop_axes():
            if self._counts_by(axis.extent, pace, grid=grid):
                return True
            named = axis.extent.axes()
            if grid and named & set(self.blocks) and not named & set(self.threads):
                # The blocks go on from tile to tile.
                continue
            for access in self.accesses:
                if axis in access.axes and any(
                    self._moves_by(form, axis, pace, grid=grid) for form in access.forms
                ):
                    return True
        return False

    def _loop_axes(self) -> tuple[Axis, ...]:
        kinds = {AxisKind.SEQUENTIAL, AxisKind.PARALLEL, AxisKind.TILE}
        return tuple(dict.fromkeys(a for a in self.scene.axes if a.kind in kinds))

    def _counts_by(self, extent: Index, pace: Index, *, grid: bool) -> bool:
        """`(n - thread + pace - 1) // pace`."""
        for atom in quotients(extent):
            unit = unit_of(atom.numerator, self.threads)
            if unit is None or atom.denominator != unit * pace:
                continue
            named = atom.numerator.axes() & set(self.blocks)
            if bool(named) == grid:
                return True
        return False

    def _moves_by(self, form: Index, axis: Axis, pace: Index, *, grid: bool) -> bool:
        unit = unit_of(form, self.threads)
        step = factor_of(form, axis.name)
        if unit is None or step is None or step != unit * pace:
            return False
        across = [factor_of(form, name) for name in self.blocks]
        between = any(factor is not None and factor == unit * self.width for factor in across)
        return between if grid else True

    def _loops(self) -> bool:
        """Whether each thread goes through many elements.

        A loop at whose every round the thread is at its one element is none of elements.
        """
        for access in self.accesses:
            moved = isinstance(access.op, Gather | Scatter)
            for axis in self._many(access.op):
                if moved or axis in access.axes or not self._steady():
                    return True
        return False

    def _many(self, op: Op) -> Iterator[Axis]:
        """The loops around an op that are longer than a thread's handful of elements."""
        for region in self.scene.inside[id(op)]:
            if isinstance(region, Fold | Reduce | Contract):
                for axis in region.axes:
                    rounds = axis.extent.constant
                    if rounds is None or rounds > SHORT:
                        yield axis

    def _steady(self) -> bool:
        """Whether each tensor is accessed at one place alone."""
        places: dict[str, set[tuple[Index, ...]]] = {}
        for access in self.accesses:
            if isinstance(access.op, Load | Store):
                version = access.op.source if isinstance(access.op, Load) else access.op.into
                places.setdefault(version.buffer, set()).add(access.op.index)
            else:
                return False
        return all(len(known) == 1 for known in places.values())

    def _writes_a_row(self) -> bool:
        """Whether each thread of a line writes one element after another of its own."""
        return self._thread_dimensions() < 2 and any(
            access.writes and axis in access.axes
            for access in self.accesses
            for axis in self._many(access.op)
        )

    # -- rows and tiles ---------------------------------------------------------------

    def _warps(self) -> bool:
        """Whether a warp has a row to itself."""
        scopes = self._scopes()
        if "block" in scopes:
            return False
        for access in self.accesses:
            for form in access.forms:
                for monomial, _ in form.terms:
                    for atom in monomial:
                        if isinstance(atom, Quotient) and self._by_warp(atom):
                            return True
        return "warp" in scopes and not any(
            buffer.space is Space.ONCHIP for buffer in self.scene.kernel.buffers
        )

    def _by_warp(self, atom: Quotient) -> bool:
        if atom.denominator.constant != WARP or not atom.numerator.axes() & set(self.threads):
            return False
        return "warp" in self._scopes() or any(
            self._moves_by(form, axis, Index.of(WARP), grid=False)
            for access in self.accesses
            for form in access.forms
            for axis in self._loop_axes()
        )

    def _scopes(self) -> set[str]:
        words = (
            (construct.attribute("scope") or "").split("+")
            for construct in self.found
            if construct.kind == "reduction"
        )
        return {"warp" if word == "lane" else word for given in words for word in given}

    def _together(self, contracts: bool) -> WorkMapping:
        """Blocks whose threads work together."""
        across = max(self._thread_dimensions(), self._block_dimensions())
        if "block" in self._scopes() and self._changes_its_elements():
            return "block per row"
        if contracts:
            return "block tile 2-D" if across > 1 else "block tile 1-D"
        if self._thread_dimensions() > 1:
            return "block tile 2-D"
        combined = "block" in self._scopes() or any(
            access.writes and self._fixed(access.op) & set(self.threads) for access in self.accesses
        )
        if self._per_block():
            return "block per row"
        if not combined and (self._tiled() or not self._paced(self.width, grid=False)):
            return "block tile 1-D"
        return "block tile 1-D" if self._tiled() else "block per row"

    def _dimensions(self) -> int:
        """Over how many dimensions of threads, or of blocks, the accesses spread."""
        return max(self._thread_dimensions(), self._written(AxisKind.GRID))

    def _thread_dimensions(self) -> int:
        """The dimensions of a block that accesses tell apart.

        Threads that are numbered through (`x + y * blockDim.x`) are in one line.
        """
        named = self._named(AxisKind.BLOCK) & set(self.threads)
        if len(named) < 2:
            return len(named)
        together = False
        for access in self.accesses:
            for form in access.forms:
                factors = [(name, factor_of(form, name)) for name in sorted(named)]
                known = [(name, factor) for name, factor in factors if factor is not None]
                if not known:
                    continue
                if len(known) < len(named) or not self._in_line(known):
                    return len(named)
                together = True
        return 1 if together else len(named)

    def _block_dimensions(self) -> int:
        """The dimensions of the grid that accesses tell apart; blocks may be numbered through."""
        named = self._named(AxisKind.GRID) & set(self.blocks)
        for access in self.accesses:
            for form in access.forms:
                factors = [(name, factor_of(form, name)) for name in named]
                known = [(name, factor) for name, factor in factors if factor is not None]
                if known and not any(
                    len(order) == len(named) and self._in_line(list(order))
                    for order in permutations(known)
                ):
                    return len(named)
        return min(len(named), 1)

    def _in_line(self, factors: list[tuple[str, Index]]) -> bool:
        for (name, factor), (_, following) in pairwise(factors):
            axis = self.threads.get(name) or self.blocks[name]
            if factor * axis.extent != following:
                return False
        return True

    def _written(self, kind: AxisKind) -> int:
        return max(
            (sum(a.kind is kind for a in access.axes) for access in self.accesses if access.writes),
            default=0,
        )

    def _tiled(self) -> bool:
        """Whether the threads of all blocks stand in one line, tile after tile."""
        for access in self.accesses:
            for form in access.forms:
                unit = unit_of(form, self.threads)
                if unit is None:
                    continue
                for name in self.blocks:
                    factor = factor_of(form, name)
                    if factor is not None and is_multiple(factor, unit * self.width):
                        return True
        return False

    def _per_block(self) -> bool:
        """Whether each block has a result, or changes its elements by one."""
        if self._scopes() & {"warp", "block"} and self._changes_its_elements():
            return True
        return any(
            access.writes
            and not isinstance(access.op, Scatter)
            and any(a.kind is AxisKind.GRID for a in access.axes)
            and not any(a.kind is AxisKind.BLOCK for a in access.axes)
            for access in self.accesses
        )

    def _changes_its_elements(self) -> bool:
        """Whether the threads write elements that were changed by what was reduced."""
        return any(
            construct.kind == "elementwise" and _after_reduction(construct, self.found)
            for construct in self.found
        ) and any(
            access.writes and any(a.kind is AxisKind.BLOCK for a in access.axes)
            for access in self.accesses
        )


def _after_reduction(construct: Construct, found: tuple[Construct, ...]) -> bool:
    by_id = {other.id: other for other in found}
    seen: set[str] = set()
    pending = list(construct.after)
    while pending:
        current = pending.pop()
        if by_id[current].kind == "reduction":
            return True
        if current not in seen:
            seen.add(current)
            pending += by_id[current].after
    return False


def _product(axes: dict[str, Axis]) -> Index:
    total = ONE
    for axis in axes.values():
        total = total * axis.extent
    return total


def _held(condition: Predicate) -> set[str]:
    """The axes that a condition leaves one number."""
    match condition:
        case All(items):
            return {name for item in items for name in _held(item)}
        case Zero(index):
            return set(index.axes())
        case _:
            # `thread < 1` and its like: numbers that are not negative, whose sum is not positive.
            names: set[str] = set()
            for index in indices(condition):
                linear = index.coefficients()
                if linear is not None and linear[1] == 0 and max(linear[0].values(), default=0) < 0:
                    names |= set(index.axes())
            return names
