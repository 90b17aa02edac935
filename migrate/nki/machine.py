"""Tiles while a kernel is simulated: what an instruction reads, writes and accumulates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from migrate.budget import Meter
from migrate.nki import addresses, collecting
from migrate.nki.arithmetic import Arithmetic
from migrate.nki.errors import Unsupported
from migrate.nki.frames import Instruction
from migrate.nki.instructions import INSTRUCTIONS
from migrate.nki.memory import Contents, Elements, Place, Storage, at, covers, mark
from migrate.nki.parts import Part, part_of
from migrate.nki.reinterpret import cells, put, taken
from migrate.nki.symbols import Number
from migrate.nki.values import Buffer, Indirect, Member, View
from migrate.numerics.domain import Domain, Order, Window
from migrate.numerics.dtypes import DType
from migrate.source import Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

V = TypeVar("V")

Fault: TypeAlias = Literal[
    "uninitialised", "out-of-bounds", "unwritten-output", "ambiguous-accumulation", "unsupported"
]

MAX_HAPPENINGS = 1000


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that went wrong while running.

    `span` is the instruction, `related` the allocation concerned; `count` are elements
    at the first occurrence.  Each (code, instruction, allocation) is reported once.
    """

    code: Fault
    message: str
    span: Span
    related: Span | None
    count: int
    index: int = 0
    """Of an access outside a tensor: the first position, in elements of the whole tensor."""
    size: int = 0
    """Elements of that tensor."""


