"""Where an element of a view is, as index expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from migrate.ir.index import Index, Range, TooComplex
from migrate.nki.values import Address, View

Place: TypeAlias = tuple[Index, ...]
ZERO, ONE = Index.of(0), Index.of(1)


def linear(place: Sequence[Index], shape: Sequence[Index]) -> Index:
    """The row-major position of an element."""
    flat = ZERO
    for here, extent in zip(place, shape, strict=True):
        flat = flat * extent + here
    return flat


def delinear(flat: Index, shape: Sequence[Index], ranges: Mapping[str, Range]) -> Place:
    """The element at a row-major position."""
    if not shape:
        return ()
    found: list[Index] = []
    rest = flat
    for position in range(len(shape) - 1, 0, -1):
        extent = shape[position]
        if extent == ONE:
            found.append(ZERO)
        elif all(n == ONE for n in shape[:position]):
            found.append(rest)  # no longer axis outside it, so no remainder to take
            rest = ZERO
        else:
            found.append(_simple(rest % extent, ranges))
            rest = _simple(rest // extent, ranges)
    found.append(rest)
    return tuple(reversed(found))


def _simple(index: Index, ranges: Mapping[str, Range]) -> Index:
    try:
        return index.simplify(ranges)
    except TooComplex:
        return index


def address_index(address: Address, place: Place, ranges: Mapping[str, Range]) -> Index:
    """An address at a place, as an index expression."""
    found = address.start.index()
    for axis, step in address.terms:
        found = found + place[axis] * step.index()
    for digit in address.digits:
        inner = address_index(digit.inner, place, ranges)
        by = digit.divisor.index()
        part = _simple(inner % by if digit.remainder else inner // by, ranges)
        found = found + part * digit.scale.index()
    return found


def base_index(view: View, place: Place, ranges: Mapping[str, Range]) -> Place:
    """Where an element of a view is in the view's base."""
    return tuple(address_index(address, place, ranges) for address in view.index)


def same_base(view: View, own: Place) -> bool:
    """Whether the view's base is its buffer, whose shape is `own`, as it was allocated."""
    return tuple(n.index() for n in view.base) == own


def element_index(view: View, place: Place, own: Place, ranges: Mapping[str, Range]) -> Place:
    """Where an element of a view is in its buffer, whose shape is `own`."""
    base = base_index(view, place, ranges)
    if same_base(view, own):
        return base
    return delinear(linear(base, tuple(n.index() for n in view.base)), own, ranges)
