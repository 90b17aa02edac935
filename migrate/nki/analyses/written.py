"""Which elements of the kernel's own tensors were written, element by element.

Reading memory that nothing wrote gives whatever was there, and NKI's simulator fills it with NaN.
Elements that a mask may leave out, or whose place is read from memory, count as written: nothing
is said about them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from migrate.nki.analyses import Base
from migrate.nki.instructions import INSTRUCTIONS
from migrate.nki.values import Problem, View

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from migrate.nki.frames import Instruction
    from migrate.nki.specialize import Specialization
    from migrate.nki.values import Buffer

    Array: TypeAlias = NDArray[Any]

MOST_BYTES = 1 << 27
"""Tensors that are followed, one byte an element."""

MOST_TOUCHED = 1 << 30
"""Elements looked at before the analysis gives up."""

_PARTLY = frozenset({"core_barrier", "nonzero_with_count"})
"""A barrier reads nothing of the tensor that it orders, and the search for what is not zero reads
one partition in 16 (nki/api/nki/isa/__init__.py).
"""

_Window = tuple[int, tuple[int, ...], tuple[int, ...]]


@dataclass(slots=True)
class _Tensor:
    buffer: Buffer
    written: Array
    whole: bool = False
    """Whether all of it was written, as far as can be told."""
    known: set[_Window] = field(default_factory=set)
    """Windows that are wholly written."""


class Written(Base):
    """Codes `unwritten-read`, at the instruction, and `unwritten-output`, at the allocation."""

    codes = frozenset({"unwritten-read", "unwritten-output"})

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self._tensors: dict[int, _Tensor] = {}
        self._bytes = 0
        self._touched = 0
        self._lost = False
        self._stored = False
        """Whether an instruction writes to a parameter."""
        self._found: dict[tuple[int, str], Problem] = {}

    def allocated(self, buffer: Buffer) -> None:
        if buffer.role == "parameter" or self._lost:
            return
        import numpy as np

        self._bytes += buffer.elements
        if self._bytes > MOST_BYTES:
            self._give_up()
            return
        self._tensors[buffer.ordinal] = _Tensor(buffer, np.zeros(buffer.elements, bool))

    def _give_up(self) -> None:
        self._lost = True
        self._tensors.clear()
        self._found.clear()

    def execute(self, instruction: Instruction) -> None:
        spec = INSTRUCTIONS.get(instruction.opcode)
        written: list[View] = []
        for name, operand in instruction.operands:
            if not isinstance(operand, View):
                continue
            parameter = spec.parameter(name) if spec is not None else None
            role = parameter.role if parameter is not None else "inout"
            if role in ("out", "inout"):
                written.append(operand)
                self._stored = self._stored or operand.buffer.role == "parameter"
                adds = instruction.attribute("accumulate") is True
                if adds and not self._lost and instruction.mask is None:
                    self._read(name, operand, instruction)
            elif instruction.opcode in _PARTLY:
                continue
            elif not self._lost and instruction.mask is None:
                self._read(name, operand, instruction)
        if self._lost:
            return
        for view in written:
            self._write(view)
        if spec is None and not written:
            # What was not understood may have written to anything.
            for tensor in self._tensors.values():
                tensor.whole = True

    def _read(self, name: str, view: View, instruction: Instruction) -> None:
        tensor = self._tensors.get(view.buffer.ordinal)
        if tensor is None or tensor.whole or not _plain(view):
            return
        window = (view.offset, view.sizes, view.strides)
        if window in tensor.known:
            return
        self._touched += view.elements
        if self._touched > MOST_TOUCHED:
            self._give_up()
            return
        there = _window(tensor.written, view)
        if bool(there.all()):
            tensor.known.add(window)
            return
        key = (instruction.site.key, name)
        if key not in self._found:
            missing = there.size - int(there.sum())
            first = tuple(int(axis[0]) for axis in (~there).nonzero())
            self._found[key] = Problem(
                "unwritten-read",
                f"{instruction.opcode}: {missing:,} of the {there.size:,} elements of {name} are"
                f" read before anything wrote them, the first at {_shown(first)} of the tile",
                instruction.span,
                name,
                numbers=(("missing", missing), ("elements", there.size)),
                sources=(view.buffer.site.span,),
            )
        # Told once: what follows from it is no other fault.
        tensor.whole = True

    def _write(self, view: View) -> None:
        tensor = self._tensors.get(view.buffer.ordinal)
        if tensor is None or tensor.whole:
            return
        if not _plain(view):
            tensor.whole = True
            return
        self._touched += view.elements
        if self._touched > MOST_TOUCHED:
            self._give_up()
            return
        _window(tensor.written, view)[...] = True

    def problems(self, found: Specialization) -> Iterator[Problem]:
        if not found.complete or self._lost:
            return
        for problem in self._found.values():
            if not (found.legacy and self._excused(problem)):
                yield problem
        for view in found.returned:
            tensor = self._tensors.get(view.buffer.ordinal)
            if tensor is None or tensor.whole or not _plain(view):
                continue
            there = _window(tensor.written, view)
            missing = there.size - int(there.sum())
            if missing:
                first = tuple(int(axis[0]) for axis in (~there).nonzero())
                every = "none" if missing == there.size else f"{there.size - missing:,}"
                yield Problem(
                    "unwritten-output",
                    f"{every} of the {there.size:,} elements of the result {view.buffer.name} are"
                    f" written; the first that is not is {_shown(first)}",
                    view.buffer.site.span,
                    numbers=(("missing", missing), ("elements", there.size)),
                )
        if not found.returned and not self._stored and found.instructions:
            yield Problem(
                "unwritten-output",
                "the kernel returns nothing and writes to none of its parameters",
                found.kernel.span,
            )

    @staticmethod
    def _excused(problem: Problem) -> bool:
        """Whether NKI 0.1 may mean what it reads: `+=` of a product begins the sum itself, and
        what a mask kept from being loaded is computed with, until a mask leaves it out again.
        """
        figures = dict(problem.numbers)
        return problem.operand == "dst" or figures["missing"] < figures["elements"]


def _plain(view: View) -> bool:
    """Whether strides say where every element is, within the tensor and in its own format."""
    return view.strided and not view.faults and view.dtype is view.buffer.dtype


def _window(flat: Array, view: View) -> Array:
    from numpy.lib.stride_tricks import as_strided

    return as_strided(flat[view.offset :], view.sizes, view.strides)


def _shown(place: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, place))})"
