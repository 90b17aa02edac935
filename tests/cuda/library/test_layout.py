"""The layouts of matrix registers against the tables of the PTX ISA."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from migrate.cuda.library.layout import Role, layout
from migrate.cuda.types import DOUBLE, FLOAT, HALF, SIGNED_CHAR, Scalar

# PTX ISA, "Matrix Fragments for mma.*": row and column of element i of lane l, as written there
# with groupID = l >> 2 and threadID_in_group = l % 4.
Place = Callable[[int, int, int], tuple[int, int]]

TABLES: list[tuple[Role, tuple[int, int, int], Scalar, int, Place]] = [
    (
        "a", (16, 8, 16), HALF, 8,
        lambda g, t, i: (
            g + (8 if i in (2, 3, 6, 7) else 0), t * 2 + (i & 1) + (8 if i >= 4 else 0)
        ),
    ),
    ("b", (16, 8, 16), HALF, 4, lambda g, t, i: (t * 2 + (i & 1) + (8 if i >= 2 else 0), g)),
    ("c", (16, 8, 16), HALF, 4, lambda g, t, i: (g + (8 if i >= 2 else 0), t * 2 + (i & 1))),
    ("a", (16, 8, 8), HALF, 4, lambda g, t, i: (g + (8 if i >= 2 else 0), t * 2 + (i & 1))),
    ("b", (16, 8, 8), HALF, 2, lambda g, t, i: (t * 2 + i, g)),
    ("a", (16, 8, 8), FLOAT, 4, lambda g, t, i: (g + 8 * (i % 2), t + 4 * (i // 2))),
    ("b", (16, 8, 8), FLOAT, 2, lambda g, t, i: (t + 4 * i, g)),
    ("a", (16, 8, 4), FLOAT, 2, lambda g, t, i: (g + 8 * i, t)),
    (
        "a", (16, 8, 32), SIGNED_CHAR, 16,
        lambda g, t, i: (
            g if 0 <= i < 4 or 8 <= i < 12 else g + 8, t * 4 + (i & 3) + (16 if i >= 8 else 0)
        ),
    ),
    (
        "b", (16, 8, 32), SIGNED_CHAR, 8,
        lambda g, t, i: (t * 4 + (i & 3) + (16 if i >= 4 else 0), g),
    ),
    ("a", (8, 8, 4), DOUBLE, 1, lambda g, t, i: (g, t)),
    ("c", (8, 8, 4), DOUBLE, 2, lambda g, t, i: (g, t * 2 + (i & 1))),
]  # fmt: skip


@pytest.mark.parametrize(("role", "shape", "element", "count", "place"), TABLES)
def test_elements_are_where_the_isa_says(
    role: Role, shape: tuple[int, int, int], element: Scalar, count: int, place: Place
) -> None:
    made = layout(role, shape, element)
    assert made.elements == count
    for lane in range(32):
        for position in range(count):
            assert made.place(lane, position) == place(lane >> 2, lane % 4, position)


@pytest.mark.parametrize("role", ["a", "b", "c"])
@pytest.mark.parametrize("shape", [(16, 16, 16), (32, 8, 16), (8, 32, 16)])
def test_lane_and_position_are_the_inverse(role: Role, shape: tuple[int, int, int]) -> None:
    made = layout(role, shape, HALF)
    seen = set()
    for lane in range(32):
        for position in range(made.elements):
            row, column = made.place(lane, position)
            assert (made.lane(row, column), made.position(row, column)) == (lane, position)
            seen.add((row, column))
    assert len(seen) == 32 * made.elements
