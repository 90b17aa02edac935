"""How well matrix products use the tensor engine.

It has 128 by 128 cells: the stationary operand is loaded into them, and the columns of the moving
one go through, up to 512 of them with one load (nki/api/nki.language.tile_size.rst).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.facts.hardware import target as facts_of
from migrate.nki.analyses import Base
from migrate.nki.values import Problem
from migrate.numerics.dtypes import DType

if TYPE_CHECKING:
    from migrate.nki.frames import Instruction
    from migrate.nki.specialize import Specialization
    from migrate.nki.values import Site, View

MANY = 32
"""Products at one place before their shape is told."""

SHORT = 4
"""The moving operand is short when this many times its columns would fit."""


@dataclass(slots=True)
class _Products:
    """The products of one place."""

    site: Site
    stationary: str
    moving: str
    count: int = 0
    work: int = 0
    """Multiplications."""
    open: bool = False
    """Whether the columns are a matter of sizes that were guessed."""
    columns: int = 0
    """Most columns of a moving operand."""
    wide: bool = False
    """Whether the moving tensor has more columns than are moved."""
    same: int = 0
    """Products with the stationary operand of the one before."""
    last: tuple[object, ...] = ()
    full: bool = False
    """Whether operands are 32 bits wide."""


class Matmuls(Base):
    """Codes `short-moving` and `wide-matmul`, at the product."""

    codes = frozenset({"short-moving", "wide-matmul"})

    def __init__(self, target: str, guessed: frozenset[str] = frozenset()) -> None:
        super().__init__(target, guessed)
        self._places: dict[int, _Products] = {}

    def execute(self, instruction: Instruction) -> None:
        if instruction.opcode != "nc_matmul" or instruction.attribute("is_transpose") is True:
            return
        left, right = instruction.view("stationary"), instruction.view("moving")
        if left is None or right is None or not left.shape or not right.shape:
            return
        place = self._places.get(instruction.site.key)
        if place is None:
            place = self._places[instruction.site.key] = _Products(
                instruction.site, left.buffer.name, right.buffer.name
            )
        columns = right.free_elements
        place.open = place.open or self.open(*right.shape[1:])
        place.count += 1
        place.work += left.sizes[0] * left.free_elements * columns
        place.columns = max(place.columns, columns)
        place.wide = place.wide or _free(right) > columns
        window = (left.buffer.ordinal, left.offset, left.sizes, left.strides)
        place.same += left.strided and window == place.last
        place.last = window
        place.full = place.full or DType.FLOAT32 in (left.dtype, right.dtype)

    def problems(self, found: Specialization) -> Iterator[Problem]:
        facts = facts_of(self.target)
        most = facts.matmul_moving_free.value
        for place in self._places.values():
            if place.count < MANY:
                continue
            short = place.columns * SHORT <= most and place.wide and not place.open
            if short and place.same >= place.count // 2:
                yield Problem(
                    "short-moving",
                    f"{place.count:,} products move {place.columns} columns of {place.moving}"
                    f" through a stationary operand that stays the same; {most} fit",
                    place.site.span,
                    numbers=(("products", place.count), ("columns", place.columns)),
                )
            if place.full and DType.FLOAT32.value not in self.guessed and place.work >= _MUCH_WORK:
                ratio = facts.peak["bfloat16"].value / facts.peak["float32"].value
                yield Problem(
                    "wide-matmul",
                    f"{place.count:,} products of float32 operands: the tensor engine's peak is"
                    f" {ratio:.0f} times higher for bfloat16",
                    place.site.span,
                    numbers=(("products", place.count),),
                )


_MUCH_WORK = 1 << 26
"""Multiplications that make a kernel's time worth a word: 512 x 512 x 256."""


def _free(view: View) -> int:
    """Elements a partition of a whole tile."""
    rows = int(view.buffer.shape[view.buffer.partition].value)
    return view.buffer.elements // max(rows, 1)
