"""Which element of a warp's matrix sits in which register of which lane.

For the `mma` instructions of PTX (PTX ISA, "Matrix Fragments for mma.m16n8k16" and its
neighbours) one scheme fits all the shapes that are read here.  A matrix is cut into tiles of 8 rows
by 4 `width` columns; in a tile, lane l holds `width` neighbours of row l / 4 from column
(l % 4) `width` on.  `width` is what fits in 32 bits: 2 halves, 1 float, 4 bytes (1 double, too); of
accumulators it is 2.  Tiles follow each other down the rows first.  `b` is stored by its columns.

Of `wmma::fragment` NVIDIA leaves the layout open; ours is this one.  What a program may do with a
fragment does not depend on it (`wmma` refuses the rest).

The functions take and give anything with `+ * // %`, so that a lifter can pass its index
expressions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from migrate.cuda.types import Scalar

Role = Literal["a", "b", "c"]
"""`c` is an accumulator: what is added to, and the result."""


@dataclass(frozen=True, slots=True)
class Layout:
    """`rows` and `columns` of the matrix as stored; `transposed`: rows are the columns of `b`."""

    rows: int
    columns: int
    width: int
    transposed: bool = False

    @property
    def elements(self) -> int:
        """How many elements a lane holds."""
        return self.rows * self.columns // 32

    def lane(self, row: Any, column: Any) -> Any:
        """The lane that holds an element of the matrix."""
        row, column = self._stored(row, column)
        return row % 8 * 4 + column % (4 * self.width) // self.width

    def position(self, row: Any, column: Any) -> Any:
        """Which of its lane's elements an element of the matrix is."""
        row, column = self._stored(row, column)
        tile = row // 8 + self.rows // 8 * (column // (4 * self.width))
        return column % self.width + self.width * tile

    def place(self, lane: Any, position: Any) -> tuple[Any, Any]:
        """Row and column, in the matrix, of a lane's element."""
        tile = position // self.width
        down = self.rows // 8
        row = lane // 4 + tile % down * 8
        column = lane % 4 * self.width + position % self.width + tile // down * (4 * self.width)
        return (column, row) if self.transposed else (row, column)

    def _stored(self, row: Any, column: Any) -> tuple[Any, Any]:
        return (column, row) if self.transposed else (row, column)


def layout(role: Role, shape: tuple[int, int, int], element: Scalar) -> Layout:
    """The layout of an operand of an m x n x k product whose elements are of a type."""
    m, n, k = shape
    packed = max(4 // element.size, 1)
    match role:
        case "a":
            return Layout(m, k, packed)
        case "b":
            return Layout(n, k, packed, transposed=True)
        case "c":
            return Layout(m, n, 2)


def sound(shape: tuple[int, int, int], element: Scalar) -> bool:
    """Whether the scheme covers a shape."""
    made = (layout("a", shape, element), layout("b", shape, element), layout("c", shape, element))
    return all(one.rows % 8 == 0 and one.columns % (4 * one.width) == 0 for one in made)
