"""What can be told of a run while it goes on: instructions by engine, bytes moved, a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from migrate.nki.frames import Instruction
from migrate.nki.instructions import INSTRUCTIONS, Enumerated
from migrate.nki.operators import OPERATORS
from migrate.nki.semantics import engine_of, is_exact_integer
from migrate.nki.values import Member, Memory, OperatorName, View
from migrate.source import Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Look: TypeAlias = Callable[[View], NDArray[Any]]
    """The elements of a view as they are now."""

Watch: TypeAlias = "Callable[[Instruction, Look], None]"
"""Told of every instruction when it has been executed."""

SHOWN: Final = 4
"""Elements of a tile in a trace."""

_MOVES: Final = frozenset(
    {"dma_compute", "dma_copy", "dma_transpose", "nc_transpose", "sendrecv", "tensor_copy"}
)
"""Instructions that move what they read, whole, to where they write."""


def engine(instruction: Instruction) -> str:
    """The engine that executes an instruction: the one asked for, else where it goes by itself."""
    spec = INSTRUCTIONS.get(instruction.opcode)
    asked = engine_of(instruction)
    if spec is None or asked != "unknown":
        return asked
    dst = instruction.view("dst")
    if instruction.opcode == "nc_transpose":
        # nki.isa.nc_transpose: the Tensor engine writes PSUM, the Vector engine SBUF.
        in_psum = dst is not None and dst.buffer.memory is Memory.PSUM
        return "tensor" if in_psum else "vector"
    for _, value in instruction.attributes:
        if isinstance(value, OperatorName) and OPERATORS[value.name].engines == ("gpsimd",):
            return "gpsimd"
    if instruction.opcode == "tensor_tensor" and is_exact_integer(instruction):
        return "gpsimd"
    return spec.engines[0]


@dataclass(slots=True)
class Statistics:
    """What a run has executed."""

    engines: Counter[str] = field(default_factory=Counter)
    opcodes: Counter[str] = field(default_factory=Counter)
    moved: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Bytes from one memory to another, by the two memories."""

    def count(self, instruction: Instruction) -> None:
        """One more."""
        self.engines[engine(instruction)] += 1
        self.opcodes[instruction.opcode] += 1
        dst = instruction.view("dst")
        if instruction.opcode not in _MOVES or dst is None:
            return
        for name, value in instruction.operands:
            source = name in ("src", "data") or (name.startswith("srcs.") and ":" not in name)
            if source and isinstance(value, View):
                pair = value.buffer.memory.kind, dst.buffer.memory.kind
                self.moved[pair] += value.elements * value.dtype.bytes


@dataclass(frozen=True, slots=True)
class Operand:
    """A tile of an instruction; `values` are the first ones of what it has written."""

    name: str
    tensor: str
    memory: str
    dtype: str
    shape: tuple[int, ...]
    values: tuple[float | int | bool, ...] | None


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction that was executed."""

    number: int
    span: Span
    opcode: str
    engine: str
    operands: tuple[Operand, ...]
    attributes: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Trace:
    """The first instructions of a run, at most `limit`; each is told to `on_step`, too."""

    limit: int
    on_step: Callable[[Step], None] | None = None
    steps: list[Step] = field(default_factory=list)

    def take(self, instruction: Instruction, look: Look) -> None:
        """Keep an instruction that has been executed."""
        if len(self.steps) >= self.limit:
            return
        spec = INSTRUCTIONS.get(instruction.opcode)
        operands: list[Operand] = []
        attributes: list[tuple[str, str]] = []
        for name, value in instruction.operands:
            if isinstance(value, View):
                parameter = spec.parameter(name) if spec is not None else None
                written = parameter is not None and parameter.role in ("out", "inout")
                operands.append(_operand(name, value, look(value) if written else None))
            elif value is not None:
                attributes.append((name, f"{value.value}"))
        for name, given in instruction.attributes:
            parameter = spec.parameter(name) if spec is not None else None
            default = parameter.default if parameter is not None else None
            usual = default.name if isinstance(default, Enumerated) else None
            if isinstance(given, OperatorName | Member) and given.name != usual:
                attributes.append((name, given.name))
        step = Step(
            len(self.steps),
            instruction.span,
            instruction.opcode,
            engine(instruction),
            tuple(operands),
            tuple(attributes),
        )
        self.steps.append(step)
        if self.on_step is not None:
            self.on_step(step)


def _operand(name: str, view: View, content: NDArray[Any] | None) -> Operand:
    values: tuple[float | int | bool, ...] | None = None
    if content is not None:
        first = content.reshape(-1)[:SHOWN]
        if view.dtype.is_float:
            first = first.astype(float)
        values = tuple(first.tolist())
    return Operand(
        name,
        view.buffer.name,
        view.buffer.memory.value,
        str(view.dtype),
        view.sizes,
        values,
    )
