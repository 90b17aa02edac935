"""How much two kernels compute the same thing at all."""

import math

import pytest

from migrate.score.correspondence import correspondence
from tests import examples


def made(kind, verdict, **changes):
    return examples.construct(kind=kind, verdict=verdict, **changes)


def test_the_outputs_decide_where_there_are_any():
    missing = made("contraction", "missing", nki=())
    assert correspondence(alike=[1.0, 0.5], constructs=[missing]) == 0.75
    assert correspondence(alike=[math.nan, 0.5], constructs=[missing]) == 0.5


def test_nothing_known_is_zero():
    assert correspondence(alike=[], constructs=[]) == 0.0


@pytest.mark.parametrize(
    ("constructs", "share"),
    [
        ([made("contraction", "matched")], 1.0),
        ([made("contraction", "transformed"), made("elementwise", "matched")], 1.0),
        ([made("contraction", "mismapped")], 0.5),
        ([made("contraction", "unknown")], 0.5),
        ([made("contraction", "missing", nki=())], 0.0),
        # A partner counts for both sides: 2 * 10 of 2 * 10 + 5.
        ([made("contraction", "matched"), made("elementwise", "extra", cuda=())], 0.8),
        # Tiles, loads and right absences are no likeness.
        ([made("tile-axis", "matched"), made("stage-in", "matched")], 0.0),
        ([made("contraction", "matched"), made("atomic", "not-needed", nki=())], 1.0),
    ],
)
def test_constructs_stand_in_by_kind(constructs, share):
    assert correspondence(alike=[], constructs=constructs) == share
    assert correspondence(alike=[], constructs=constructs[::-1]) == share


def test_the_order_changes_nothing_and_the_range_is_kept():
    alike = [0.1, 0.2, 0.3, 0.7, 1e-17]
    assert correspondence(alike=alike, constructs=[]) == correspondence(
        alike=alike[::-1], constructs=[]
    )
    assert correspondence(alike=[1.0000001], constructs=[]) == 1.0
