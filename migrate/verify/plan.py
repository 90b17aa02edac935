"""Which runs are made: a fixed order, so that equal cases give equal results."""

from __future__ import annotations

from collections.abc import Iterator

from migrate.results import Inputs

MOST_RUNS = 12

FAMILIES = ("normal", "int", "uniform")


def plan(positions: int, *, every: bool = False) -> Iterator[tuple[int, Inputs]]:
    """The position of the sizes and the inputs of each run.

    Every position once with the first family, then the next family, at most `MOST_RUNS`;
    with `every`, all of them with two seeds.
    """
    made = 0
    for seed in (0, 1) if every else (0,):
        for family in FAMILIES:
            for position in range(positions):
                if made >= MOST_RUNS and not every:
                    return
                made += 1
                yield position, Inputs(family=family, seed=seed)
