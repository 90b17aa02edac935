"""One expression for all instances of a site, and the iterations it runs at.

Every answer is checked against every instance.  The expression that the specialiser
carried is tried first, so that results speak in sizes and loop positions; an affine
function of the loop positions next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from migrate.ir.index import Index
from migrate.ir.predicate import TRUE, Predicate, at_least, both, either, equal, holds, negate
from migrate.nki import addresses
from migrate.nki.fold import FoldFailure, SiteNode, numbers_of
from migrate.nki.frames import Instruction, Operand
from migrate.nki.symbols import Number
from migrate.nki.values import LoopValue, Mask, View

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Column: TypeAlias = NDArray[Any]

MAX_LISTED = 12
"""Iterations that a condition may list one by one."""

MAX_POINTS = 2_000_000
"""Iterations of a loop nest that are enumerated to check a condition."""


@dataclass(slots=True, eq=False)
class ResolvedSite:
    """A site with verified expressions.

    `instruction` is the first instance with every integer replaced by its expression;
    `leading` gives, for each tensor operand, the iteration of the loops around the
    allocation that made the buffer, `shapes` that buffer's shape.  `adds` says for each
    instance whether a matmul adds; `extents` are those of the loops.
    """

    node: SiteNode
    instruction: Instruction
    leading: dict[str, tuple[Index, ...]]
    shapes: dict[str, tuple[Index, ...]]
    extents: tuple[Index, ...]
    where: Predicate
    axes: dict[str, Column]
    adds: Column


def resolve(node: SiteNode, sizes: Mapping[str, int]) -> ResolvedSite:
    """Find the expressions of a site.  Raises `FoldFailure`."""
    count = node.count
    table = np.frombuffer(node.columns, dtype=np.int64).reshape(count, node.width)
    rank = len(node.loops)
    turns = np.frombuffer(node.iterations, dtype=np.int64).reshape(count, rank)
    axes: dict[str, Column] = {
        loop.axis: turns[:, position] for position, loop in enumerate(node.loops)
    }
    folded = tuple(value for value in node.first.loops if value.loop in node.loops)
    given = [(number.index(), number) for number in numbers_of(node.first, folded)]
    solver = _Solver(axes, sizes)
    found: list[Number] = []
    for position, (wanted, number) in enumerate(given):
        index = solver.expression(table[:, position], wanted)
        found.append(_resolved(int(table[0, position]), index, number))
    leading: dict[str, tuple[Index, ...]] = {}
    shapes: dict[str, tuple[Index, ...]] = {}
    position = len(given)
    for name, allocation in node.allocations:
        extents_of: list[Index] = []
        for extent in allocation.first.shape:
            extents_of.append(solver.expression(table[:, position], extent.index()))
            position += 1
        shapes[name] = tuple(extents_of)
        parts: list[Index] = []
        for loop in allocation.loops:
            own = Index.axis(loop.axis) if loop.axis in axes else None
            parts.append(solver.expression(table[:, position], own))
            position += 1
        leading[name] = tuple(parts)
    source = iter(found)
    loops = tuple(replace(value, trips=next(source)) for value in folded)
    instruction = _rebuilt(node.first, loops, source)
    extents = tuple(value.trips.index() for value in loops if value.trips is not None)
    where = _domain(loops, extents, axes, count, sizes)
    return ResolvedSite(node, instruction, leading, shapes, extents, where, axes, table[:, -1])


def _resolved(value: int, index: Index, original: Number) -> Number:
    """A number that stands for all instances, with the places of the first one."""
    number = Number(value, "same", (original,))
    number._index = index
    number.symbolic = True
    return number


def _rebuilt(
    first: Instruction, loops: tuple[LoopValue, ...], source: Iterator[Number]
) -> Instruction:
    operands: list[tuple[str, Operand]] = []
    for name, operand in first.operands:
        if isinstance(operand, View):
            operands.append((name, _view(operand, source)))
        elif isinstance(operand, Number) and operand.integral:
            operands.append((name, next(source)))
        else:
            operands.append((name, operand))
    attributes = [
        (name, value if name == "accumulate" else _attribute(value, source))
        for name, value in first.attributes
    ]
    mask = first.mask
    if mask is not None:
        mask = Mask(tuple(addresses.rebuilt(address, source) for address in mask.conditions))
    return replace(
        first, operands=tuple(operands), attributes=tuple(attributes), loops=loops, mask=mask
    )


def _view(view: View, source: Iterator[Number]) -> View:
    shape = tuple(next(source) for _ in view.shape)
    base = tuple(next(source) for _ in view.base)
    index = tuple(addresses.rebuilt(address, source) for address in view.index)
    # The tiles themselves are operands of their own: what is here are those of the first
    # instance.
    indirect = tuple(replace(part, step=next(source)) for part in view.indirect)
    return replace(view, shape=shape, base=base, index=index, indirect=indirect)


def _attribute(value: object, source: Iterator[Number]) -> object:
    if isinstance(value, Number) and value.integral:
        return next(source)
    if isinstance(value, tuple | list):
        return tuple(_attribute(item, source) for item in value)
    return value


class _Solver:
    """Finds expressions in loop positions for columns of numbers."""

    def __init__(self, axes: Mapping[str, Column], sizes: Mapping[str, int]) -> None:
        self.axes = axes
        self.values: dict[str, Any] = {**sizes, **axes}
        self._basis: Column | None = None

    def expression(self, column: Column, wanted: Index | None) -> Index:
        """`wanted` if it fits, else a constant, else an affine function."""
        if wanted is not None and self._fits(wanted, column):
            return wanted
        first = int(column[0])
        if bool((column == first).all()):
            return Index.of(first)
        affine = self._affine(column)
        if affine is not None:
            return affine
        raise FoldFailure("a number does not follow from the loop positions", tuple(self.axes))

    def _fits(self, index: Index, column: Column) -> bool:
        if any(name not in self.axes for name in index.axes()):
            return False
        try:
            return bool(np.all(index.evaluate(self.values) == column))
        except (KeyError, ZeroDivisionError):
            return False

    def _affine(self, column: Column) -> Index | None:
        """Integer coefficients by differences between neighbouring instances."""
        total = Index.of(0)
        rest = column.astype(np.int64)
        for name, positions in self.axes.items():
            step = self._step(name, column)
            if step:
                total = total + Index.axis(name) * step
                rest = rest - positions * step
        constant = int(rest[0])
        return total + constant if bool((rest == constant).all()) else None

    def _step(self, name: str, column: Column) -> int:
        """How the column changes where only one position does."""
        others = [self.axes[other] for other in self.axes if other != name]
        order = np.lexsort((self.axes[name], *reversed(others)))
        same = np.ones(len(column) - 1, bool)
        for other in others:
            same &= other[order][1:] == other[order][:-1]
        places = np.flatnonzero(same)
        if not places.size:
            return 0
        place = int(places[0])
        near, far = order[place], order[place + 1]
        distance = int(self.axes[name][far] - self.axes[name][near])
        change = int(column[far] - column[near])
        return change // distance if distance and change % distance == 0 else 0


def condition(
    site: ResolvedSite, chosen: Column, open_: Column, sizes: Mapping[str, int]
) -> Predicate | None:
    """A condition on the loops that holds at the chosen instances of a site, no others.

    Where `open_` it may hold or not.
    """
    names = [value.loop.axis for value in site.instruction.loops]
    if bool((chosen | open_).all()):
        return TRUE
    axes = {name: column[chosen] for name, column in site.axes.items()}
    for candidate in _candidates(names, site.extents, axes, site.axes, chosen):
        truth = np.broadcast_to(np.asarray(holds(candidate, {**sizes, **site.axes})), chosen.shape)
        if bool(((truth == chosen) | open_).all()):
            return candidate
    return None


def _domain(
    loops: tuple[LoopValue, ...],
    extents: tuple[Index, ...],
    axes: Mapping[str, Column],
    count: int,
    sizes: Mapping[str, int],
) -> Predicate:
    """The condition under which a site runs, within its loops."""
    if not loops:
        return TRUE
    names = [value.loop.axis for value in loops]
    box = _points(names, extents, sizes)
    total = len(next(iter(box.values())))
    if total == count:
        return TRUE
    executed = {tuple(row) for row in np.stack([axes[name] for name in names], 1).tolist()}
    inside = np.array(
        [tuple(row) in executed for row in np.stack([box[name] for name in names], 1).tolist()]
    )
    for candidate in _candidates(names, extents, axes, box, inside):
        truth = np.broadcast_to(np.asarray(holds(candidate, {**sizes, **box})), inside.shape)
        if np.array_equal(truth, inside):
            return candidate
    raise FoldFailure("no condition on the loops says when it runs", tuple(names))


def _points(
    names: list[str], extents: tuple[Index, ...], sizes: Mapping[str, int]
) -> dict[str, Column]:
    """Every iteration of a loop nest, outer before inner."""
    found: dict[str, Column] = {}
    length = 1
    for name, extent in zip(names, extents, strict=True):
        trips = np.broadcast_to(np.asarray(extent.evaluate({**sizes, **found})), (length,))
        trips = np.maximum(trips, 0)
        length = int(trips.sum())
        if length > MAX_POINTS:
            raise FoldFailure("a loop nest too large to check", ())
        found = {other: np.repeat(column, trips) for other, column in found.items()}
        starts = np.repeat(np.cumsum(trips) - trips, trips)
        found[name] = np.arange(length, dtype=np.int64) - starts
    return found


def _candidates(
    names: list[str],
    extents: tuple[Index, ...],
    axes: Mapping[str, Column],
    box: Mapping[str, Column],
    inside: Column,
) -> Iterator[Predicate]:
    """Conditions that kernels write: bounds, first, last, every other, triangles."""
    bounds: list[Predicate] = []
    for name, extent in zip(names, extents, strict=True):
        here, low, high = Index.axis(name), int(axes[name].min()), int(axes[name].max())
        top = int(box[name].max())
        if top == 0:
            continue  # a loop that turns once decides nothing
        if low == high == top:
            bounds.append(equal(here, extent - 1))
        elif low == high:
            bounds.append(equal(here, low))
        else:
            if low > 0:
                bounds.append(at_least(here - low))
            if high == top - 1:
                bounds.append(at_least(extent - 2 - here))
            elif high < top:
                bounds.append(at_least(-here + high))
    yield both(*bounds)
    for name, extent in zip(names, extents, strict=True):
        here = Index.axis(name)
        missing = np.unique(box[name][~inside])
        if missing.size == 1:
            last = int(missing[0]) == int(box[name].max()) and int(missing[0]) > 0
            yield negate(equal(here, extent - 1 if last else int(missing[0])))
        for modulus in range(2, 9):
            residues = np.unique(axes[name] % modulus)
            if residues.size == 1:
                yield both(*bounds, equal(here % modulus, int(residues[0])))
    for left, right in combinations(names, 2):
        difference = axes[left] - axes[right]
        apart = Index.axis(left) - Index.axis(right)
        yield at_least(apart - int(difference.min()))
        yield at_least(-apart + int(difference.max()))
        yield equal(apart, int(difference.min()))
    if len(next(iter(axes.values()))) <= MAX_LISTED:
        rows = np.stack([axes[name] for name in names], 1).tolist()
        yield either(
            *(
                both(
                    *(
                        equal(Index.axis(name), value)
                        for name, value in zip(names, row, strict=True)
                    )
                )
                for row in rows
            )
        )
