"""Folding an unrolled instruction stream back into loops.

Instructions are grouped by the place that emitted them and the loops around it: one
*site* of the folded program stands for all its instances.  Of every instance the integers
that say where it works are kept (a few dozen bytes), in columns; `resolve` finds one
expression for each column that gives the right number at every instance, or says that
there is none.  Nothing is extrapolated.

Loops over lists and `while` loops stay unrolled: what they run over need not follow from
the iteration.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from migrate.nki import addresses
from migrate.nki.accumulation import Accumulation
from migrate.nki.frames import Instruction
from migrate.nki.symbols import Loop, Number
from migrate.nki.values import Buffer, LoopValue, Member, OperatorName, View
from migrate.numerics.dtypes import DType

MAX_NODES = 4000
"""Sites and loops of a folded program.  Real kernels have tens; an unrolled one, hundreds."""

Key: TypeAlias = tuple[object, ...]


@dataclass(slots=True, eq=False)
class AllocationNode:
    """All buffers made by one allocation in the loops that are folded."""

    key: Key
    first: Buffer
    loops: tuple[Loop, ...]
    shape: list[int]
    trips: list[int]


@dataclass(slots=True, eq=False)
class SiteNode:
    """All instances of one instruction of the folded program.

    `columns` holds `width` integers an instance, in the order of `numbers(first)`;
    `iterations` the iteration of each of `loops`.
    """

    key: Key
    first: Instruction
    loops: tuple[Loop, ...]
    allocations: tuple[tuple[str, AllocationNode], ...]
    rank: int
    width: int
    columns: array[int] = field(default_factory=lambda: array("q"))
    iterations: array[int] = field(default_factory=lambda: array("q"))
    count: int = 0


@dataclass(slots=True, eq=False)
class LoopNode:
    """A loop of the folded program, or one iteration of a loop that stays unrolled.

    The root is a loop node without a loop.
    """

    loop: Loop | None
    unrolled: bool
    rank: int
    children: dict[Key, SiteNode | LoopNode] = field(default_factory=dict)
    cursor: int = -1
    at: tuple[int, ...] = ()

    def ordered(self) -> list[SiteNode | LoopNode]:
        """Children in program order."""
        return sorted(self.children.values(), key=lambda child: child.rank)

    def sites(self) -> Iterator[SiteNode]:
        """Every site below, in program order."""
        pending: list[SiteNode | LoopNode] = list(reversed(self.ordered()))
        while pending:
            node = pending.pop()
            if isinstance(node, SiteNode):
                yield node
            else:
                pending.extend(reversed(node.ordered()))


class FoldFailure(Exception):
    """The stream does not fold: `axes` are the loops concerned, outermost first."""

    def __init__(self, reason: str, axes: tuple[str, ...]) -> None:
        super().__init__(reason)
        self.reason = reason
        self.axes = axes


class Folder:
    """Consumes instructions; `root` is the folded program afterwards."""

    def __init__(self, unrolled: frozenset[str] = frozenset()) -> None:
        self.unrolled = unrolled
        self.root = LoopNode(None, False, 0)
        self.allocations: dict[Key, AllocationNode] = {}
        self._allocation_of: dict[int, AllocationNode] = {}
        self.accumulation = Accumulation()
        self._nodes = 0

    def is_unrolled(self, loop: Loop) -> bool:
        return not loop.counted or loop.axis in self.unrolled

    def folded(self, loops: tuple[LoopValue, ...]) -> tuple[LoopValue, ...]:
        return tuple(value for value in loops if not self.is_unrolled(value.loop))

    def _coordinates(self, loops: tuple[LoopValue, ...]) -> Key:
        return tuple(
            (value.loop.axis, value.iteration) for value in loops if self.is_unrolled(value.loop)
        )

    def allocated(self, buffer: Buffer) -> None:
        """Note an allocation (called before any instruction uses the buffer)."""
        key: Key = (buffer.site.key, buffer.role, buffer.name if buffer.role == "parameter" else "")
        key = (*key, *self._coordinates(buffer.loops))
        folded = self.folded(buffer.loops)
        sizes = [int(extent.value) for extent in buffer.shape]
        trips = [int(v.trips.value) if v.trips is not None else 1 for v in folded]
        node = self.allocations.get(key)
        if node is None:
            loops = tuple(value.loop for value in folded)
            node = self.allocations[key] = AllocationNode(key, buffer, loops, sizes, trips)
        elif len(node.shape) != len(sizes) or node.first.dtype is not buffer.dtype:
            raise FoldFailure(
                f"the tensor {buffer.name} changes its rank or dtype in a loop",
                tuple(loop.axis for loop in node.loops),
            )
        else:
            node.shape = [max(a, b) for a, b in zip(node.shape, sizes, strict=True)]
            node.trips = [max(a, b) for a, b in zip(node.trips, trips, strict=True)]
        self._allocation_of[buffer.ordinal] = node

    def allocation(self, buffer: Buffer) -> AllocationNode:
        return self._allocation_of[buffer.ordinal]

    def execute(self, instruction: Instruction) -> None:
        """Add one instruction."""
        node = self.root
        iterations: tuple[int, ...] = ()
        for value in instruction.loops:
            iterations = (*iterations, value.iteration)
            node = self._loop(node, value, iterations)
        folded = self.folded(instruction.loops)
        site = self._site(node, instruction, folded)
        site.iterations.extend(value.iteration for value in folded)
        site.columns.extend(self._values(instruction, folded))
        site.count += 1

    def _loop(self, parent: LoopNode, value: LoopValue, iterations: tuple[int, ...]) -> LoopNode:
        unrolled = self.is_unrolled(value.loop)
        key: Key = (value.loop.axis, value.iteration) if unrolled else (value.loop.axis,)
        child = parent.children.get(key)
        if child is None:
            child = LoopNode(value.loop, unrolled, self._insert(parent))
            parent.children[key] = child
        assert isinstance(child, LoopNode)
        if child.at != iterations:
            child.at = iterations
            child.cursor = -1
        self._advance(parent, child.rank, key, repeated=True)
        return child

    def _site(
        self, parent: LoopNode, instruction: Instruction, folded: tuple[LoopValue, ...]
    ) -> SiteNode:
        key = self._signature(instruction)
        child = parent.children.get(key)
        if child is None:
            loops = tuple(value.loop for value in folded)
            width = sum(1 for _ in numbers_of(instruction, folded))
            allocations = tuple(
                (name, self.allocation(operand.buffer))
                for name, operand in instruction.operands
                if isinstance(operand, View)
            )
            width += sum(len(node.shape) + len(node.loops) for _, node in allocations) + 1
            rank = self._insert(parent)
            child = SiteNode(key, instruction, loops, allocations, rank, width)
            parent.children[key] = child
        assert isinstance(child, SiteNode)
        self._advance(parent, child.rank, key, repeated=False)
        return child

    def _insert(self, parent: LoopNode) -> int:
        """The rank for a new child: right after the one visited last."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise FoldFailure(f"the program has more than {MAX_NODES} parts", ())
        rank = parent.cursor + 1
        if any(child.rank >= rank for child in parent.children.values()):
            for child in parent.children.values():
                if child.rank >= rank:
                    child.rank += 1
        return rank

    @staticmethod
    def _advance(parent: LoopNode, rank: int, key: Key, *, repeated: bool) -> None:
        if rank < parent.cursor or (rank == parent.cursor and not repeated):
            axes = (parent.loop.axis,) if parent.loop is not None else ()
            raise FoldFailure("the order of instructions changes between iterations", axes)
        parent.cursor = rank

    def _signature(self, instruction: Instruction) -> Key:
        """What must be the same for two instructions to be instances of one."""
        parts: list[object] = [instruction.site.key, instruction.opcode]
        for name, operand in instruction.operands:
            match operand:
                case View():
                    terms = tuple(addresses.structure(address) for address in operand.index)
                    allocation = self.allocation(operand.buffer).key
                    rank = len(operand.shape)
                    parts.append((name, allocation, operand.dtype, rank, terms))
                    if operand.indirect:
                        parts.append(tuple((p.dimension, p.axes) for p in operand.indirect))
                case Number() if operand.integral:
                    parts.append((name, "integer"))
                case Number():
                    parts.append((name, repr(operand.value)))
                case None:
                    parts.append((name, None))
        for name, value in instruction.attributes:
            if name != "accumulate":
                parts.append((name, _plain(value)))
        if instruction.mask is not None:
            parts.append(tuple(map(addresses.structure, instruction.mask.conditions)))
        return tuple(parts)

    def _values(self, instruction: Instruction, folded: tuple[LoopValue, ...]) -> Iterator[int]:
        for number in numbers_of(instruction, folded):
            yield int(number.value)
        for _, operand in instruction.operands:
            if isinstance(operand, View):
                for extent in operand.buffer.shape:
                    yield int(extent.value)
                for value in self.folded(operand.buffer.loops):
                    yield value.iteration
        yield self.accumulation.adds(instruction)


