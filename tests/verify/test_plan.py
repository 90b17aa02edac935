"""The runs that are made: a fixed order, every position before another family."""

from __future__ import annotations

import pytest

from migrate.verify.plan import FAMILIES, MOST_RUNS, plan


def test_every_position_comes_before_another_family() -> None:
    made = [(position, inputs.family) for position, inputs in plan(2)]
    assert made == [(p, family) for family in FAMILIES for p in (0, 1)]


@pytest.mark.parametrize("positions", [1, 3, 4, 5, 40])
def test_there_are_at_most_so_many(positions: int) -> None:
    made = list(plan(positions))
    assert len(made) == min(positions * len(FAMILIES), MOST_RUNS)
    assert len({(p, i.family, i.seed) for p, i in made}) == len(made)


def test_all_of_them_with_two_seeds() -> None:
    made = list(plan(5, every=True))
    assert len(made) == 5 * len(FAMILIES) * 2
    assert {inputs.seed for _, inputs in made} == {0, 1}
    assert made[: len(made) // 2] == [(p, i) for p, i in made if i.seed == 0]


def test_the_order_is_fixed() -> None:
    assert list(plan(7)) == list(plan(7))


def test_nothing_to_run() -> None:
    assert list(plan(0)) == []