class Machine(Arithmetic[V]):
    """A `semantics.Machine` on arrays."""

    def __init__(
        self,
        domain: Domain[V],
        meter: Meter,
        order: Order,
        arrays: Mapping[str, Array],
        seed: int | None,
        *,
        legacy: bool,
    ) -> None:
        super().__init__(domain, meter, order)
        self.legacy = legacy
        """Whether the kernel is of NKI 0.1."""
        self.stream = None if seed is None else np.random.Generator(np.random.Philox(seed))
        self.arrays = arrays
        self.contents: Contents[V] = Contents(domain, meter)
        self.happenings: dict[tuple[str, Span, Span | None], Happening] = {}
        self.failed = False
        self._span: Span | None = None
        self._opcode = ""
        self._active: Array | None = None
        """Which elements of the instruction's destination its mask leaves, if it has one."""
        self._skips = False
        """Whether elements whose position in memory is out of bounds are left as they are."""
        self._kept: Array | None = None
        """Which of the elements that the instruction reads are inside, where it skips others."""
        self._index: dict[int, Array] = {}
        """What was read from memory as positions of the view worked on, by dimension."""
        self._changing: frozenset[Buffer] = frozenset()
        """What the instruction writes to, so that what it reads of it has to be a copy."""
        self._last = False
        """Whether the instruction writes one tile, once, after all else."""

    # The instruction at hand

    def begin(self, instruction: Instruction) -> None:
        """What follows is done by this instruction."""
        self._span = instruction.span
        self._opcode = instruction.opcode
        written = _written(instruction)
        self._last = len(written) == 1 and instruction.opcode in WRITE_LAST
        self._changing = frozenset() if self._last else frozenset(written)
        self._active = self._mask(instruction)
        mode = instruction.attribute("oob_mode")
        self._skips = isinstance(mode, Member) and mode.name == "skip"
        self._kept = None

    def fail(self, reason: str) -> None:
        """The run has no meaning from here on."""
        self.failed = True
        self.report("unsupported", reason, None, 0)

    def report(
        self,
        code: Fault,
        message: str,
        related: Span | None,
        count: int,
        index: int = 0,
        size: int = 0,
    ) -> None:
        """Note what went wrong at the instruction at hand."""
        assert self._span is not None
        key = (code, self._span, related)
        if key not in self.happenings and len(self.happenings) < MAX_HAPPENINGS:
            self.happenings[key] = Happening(code, message, self._span, related, count, index, size)

    def _mask(self, instruction: Instruction) -> Array | None:
        if instruction.mask is None:
            return None
        view = instruction.view("dst")
        if view is None:
            raise Unsupported(f"a mask on {instruction.opcode}, which has no dst")
        size = 8 * view.elements
        self.meter.take(size)
        self.meter.give(size)
        active = np.ones(view.sizes, bool)
        for address in instruction.mask.conditions:
            active &= addresses.evaluated(address, view.sizes) >= 0
        return active

    def _chosen(self, view: View) -> Array | None:
        """Which elements of an operand the mask leaves: of a column, those of rows with any."""
        if self._active is None or self._active.shape == view.sizes:
            return self._active
        count = self._active.shape[0]
        if view.free_elements != 1 or view.sizes[0] not in (1, count):
            raise Unsupported("a mask with an operand of another shape")
        axes = tuple(range(1 if view.sizes[0] == count else 0, self._active.ndim))
        rows: Array = np.any(self._active, axis=axes)
        return rows.reshape(view.sizes)

    # Where elements are

    def _place(self, view: View) -> Place:
        """Where a view's elements are; most often a window."""
        window = self.contents.window(view) if self._active is None else None
        return window if window is not None else self.elements(view)

    def elements(self, view: View) -> Elements:
        """Positions of a view's elements."""
        masked = self._active is not None
        if not view.indirect:
            return self.contents.elements(view, masked=masked)
        self._index = {}
        moved: dict[int, Array] = {}
        for part in view.indirect:
            found = self._positions_in(view, part)
            self._index[part.dimension] = found
            step = found * int(part.step.value)
            moved[part.dimension] = moved.get(part.dimension, 0) + step
        return self.contents.elements(view, masked=masked, moved=moved)

    def _positions_in(self, view: View, part: Indirect) -> Array:
        """Integers read from memory, along the axes of the view that they belong to."""
        # A mask leaves elements of the view out, of the tile of positions none.
        active, self._active = self._active, None
        numbers = np.asarray(self.domain.to_array(self.read(part.offsets))).astype(np.int64)
        self._active = active
        order = [own for own, axis in enumerate(part.axes) if axis is not None]
        kept = numbers.reshape([numbers.shape[own] for own in order])
        along = [axis for axis in part.axes if axis is not None]
        kept = kept.transpose(np.argsort(along, kind="stable"))
        shape = [1] * len(view.shape)
        for axis, extent in zip(sorted(along), kept.shape, strict=True):
            shape[axis] = extent
        return kept.reshape(shape)

    def taken(self, view: View, storage: Storage[V], place: Place) -> V:
        """Elements of a view, in its shape; they may share the tensor's memory."""
        content = self.contents.content(view.buffer, storage)
        if isinstance(place, Window):
            return self.domain.window(content, place)
        return taken(self.domain, content, place.positions, view.buffer.dtype, view.dtype)

    def marks(self, view: View, storage: Storage[V], place: Place) -> Array:
        """Which elements of a view have a value."""
        if isinstance(place, Window):
            return at(storage.written, place)
        marks: Array = storage.written[self._cells(view, place.positions)]
        if marks.ndim == place.positions.ndim:
            return marks
        return np.asarray(marks.all(axis=-1))

    def _cells(self, view: View, positions: Array) -> Array:
        found: Array = cells(positions, view.buffer.dtype, view.dtype)
        return found

    # Reading

    def look(self, view: View) -> Array:
        """The elements of a view as they are; nothing counts as read by it."""
        storage = self.contents.of(view.buffer)
        active, self._active = self._active, None
        place = self._place(view)
        self._active = active
        written = self.marks(view, storage, place)
        value = self.taken(view, storage, place)
        if not bool(written.all()):
            value = self._filled(value, written, view)
        return self.domain.to_array(value)

    def read(self, view: View, shape: Sequence[Number] | None = None) -> V:
        storage = self.contents.of(view.buffer)
        if self._active is None and storage.whole and storage.is_all(view):
            return self._read_all(view, storage, shape)
        place = self._place(view)
        self.meter.step((1 + view.elements // 1024) * self.domain.effort)
        value = self._read(view, storage, place)
        if view.buffer in self._changing and isinstance(place, Window):
            value = self.domain.copy(value)
        if storage.consumed is not None:
            mark(storage.consumed, self._marked(view, place), True)
        if isinstance(place, Elements) and place.inside is not None:
            self._skip(view, place.inside)
            value = self._filled(value, place.inside, view)
        if shape is None:
            return value
        return self.reshape(value, shape)

    def _read_all(self, view: View, storage: Storage[V], shape: Sequence[Number] | None) -> V:
        """A buffer of which everything is written."""
        self.meter.step((1 + storage.elements // 1024) * self.domain.effort)
        value = self.contents.content(view.buffer, storage)
        if view.buffer in self._changing:
            value = self.domain.copy(value)
        if storage.consumed is not None:
            storage.consumed[...] = True
        if shape is None or shape is view.shape:
            return self.domain.reshape(value, storage.sizes)
        return self.reshape(value, shape)

    def _read(self, view: View, storage: Storage[V], place: Place) -> V:
        """Elements of a view, which are looked at; what nothing wrote is garbage."""
        written = self._check_read(view, storage, place)
        value = self.taken(view, storage, place)
        return value if written is None else self._filled(value, written, view)

    def _filled(self, value: V, written: Array, view: View) -> V:
        """A value with garbage where nothing is written: NaN or 4, as in NKI's own simulator."""
        filler = float("nan") if view.dtype.is_float else 4
        return self.domain.select(
            written, value, self.domain.constant(filler, view.dtype, written.shape)
        )

    def _marked(self, view: View, place: Place) -> Place:
        """The elements of the tensor in whose bytes those of a view are."""
        if isinstance(place, Window) or view.dtype is view.buffer.dtype:
            return place
        return Elements(self._cells(view, place.positions), None)

    def _skip(self, view: View, inside: Array) -> None:
        """Note which elements are left out, where the instruction skips what is outside."""
        if not self._skips or not view.indirect:
            return
        if self._opcode not in {"dma_copy", "dma_compute"}:
            raise Unsupported(f"{self._opcode} that skips what is out of bounds")
        kept = inside.reshape(-1)
        self._kept = kept if self._kept is None else self._kept & kept

    def _check_read(self, view: View, storage: Storage[V], place: Place) -> Array | None:
        """Report what is read in vain; which elements are not, where some are."""
        if storage.whole and isinstance(place, Window):
            return None
        written = self.marks(view, storage, place)
        chosen = self._chosen(view)
        if isinstance(place, Elements) and place.inside is not None:
            self._check_inside(view, place.inside, chosen, "read", place.first)
            written = written | ~place.inside
        if chosen is not None:
            written = written | ~chosen
        missing = written.size - int(np.count_nonzero(written))
        if not missing:
            return None
        self.report(
            "uninitialised",
            f"{missing} elements of {view.buffer.name} are read before they are written",
            view.buffer.site.span,
            missing,
        )
        return written

    def _check_inside(
        self, view: View, inside: Array, chosen: Array | None, done: str, first: int
    ) -> None:
        missed = ~inside if chosen is None else ~inside & chosen
        outside = int(np.count_nonzero(missed))
        if outside and not (self._skips and view.indirect):
            self.report(
                "out-of-bounds",
                f"{outside} elements outside {view.buffer.name} are {done}",
                view.buffer.site.span,
                outside,
                first,
                view.buffer.elements,
            )

    def gather(self, view: View, indices: V, shape: tuple[Number, Number]) -> V:
        rows, count = (int(n.value) for n in shape)
        self.meter.step((1 + rows * count // 1024) * self.domain.effort)
        storage = self.contents.of(view.buffer)
        chosen = np.asarray(self.domain.to_array(indices)).reshape(rows, count).astype(np.int64)
        places = collecting.picked(self.elements(view), rows, chosen)
        written = self._check_read(view, storage, places)
        value = self.domain.take(self.contents.content(view.buffer, storage), places.positions)
        for there in (written, places.inside):
            if there is not None:
                value = self._filled(value, there, view)
        return value

    def part(self, view: View, parts: Sequence[Part]) -> View:
        return part_of(view, parts)

    def random(self, distribution: str, shape: Sequence[Number], dtype: DType) -> V:
        if self.stream is None or distribution == "state":
            raise Unsupported("random numbers, whose generator is not documented")
        sizes = tuple(int(n.value) for n in shape)
        size = 8 * math.prod(sizes)
        self.meter.take(size)
        self.meter.give(size)
        if distribution == "uniform":
            return self.domain.from_array(self.stream.random(sizes, np.float32), DType.FLOAT32)
        if not dtype.is_integer:
            raise Unsupported(f"random bits of a {dtype}")
        bits = self.stream.integers(0, 1 << (8 * dtype.bytes), sizes, np.uint64)
        return self.domain.from_array(bits.astype(dtype.numpy), dtype)

    # Writing

    def write(self, view: View, value: V) -> None:
        self.store(view, self.convert(value, view.dtype))

    def store(self, view: View, value: V) -> None:
        """Store a value of the view's dtype."""
        storage = self.contents.of(view.buffer)
        if self._active is None and self._kept is None and storage.is_all(view):
            self.meter.step((1 + storage.elements // 1024) * self.domain.effort)
            self._replace(view, storage, storage.sizes, value)
            return
        place = self._place(view)
        self.meter.step((1 + view.elements // 1024) * self.domain.effort)
        if isinstance(place, Window) and self._kept is None and place.distinct:
            self._store_window(view, storage, place, value)
            return
        if isinstance(place, Window):
            place = self.elements(view)
        value = self.domain.broadcast(value, view.sizes)
        kept, chosen = place.inside, self._chosen(view)
        if kept is not None:
            self._check_inside(view, kept, chosen, "written", place.first)
        for left in (chosen, None if self._kept is None else self._kept.reshape(view.sizes)):
            if left is not None:
                kept = left if kept is None else kept & left
        content = self.contents.writable(view.buffer, storage)
        put(self.domain, content, place.positions, value, view.buffer.dtype, view.dtype, kept)
        positions = place.positions if kept is None else place.positions[kept]
        positions = self._cells(view, positions)
        if not storage.whole:
            storage.written[positions] = True
        if storage.consumed is not None:
            storage.consumed[positions] = False

    def _store_window(self, view: View, storage: Storage[V], place: Window, value: V) -> None:
        if covers(place, view.buffer):
            self._replace(view, storage, place.sizes, value)
            return
        content = self.contents.writable(view.buffer, storage)
        self.domain.put_window(content, place, value)
        if not storage.whole:
            mark(storage.written, place, True)
        if storage.consumed is not None:
            mark(storage.consumed, place, False)

    def _replace(self, view: View, storage: Storage[V], sizes: tuple[int, ...], value: V) -> None:
        """Store all of a buffer, in its order."""
        value = self.domain.broadcast(value, sizes)
        self.contents.replace(view.buffer, storage, value, given=self._last)
        if storage.consumed is not None:
            storage.consumed[...] = False

    def accumulate(self, view: View, value: V, mode: bool | None) -> None:
        storage = self.contents.of(view.buffer)
        flat = self._active is None and storage.is_all(view)
        place = storage.everything if flat else self._place(view)
        if isinstance(place, Elements) and place.inside is not None:
            raise Unsupported("a matmul into a tile that is partly outside its tensor")
        if view.dtype is not view.buffer.dtype:
            raise Unsupported("a matmul into a tile of another dtype than its tensor's")
        # Outside PSUM the instruction's problems say so; the sum is what it would be there.
        if storage.accumulated is None or storage.consumed is None:
            storage.follow()
        assert storage.accumulated is not None
        assert storage.consumed is not None
        before = at(storage.accumulated, place)
        added = mode is None and bool(before.any())
        if added and bool((before & at(storage.consumed, place)).any()):
            self.report(
                "ambiguous-accumulation",
                f"a matmul adds to a sum in {view.buffer.name} that was already read",
                view.buffer.site.span,
                int(before.sum()),
            )
        if mode is True:
            before = at(storage.written, place)
            if self.legacy and not bool(before.all()):
                mode, added = None, bool(before.any())
                self._starts(view, before)
        if mode is not True and not added:
            self.write(view, value)
        elif isinstance(place, Window) and place.distinct and bool(before.all()):
            self._add(view, storage, place, value)
        else:
            place, before = self._place(view), before.reshape(view.sizes)
            sums = self._read if mode is True else self.taken
            old = self.convert(sums(view, storage, place), DType.FLOAT32)
            total = self.domain.apply("add", (old, value), DType.FLOAT32)
            if added and not bool(before.all()):
                total = self.domain.select(before, total, value)
            self.write(view, total)
        mark(storage.accumulated, place, True)

    def _starts(self, view: View, before: Array) -> None:
        """Tell of a sum in NKI 0.1 that begins in memory that nothing was written to.

        What `+=` does there is not documented; kernels that ran on hardware rely on it to begin a
        sum, as `nc_matmul` does since NKI 0.3 where it is not told (`accumulate=None`).
        """
        count = before.size - int(np.count_nonzero(before))
        self.report(
            "ambiguous-accumulation",
            f"a matmul adds to {count} elements of {view.buffer.name} that nothing was written to,"
            " taken as the start of a sum",
            view.buffer.site.span,
            count,
        )

    def _add(self, view: View, storage: Storage[V], place: Window, value: V) -> None:
        """Add to the sums in a tile, all of which there are: in fp32 whatever its format."""
        value = self.domain.reshape(value, place.sizes)
        if view.dtype is not DType.FLOAT32:
            old = self.convert(self.taken(view, storage, place), DType.FLOAT32)
            total = self.domain.apply("add", (old, value), DType.FLOAT32)
            self.write(view, self.domain.reshape(total, view.sizes))
            return
        self.meter.step((1 + view.elements // 1024) * self.domain.effort)
        self.domain.add_window(self.contents.writable(view.buffer, storage), place, value)
        if storage.consumed is not None:
            mark(storage.consumed, place, False)


WRITE_LAST = frozenset(
    {
        "activation", "dma_copy", "nc_matmul", "nc_transpose", "reciprocal", "scalar_tensor_tensor",
        "tensor_copy", "tensor_reduce", "tensor_scalar", "tensor_tensor",
    }
)  # fmt: skip
"""Instructions that write a tile once, when they need nothing any more of what they read."""


def _written(instruction: Instruction) -> list[Buffer]:
    """The tensor of each operand that an instruction writes to."""
    names = _OUTPUTS.get(instruction.opcode, frozenset())
    return [
        value.buffer
        for name, value in instruction.operands
        if name in names and isinstance(value, View)
    ]


_OUTPUTS = {
    opcode: frozenset(
        ["registers", *(p.name for p in spec.parameters if p.role in ("out", "inout"))]
    )
    for opcode, spec in INSTRUCTIONS.items()
}
