"""64-bit hashes and bijections: the arithmetic behind canonical terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[np.uint64]

_WORD = 1 << 64
_SEEDS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def mix(value: int) -> int:
    """A hash of one number (splitmix64's finaliser)."""
    value = (value + _SEEDS[0]) % _WORD
    value = (value ^ value >> 30) * _SEEDS[1] % _WORD
    value = (value ^ value >> 27) * _SEEDS[2] % _WORD
    return value ^ value >> 31


def salt(text: str) -> int:
    """A hash of a text."""
    value = 0
    for byte in text.encode():
        value = mix(value ^ byte)
    return value


def scramble(values: Ids) -> Ids:
    """`mix` of each number."""
    with np.errstate(over="ignore"):
        values = values + np.uint64(_SEEDS[0])
        values = (values ^ values >> np.uint64(30)) * np.uint64(_SEEDS[1])
        values = (values ^ values >> np.uint64(27)) * np.uint64(_SEEDS[2])
        return values ^ values >> np.uint64(31)


class Bijection:
    """An invertible scrambling of 64-bit numbers: add, then multiply and fold the halves.

    The addition keeps 0, which the rest maps to itself, from being the same element in
    every bijection.
    """

    def __init__(self, name: str) -> None:
        factors = [salt(f"{name}/{position}") | 1 for position in range(3)]
        self._forward = tuple(np.uint64(f) for f in factors)
        self._start = np.uint64(salt(f"{name}/start"))
        self._backward = tuple(np.uint64(pow(f, -1, _WORD)) for f in reversed(factors))

    def __call__(self, values: Ids) -> Ids:
        with np.errstate(over="ignore"):
            return self._pass(values + self._start, self._forward)

    def inverse(self, values: Ids) -> Ids:
        with np.errstate(over="ignore"):
            return self._pass(values, self._backward) - self._start

    @staticmethod
    def _pass(values: Ids, factors: Sequence[np.uint64]) -> Ids:
        # Folding the high half onto the low one undoes itself, so both ways look alike.
        with np.errstate(over="ignore"):
            a, b, c = factors
            values = values * a
            values = values ^ values >> np.uint64(32)
            values = values * b
            values = values ^ values >> np.uint64(32)
            return values * c


class Places:
    """Finds hashes in a sorted list of different ones, quicker than bisection.

    Hashes are spread evenly, so that their leading bits say nearly where they are.
    """

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        bits = max(1, int(ids.size).bit_length())
        self._shift = np.uint64(64 - bits)
        self._starts = np.searchsorted(ids >> self._shift, np.arange(1 << bits, dtype=np.uint64))

    def of(self, wanted: Ids) -> NDArray[np.int64]:
        """The positions of some of the hashes; each must be in the list."""
        wanted = wanted.reshape(-1)
        places = np.asarray(self._starts[(wanted >> self._shift).astype(np.int64)], np.int64)
        behind = np.flatnonzero(self._ids[places] < wanted)
        while behind.size:
            places[behind] += 1
            behind = behind[self._ids[places[behind]] < wanted[behind]]
        return places
