"""The state of one specialisation: frames, sites, loops, and the stream of instructions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from migrate.budget import Exhausted, Meter
from migrate.nki.errors import KernelFault, Unsupported, Wanted
from migrate.nki.indices import IndexTensor
from migrate.nki.symbols import CallStack, Loop, Number, Origin
from migrate.nki.values import (
    MAX_ITEMS,
    Buffer,
    Iteration,
    LoopValue,
    Mask,
    Memory,
    Problem,
    Range,
    Site,
    View,
)
from migrate.source import Frame as SourceFrame
from migrate.source import Source, Span, shortened

if TYPE_CHECKING:
    from migrate.nki.device_loops import DeviceLoop
    from migrate.nki.modules import Modules
    from migrate.numerics.dtypes import DType

Evaluate: TypeAlias = Callable[["Frame"], object]
Operand: TypeAlias = View | Number | None
LoopStep: TypeAlias = Literal["begin", "end", "given up"]
EventKind: TypeAlias = Literal["unsupported", "error", "assert", "stopped", "ambiguous", "print"]

MAX_INSTRUCTIONS = 300_000
"""The longest of the public kernels that complete emits 266,346; each takes 15 to 50 µs."""

MAX_IDLE = 500_000
"""Steps that may pass without an instruction.  Each instruction makes up for `IDLE_EARNED`
of them, so that a kernel that loops for ever ends soon and one with much to emit does not."""

IDLE_EARNED = 200

MAX_EVENTS = 200

MAX_DEPTH = 400
"""Nested syntax that may be interpreted at once, summed over the calls in progress."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One `nki.isa` instruction with the views it works on.

    `operands` are by parameter name in the instruction's order, `attributes` are its
    other arguments (operators, flags, numbers).  `opcode` is "opaque" where the source
    was not understood; `reason` then says why.  `mask` leaves out elements that no smaller view
    leaves out.
    """

    number: int
    site: Site
    opcode: str
    operands: tuple[tuple[str, Operand], ...]
    attributes: tuple[tuple[str, object], ...]
    loops: tuple[LoopValue, ...]
    problems: tuple[Problem, ...] = ()
    reason: str = ""
    mask: Mask | None = None

    @property
    def span(self) -> Span:
        return self.site.span

    def operand(self, name: str) -> Operand:
        for given, value in self.operands:
            if given == name:
                return value
        return None

    def view(self, name: str) -> View | None:
        value = self.operand(name)
        return value if isinstance(value, View) else None

    def attribute(self, name: str) -> object:
        for given, value in self.attributes:
            if given == name:
                return value
        return None


@dataclass(frozen=True, slots=True)
class Event:
    """Something about the run as a whole.

    `unsupported`: not understood, nothing is claimed about what depends on it;
    `error`: the compiler would stop here; `assert`: a failed assertion; `stopped`: a
    bound was reached; `ambiguous`: read as documented where hardware may do otherwise.
    `print` carries what the kernel prints while it is specialised.  `wanted` is as of a
    `KernelFault`.
    """

    kind: EventKind
    message: str
    span: Span | None
    wanted: tuple[Wanted, ...] = ()


@dataclass(frozen=True, slots=True)
class Assertion:
    """A condition the kernel asserted and which held."""

    text: str
    span: Span


@dataclass(slots=True, eq=False)
class ModuleScope:
    """Global names of a reviewed module.

    `stars` are what `from x import *` took names from: a module's table, or what kept it from
    being read.
    """

    names: dict[str, object]
    stars: list[object] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Code:
    """A function's body, compiled to closures once."""

    name: str
    parameters: ast.arguments
    body: Callable[[Frame], object]
    local_names: frozenset[str]
    nonlocal_names: frozenset[str]
    depth: int
    global_names: frozenset[str] = frozenset()
    yields: int = 0
    """How many `yield` it has; a function with any is a generator."""


@dataclass(slots=True, eq=False)
class Destination:
    """The tensor that a statement assigns to, offered to the call on its right side.

    A call that writes its result there takes it; with `accumulate` only one that adds to
    what is there may.  A call with a mask whose result is in another format leaves the mask for
    the copy of that result, with the place of the call.
    """

    view: View
    accumulate: bool = False
    taken: bool = False
    mask: object = None
    origin: Origin | None = None


@dataclass(slots=True, eq=False)
class Pending:
    """The destination of one expression, looked for when its operands have been evaluated."""

    node: ast.expr
    find: Callable[[], Destination | None]
    found: Destination | None = None


class Frame:
    """Names of one function call, or of the body of a class (`is_class`).

    `sink` takes what the function yields.
    """

    __slots__ = ("code", "depth", "is_class", "names", "outer", "run", "sink", "stack")

    def __init__(
        self,
        run: Run,
        code: Code | None,
        outer: Frame | ModuleScope,
        stack: CallStack | None,
        depth: int,
    ) -> None:
        self.run = run
        self.code = code
        self.outer = outer
        self.stack = stack
        self.depth = depth
        self.is_class = False
        self.sink: Callable[[object, Origin], None] | None = None
        self.names: dict[str, object] = {}

    @property
    def enclosing(self) -> Frame | ModuleScope:
        """Where functions defined here look for names: those of a class body are not seen."""
        here: Frame | ModuleScope = self
        while isinstance(here, Frame) and here.is_class:
            here = here.outer
        return here


