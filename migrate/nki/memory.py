"""The contents of buffers while a kernel is simulated.

Every element knows whether it was written; those of tensors that matmuls write also know
whether one did and whether they were read since, which decides accumulation.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np

from migrate.budget import Meter
from migrate.nki import addresses
from migrate.nki.values import Buffer, View
from migrate.numerics.domain import Domain, Window
from migrate.numerics.rounded import windowed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

V = TypeVar("V")

_CACHED_PATTERNS = 512
"""Index arrays kept: a kernel has a few dozen view shapes, each used in every iteration."""


@dataclass(slots=True, eq=False)
class Storage(Generic[V]):
    """One buffer's elements, flat in row-major order.

    `accumulated` and `consumed` (a matmul wrote it; it was read since) are kept once a
    matmul has written to the buffer.
    """

    content: V | None
    """`None` until something of it is looked at or written."""
    written: Array
    whole: bool = False
    """Whether every element is known to be written."""
    borrowed: bool = False
    """Whether the content is the caller's, which is not written to."""
    accumulated: Array | None = None
    consumed: Array | None = None

    def follow(self) -> None:
        """Start to keep track of matmuls."""
        self.accumulated = np.zeros(self.written.shape, bool)
        self.consumed = np.zeros(self.written.shape, bool)


@dataclass(frozen=True, slots=True)
class Elements:
    """Where a view's elements are: flat positions, and which of them exist.

    `inside` is `None` where all do.
    """

    positions: Array
    inside: Array | None
    limit: int = 0
    """Where some do not exist: the size of the first dimension that is left."""
    first: int = 0
    """Where some do not exist: the flat position of the first of them."""


Place: TypeAlias = "Window | Elements"
"""Where the elements of a view are."""


def at(flat: Array, place: Place) -> Array:
    """The elements of an array there."""
    found: Array = windowed(flat, place) if isinstance(place, Window) else flat[place.positions]
    return found


def mark(flat: Array, place: Place, value: bool) -> None:
    """Set the elements of an array there."""
    if isinstance(place, Window):
        windowed(flat, place)[...] = value
    else:
        flat[place.positions] = value


def covers(place: Window, buffer: Buffer) -> bool:
    """Whether a window is all of a buffer, in its order."""
    step = 1
    for size, stride in zip(reversed(place.sizes), reversed(place.strides), strict=True):
        if size > 1 and stride != step:
            return False
        step *= size
    return place.offset == 0 and step == buffer.elements


