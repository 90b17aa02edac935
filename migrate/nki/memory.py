"""The contents of buffers while a kernel is simulated.

Every element knows whether it was written; those of tensors that matmuls write also know
whether one did and whether they were read since, which decides accumulation.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np

from migrate.budget import Meter
from migrate.nki import addresses
from migrate.nki.symbols import Number
from migrate.nki.values import Buffer, View
from migrate.numerics.domain import Domain, Window
from migrate.numerics.rounded import windowed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from migrate.numerics.dtypes import DType

    Array: TypeAlias = NDArray[Any]

V = TypeVar("V")

MAX_SPARE_BYTES = 1 << 26
"""Memory of tiles that are gone, kept for the next ones: to the system it would come back cold."""

_CACHED_PATTERNS = 512
"""Index arrays kept: a kernel has a few dozen view shapes, each used in every iteration."""


@dataclass(slots=True, eq=False)
class Storage(Generic[V]):
    """One buffer's elements, flat in row-major order.

    `accumulated` and `consumed` (a matmul wrote it; it was read since) are kept once a
    matmul has written to the buffer.
    """

    shape: tuple[Number, ...]
    dtype: DType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    elements: int
    content: V | None = None
    """`None` until something of it is looked at or written."""
    whole: bool = False
    """Whether every element is known to be written."""
    borrowed: bool = False
    """Whether the content is the caller's, which is not written to."""
    accumulated: Array | None = None
    consumed: Array | None = None
    _written: Array | None = None

    @property
    def everything(self) -> Window:
        """All of the buffer, flat."""
        return Window(0, (self.elements,), (1,))

    def is_all(self, view: View) -> bool:
        """Whether a view is the buffer as it was allocated."""
        return (
            view.shape is self.shape
            and view.strides == self.strides
            and view.dtype is self.dtype
            and not view.offset
            and not view.indirect
            and not view.faults
        )

    @property
    def written(self) -> Array:
        """Which elements are written, to be changed where more are."""
        if self._written is None:
            self._written = np.full(self.elements, self.whole)
        return self._written

    def fully_written(self) -> None:
        """Every element is."""
        self.whole, self._written = True, None

    def renew(self) -> None:
        """Nothing is written, as when it had just been allocated."""
        self.whole, self._written = False, None
        self.accumulated = self.consumed = None

    def follow(self) -> None:
        """Start to keep track of matmuls."""
        self.accumulated = np.zeros(self.elements, bool)
        self.consumed = np.zeros(self.elements, bool)


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
        self._live: dict[int, Storage[V]] = {}
        """By the number of the buffer's allocation."""
        self._spare: dict[tuple[DType, int], list[V]] = {}
        self._spare_bytes = 0
        self._patterns: dict[tuple[tuple[int, ...], tuple[int, ...]], Array] = {}

    def of(self, buffer: Buffer) -> Storage[V]:
        """The storage of a buffer, made when first touched: nothing in it is written."""
        found = self._live.get(buffer.ordinal)
        return found if found is not None else self._new(buffer, None)

    def fill(self, buffer: Buffer, array: Array) -> None:
        """Give a parameter its elements, which stay the caller's."""
        storage = self._new(buffer, self.domain.borrowed(array.reshape(-1), buffer.dtype))
        storage.borrowed = True
        storage.fully_written()

    def content(self, buffer: Buffer, storage: Storage[V]) -> V:
        """The elements of a storage, to be read where they are written."""
        if storage.content is None:
            # Memory that the system hands out is zero: it is not touched before it is used.
            storage.content = self.domain.constant(0, buffer.dtype, (buffer.elements,))
        return storage.content

    def writable(self, buffer: Buffer, storage: Storage[V]) -> V:
        """The elements of a storage, to be written."""
        content = self.content(buffer, storage)
        if storage.borrowed:
            content = storage.content = self.domain.copy(content)
            storage.borrowed = False
        return content

    def replace(
        self, buffer: Buffer, storage: Storage[V], value: V, *, given: bool = False
    ) -> None:
        """Write every element, in row-major order.

        A value that is `given` away becomes the content itself where nothing else shares it.
        """
        flat = self.domain.reshape(value, (storage.elements,))
        if storage.borrowed:
            storage.content, storage.borrowed = None, False
        found = self._reused(buffer) if storage.content is None else storage.content
        alone = given and self.domain.is_alone(value)
        if alone and (found is None or storage.content is not None):
            storage.content = flat
        elif found is None:
            storage.content = self.domain.copy(flat)
        else:
            self.domain.put_window(found, storage.everything, flat)
            storage.content = found
        storage.fully_written()

    def _reused(self, buffer: Buffer) -> V | None:
        """Memory of a tile that is gone, if there is any of this size."""
        found = self._spare.get((buffer.dtype, self.of(buffer).elements))
        if not found:
            return None
        self._spare_bytes -= buffer.elements * buffer.dtype.bytes
        return found.pop()

    def _new(self, buffer: Buffer, content: V | None) -> Storage[V]:
        sizes = tuple([int(extent.value) for extent in buffer.shape])
        count, dtype, strides = 1, buffer.dtype, list[int]()
        for size in reversed(sizes):
            strides.append(count)
            count *= size
        self.meter.take(count * (dtype.bytes + 1))
        storage = self._live[buffer.ordinal] = Storage(
            buffer.shape, dtype, sizes, tuple(reversed(strides)), count, content
        )
        weakref.finalize(buffer, self._dropped, buffer.ordinal, dtype)
        return storage

    def _dropped(self, ordinal: int, dtype: DType) -> None:
        """The kernel has dropped a buffer."""
        storage = self._live.pop(ordinal)
        count = storage.elements
        self.meter.give(count * (dtype.bytes + 1))
        content, size = storage.content, count * dtype.bytes
        if content is None or storage.borrowed or not self.domain.reusable:
            return
        if self._spare_bytes + size <= MAX_SPARE_BYTES:
            self._spare_bytes += size
            self._spare.setdefault((dtype, count), []).append(content)

    def close(self) -> None:
        """Nothing more is allocated."""
        self._spare.clear()
        self._spare_bytes = MAX_SPARE_BYTES

    def renew(self, buffer: Buffer) -> None:
        """Nothing in the buffer is written, as when it had just been allocated."""
        storage = self._live.get(buffer.ordinal)
        if storage is not None:
            storage.renew()

    def window(self, view: View) -> Window | None:
        """Where a view's elements are, if it is one of plain strides that does not leave its base.

        Raises `Exhausted` where they would not fit the budget.
        """
        if view.dtype is not view.buffer.dtype or view.indirect:
            return None
        for address in view.index:
            if address.digits:
                return None
        for fault in view.faults:
            if fault.code == "out-of-bounds":
                return None
        place = Window(view.offset, view.sizes, view.strides)
        self._room(place.sizes)
        return place

    def _room(self, sizes: tuple[int, ...]) -> None:
        """Raise `Exhausted` where positions of so many elements would not fit the budget."""
        size = 8 * math.prod(sizes)
        if self.meter.bytes + size > self.meter.budget.bytes:
            self.meter.take(size)

    def elements(
        self, view: View, *, masked: bool = False, moved: Mapping[int, Array] | None = None
    ) -> Elements:
        """Positions of a view's elements, in the view's shape.

        A `masked` view may leave its base where the mask leaves elements out; `moved` says how
        far numbers in memory move the elements along dimensions of the base.  Raises
        `Exhausted` where they would not fit the budget.
        """
        self._room(view.sizes)
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
