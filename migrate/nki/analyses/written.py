"""Which elements of the kernel's own tensors were written, element by element.

Reading memory that nothing wrote gives whatever was there, and NKI's simulator fills it with NaN.
Elements that a mask may leave out, or whose place is read from memory, count as written: nothing
is said about them.  What is read so is followed (`spread`): the spare rows of a last tile may be
computed with, as long as nothing of them is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from migrate.nki.analyses import Base
from migrate.nki.analyses.spread import spread
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

_KEEPING = frozenset({"nc_matmul", "nc_matmul_mx", "tensor_copy_predicated", "nc_stream_shuffle"})
"""What may leave something of the destination as it was."""

_MOST_PLACES = 255
"""Places whose elements are followed; what others read counts as used."""

_Window = tuple[int, tuple[int, ...], tuple[int, ...]]


@dataclass(slots=True)
class _Tensor:
    buffer: Buffer
    written: Array
    whole: bool = False
    """Whether all of it was written, as far as can be told."""
    known: set[_Window] = field(default_factory=set)
    """Windows that are wholly written, with values of written elements."""
    marks: Array | None = None
    """By element, the number of the place that read what nothing wrote, if it is made of that."""


class Written(Base):
    """Codes `unwritten-read`, at the instruction (`unwritten-unused` where no result is made of
    what was read), and `unwritten-output`, at the allocation.
    """

    codes = frozenset({"unwritten-read", "unwritten-unused", "unwritten-output"})

    def __init__(self, target: str, guessed: frozenset[str] = frozenset()) -> None:
        super().__init__(target, guessed)
        self._tensors: dict[int, _Tensor] = {}
        self._bytes = 0
        self._touched = 0
        self._lost = False
        self._stored = False
        """Whether an instruction writes to a parameter."""
        self._found: dict[tuple[int, str], Problem] = {}
        self._places: dict[tuple[int, str], int] = {}
        """The number of each problem's place."""
        self._used: set[int] = set()
        """Numbers of places whose elements reach a result, or go where they are not followed."""
        self._with: dict[int, set[int]] = {}
        """Numbers whose elements went on under another number."""

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
        written: list[tuple[str, View]] = []
        marked: dict[str, Array] = {}
        for name, operand in instruction.operands:
            if not isinstance(operand, View):
                continue
            parameter = spec.parameter(name) if spec is not None else None
            role = parameter.role if parameter is not None else "inout"
            if role in ("out", "inout"):
                written.append((name, operand))
                self._stored = self._stored or operand.buffer.role == "parameter"
                if instruction.attribute("accumulate") is not True:
                    continue
            elif instruction.opcode in _PARTLY:
                continue
            if not self._lost:
                marks = self._read(name, operand, instruction)
                if marks is not None:
                    marked[name] = marks
        if self._lost:
            return
        made = spread(instruction, marked) if marked else {}
        if made is None:
            made = {}
            for marks in marked.values():
                self._use(marks)
        elif made:
            self._join(marked, made)
        for name, view in written:
            self._write(view, made.get(name), instruction)
        if spec is None and not written:
            # What was not understood may have written to anything.
            for tensor in self._tensors.values():
                tensor.whole = True

    def _read(self, name: str, view: View, instruction: Instruction) -> Array | None:
        """The marks of what is read, if it has any."""
        tensor = self._tensors.get(view.buffer.ordinal)
        if tensor is None or tensor.whole:
            return None
        if not _plain(view):
            self._use(tensor.marks)
            return None
        window = (view.offset, view.sizes, view.strides)
        if window in tensor.known:
            return None
        self._touched += view.elements
        if self._touched > MOST_TOUCHED:
            self._give_up()
            return None
        there = _window(tensor.written, view)
        if not bool(there.all()) and instruction.mask is None:
            self._tell(tensor, view, name, instruction)
        marks = None if tensor.marks is None else _window(tensor.marks, view)
        if marks is not None and bool(marks.any()):
            return marks
        if instruction.mask is None:
            tensor.known.add(window)
        return None

    def _tell(self, tensor: _Tensor, view: View, name: str, instruction: Instruction) -> None:
        """Elements that nothing wrote, read by `instruction`: told once, and marked."""
        import numpy as np

        missing = ~_window(tensor.written, view)
        key = (instruction.site.key, name)
        if key not in self._found:
            count = int(missing.sum())
            first = tuple(int(axis[0]) for axis in missing.nonzero())
            self._found[key] = Problem(
                "unwritten-read",
                f"{instruction.opcode}: {count:,} of the {missing.size:,} elements of {name} are"
                f" read before anything wrote them, the first at {_shown(first)} of the tile",
                instruction.span,
                name,
                numbers=(("missing", count), ("elements", missing.size)),
                sources=(view.buffer.site.span,),
            )
            self._places[key] = min(len(self._places) + 1, _MOST_PLACES)
        if tensor.marks is None:
            tensor.marks = np.zeros(tensor.buffer.elements, np.uint8)
        _window(tensor.marks, view)[missing] = self._places[key]
        _window(tensor.written, view)[...] = True

    def _use(self, marks: Array | None) -> None:
        import numpy as np

        if marks is not None:
            self._used.update(np.unique(marks).tolist())

    def _join(self, read: Mapping[str, Array], made: Mapping[str, Array]) -> None:
        """Elements made of several are marked as the last of them: it stands for all."""
        import numpy as np

        numbers = {number for marks in read.values() for number in np.unique(marks).tolist()}
        left = {number for marks in made.values() for number in np.unique(marks).tolist()}
        for number in numbers - {0}:
            if numbers - {0, number}:
                self._with.setdefault(number, set()).update(left - {0})

    def _write(self, view: View, marks: Array | None, instruction: Instruction) -> None:
        tensor = self._tensors.get(view.buffer.ordinal)
        if tensor is None or tensor.whole:
            self._use(marks)
            return
        if not _plain(view):
            tensor.whole = True
            self._use(marks)
            self._use(tensor.marks)
            return
        self._touched += view.elements
        if self._touched > MOST_TOUCHED:
            self._give_up()
            return
        _window(tensor.written, view)[...] = True
        self._mark(tensor, view, marks, instruction)

    @staticmethod
    def _mark(tensor: _Tensor, view: View, marks: Array | None, instruction: Instruction) -> None:
        import numpy as np

        if tensor.marks is None:
            if marks is None:
                return
            tensor.marks = np.zeros(tensor.buffer.elements, np.uint8)
        there = _window(tensor.marks, view)
        if marks is not None:
            tensor.known.clear()
        if instruction.opcode not in _KEEPING and instruction.mask is None:
            there[...] = 0 if marks is None else marks
        elif marks is not None:
            there[...] = np.maximum(there, marks)

    def problems(self, found: Specialization) -> Iterator[Problem]:
        if not found.complete or self._lost:
            return
        for view in found.returned:
            tensor = self._tensors.get(view.buffer.ordinal)
            if tensor is not None and tensor.marks is not None:
                self._use(_window(tensor.marks, view) if _plain(view) else tensor.marks)
        used = self._reached()
        for key, problem in self._found.items():
            if found.legacy and self._excused(problem):
                continue
            unused = self._places[key] not in used | {_MOST_PLACES}
            yield (
                replace(
                    problem,
                    code="unwritten-unused",
                    message=f"{problem.message}; no result is made of them",
                )
                if unused
                else problem
            )
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

    def _reached(self) -> set[int]:
        """The numbers that are used, under their own or another's name."""
        used, before = set(self._used), -1
        while len(used) != before:
            before = len(used)
            used |= {number for number, others in self._with.items() if others & used}
        return used

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