class Contents(Generic[V]):
    """All live buffers.  Buffers that the kernel dropped are freed, and their bytes given back."""

    def __init__(self, domain: Domain[V], meter: Meter) -> None:
        self.domain = domain
        self.meter = meter
        self._live: weakref.WeakKeyDictionary[Buffer, Storage[V]] = weakref.WeakKeyDictionary()
        self._patterns: dict[tuple[tuple[int, ...], tuple[int, ...]], Array] = {}

    def of(self, buffer: Buffer) -> Storage[V]:
        """The storage of a buffer, made when first touched: nothing in it is written."""
        found = self._live.get(buffer)
        if found is None:
            self._account(buffer, buffer.elements)
            found = self._new(buffer, None, np.zeros(buffer.elements, bool))
        return found

    def fill(self, buffer: Buffer, array: Array) -> None:
        """Give a parameter its elements, which stay the caller's."""
        self._account(buffer, buffer.elements)
        content = self.domain.borrowed(array.reshape(-1), buffer.dtype)
        storage = self._new(buffer, content, np.ones(buffer.elements, bool))
        storage.whole = storage.borrowed = True

    def content(self, buffer: Buffer, storage: Storage[V]) -> V:
        """The elements of a storage, to be read where they are written."""
        if storage.content is None:
            storage.content = self.domain.constant(0, buffer.dtype, (buffer.elements,))
        return storage.content

    def writable(self, buffer: Buffer, storage: Storage[V]) -> V:
        """The elements of a storage, to be written."""
        content = self.content(buffer, storage)
        if storage.borrowed:
            content = storage.content = self.domain.copy(content)
            storage.borrowed = False
        return content

    def replace(self, buffer: Buffer, storage: Storage[V], value: V) -> None:
        """Write every element, in row-major order."""
        flat = self.domain.reshape(value, (buffer.elements,))
        if storage.content is None or storage.borrowed:
            storage.content = self.domain.copy(flat)
            storage.borrowed = False
        else:
            place = Window(0, (buffer.elements,), (1,))
            self.domain.put_window(storage.content, place, flat)
        if not storage.whole:
            storage.written[...] = True
            storage.whole = True

    def _account(self, buffer: Buffer, count: int) -> None:
        size = count * (buffer.dtype.bytes + 1)
        self.meter.take(size)
        weakref.finalize(buffer, self.meter.give, size)

    def _new(self, buffer: Buffer, content: V | None, written: Array) -> Storage[V]:
        storage = self._live[buffer] = Storage(content, written)
        return storage

    def renew(self, buffer: Buffer) -> None:
        """Nothing in the buffer is written, as when it had just been allocated."""
        storage = self._live.get(buffer)
        if storage is not None:
            storage.written[...] = False
            storage.whole = False
            storage.accumulated = storage.consumed = None

    def window(self, view: View) -> Window | None:
        """Where a view's elements are, if it is one of plain strides that does not leave its base.

        Raises `Exhausted` where they would not fit the budget.
        """
        if view.dtype is not view.buffer.dtype or not view.strided:
            return None
        if any(fault.code == "out-of-bounds" for fault in view.faults):
            return None
        self._room(view)
        return Window(view.offset, view.sizes, view.strides)

    def _room(self, view: View) -> None:
        size = 8 * view.elements
        self.meter.take(size)
        self.meter.give(size)

    def elements(
        self, view: View, *, masked: bool = False, moved: Mapping[int, Array] | None = None
    ) -> Elements:
        """Positions of a view's elements, in the view's shape.

        A `masked` view may leave its base where the mask leaves elements out; `moved` says how
        far numbers in memory move the elements along dimensions of the base.  Raises
        `Exhausted` where they would not fit the budget.
        """
        self._room(view)
        leaves = any(fault.code == "out-of-bounds" for fault in view.faults)
        if masked or leaves or not view.strided:
            return _checked(view, moved or {})
        key = (view.sizes, view.strides)
        pattern = self._patterns.get(key)
        if pattern is None:
            if len(self._patterns) >= _CACHED_PATTERNS:
                self._patterns.clear()
            pattern = self._patterns[key] = _pattern(*key)
        return Elements(pattern + view.offset if view.offset else pattern, None)


def _pattern(sizes: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    positions = np.zeros((1,) * len(sizes), np.int64)
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        shape = [1] * len(sizes)
        shape[axis] = size
        positions = positions + (np.arange(size, dtype=np.int64) * stride).reshape(shape)
    return positions


def _checked(view: View, moved: Mapping[int, Array]) -> Elements:
    """Positions of a view that leaves its base or has no strides, dimension by dimension."""
    sizes = view.sizes
    positions = np.zeros(sizes, np.int64)
    inside = np.ones(sizes, bool)
    step, left = 1, 0
    for dimension in range(len(view.base) - 1, -1, -1):
        place = addresses.evaluated(view.index[dimension], sizes)
        if dimension in moved:
            place = place + moved[dimension]
        limit = int(view.base[dimension].value)
        here = (place >= 0) & (place < limit)
        if not bool(here.all()):
            inside &= here
            left = limit
        positions = positions + place * step
        step *= limit
    if bool(inside.all()):
        return Elements(positions, None)
    first = int(positions[~inside][0])
    return Elements(np.where(inside, positions, 0), inside, left, first)
