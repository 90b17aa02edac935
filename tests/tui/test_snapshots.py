"""What the review looks like.  `pytest --snapshot-update` accepts a change."""

import pytest

from migrate.tui.app import ReviewApp
from tests.tui.pairs import review

SIZES = [(80, 24), (120, 40), (200, 60)]


@pytest.fixture(autouse=True)
def _colours(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_a_finding(snap_compare, size):
    assert snap_compare(ReviewApp(review()), press=["n"], terminal_size=size)


def test_in_light_colours(snap_compare):
    assert snap_compare(ReviewApp(review(), light=True), press=["n"], terminal_size=(110, 30))


def test_the_overview(snap_compare):
    assert snap_compare(ReviewApp(review()), terminal_size=(80, 24))


def test_list_and_detail_on_a_narrow_screen(snap_compare):
    assert snap_compare(ReviewApp(review()), press=["j", "j", "j"], terminal_size=(70, 24))


def test_the_help(snap_compare):
    assert snap_compare(ReviewApp(review()), press=["question_mark"], terminal_size=(80, 24))


def test_the_choice_of_verdicts(snap_compare):
    assert snap_compare(ReviewApp(review()), press=["f", "p"], terminal_size=(80, 24))


def test_without_colours(snap_compare, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(ReviewApp(review()), press=["n"], terminal_size=(110, 30))
