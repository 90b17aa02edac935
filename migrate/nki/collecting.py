"""Rearranging, gathering and ranking arrays, for the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from migrate.nki.errors import Unsupported
from migrate.nki.memory import Elements
from migrate.nki.semantics import Rearrangement
from migrate.numerics.domain import Domain
from migrate.numerics.dtypes import DType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

V = TypeVar("V")


def rearranged(domain: Domain[V], value: V, sizes: Sequence[int], where: Rearrangement) -> V:
    """Elements of a value at the places that `where` says, in an array of those sizes."""
    source = domain.shape(value)
    mesh = np.meshgrid(*(np.arange(n) for n in sizes), indexing="ij", sparse=True)
    flat: Any = np.zeros((), np.int64)
    for place, extent in zip(where(mesh, source), source, strict=True):
        found = np.asarray(place)
        if found.size and (found.min() < 0 or found.max() >= extent):
            raise Unsupported("an instruction that reads outside its operand")
        flat = flat * extent + found
    return domain.take(value, np.broadcast_to(flat, tuple(sizes)))


def picked(places: Elements, rows: int, chosen: Array) -> Elements:
    """The elements of each row of a view that stand at the given numbers in it."""
    table = places.positions.reshape(rows, -1)
    inside = (chosen >= 0) & (chosen < table.shape[1])
    safe = np.where(inside, chosen, 0)
    positions = np.take_along_axis(table, safe, axis=1)
    if places.inside is not None:
        inside = inside & np.take_along_axis(places.inside.reshape(rows, -1), safe, axis=1)
    return Elements(positions, None if bool(inside.all()) else inside)


def largest(domain: Domain[V], value: V, count: int) -> tuple[V, V]:
    """The largest numbers of each row and their positions, largest first, the first of equals."""
    numbers = np.asarray(domain.to_array(value), np.float64)
    rows, length = numbers.shape
    if count > length:
        raise Unsupported(f"the {count} largest of {length} elements")
    order = np.argsort(-numbers, axis=1, kind="stable")[:, :count]
    flat = np.arange(rows)[:, None] * length + order
    return domain.take(value, flat), domain.from_array(order.astype(np.int32), DType.INT32)
