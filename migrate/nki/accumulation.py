"""Which matmuls add to what is in PSUM.

`accumulate=None` overwrites what no matmul wrote since the allocation and adds to what
one did (nki.isa.nc_matmul, NKI 0.3).  The documentation leaves open what a matmul does to
a sum that was read in between and not reset: "subsequent writes accumulate" says that it
goes on, hardware may start anew.  Here it goes on, and `ambiguous` says where.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from migrate.nki.frames import Instruction
from migrate.nki.instructions import INSTRUCTIONS
from migrate.nki.values import Buffer, View

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Flags: TypeAlias = NDArray[Any]

Region: TypeAlias = tuple[int, tuple[int, ...], tuple[int, ...]]

ADDS, OVERWRITES, UNDECIDED, EITHER = 1, 0, -1, 2
"""What a matmul does to its destination; `EITHER` where that has no elements."""

MAX_FOLLOWED = 1 << 22
"""Elements of a tensor that are followed one by one; all of PSUM has 2^19."""


@dataclass(slots=True, eq=False)
class _Elements:
    """What happened to each element of one tensor, flat in row-major order.

    `settled` are regions that a matmul wrote whole and nothing read since.
    """

    summed: Flags
    read: Flags
    settled: set[Region] = field(default_factory=set)


class Accumulation:
    """Follows the instructions of a stream."""

    def __init__(self) -> None:
        self._followed: weakref.WeakKeyDictionary[Buffer, _Elements] = weakref.WeakKeyDictionary()
        self._lost: weakref.WeakSet[Buffer] = weakref.WeakSet()
        """Tensors of which it is not known what matmuls wrote."""
        self.ambiguous: dict[int, Instruction] = {}
        """For every site that goes on with a sum that was read, one such instruction."""

    def adds(self, instruction: Instruction) -> int:
        """What the instruction does, after noting what it reads and writes."""
        matmul = instruction.opcode == "nc_matmul"
        if self._followed:
            self._note(instruction, matmul)
        if not matmul:
            return OVERWRITES
        view = instruction.view("dst")
        if view is None:
            return UNDECIDED
        if view.elements == 0:
            return EITHER
        flag = instruction.attribute("accumulate")
        if instruction.attribute("is_transpose") is True:
            flag = False
        elements = self._of(view)
        if elements is None:
            # It may have written anywhere in the tensor.
            self._lost.add(view.buffer)
            return _stated(flag)
        region = (view.offset, view.strides, view.sizes)
        if region in elements.settled:
            return OVERWRITES if flag is False else ADDS
        summed, read = _window(elements.summed, view), _window(elements.read, view)
        result = _stated(flag)
        if result == UNDECIDED:
            if bool(summed.all()):
                result = ADDS
            elif not bool(summed.any()):
                result = OVERWRITES
            if bool((summed & read).any()):
                self.ambiguous.setdefault(instruction.site.key, instruction)
        if result == OVERWRITES:
            read[...] = False
        summed[...] = True
        if not bool(read.any()):
            elements.settled.add(region)
        return result

    def _of(self, view: View) -> _Elements | None:
        """The elements of a view's tensor; `None` where they cannot be followed."""
        count = view.buffer.elements
        if count > MAX_FOLLOWED or not _inside(view) or view.buffer in self._lost:
            return None
        found = self._followed.get(view.buffer)
        if found is None:
            found = _Elements(np.zeros(count, bool), np.zeros(count, bool))
            self._followed[view.buffer] = found
        return found

    def _note(self, instruction: Instruction, matmul: bool) -> None:
        """Reads of sums; a store by anything but a matmul makes them unread again."""
        spec = INSTRUCTIONS.get(instruction.opcode)
        written: list[View] = []
        for name, operand in instruction.operands:
            if not isinstance(operand, View):
                continue
            elements = self._followed.get(operand.buffer)
            if elements is None or not _inside(operand):
                continue
            parameter = spec.parameter(name) if spec is not None else None
            if parameter is not None and parameter.role != "in":
                written.append(operand)
                continue
            _window(elements.read, operand)[...] = True
            elements.settled.clear()
        if not matmul:
            for view in written:
                _window(self._followed[view.buffer].read, view)[...] = False


def _stated(flag: object) -> int:
    if isinstance(flag, bool):
        return ADDS if flag else OVERWRITES
    return UNDECIDED


def _inside(view: View) -> bool:
    """Whether every element of a view is one of its tensor."""
    if view.faults and any(fault.code == "out-of-bounds" for fault in view.faults):
        return False
    if not view.strided or view.dtype.bytes != view.buffer.dtype.bytes:
        return False
    low = high = view.offset
    for count, stride in zip(view.sizes, view.strides, strict=True):
        reach = stride * (count - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return view.elements > 0 and low >= 0 and high < view.buffer.elements


def _window(flags: Flags, view: View) -> Flags:
    """The flags of a view's elements, sharing memory; the view must be `_inside` its tensor."""
    strides = tuple(stride * flags.itemsize for stride in view.strides)
    return as_strided(flags[view.offset :], view.sizes, strides)
