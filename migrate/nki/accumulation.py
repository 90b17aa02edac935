"""Which matmuls add to what is in PSUM.

`accumulate=None` overwrites what no matmul wrote since the allocation and adds to what
one did (nki.isa.nc_matmul, NKI 0.3).  Regions are compared as boxes; one that covers
another in part is left undecided.
"""

from __future__ import annotations

import weakref
from typing import TypeAlias

from migrate.nki.frames import Instruction
from migrate.nki.values import Buffer, View

Region: TypeAlias = tuple[int, tuple[int, ...], tuple[int, ...]]

ADDS, OVERWRITES, UNDECIDED = 1, 0, -1


class Accumulation:
    """Follows the matmuls of a stream."""

    def __init__(self) -> None:
        self._written: weakref.WeakKeyDictionary[Buffer, dict[Region, View]] = (
            weakref.WeakKeyDictionary()
        )

    def adds(self, instruction: Instruction) -> int:
        """`ADDS`, `OVERWRITES` or `UNDECIDED`; notes the instruction's destination."""
        if instruction.opcode != "nc_matmul":
            return OVERWRITES
        view = instruction.view("dst")
        if view is None:
            return UNDECIDED
        regions = self._written.setdefault(view.buffer, {})
        region = (view.offset, view.strides, view.sizes)
        flag = instruction.attribute("accumulate")
        if instruction.attribute("is_transpose") is True:
            flag = False
        known = region in regions
        if isinstance(flag, bool):
            result = ADDS if flag else OVERWRITES
        elif known:
            result = ADDS
        elif any(_overlap(view, other) for other in regions.values()):
            result = UNDECIDED
        else:
            result = OVERWRITES
        regions[region] = view
        return result


def _overlap(left: View, right: View) -> bool:
    """Whether the bounding boxes of two views of one buffer meet."""
    if len(left.base) != len(right.base):
        return True
    for a, b in zip(left.index, right.index, strict=True):
        low_a, high_a = _extent(left, a.start.value, a.terms)
        low_b, high_b = _extent(right, b.start.value, b.terms)
        if high_a < low_b or high_b < low_a:
            return False
    return True


def _extent(view: View, start: object, terms: object) -> tuple[int, int]:
    assert isinstance(start, int)
    assert isinstance(terms, tuple)
    low = high = start
    for axis, step in terms:
        reach = int(step.value) * (view.sizes[axis] - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high
