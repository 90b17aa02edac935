"""Running a kernel on arrays: instructions are executed as the specialiser emits them.

All arithmetic goes through a `Domain`: `Rounded` gives what the hardware's documented
rules give, `Bounded` the real value with an error bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np

from migrate.budget import Exhausted, Meter
from migrate.nki import addresses, collecting, cores
from migrate.nki.arithmetic import Arithmetic
from migrate.nki.device_loops import DeviceLoop
from migrate.nki.errors import Unsupported
from migrate.nki.frames import Instruction, LoopStep
from migrate.nki.in_step import MEETINGS, InStep, Item
from migrate.nki.instructions import INSTRUCTIONS
from migrate.nki.memory import Contents, Elements, Storage
from migrate.nki.parse import Module
from migrate.nki.parts import Part, part_of
from migrate.nki.reinterpret import cells, check_packed, put, taken
from migrate.nki.replay import Replay
from migrate.nki.specialize import Specialization, specialize
from migrate.nki.symbols import Number, size
from migrate.nki.values import Buffer, Indirect, Member, TensorSpec, View
from migrate.numerics.domain import Domain, Order
from migrate.numerics.dtypes import DType
from migrate.source import SourceError, Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

V = TypeVar("V")

Fault: TypeAlias = Literal[
    "uninitialised", "out-of-bounds", "unwritten-output", "ambiguous-accumulation", "unsupported"
]


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


@dataclass(frozen=True, slots=True)
class Execution(Generic[V]):
    """What a run left behind.

    `outputs` are the returned tensors in order, `inputs_after` the tensor arguments as
    they are afterwards; `written` marks the elements of each output that have a value.
    Without `complete` the numbers mean nothing: something was not understood, or the run
    ended early.
    """

    outputs: tuple[V, ...]
    written: tuple[NDArray[np.bool_], ...]
    inputs_after: dict[str, V]
    happenings: tuple[Happening, ...]
    specialization: Specialization
    complete: bool


def simulate(
    module: Module,
    kernel_name: str,
    args: Sequence[object] | Mapping[str, object],
    *,
    domain: Domain[V],
    target: str = "trn2",
    grid: tuple[int, ...] = (),
    meter: Meter | None = None,
    order: Order = "blas",
    formats: Mapping[str, DType] | None = None,
    seed: int | None = None,
) -> Execution[V]:
    """Run one kernel, all programs of its grid one after the other.

    `args` are NumPy arrays (tensors) and plain values, by name or in the kernel's order;
    `formats` gives the dtype of arrays whose storage does not say it (tfloat32).  The hardware's
    random numbers are not documented: with a `seed` they are NumPy's Philox stream of it, without
    one the run is incomplete where they are drawn.  Raises
    `SourceError` for an unknown kernel or arguments that do not fit it.
    """
    meter = meter if meter is not None else Meter(doing=f"simulating {kernel_name}")
    kernel = module.kernel(kernel_name)
    if isinstance(args, Mapping):
        named = dict(args)
    elif len(args) > len(kernel.parameters):
        raise SourceError(
            f"the kernel {kernel_name} takes {len(kernel.parameters)} arguments, not {len(args)}",
            file=module.source.name,
            where=kernel.span,
        )
    else:
        named = dict(zip(kernel.parameters, args, strict=False))
    arrays = {name: value for name, value in named.items() if isinstance(value, np.ndarray)}
    specs: dict[str, object] = dict(named)
    for name, array in arrays.items():
        dtype = (formats or {}).get(name) or _dtype_of(name, array, module)
        shape = tuple(size(f"{name}.shape[{k}]", n) for k, n in enumerate(array.shape))
        specs[name] = TensorSpec(shape, dtype)
    runner = _Runner(domain, meter, order, arrays, seed)
    found = specialize(
        module,
        kernel_name,
        specs,
        meter=meter,
        on_instruction=runner.execute,
        on_allocation=runner.allocated,
        on_loop=runner.looped,
        target=target,
        grid=grid,
        accumulators=True,
    )
    return runner.finish(found)


def _dtype_of(name: str, array: Array, module: Module) -> DType:
    try:
        return DType.of(array.dtype)
    except KeyError:
        message = f"{name} holds {array.dtype}, which no kernel takes"
        raise SourceError(message, file=module.source.name) from None


class _Runner(Arithmetic[V]):
    """Executes instructions; a `Machine` on arrays."""

    def __init__(
        self,
        domain: Domain[V],
        meter: Meter,
        order: Order,
        arrays: Mapping[str, Array],
        seed: int | None,
    ) -> None:
        self.stream = None if seed is None else np.random.Generator(np.random.Philox(seed))
        super().__init__(domain, meter, order)
        self.arrays = arrays
        self.contents: Contents[V] = Contents(domain, meter)
        self.happenings: dict[tuple[str, Span, Span | None], Happening] = {}
        self.failed = False
        self._span: Span | None = None
        self._active: Array | None = None
        """Which elements of the instruction's destination its mask leaves, if it has one."""
        self._skips = False
        """Whether elements whose position in memory is out of bounds are left as they are."""
        self._kept: Array | None = None
        """Which of the elements that the instruction reads are inside, where it skips others."""
        self._index: dict[int, Array] = {}
        """What was read from memory as positions of the view worked on, by dimension."""
        self.replay = Replay(
            self.contents.renew,
            self._integer,
            self._put_integer,
            lambda: self.failed,
            meter,
        )
        self.cores = InStep(self._do, self._execute, self._meet, self._lost)

    # What the specialiser calls

    def allocated(self, buffer: Buffer) -> None:
        if buffer.role == "parameter":
            array = self.arrays[buffer.name]
            content = self.domain.from_array(array.reshape(-1), buffer.dtype)
            self.contents.fill(buffer, content)
        else:
            self.cores.take(buffer, buffer.loops)

    def execute(self, instruction: Instruction) -> None:
        self.cores.take(instruction, instruction.loops)

    def looped(self, loop: DeviceLoop, step: LoopStep) -> None:
        self.cores.take((loop, step), loop.programs)

    def _do(self, item: Item) -> Iterator[Instruction]:
        """Do an item, and give the instructions at which a core waits for the other one."""
        match item:
            case Instruction():
                if not self.failed and not self.replay.keeps(item):
                    yield from self._alone(item)
            case Buffer():
                self.replay.keeps(item)
            case _:
                kept = self.replay.step(*item)
                for instruction in self.replay.instructions(kept) if kept is not None else ():
                    yield from self._alone(instruction)

    def _alone(self, instruction: Instruction) -> Iterator[Instruction]:
        if instruction.opcode in MEETINGS:
            yield instruction
        else:
            self._execute(instruction)

    def _meet(self, first: Instruction, second: Instruction) -> None:
        """What two cores do together."""
        if self.failed:
            return
        try:
            both = cores.exchanged(first, second)
            sent: list[V] = []
            for instruction, src, _ in both:
                self._begin(instruction)
                sent.append(self.domain.copy(self.read(src)))
            for (instruction, _, dst), value in zip(both, reversed(sent), strict=True):
                self._begin(instruction)
                self.write(dst, value)
        except Unsupported as gap:
            self._fail(gap.reason)

    def _lost(self, instruction: Instruction) -> None:
        self._span = instruction.span
        self._fail("a core that waits for the other one, which does not come")

    def _execute(self, instruction: Instruction) -> None:
        self._span = instruction.span
        spec = INSTRUCTIONS.get(instruction.opcode)
        if spec is None or spec.semantics is None:
            known = f"the instruction {instruction.opcode}" if spec is None else spec.refusal
            self._fail(instruction.reason or known)
            return
        try:
            with np.errstate(all="ignore"):
                self._begin(instruction)
                check_packed(instruction)
                spec.semantics(self, instruction)
        except Unsupported as gap:
            self._fail(gap.reason)
        except ValueError as error:
            # Shapes that do not fit: the instruction's problems say it in words.
            self._fail(f"{instruction.opcode} cannot be executed: {error}")

    def _begin(self, instruction: Instruction) -> None:
        self._span = instruction.span
        self._active = self._mask(instruction)
        mode = instruction.attribute("oob_mode")
        self._skips = isinstance(mode, Member) and mode.name == "skip"
        self._kept = None
        self._opcode = instruction.opcode

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

    def _elements(self, view: View) -> Elements:
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

    def _integer(self, view: View) -> int:
        """What a register holds."""
        return int(np.asarray(self.domain.to_array(self.read(view))).reshape(-1)[0])

    def _put_integer(self, view: View, value: int) -> None:
        self._active = self._kept = None
        self._store(view, self.domain.constant(value, view.dtype, (1,)))

    def _fail(self, reason: str) -> None:
        self.failed = True
        self._report("unsupported", reason, None, 0)

    def _report(
        self,
        code: Fault,
        message: str,
        related: Span | None,
        count: int,
        index: int = 0,
        size: int = 0,
    ) -> None:
        assert self._span is not None
        key = (code, self._span, related)
        if key not in self.happenings and len(self.happenings) < 1000:
            self.happenings[key] = Happening(code, message, self._span, related, count, index, size)

    def finish(self, found: Specialization) -> Execution[V]:
        self.cores.end()
        self._span, self._active = found.kernel.span, None
        outputs: list[V] = []
        written: list[NDArray[np.bool_]] = []
        self.failed = self.failed or not found.complete
        try:
            for view in found.returned:
                outputs.append(self._output(view))
                places = self._elements(view)
                marks = self._marks(view, self.contents.of(view.buffer), places)
                written.append(np.asarray(marks, np.bool_).reshape(view.sizes))
            after = {name: self.domain.copy(self.read(view)) for name, view in found.parameters}
        except Exhausted as stop:
            self._fail(str(stop))
            outputs, written, after = [], [], {}
        complete = not self.failed
        happened = tuple(self.happenings.values())
        return Execution(tuple(outputs), tuple(written), after, happened, found, complete)

    def _output(self, view: View) -> V:
        storage = self.contents.of(view.buffer)
        places = self._elements(view)
        missing = int(np.count_nonzero(~self._marks(view, storage, places)))
        if missing and not self.failed:
            self._report(
                "unwritten-output",
                f"{missing} of {view.elements} elements of the output "
                f"{view.buffer.name} are never written",
                view.buffer.site.span,
                missing,
            )
        return self.domain.copy(self.domain.reshape(self._taken(view, storage, places), view.sizes))

    def _taken(self, view: View, storage: Storage[V], places: Elements) -> V:
        stored = view.buffer.dtype
        return taken(self.domain, storage.content, places.positions, stored, view.dtype)

    def _cells(self, view: View, positions: Array) -> Array:
        found: Array = cells(positions, view.buffer.dtype, view.dtype)
        return found

    def _marks(self, view: View, storage: Storage[V], places: Elements) -> Array:
        """Which elements of a view have a value."""
        marks: Array = storage.written[self._cells(view, places.positions)]
        if marks.ndim == places.positions.ndim:
            return marks
        return np.asarray(marks.all(axis=-1))

    # Machine

    def read(self, view: View, shape: Sequence[Number] | None = None) -> V:
        self.meter.step((1 + view.elements // 1024) * self.domain.effort)
        storage = self.contents.of(view.buffer)
        places = self._elements(view)
        self._check_read(view, storage, places)
        value = self._taken(view, storage, places)
        if storage.consumed is not None:
            storage.consumed[self._cells(view, places.positions)] = True
        if places.inside is not None:
            self._skip(view, places.inside)
            filler = float("nan") if view.dtype.is_float else 4
            garbage = self.domain.constant(filler, view.dtype, view.sizes)
            value = self.domain.select(places.inside, value, garbage)
        if shape is None:
            return value
        return self.reshape(value, shape)

    def _skip(self, view: View, inside: Array) -> None:
        """Note which elements are left out, where the instruction skips what is outside."""
        if not self._skips or not view.indirect:
            return
        if self._opcode not in {"dma_copy", "dma_compute"}:
            raise Unsupported(f"{self._opcode} that skips what is out of bounds")
        kept = inside.reshape(-1)
        self._kept = kept if self._kept is None else self._kept & kept

    def _check_read(self, view: View, storage: Storage[V], places: Elements) -> None:
        written = self._marks(view, storage, places)
        chosen = self._chosen(view)
        if places.inside is not None:
            self._check_inside(view, places.inside, chosen, "read", places.first)
            written = written | ~places.inside
        if chosen is not None:
            written = written | ~chosen
        missing = written.size - int(np.count_nonzero(written))
        if missing:
            self._report(
                "uninitialised",
                f"{missing} elements of {view.buffer.name} are read before they are written",
                view.buffer.site.span,
                missing,
            )

    def _check_inside(
        self, view: View, inside: Array, chosen: Array | None, done: str, first: int
    ) -> None:
        missed = ~inside if chosen is None else ~inside & chosen
        outside = int(np.count_nonzero(missed))
        if outside and not (self._skips and view.indirect):
            self._report(
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
        places = collecting.picked(self._elements(view), rows, chosen)
        self._check_read(view, storage, places)
        value = self.domain.take(storage.content, places.positions)
        if places.inside is not None:
            filler = float("nan") if view.dtype.is_float else 4
            garbage = self.domain.constant(filler, view.dtype, (rows, count))
            value = self.domain.select(places.inside, value, garbage)
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

    def write(self, view: View, value: V) -> None:
        self._store(view, self.convert(value, view.dtype))

    def _store(self, view: View, value: V) -> None:
        self.meter.step((1 + view.elements // 1024) * self.domain.effort)
        storage = self.contents.of(view.buffer)
        places = self._elements(view)
        value = self.domain.broadcast(value, view.sizes)
        kept, chosen = places.inside, self._chosen(view)
        if kept is not None:
            self._check_inside(view, kept, chosen, "written", places.first)
        for left in (chosen, None if self._kept is None else self._kept.reshape(view.sizes)):
            if left is not None:
                kept = left if kept is None else kept & left
        put(
            self.domain,
            storage.content,
            places.positions,
            value,
            view.buffer.dtype,
            view.dtype,
            kept,
        )
        positions = places.positions
        if kept is not None:
            positions = positions[kept]
        positions = self._cells(view, positions)
        storage.written[positions] = True
        if storage.consumed is not None:
            storage.consumed[positions] = False

    def accumulate(self, view: View, value: V, mode: bool | None) -> None:
        storage = self.contents.of(view.buffer)
        places = self._elements(view)
        if places.inside is not None:
            raise Unsupported("a matmul into a tile that is partly outside its tensor")
        if view.dtype is not view.buffer.dtype:
            raise Unsupported("a matmul into a tile of another dtype than its tensor's")
        # Outside PSUM the instruction's problems say so; the sum is what it would be there.
        if storage.accumulated is None or storage.consumed is None:
            storage.follow()
        assert storage.accumulated is not None
        assert storage.consumed is not None
        before = storage.accumulated[places.positions]
        if mode is None and bool((before & storage.consumed[places.positions]).any()):
            self._report(
                "ambiguous-accumulation",
                f"a matmul adds to a sum in {view.buffer.name} that was already read",
                view.buffer.site.span,
                int(before.sum()),
            )
        if mode is True or (mode is None and bool(before.any())):
            consumed = storage.consumed[places.positions]
            if mode is True:
                self._check_read(view, storage, places)
            old = self.convert(self.domain.take(storage.content, places.positions), DType.FLOAT32)
            total = self.domain.apply("add", (old, value), DType.FLOAT32)
            if mode is None and not bool(before.all()):
                total = self.domain.select(before, total, value)
            value = total
            storage.consumed[places.positions] = consumed
        self.write(view, value)
        storage.accumulated[places.positions] = True
