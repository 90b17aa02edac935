"""Whether the iterations of a loop can be done in any order.

They can if no iteration touches what another one writes.  Decided on index expressions:
some coordinate must keep the iterations apart.  Where none does, the answer is no, and
the loop stays sequential, which is always right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.ir.index import Index

if TYPE_CHECKING:
    from migrate.ir.index import Range


@dataclass(frozen=True, slots=True)
class Access:
    """One operand of a site: where in its buffer it reads or writes.

    `coordinates` are index expressions by name (one a dimension, and the row-major
    position) over loop positions and the axes of the tile, which `ranges` bounds.
    `None`: it may be anywhere.
    """

    buffer: str
    coordinates: Mapping[str, Index] | None
    ranges: Mapping[str, Range]
    writes: bool


def independent(
    axis: str,
    accesses: Sequence[Access],
    ranges: Mapping[str, Range],
    outer: frozenset[str],
) -> bool:
    """Whether iterations of the loop over `axis` touch nothing of each other.

    `ranges` bounds loop positions and sizes; `outer` are the loops around this one.
    """
    by_buffer: dict[str, list[Access]] = {}
    for access in accesses:
        by_buffer.setdefault(access.buffer, []).append(access)
    return all(
        _apart(axis, found, ranges, outer)
        for found in by_buffer.values()
        if any(access.writes for access in found)
    )


def _apart(
    axis: str,
    accesses: Sequence[Access],
    ranges: Mapping[str, Range],
    outer: frozenset[str],
) -> bool:
    names: set[str] | None = None
    for access in accesses:
        if access.coordinates is None:
            return False
        own = set(access.coordinates)
        names = own if names is None else names & own
    for name in sorted(names or ()):
        columns = [(a.coordinates[name], a.ranges) for a in accesses if a.coordinates is not None]
        if _keeps_apart(axis, columns, ranges, outer):
            return True
    return False


def _keeps_apart(
    axis: str,
    coordinates: Iterable[tuple[Index, Mapping[str, Range]]],
    ranges: Mapping[str, Range],
    outer: frozenset[str],
) -> bool:
    """Whether `step * axis + rest` falls into different windows for every iteration.

    The step must be the same for all accesses and larger than the spread of the rests.
    What only the loops around decide is the same for all iterations and left out.
    """
    step: int | None = None
    common: Index | None = None
    lows: list[int] = []
    highs: list[int] = []
    values = {
        name: r[0]
        for name, r in ranges.items()
        if r[0] is not None and r[0] == r[1] and name != axis
    }
    for coordinate, own in coordinates:
        index = coordinate.substitute(values)
        here = _step(index, axis)
        rest = index - Index.axis(axis) * here
        if not here or (step is not None and here != step):
            return False
        step = here
        shared = Index((m, c) for m, c in rest.terms if m and Index([(m, 1)]).axes() <= outer)
        if common is not None and shared != common:
            return False
        common = shared
        # The axis may still bound what is left (a tile's remainder): its range covers that.
        low, high = (rest - shared).bounds({**ranges, **own})
        if low is None or high is None:
            return False
        lows.append(low)
        highs.append(high)
    return step is not None and max(highs) - min(lows) < abs(step)


def _step(index: Index, axis: str) -> int:
    """The coefficient of an axis on its own."""
    for monomial, coefficient in index.terms:
        if len(monomial) == 1 and Index([(monomial, 1)]) == Index.axis(axis):
            return coefficient
    return 0
