"""What execution deals in: lanes, buffers, pointers, events.

A *lane* is one thread of the blocks that run together; lanes are numbered block by block,
threads in CUDA's linear order (x fastest).  A value is an array over lanes, or a 0-d array
where all lanes agree: integers and truth values as NumPy arrays of their exact width, floats
as values of the `Domain`, vectors as tuples of components, pointers as `Ref`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.cuda.types import Scalar
from migrate.source import Span

if TYPE_CHECKING:
    from migrate.cuda.memory import Buffer

Array: TypeAlias = NDArray[Any]
Mask: TypeAlias = NDArray[np.bool_]
Dim3: TypeAlias = tuple[int, int, int]

EventKind = Literal[
    "out-of-bounds",
    "misaligned",
    "null-pointer",
    "division-by-zero",
    "uninitialised",
    "conflicting-stores",
    "divergent-barrier",
    "inactive-shuffle-source",
    "unfinished-copy",
    "assertion",
    "shared-race",
    "excluded-lane",
]

WARP = 32


@dataclass(frozen=True, slots=True)
class Event:
    """Something a run showed about the kernel.

    `block` and `thread` are the first place it happened (x, y, z); `index` and `size` are in
    elements of the buffer, for memory events.
    """

    kind: EventKind
    message: str
    span: Span
    block: Dim3
    thread: Dim3
    buffer: str | None = None
    index: int | None = None
    size: int | None = None


class Unsupported(Exception):
    """Execution met something that is not understood."""

    def __init__(self, reason: str, span: Span) -> None:
        super().__init__(f"{span}: {reason}")
        self.reason = reason
        self.span = span


class Fault(Exception):
    """Execution ended as it would on the device: at an access that is none."""

    def __init__(self, event: Event) -> None:
        super().__init__(f"{event.span}: {event.message}")
        self.event = event


@dataclass(frozen=True)
class Lanes:
    """The threads of `count` blocks from linear block `first` on."""

    grid: Dim3
    block: Dim3
    first: int
    count: int

    @cached_property
    def threads(self) -> int:
        """Threads in a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @cached_property
    def total(self) -> int:
        return self.threads * self.count

    @cached_property
    def thread(self) -> Array:
        """Each lane's linear thread number in its block."""
        return np.arange(self.total, dtype=np.int64) % self.threads

    @cached_property
    def slot(self) -> Array:
        """Each lane's block, counted from `first`."""
        return np.arange(self.total, dtype=np.int64) // self.threads

    @cached_property
    def everyone(self) -> Mask:
        return np.ones(self.total, dtype=np.bool_)

    @cached_property
    def thread_index(self) -> tuple[Array, Array, Array]:
        """`threadIdx`: 0-d for an axis of one thread."""
        x, y, _ = self.block
        parts = (self.thread % x, self.thread // x % y, self.thread // (x * y))
        return self._narrow(parts, self.block)

    @cached_property
    def block_index(self) -> tuple[Array, Array, Array]:
        """`blockIdx`: 0-d where all the blocks agree."""
        x, y, _ = self.grid
        if self.count == 1:
            numbers: Array = np.asarray(self.first)
        else:
            numbers = self.slot + self.first
        parts = (numbers % x, numbers // x % y, numbers // (x * y))
        return self._narrow(parts, self.grid)

    @staticmethod
    def _narrow(parts: tuple[Array, Array, Array], extents: Dim3) -> tuple[Array, Array, Array]:
        x, y, z = (
            np.asarray(part, dtype=np.uint32) if extent > 1 else np.asarray(0, dtype=np.uint32)
            for part, extent in zip(parts, extents, strict=True)
        )
        return x, y, z

    def where(self, lane: int) -> tuple[Dim3, Dim3]:
        """A lane's block and thread."""
        linear, thread = self.first + lane // self.threads, lane % self.threads
        gx, gy, _ = self.grid
        bx, by, _ = self.block
        return (
            (linear % gx, linear // gx % gy, linear // (gx * gy)),
            (thread % bx, thread // bx % by, thread // (bx * by)),
        )


@dataclass(slots=True)
class Arriving:
    """Cells of shared memory that asynchronous copies wrote.

    For each word of four bytes the `group` of its copy, counted from 1 by the thread `owner`
    (0: none), and for each lane how many of its groups have `arrived`.
    """

    group: Array
    owner: Array
    arrived: Array


@dataclass(frozen=True, slots=True)
class Ref:
    """A pointer: an offset in bytes of a buffer, by lane or for all.  No buffer: null."""

    buffer: Buffer | None
    offset: Array


@dataclass(frozen=True, slots=True)
class Refs:
    """A pointer into different buffers in different lanes: each part is for its lanes."""

    parts: tuple[tuple[Mask, Ref], ...]


@dataclass(frozen=True, slots=True)
class Raw:
    """Memory read through a pointer of another width, to be copied on: what it really holds.

    `*(float4*)dst = *(float4*)src` moves eight halves where the arrays hold halves.  One that
    is computed with is put together from its bits.
    """

    scalar: Scalar
    parts: tuple[Any, ...]


@dataclass(slots=True)
class Slot:
    """A local variable's value; `defined` is the lanes that have assigned it (`None`: all)."""

    value: Any
    defined: Mask | None = None


@dataclass(slots=True)
class Frame:
    """One call: its variables, the lanes that returned, and what they gave back."""

    slots: dict[int, Slot] = field(default_factory=dict)
    places: dict[int, Any] = field(default_factory=dict)
    buffers: dict[int, Ref | Refs] = field(default_factory=dict)
    returned: Any = None
    gone: Mask | None = None
