"""Memory as bytes that know what was written into them.

The error bound of a float cannot be kept in its bits, so memory is not an array of bytes: a
buffer has a *plane* of cells for each format that was stored to it, and, once there is more
than one, an *owner* for each byte: the plane that holds what was written there last.  A load
of the format that is there takes the cell; one of another format puts the bits together.

Offsets are in bytes everywhere.  Pointers are stored as addresses, integers of 64 bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from migrate.cuda.runtime import Array, Arriving, Mask
from migrate.cuda.types import (
    UNSIGNED,
    UNSIGNED_CHAR,
    UNSIGNED_LONG,
    UNSIGNED_SHORT,
    Pointer,
    Scalar,
    Type,
)
from migrate.numerics.domain import Domain
from migrate.numerics.dtypes import DType

INTEGERS: dict[int, Scalar] = {
    1: UNSIGNED_CHAR,
    2: UNSIGNED_SHORT,
    4: UNSIGNED,
    8: UNSIGNED_LONG,
}
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_DTYPES = {1: DType.UINT8, 2: DType.UINT16, 4: DType.UINT32, 8: DType.UINT64}
INSTANCE_ALIGNMENT = 16


def held_as(kind: Type) -> Scalar | None:
    """The scalar that memory keeps a value of this type as: integers by their width alone."""
    match kind:
        case Scalar():
            return kind if kind.is_float else INTEGERS[kind.size]
        case Pointer():
            return UNSIGNED_LONG
        case _:
            return None


@dataclass(slots=True)
class Plane:
    """Cells of one format: `data` is flat, a domain value for floats, unsigned integers else."""

    number: int
    scalar: Scalar
    data: Any

    @property
    def shift(self) -> int:
        return self.scalar.size.bit_length() - 1


@dataclass(slots=True)
class Buffer:
    """Storage, with one instance for all, for each block or for each lane.

    `size` is the bytes of one instance and `total` of all; `base` is where each lane's
    instance starts (`None`: one instance).  `scalar` is the declared format, which positions
    are told in.  `defined` marks the cells of the first plane that were written, where that
    is not everything; with several planes `owner` says it.  `arriving` is what asynchronous
    copies did, `stored` marks the cells that the kernel may have written, of memory that it
    was given.  `grain` divides every offset.
    """

    name: str
    scalar: Scalar | None
    size: int
    total: int
    space: Literal["global", "shared", "private", "constant"]
    base: Array | None = None
    planes: dict[Scalar, Plane] = field(default_factory=dict)
    owner: Array | None = None
    defined: Mask | None = None
    stored: Mask | None = None
    written: bool = False
    arriving: Arriving | None = None
    address: int | None = None
    grain: int = 16

    @property
    def unit(self) -> int:
        """Bytes of what an element is called in messages."""
        return self.scalar.size if self.scalar is not None else 1

    @property
    def first(self) -> Plane | None:
        return next(iter(self.planes.values()), None)

    @property
    def single(self) -> bool:
        return self.owner is None

    def plane(self, scalar: Scalar, domain: Domain[Any]) -> tuple[Plane, int]:
        """The plane of a format, made where there is none, and the bytes that took."""
        found = self.planes.get(scalar)
        if found is not None:
            return found, 0
        cells = self.total // scalar.size
        data = (
            domain.constant(float("nan"), scalar.dtype, (cells,))
            if scalar.is_float
            else np.zeros(cells, dtype=_UNSIGNED[scalar.size])
        )
        made = Plane(len(self.planes) + 1, scalar, data)
        first = self.first
        used = cells * (scalar.size + 1)
        if first is None:
            self.defined = np.zeros(cells, dtype=np.bool_)
        elif self.owner is None:
            self._share(first)
            used += self.total
        self.planes[scalar] = made
        return made, used

    def _share(self, first: Plane) -> None:
        self.owner = np.zeros(self.total, dtype=np.uint8)
        cells = self.total // first.scalar.size * first.scalar.size
        if self.defined is None:
            self.owner[:cells] = first.number
        else:
            self.owner[:cells] = np.repeat(self.defined, first.scalar.size) * first.number
        self.defined = None

    def missing(self, at: Array, size: int, mask: Mask) -> Mask | None:
        """Lanes that would read what nobody wrote; `None` for no lane."""
        if self.owner is not None:
            cells = self.owner.reshape(-1, size) if self.total % size == 0 else None
            if cells is not None:
                undefined = (cells[at >> (size.bit_length() - 1)] == 0).any(axis=-1) & mask
            else:
                undefined = (self.owner[at] == 0) & mask
        elif self.defined is not None:
            first = self.first
            assert first is not None
            undefined = np.asarray(~self.defined[at >> first.shift] & mask)
            for further in range(first.scalar.size, size, first.scalar.size):
                undefined = undefined | (~self.defined[(at + further) >> first.shift] & mask)
        elif self.first is None:
            undefined = mask
        else:
            return None
        return undefined if undefined.any() else None

    def only_owner(self, at: Array, size: int, mask: Mask) -> Plane | None:
        """The plane that has all the bytes of an access, for all lanes of the mask."""
        if self.owner is None:
            return self.first
        spread = np.broadcast_to(at, mask.shape)[mask]
        seen: int | None = None
        for byte in range(size):
            numbers = self.owner[spread + byte]
            number = int(numbers[0]) if len(numbers) else 0
            if (numbers != number).any() or number == 0 or seen not in (None, number):
                return None
            seen = number
        return next((p for p in self.planes.values() if p.number == seen), None)

    def take(self, plane: Plane, at: Array, domain: Domain[Any]) -> Any:
        """Cells of a plane, at bytes."""
        cell = at >> plane.shift if plane.shift else at
        if plane.scalar.is_float:
            return domain.take(plane.data, cell)
        return np.asarray(plane.data[cell])

    def bits(self, at: Array, size: int, domain: Domain[Any]) -> Array:
        """The bits of `size` bytes at each position, as an unsigned integer."""
        planes = list(self.planes.values())
        grain = min([size, *(plane.scalar.size for plane in planes)])
        whole = np.zeros(np.shape(at), dtype=_UNSIGNED[size])
        for piece in range(0, size, grain):
            here = at + piece if piece else at
            part = self._piece(here, grain, planes, domain).astype(_UNSIGNED[size])
            whole = whole | (part << np.asarray(8 * piece, dtype=_UNSIGNED[size]))
        return whole

    def _piece(self, at: Array, grain: int, planes: list[Plane], domain: Domain[Any]) -> Array:
        made: Array | None = None
        for plane in planes:
            cells = as_bits(self.take(plane, at, domain), plane.scalar, domain)
            if plane.scalar.size > grain:
                shift = (at & (plane.scalar.size - 1)).astype(cells.dtype) * cells.dtype.type(8)
                cells = cells >> shift
            cells = cells.astype(_UNSIGNED[grain])
            if self.owner is None or made is None:
                made = cells
            else:
                made = np.where(self.owner[at] == plane.number, cells, made)
        return np.zeros(np.shape(at), _UNSIGNED[grain]) if made is None else made

    def put(
        self, plane: Plane, at: Array, value: Any, where: Mask | None, domain: Domain[Any]
    ) -> None:
        """Write cells, for the lanes of `where` (`None`: all of them); they are its own then."""
        cell = at >> plane.shift if plane.shift else at
        if plane.scalar.is_float:
            domain.put(plane.data, cell, value, where)
        elif where is None:
            plane.data[cell] = np.broadcast_to(value, np.shape(cell))
        else:
            plane.data[cell[where]] = np.broadcast_to(value, where.shape)[where]
        self.own(plane, cell if where is None else cell[where])

    def own(self, plane: Plane, cell: Array) -> None:
        """Mark cells as written."""
        if self.owner is not None:
            size = plane.scalar.size
            used = len(self.owner) // size * size
            self.owner[:used].reshape(-1, size)[cell] = plane.number
        elif self.defined is not None:
            self.defined[cell] = True

    def touch(self, at: Array, size: int) -> None:
        """Note bytes that the kernel wrote, of memory that it was given."""
        if self.stored is None:
            return
        shift = self.unit.bit_length() - 1
        for byte in range(0, max(size, 1), self.unit):
            self.stored[(at + byte) >> shift] = True

    def settled(self, domain: Domain[Any]) -> Any:
        """The contents in the declared format; bytes where it has none."""
        scalar = held_as(self.scalar) if self.scalar is not None else UNSIGNED_CHAR
        assert scalar is not None
        first = self.planes.get(scalar)
        if first is not None and self.owner is None:
            return self._as_declared(first.data)
        cells = np.arange(self.total // scalar.size, dtype=np.int64) * scalar.size
        bits = self.bits(cells, scalar.size, domain)
        made = from_bits(bits, scalar, domain)
        if first is not None and self.owner is not None and scalar.is_float:
            used = len(cells) * scalar.size
            kept = (self.owner[:used].reshape(-1, scalar.size) == first.number).all(axis=1)
            made = domain.select(kept, first.data, made)
        return self._as_declared(made)

    def _as_declared(self, data: Any) -> Any:
        if self.scalar is None or self.scalar.is_float:
            return data
        if self.scalar.is_bool:
            return data != 0
        return data.view(self.scalar.dtype.numpy)


def as_bits(value: Any, scalar: Scalar, domain: Domain[Any]) -> Array:
    """The bits of a scalar as an unsigned integer of its width."""
    if scalar.is_float:
        value = domain.to_array(domain.bitcast(value, _DTYPES[scalar.size]))
    whole = np.asarray(value)
    if whole.dtype == np.bool_:
        return whole.astype(np.uint8)
    return np.ascontiguousarray(whole).view(_UNSIGNED[scalar.size]).reshape(whole.shape)


def from_bits(bits: Array, scalar: Scalar, domain: Domain[Any]) -> Any:
    """A scalar of the bits that an unsigned integer of its width has."""
    if scalar.is_float:
        whole = domain.from_array(np.ascontiguousarray(bits), _DTYPES[scalar.size])
        return domain.bitcast(whole, scalar.dtype)
    if scalar.is_bool:
        return bits != 0
    return np.ascontiguousarray(bits).view(scalar.dtype.numpy).reshape(bits.shape)


def regrouped(parts: list[Array], size: int, wanted: int) -> list[Array]:
    """Words of `size` bytes as words of `wanted` bytes, the lowest first."""
    if size == wanted:
        return parts
    made: list[Array] = []
    if size > wanted:
        for part in parts:
            for piece in range(0, size, wanted):
                shifted = part >> np.asarray(8 * piece, dtype=part.dtype)
                made.append(shifted.astype(_UNSIGNED[wanted]))
        return made
    each = wanted // size
    for start in range(0, len(parts), each):
        whole: Array = np.zeros((), dtype=_UNSIGNED[wanted])
        for piece, part in enumerate(parts[start : start + each]):
            moved = part.astype(_UNSIGNED[wanted])
            whole = whole | (moved << np.asarray(8 * size * piece, dtype=_UNSIGNED[wanted]))
        made.append(whole)
    return made
