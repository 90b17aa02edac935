"""One try: the kernel is specialised with some arguments, and what it demands is read."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from migrate.budget import Exhausted, Meter
from migrate.ir.index import Index
from migrate.nki.addresses import ONE, ZERO
from migrate.nki.checks import PARTITIONS, PSUM_BYTES, SBUF_BYTES
from migrate.nki.frames import Event, Instruction
from migrate.nki.parse import Kernel, Module
from migrate.nki.specialize import Specialization, specialize
from migrate.nki.symbols import Number, binary, constant, sizes_of
from migrate.nki.values import Address, Buffer, Memory, Problem, View
from migrate.nki.views import product
from migrate.pipeline.nki_alone.clauses import SIGNS, Clause
from migrate.source import SourceError, Span

RECENT = 12
"""Comparisons before the end of a run that may have brought it about."""

MAX_FAULTY = 48
"""Places with faults after which a try is ended: the arguments are not the right ones."""

MAX_CLAUSES = 400
MAX_SEEN = 4000
"""Instructions whose expressions are read for tiles."""

Status = Literal["read", "refused", "gap", "stopped"]


@dataclass(frozen=True, slots=True)
class Try:
    """What came of some arguments.

    `read`: to the end; `refused`: a failed assertion or what the compiler would refuse; `gap`:
    not understood; `stopped`: a bound was reached.  `clauses` are demands of numbers that
    were not met, `suspects` comparisons that decided a refusal, the likeliest first, `idle`
    what would make loops run that did not.  `reach` is how much of each axis of a tensor
    argument is accessed.
    """

    status: Status
    message: str = ""
    span: Span | None = None
    clauses: tuple[Clause, ...] = ()
    suspects: tuple[Clause, ...] = ()
    idle: tuple[Clause, ...] = ()
    instructions: int = 0
    problems: int = 0
    progress: int = 0
    reach: Mapping[tuple[str, int], int] = field(default_factory=dict)
    expressions: tuple[Index, ...] = ()
    opaque: int = 0

    @property
    def accepted(self) -> bool:
        """Whether the kernel takes the arguments, without any fault."""
        return self.status == "read" and not self.problems and self.instructions > 0

    @property
    def untroubled(self) -> bool:
        """Whether nothing speaks against the arguments, as far as the kernel is understood."""
        return self.status in ("read", "gap") and not self.problems and self.instructions > 0

    @property
    def rank(self) -> tuple[int, int, int]:
        """Larger is better."""
        if self.status == "read":
            return 2, -self.problems, self.progress
        return int(self.status == "gap"), self.progress, -self.problems


def tried(
    module: Module,
    kernel: Kernel,
    args: Mapping[str, object],
    meter: Meter,
    *,
    target: str = "trn2",
    grid: tuple[int, ...] = (),
) -> Try:
    """Specialise the kernel with these arguments.  Raises `Exhausted` for time only."""
    watcher = _Watcher(target)
    try:
        found = specialize(
            module,
            kernel.name,
            args,
            meter=meter,
            on_instruction=watcher.instruction,
            on_allocation=watcher.allocation,
            on_comparison=watcher.comparison,
            on_idle_loop=watcher.idle_loop,
            target=target,
            grid=grid,
        )
    except SourceError as error:
        return Try("refused", error.message, kernel.span)
    except TypeError as error:
        return Try("gap", str(error), kernel.span)
    if meter.late:
        meter.look()
    return watcher.outcome(found)


@dataclass(slots=True, eq=False)
class _Watcher:
    target: str
    clauses: dict[str, Clause] = field(default_factory=dict)
    beyond: dict[str, Clause] = field(default_factory=dict)
    idle: dict[str, Clause] = field(default_factory=dict)
    recent: deque[Clause] = field(default_factory=lambda: deque(maxlen=RECENT))
    places: set[int] = field(default_factory=set)
    faulty: set[Span] = field(default_factory=set)
    reach: dict[tuple[str, int], int] = field(default_factory=dict)
    seen: dict[Index, None] = field(default_factory=dict)
    looked: int = 0
    compared: int = 0

    def comparison(self, sign: str, left: object, right: object) -> None:
        self.compared += 1
        for clause in _clauses(sign, left, right):
            self.recent.append(clause)

    def idle_loop(self, trips: Number) -> None:
        clause = Clause(trips, ">", ZERO)
        if clause.names and len(self.idle) < MAX_CLAUSES:
            self.idle.setdefault(clause.key, clause)

    def allocation(self, buffer: Buffer) -> None:
        if not buffer.memory.on_chip or not buffer.shape:
            return
        rows = buffer.shape[buffer.partition]
        if int(rows.value) > PARTITIONS:
            self._want(rows, "<=", constant(PARTITIONS))
        limit = PSUM_BYTES if buffer.memory is Memory.PSUM else SBUF_BYTES[self.target]
        free = [n for axis, n in enumerate(buffer.shape) if axis != buffer.partition]
        total = product(free) if free else ONE
        if int(total.value) * buffer.dtype.bytes > limit:
            self._want(total, "<=", constant(limit // buffer.dtype.bytes))

    def instruction(self, given: Instruction) -> None:
        self.places.add(given.site.key)
        self.looked += 1
        views = [(name, view) for name, view in given.operands if isinstance(view, View)]
        for _, view in views:
            if view.buffer.role == "parameter":
                self._reached(view)
        if self.looked <= MAX_SEEN:
            for turn in given.loops:
                if turn.trips is not None:
                    self.seen.setdefault(turn.trips.index())
            for _, view in views:
                for extent in view.shape:
                    self.seen.setdefault(extent.index())
        if given.problems:
            self.faulty.add(given.span)
            for problem in given.problems:
                self._problem(problem, dict(views))
            if len(self.faulty) > MAX_FAULTY:
                raise Exhausted("steps", MAX_FAULTY, "reading a kernel full of faults")

    def _reached(self, view: View) -> None:
        if view.indirect or len(view.base) != len(view.buffer.shape):
            return
        for axis, address in enumerate(view.index):
            if address.digits or view.base[axis].value != view.buffer.shape[axis].value:
                continue
            last = int(_last(address, view.shape).value) + 1
            key = (view.buffer.name, axis)
            self.reach[key] = max(self.reach.get(key, 0), last)

    def _want(self, left: Number, sign: str, right: Number) -> None:
        if (left.symbolic or right.symbolic) and len(self.clauses) < MAX_CLAUSES:
            clause = Clause(left, sign, right)
            if clause.names:
                self.clauses.setdefault(clause.key, clause)

    def _problem(self, problem: Problem, views: Mapping[str, View]) -> None:
        if problem.code == "out-of-bounds":
            for view in views.values():
                self._inside(view)
        elif problem.code.endswith("mismatch") or problem.code == "not-a-column":
            for sides in _sides(problem, views):
                self._want(sides[0], "==", sides[1])
        else:
            figures = {value for _, value in problem.numbers}
            named = views.get(problem.operand)
            limit = _LIMITS.get(problem.code)
            if named is None or limit is None:
                return
            for extent in (*named.shape, product(named.shape[1:]) if named.shape else ONE):
                if extent.value in figures and extent.value > limit:
                    self._want(extent, "<=", constant(limit))

    def _inside(self, view: View) -> None:
        """Every address of the view below the extent of its base."""
        if not any(fault.code == "out-of-bounds" for fault in view.faults):
            return
        for address, extent in zip(view.index, view.base, strict=False):
            last = _last(address, view.shape)
            if last.value < extent.value:
                continue
            if sizes_of(last):
                self._want(extent, ">", last)
                continue
            # A loop of fixed trips leaves an axis again and again: the farthest says it all.
            clause = Clause(extent, ">", last)
            known = self.beyond.get(clause.subject)
            if clause.names and (known is None or _farther(last, known)):
                self.beyond[clause.subject] = clause

    def outcome(self, found: Specialization) -> Try:
        stop = _stop(found.events)
        clauses = [*self.beyond.values(), *self.clauses.values()]
        suspects: list[Clause] = []
        if stop is None:
            status: Status = "read" if found.complete else "gap"
            message, span = "", None
            if status == "gap":
                gap = next((e for e in found.events if e.kind == "unsupported"), None)
                if gap is not None:
                    message, span = gap.message, gap.span
        else:
            kinds: dict[str, Status] = {"stopped": "stopped", "unsupported": "gap"}
            status = kinds.get(stop.kind, "refused")
            message, span = stop.message, stop.span
            for left, sign, right in stop.wanted:
                # Before all others: without it the rest is never reached.
                clause = Clause(left, sign, right)
                if clause.names:
                    clauses.append(clause)
            # What a `raise` or an assertion rests on was compared just before.
            if status == "refused" and not stop.wanted:
                suspects = [_unheld(clause) for clause in reversed(self.recent)]
        if status == "read" and not found.problems and not self.faulty:
            clauses = []
        return Try(
            status,
            message,
            span,
            tuple(clauses),
            tuple(suspects),
            tuple(self.idle.values()),
            found.instructions,
            len(found.problems),
            len(self.places) + len({a.span for a in found.assertions}) + len(self.reach),
            self.reach,
            tuple(self.seen),
            len(found.opaque_statements),
        )


_LIMITS = {"partitions": PARTITIONS, "stationary-size": PARTITIONS, "moving-size": 512,
           "transpose-size": PARTITIONS}  # fmt: skip


def _farther(last: Number, known: Clause) -> bool:
    return isinstance(known.right, Number) and last.value > known.right.value


def _stop(events: tuple[Event, ...]) -> Event | None:
    """What ended the run."""
    for event in events:
        if event.kind in ("error", "assert", "stopped"):
            return event
    return None


def _unheld(clause: Clause) -> Clause:
    """The clause the other way round from how it came out."""
    return clause.denied() if clause.holds({}) else clause


def _clauses(sign: str, left: object, right: object) -> Iterator[Clause]:
    """A comparison as clauses that hold or not together, those about sizes."""
    if isinstance(left, Number) and isinstance(right, Number):
        if (left.symbolic or right.symbolic) and sign in SIGNS:
            clause = Clause(left, sign, right)
            if clause.names:
                yield clause
        return
    if sign in ("in", "not in") and isinstance(left, Number) and isinstance(right, tuple | list):
        numbers = tuple(part for part in right if isinstance(part, Number))
        clause = Clause(left, sign, numbers)
        if numbers and clause.names:
            yield clause
        return
    both = isinstance(left, tuple | list) and isinstance(right, tuple | list)
    if both and sign in ("==", "!="):
        assert isinstance(left, tuple | list)
        assert isinstance(right, tuple | list)
        if len(left) == len(right) <= 8:
            for a, b in zip(left, right, strict=True):
                # Of two shapes only what differs decides.
                if isinstance(a, Number) and isinstance(b, Number) and a.value != b.value:
                    yield from _clauses("==", a, b)


def _last(address: Address, shape: tuple[Number, ...]) -> Number:
    """The greatest address, without quotients."""
    total = address.start
    for axis, step in address.terms:
        if step.value > 0:
            reach = binary("*", step, binary("-", shape[axis], ONE))
            total = binary("+", total, reach)
    return total


def _sides(problem: Problem, views: Mapping[str, View]) -> Iterator[tuple[Number, Number]]:
    """Numbers that have to be equal for two operands to fit each other."""
    if problem.operand not in views:
        return
    one = views[problem.operand]
    named = [name for name, _ in problem.numbers if name in views and name != problem.operand]
    others = [views[name] for name in named] or [v for v in views.values() if v is not one]
    for other in others:
        if problem.code == "partition-mismatch" or problem.code == "contraction-mismatch":
            if one.shape and other.shape and one.shape[0].value != other.shape[0].value:
                yield one.shape[0], other.shape[0]
            continue
        if len(one.shape) == len(other.shape):
            pairs = [(a, b) for a, b in zip(one.shape, other.shape, strict=True)
                     if a.value != b.value]  # fmt: skip
            yield from pairs
        else:
            yield product(one.shape), product(other.shape)
