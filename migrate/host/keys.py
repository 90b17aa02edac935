"""Indexing arrays of host code, and storing into parts of them."""

from __future__ import annotations

from migrate.host.spellings import followed, stepped
from migrate.host.values import (
    UNKNOWN,
    Array,
    Bounds,
    Created,
    Extent,
    Inserted,
    Placed,
    Sliced,
    Step,
    moved,
    number,
    opaque,
)
from migrate.source import Span


def indexed(array: Array, key: object, span: Span) -> object:
    """`x[:n, :m]`, `x[None]`; other keys give an array of which nothing is known."""
    if array.plain:
        return UNKNOWN
    keys = key if isinstance(key, tuple) else (key,)
    bounds: list[tuple[Extent | None, Extent | None]] = []
    steps: list[Step] = []
    open_end = False
    for position, one in enumerate(keys):
        match one:
            case None:
                steps.append(Inserted(-1 if open_end else position, span))
            case Bounds(start, stop) if not open_end:
                found = _edges(start, stop)
                if found is None:
                    return opaque("a part of it is taken", span)
                bounds.append(found)
            case _ if one is ...:
                open_end = True
            case _:
                return opaque("a part of it is taken", span)
    if any(bound != (None, None) for bound in bounds):
        steps.insert(0, Sliced(tuple(bounds), span))
    for step in steps:
        array = stepped(array, step)
    return array


def _edges(start: object, stop: object) -> tuple[Extent | None, Extent | None] | None:
    first = None if start in (None, 0) else number(start)
    last = None if stop is None else number(stop)
    if (start not in (None, 0) and first is None) or (stop is not None and last is None):
        return None
    return first, last


def stored(target: object, key: object, value: object, span: Span) -> object:
    """The target after `target[key] = value`: zeros with an array in their corner, or unknown."""
    if not isinstance(target, Array):
        return target
    if not followed(value):
        return target if target.plain else opaque("a part of it is set", span)
    keys = key if isinstance(key, tuple) else (key,)
    part: list[Extent | None] = []
    for one in keys:
        found = _edges(one.start, one.stop) if isinstance(one, Bounds) else None
        if found is None or found[0] is not None:
            return opaque("a part of it is set", span)
        part.append(found[1])
    zeros = isinstance(target.root, Created) and target.root.zero and not target.steps
    if not zeros or target.shape is None or not isinstance(value, Array):
        return opaque("a part of it is set", span)
    return moved(value, Placed(target.shape, tuple(part), span), target.shape)