def numbers_of(instruction: Instruction, folded: tuple[LoopValue, ...]) -> Iterator[Number]:
    """The integers that say where an instruction works, in a fixed order.

    Trip counts of the folded loops, then of each tensor operand the shape, the base's
    shape, and the numbers of the address in every dimension; of integer operands and
    attributes the value; those of the mask.
    """
    for loop in folded:
        assert loop.trips is not None
        yield loop.trips
    for _, operand in instruction.operands:
        if isinstance(operand, View):
            yield from numbers_of_view(operand)
        elif isinstance(operand, Number) and operand.integral:
            yield operand
    for name, value in instruction.attributes:
        if name != "accumulate":
            yield from _integers(value)
    if instruction.mask is not None:
        for address in instruction.mask.conditions:
            yield from addresses.numbers_of(address)


def numbers_of_view(view: View) -> Iterator[Number]:
    yield from view.shape
    yield from view.base
    for address in view.index:
        yield from addresses.numbers_of(address)
    for part in view.indirect:
        yield part.step


def _integers(value: object) -> Iterator[Number]:
    if isinstance(value, Number) and value.integral:
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _integers(item)


def _plain(value: object) -> object:
    """An attribute without its integers, which are columns."""
    match value:
        case Number():
            return "integer" if value.integral else repr(value.value)
        case tuple() | list():
            return tuple(_plain(item) for item in value)
        case None | bool() | str() | OperatorName() | Member() | DType():
            return value
        case _:
            return repr(type(value))