@dataclass(slots=True, eq=False)
class Run:
    """One specialisation in progress."""

    source: Source
    meter: Meter
    on_instruction: Callable[[Instruction], None]
    target: str
    scope: ModuleScope
    on_allocation: Callable[[Buffer], None] | None = None
    grid: tuple[int, ...] = ()
    programs: tuple[LoopValue, ...] = ()
    """Which program of the grid is running, axis by axis; empty where there is only one."""
    shared: list[Buffer] = field(default_factory=list)
    """Tensors that all programs of the grid have in common, in the order of allocation."""
    shared_used: int = 0
    loops: tuple[LoopValue, ...] = ()
    open: bool = False
    """Whether the kernel's own body is running, so that instructions may be emitted."""
    frame: Frame | None = None
    """The function body that is being interpreted."""
    handling: list[KernelFault] = field(default_factory=list)
    """Faults whose `except` blocks are running, innermost last."""
    modules: Modules | None = None
    """The files around the kernel's, where it has any."""
    functions_of: dict[ast.FunctionDef, object] = field(default_factory=dict)
    """Functions as they were before their decorators."""
    allowance: int | None = None
    """Steps that the statement of a module may still use."""
    instructions: int = 0
    allocations: int = 0
    idle: int = 0
    """Steps that no instruction has made up for."""
    stopped_at: Span | None = None
    """The statement at which a bound ended the run."""
    hint: str = ""
    events: list[Event] = field(default_factory=list)
    assertions: list[Assertion] = field(default_factory=list)
    opaque_statements: set[Span] = field(default_factory=set)
    functions: dict[ast.FunctionDef, None] = field(default_factory=dict)
    problems: dict[tuple[str, int], Problem] = field(default_factory=dict)
    branches: dict[ast.If, tuple[Origin, bool, bool]] = field(default_factory=dict)
    """For every condition reached: whether it ever held, whether it ever failed."""
    legacy: bool = False
    """Whether instructions return tiles (NKI 0.1) rather than fill the `dst` they are given."""
    on_comparison: Callable[[str, object, object], None] | None = None
    """Told of every comparison that the kernel's Python makes, before it is made."""
    on_loop: Callable[[DeviceLoop, LoopStep], None] | None = None
    """Told of the begin and the end of every loop whose trips only the device knows."""
    epoch: int = 0
    """How many such loops have begun or ended."""
    on_idle_loop: Callable[[Number], None] | None = None
    """Told of the trips of every loop that does not run once."""
    pending: Pending | None = None
    destination: Destination | None = None
    accumulators: dict[str, Buffer] | None = None
    """Accumulation registers by engine; `None` where they are not followed (`lanes`)."""
    reductions: dict[tuple[int, ...], View] = field(default_factory=dict)
    """Tiles that `nl.loop_reduce` gathers in, by site and position of the loops outside."""
    _sites: dict[tuple[int, int, int], Site] = field(default_factory=dict)
    _loops: dict[tuple[int, int], Loop] = field(default_factory=dict)
    _stacks: dict[tuple[int, int], CallStack] = field(default_factory=dict)
    _axes: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def towards(self, node: ast.expr) -> Iterator[None]:
        """While the outermost call of an expression writes: where its result may go."""
        pending = self.pending
        if pending is None or pending.node is not node:
            yield
            return
        self.pending = None
        pending.found = self.destination = pending.find()
        try:
            yield
        finally:
            self.destination = None

    def step(self, count: int = 1) -> None:
        """Use steps of interpretation.  Raises `Exhausted`."""
        self.idle += count
        if self.allowance is not None:
            self.allowance -= count
            if self.allowance < 0:
                raise Exhausted("steps", MAX_IDLE, "reading a module")
        if self.idle > MAX_IDLE:
            raise Exhausted("steps", MAX_IDLE, "interpreting code that emits no instruction")
        self.meter.step(count)

    def touch(self, *values: object) -> None:
        """Use steps for an operation that may go through whole containers or strings."""
        for value in values:
            match value:
                case str() | tuple() | list() | dict():
                    count = len(value) // 8
                case Range() | Iteration():
                    # Its items are made one by one, and take memory.
                    count = min(int(value.trips.value), MAX_ITEMS) // 2
                case IndexTensor():
                    count = min(value.sizes[0], MAX_ITEMS) * 2
                case _:
                    continue
            if count > 0:
                self.step(count)

    def stack(self, outer: CallStack | None, origin: Origin, function: str) -> CallStack:
        """The interned stack for a call at `origin`."""
        key = (id(outer), id(origin.node))
        found = self._stacks.get(key)
        if found is None:
            depth = outer.depth + 1 if outer is not None else 1
            found = self._stacks[key] = CallStack(outer, origin, function, depth)
        return found

    def site(self, origin: Origin, stack: CallStack | None, part: int = 0) -> Site:
        """The site of an expression; `part` counts where one emits several instructions."""
        key = (id(origin.node), id(stack), part)
        found = self._sites.get(key)
        if found is None:
            function = stack.function if stack is not None else ""
            span = self.reached(origin.span, stack)
            found = self._sites[key] = Site(len(self._sites), span, function, stack)
        return found

    def reached(self, span: Span, stack: CallStack | None) -> Span:
        """The span with the calls that led to it."""
        if stack is None:
            return span
        frames: tuple[SourceFrame, ...] = stack.frames()
        for frame in reversed(frames):
            span = span.through(frame)
        return span

    def loop(
        self,
        origin: Origin,
        stack: CallStack | None,
        variable: str,
        iterator: str,
        counted: bool,
    ) -> Loop:
        """The loop of a statement under one chain of calls; its axis name is unique."""
        key = (id(origin.node), id(stack))
        found = self._loops.get(key)
        if found is None:
            span = self.reached(origin.span, stack)
            found = self._loops[key] = self.axis_loop(variable, iterator, span, counted)
        return found

    def reserve(self, number: Number) -> None:
        """Keep the names of sizes from becoming those of axes, whatever loops are called."""
        for symbol in number.index().symbols():
            self._axes.setdefault(symbol.name, 1)

    def axis_loop(self, variable: str, iterator: str, span: Span, counted: bool = True) -> Loop:
        """A new loop, its axis named after a variable."""
        return Loop(self._unique(self._axes, variable), iterator, span, counted)

    def buffer(
        self,
        name: str,
        memory: Memory,
        shape: tuple[Number, ...],
        dtype: DType,
        site: Site,
        role: Literal["parameter", "local"] = "local",
        partition: int = 0,
        address: tuple[int, int] | None = None,
    ) -> Buffer:
        shared = bool(self.programs) and memory is Memory.SHARED_HBM
        if shared:
            self.shared_used += 1
            if self.shared_used <= len(self.shared):
                return self._common(self.shared[self.shared_used - 1], shape, dtype)
        self.step(8)
        ordinal = self.allocations
        self.allocations += 1
        loops = self.loops[len(self.programs) :] if shared else self.loops
        buffer = Buffer(name, memory, shape, dtype, site, loops, role, ordinal, partition, address)
        if shared:
            self.shared.append(buffer)
        if self.on_allocation is not None:
            self.on_allocation(buffer)
        return buffer

    @staticmethod
    def _common(buffer: Buffer, shape: tuple[Number, ...], dtype: DType) -> Buffer:
        """The tensor that an earlier program made at the same place in the order."""
        sizes = [extent.value for extent in shape]
        if buffer.dtype is not dtype or [extent.value for extent in buffer.shape] != sizes:
            raise Unsupported("programs of the grid that allocate different shared tensors")
        return buffer

    def emit(
        self,
        opcode: str,
        operands: Iterable[tuple[str, Operand]],
        attributes: Iterable[tuple[str, object]],
        site: Site,
        problems: tuple[Problem, ...] = (),
        reason: str = "",
        mask: Mask | None = None,
    ) -> None:
        """Hand an instruction to the consumer."""
        if self.instructions >= MAX_INSTRUCTIONS:
            raise Exhausted("steps", MAX_INSTRUCTIONS, "unrolling the kernel (instructions)")
        self.meter.step(8)
        if opcode != "opaque":
            self.idle = max(self.idle - IDLE_EARNED, 0)
        for problem in problems:
            self.problem(problem)
        given = tuple(operands)
        instruction = Instruction(
            self.instructions,
            site,
            opcode,
            (*given, *_positions(given)),
            tuple(attributes),
            self.loops,
            problems,
            reason,
            mask,
        )
        self.instructions += 1
        self.on_instruction(instruction)

    def event(
        self,
        kind: EventKind,
        message: str,
        span: Span | None,
        wanted: tuple[Wanted, ...] = (),
    ) -> None:
        # What ends the run is never left out.
        ends = kind in ("error", "assert", "stopped")
        if ends or len(self.events) < MAX_EVENTS:
            self.events.append(Event(kind, shortened(message), span, wanted))

    def problem(self, problem: Problem) -> None:
        """Record a problem of an instruction or allocation, once a place."""
        self.problems.setdefault((problem.code, hash(problem.span)), problem)

    def decided(self, node: ast.If, origin: Origin, held: bool) -> None:
        """Record which way a condition went."""
        _, then, otherwise = self.branches.get(node, (origin, False, False))
        self.branches[node] = (origin, then or held, otherwise or not held)

    @staticmethod
    def _unique(used: dict[str, int], wanted: str) -> str:
        count = used.get(wanted, 0) + 1
        used[wanted] = count
        return wanted if count == 1 else f"{wanted}_{count}"


def _positions(operands: tuple[tuple[str, Operand], ...]) -> Iterator[tuple[str, Operand]]:
    """The tiles that say where operands stand: the instruction reads them too."""
    for name, operand in operands:
        if isinstance(operand, View) and operand.indirect:
            for number, part in enumerate(operand.indirect):
                yield f"{name}:{number}", part.offsets
