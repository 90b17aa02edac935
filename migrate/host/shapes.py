"""What a step makes of a shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from migrate.host.values import (
    Cast,
    Extent,
    Flattened,
    Inserted,
    Padded,
    Permuted,
    Placed,
    Reshaped,
    Shape,
    Sliced,
    Step,
    Swapped,
    Transposed,
)
from migrate.ir.index import Index, TooComplex


def after(step: Step, shape: Shape) -> Shape | None:
    """The shape after a step; `None` where the step does not fit, or is not understood."""
    try:
        return _after(step, shape)
    except (TooComplex, IndexError, ZeroDivisionError):
        return None


def _after(step: Step, shape: Shape) -> Shape | None:
    rank = len(shape)
    match step:
        case Cast():
            return shape
        case Reshaped(extents):
            return _reshaped(extents, shape)
        case Inserted(axis):
            at = axis if axis >= 0 else rank + 1 + axis
            return (*shape[:at], 1, *shape[at:]) if 0 <= at <= rank else None
        case Flattened(first, last):
            first, last = _from_start(first, rank), _from_start(last, rank)
            if not 0 <= first <= last < rank:
                return None
            return (*shape[:first], product(shape[first : last + 1]), *shape[last + 1 :])
        case Padded(edges):
            made = list(shape)
            for axis, before, behind in edges:
                if not -rank <= axis < rank:
                    return None
                made[axis] = total((made[axis], before, behind))
            return tuple(made)
        case Placed(extents, part):
            if len(extents) != rank or len(part) > rank:
                return None
            return extents
        case Sliced(bounds):
            return _sliced(bounds, shape)
        case _:
            order = permutation(step, rank)
            return tuple(shape[axis] for axis in order) if order is not None else None


def permutation(step: Step, rank: int) -> tuple[int, ...] | None:
    """The order of axes that a step gives an array of a rank; `None` for another step."""
    match step:
        case Transposed():
            return tuple(reversed(range(rank)))
        case Swapped(first, second):
            first, second = _from_start(first, rank), _from_start(second, rank)
            if not (0 <= first < rank and 0 <= second < rank):
                return None
            axes = list(range(rank))
            axes[first], axes[second] = second, first
            return tuple(axes)
        case Permuted(given):
            order = tuple(_from_start(axis, rank) for axis in given)
            return order if sorted(order) == list(range(rank)) else None
        case _:
            return None


def _from_start(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis


def product(extents: Iterable[Extent]) -> Extent:
    result: Extent = 1
    for extent in extents:
        result = plain(result * extent)
    return result


def total(extents: Iterable[Extent]) -> Extent:
    result: Extent = 0
    for extent in extents:
        result = plain(result + extent)
    return result


def plain(extent: Extent) -> Extent:
    """An expression that is a number as that."""
    if isinstance(extent, Index):
        return extent if extent.constant is None else extent.constant
    return extent


def _reshaped(extents: tuple[Extent | None, ...], shape: Shape) -> Shape | None:
    known = [extent for extent in extents if extent is not None]
    elements = product(shape)
    if len(known) == len(extents):
        return tuple(known)
    if len(known) != len(extents) - 1:
        return None
    others = product(known)
    if others == 0:
        return None
    left = quotient(shape, known)
    rest = left if left is not None else plain(Index.of(elements) // others)
    return tuple(rest if extent is None else extent for extent in extents)


def quotient(shape: Iterable[Extent], by: Iterable[Extent]) -> Extent | None:
    """The product of extents divided by others that are among them; `None` where they are not."""
    left = list(shape)
    for extent in by:
        if extent == 1:
            continue
        if extent not in left:
            return None
        left.remove(extent)
    return product(left)


def _sliced(bounds: tuple[tuple[Extent | None, Extent | None], ...], shape: Shape) -> Shape | None:
    if len(bounds) > len(shape):
        return None
    made = list(shape)
    for axis, (start, stop) in enumerate(bounds):
        stop = shape[axis] if stop is None else stop
        if isinstance(stop, int) and stop < 0:
            stop = total((shape[axis], stop))
        made[axis] = total((stop, -(start or 0)))
    return tuple(made)


def substituted(extent: Extent, values: Mapping[str, Index]) -> Extent:
    """The extent with names replaced."""
    return extent if isinstance(extent, int) else plain(extent.substitute(values))
