"""Scrambling and its inverse; notes about hashes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.ir.hashing import Bijection, Noted, Places

WORDS = st.integers(0, 2**64 - 1)


@pytest.mark.parametrize("bits", [63, 64])
@given(st.lists(WORDS, min_size=1, max_size=20))
def test_a_bijection_has_an_inverse(bits, words):
    values = np.array(words, np.uint64) & np.uint64(2**bits - 1)
    scrambled = Bijection("any", bits)(values)
    assert (scrambled < 2**bits).all()
    assert Bijection("any", bits).inverse(scrambled).tolist() == values.tolist()
    assert not (Bijection("other", bits)(values) == scrambled).all()


@given(st.lists(st.lists(st.tuples(st.integers(0, 40), st.floats(0, 9)), max_size=30), max_size=9))
def test_notes_are_a_dictionary_whose_first_entries_stay(rounds):
    noted, wanted = Noted(), {}
    for pairs in rounds:
        ids = np.array([key for key, _ in pairs], np.uint64)
        new, _ = noted.note(ids, np.array([number for _, number in pairs]))
        assert set(new.tolist()) == {key for key, _ in pairs} - wanted.keys()
        for key, number in pairs:
            wanted.setdefault(key, number)
        every = np.arange(41, dtype=np.uint64).reshape(1, 41)
        known = noted.known(every)
        found = [] if known is None else every[known].tolist()
        assert found == sorted(wanted)
        assert noted.size == len(wanted)
        if found:
            (numbers,) = noted.rows(every[known])
            assert numbers.tolist() == [wanted[key] for key in found]


def test_many_notes_stay_findable():
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 2**63, 100_000).astype(np.uint64)
    noted = Noted()
    for part in np.array_split(ids, 100):
        noted.note(part, part.view(np.int64))
    (numbers,) = noted.rows(ids)
    assert np.array_equal(numbers, ids.view(np.int64))
    assert noted.known(ids + np.uint64(1)) is None or not noted.known(ids + np.uint64(1)).all()


@given(st.lists(WORDS, min_size=1, unique=True), st.data())
def test_hashes_are_found_in_a_sorted_list(words, data):
    words = sorted(words)
    wanted = data.draw(st.lists(st.integers(0, len(words) - 1)))
    places = Places(np.array(words, np.uint64))
    assert places.of(np.array([words[n] for n in wanted], np.uint64)).tolist() == wanted
