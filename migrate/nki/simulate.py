"""Running a kernel on arrays: instructions are executed as the specialiser emits them.

All arithmetic goes through a `Domain`: `Rounded` gives what the hardware's documented
rules give, `Bounded` the real value with an error bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np

from migrate.budget import Exhausted, Meter
from migrate.nki import cores, views
from migrate.nki.device_loops import DeviceLoop
from migrate.nki.errors import Unsupported
from migrate.nki.frames import Instruction, LoopStep
from migrate.nki.in_step import MEETINGS, InStep, Item
from migrate.nki.instructions import INSTRUCTIONS
from migrate.nki.machine import Fault, Happening, Machine
from migrate.nki.memory import covers
from migrate.nki.parse import Module
from migrate.nki.reinterpret import check_packed
from migrate.nki.replay import Replay
from migrate.nki.specialize import Specialization, specialize
from migrate.nki.styles import returns_tiles
from migrate.nki.symbols import size
from migrate.nki.values import Buffer, TensorSpec, View
from migrate.nki.watching import Watch
from migrate.numerics.domain import Domain, Order, Window
from migrate.numerics.dtypes import DType
from migrate.source import SourceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

__all__ = ["Execution", "Fault", "Happening", "simulate"]

V = TypeVar("V")

MAX_PARTIAL = 100
"""Tensors that are remembered for a run that ends early."""


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
    executed: int
    """Instructions, those of loops on the device each time."""
    partial: dict[str, V]
    """Where the run ended early: tensors in HBM that the kernel made, as they were then."""


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
    watch: Watch | None = None,
) -> Execution[V]:
    """Run one kernel, all programs of its grid one after the other.

    `args` are NumPy arrays (tensors) and plain values, by name or in the kernel's order;
    `formats` gives the dtype of arrays whose storage does not say it (tfloat32).  The hardware's
    random numbers are not documented: with a `seed` they are NumPy's Philox stream of it, without
    one the run is incomplete where they are drawn.  `watch` is told of every instruction when it
    has been executed, and can look at tensors.  Raises
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
    runner = _Runner(
        domain,
        meter,
        order,
        arrays,
        seed,
        watch,
        paired=math.prod(grid) == 2,
        legacy=returns_tiles(module, kernel),
    )
    # What hardware computes raises nothing.
    with np.errstate(all="ignore"):
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


class _Runner(Machine[V]):
    """Executes instructions as they come."""

    def __init__(
        self,
        domain: Domain[V],
        meter: Meter,
        order: Order,
        arrays: Mapping[str, Array],
        seed: int | None,
        watch: Watch | None,
        *,
        paired: bool,
        legacy: bool,
    ) -> None:
        self.watch = watch
        self.executed = 0
        self.made: dict[str, Buffer] = {}
        """Tensors in HBM that no loop makes, by a name of their own."""
        self.paired = paired
        """Whether there are two programs, one of which may wait for the other."""
        super().__init__(domain, meter, order, arrays, seed, legacy=legacy)
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
            self.contents.fill(buffer, self.arrays[buffer.name])
        else:
            if buffer.memory.kind == "hbm":
                self._remember(buffer)
            self.cores.take(buffer, buffer.loops)

    def _remember(self, buffer: Buffer) -> None:
        """Keep a tensor in HBM, unless it is one of many."""
        if len(self.made) < MAX_PARTIAL and all(v.loop.iterator == "grid" for v in buffer.loops):
            name = buffer.name
            self.made[name if name not in self.made else f"{name}_{len(self.made)}"] = buffer

    def execute(self, instruction: Instruction) -> None:
        if not self.paired and self.replay.idle:
            if not self.failed:
                self._execute(instruction)
            return
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
                self.begin(instruction)
                sent.append(self.domain.copy(self.read(src)))
            for (instruction, _, dst), value in zip(both, reversed(sent), strict=True):
                self.begin(instruction)
                self.write(dst, value)
                self.executed += 1
                if self.watch is not None:
                    self.watch(instruction, self.look)
        except Unsupported as gap:
            self.fail(gap.reason)

    def _lost(self, instruction: Instruction) -> None:
        self._span = instruction.span
        self.fail("a core that waits for the other one, which does not come")

    def _execute(self, instruction: Instruction) -> None:
        self._span = instruction.span
        spec = INSTRUCTIONS.get(instruction.opcode)
        if spec is None or spec.semantics is None:
            known = f"the instruction {instruction.opcode}" if spec is None else spec.refusal
            self.fail(instruction.reason or known)
            return
        try:
            self.begin(instruction)
            check_packed(instruction)
            spec.semantics(self, instruction)
            self.executed += 1
            if self.watch is not None:
                self.watch(instruction, self.look)
        except Unsupported as gap:
            self.fail(gap.reason)
        except MemoryError:
            self.fail(f"{instruction.opcode} needs more memory than there is")
        except ValueError as error:
            # Shapes that do not fit: the instruction's problems say it in words.
            self.fail(f"{instruction.opcode} cannot be executed: {error}")

    def _integer(self, view: View) -> int:
        """What a register holds."""
        return int(np.asarray(self.domain.to_array(self.read(view))).reshape(-1)[0])

    def _put_integer(self, view: View, value: int) -> None:
        self._active = self._kept = None
        self.store(view, self.domain.constant(value, view.dtype, (1,)))

    def finish(self, found: Specialization) -> Execution[V]:
        outputs: list[V] = []
        written: list[NDArray[np.bool_]] = []
        after: dict[str, V] = {}
        partial: dict[str, V] = {}
        try:
            self.cores.end()
            self.contents.close()
            self._span, self._active = found.kernel.span, None
            self.failed = self.failed or not found.complete
            given: set[Buffer] = set()
            for view in found.returned:
                content, marks = self._output(view, shared=view.buffer not in given)
                given.add(view.buffer)
                outputs.append(content)
                written.append(marks)
            for name, view in found.parameters:
                storage = self.contents.of(view.buffer)
                after[name] = self.taken(view, storage, self._place(view))
            if any(event.kind == "stopped" for event in found.events):
                partial = self._partial()
        except Exhausted as stop:
            self._span = found.kernel.span
            self.fail(str(stop))
        complete = not self.failed
        happened = tuple(self.happenings.values())
        return Execution(
            tuple(outputs),
            tuple(written),
            after,
            happened,
            found,
            complete,
            self.executed,
            partial,
        )

    def _partial(self) -> dict[str, V]:
        """Tensors in HBM that are still there."""
        return {
            name: self._output(views.whole(buffer), shared=False)[0]
            for name, buffer in self.made.items()
        }

    def _output(self, view: View, *, shared: bool) -> tuple[V, NDArray[np.bool_]]:
        """A returned tensor and which of its elements have a value; `shared` once a tensor."""
        storage = self.contents.of(view.buffer)
        place = self.contents.window(view) or self.elements(view)
        marks = np.asarray(self.marks(view, storage, place), np.bool_).reshape(view.sizes)
        missing = marks.size - int(np.count_nonzero(marks))
        if missing and not self.failed:
            self.report(
                "unwritten-output",
                f"{missing} of {view.elements} elements of the output "
                f"{view.buffer.name} are never written",
                view.buffer.site.span,
                missing,
            )
        content = self.domain.reshape(self.taken(view, storage, place), view.sizes)
        if missing:
            content = self._filled(content, marks, view)
        whole = isinstance(place, Window) and covers(place, view.buffer)
        if not missing and not (shared and whole and view.buffer.role == "local"):
            content = self.domain.copy(content)
        return content, marks
