"""64-bit hashes and bijections: the arithmetic behind canonical terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

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
    """An invertible scrambling of numbers below 2^bits: add, then multiply and fold the halves.

    The addition keeps 0, which the rest maps to itself, from being the same element in
    every bijection.
    """

    def __init__(self, name: str, bits: int = 64) -> None:
        factors = [salt(f"{name}/{position}") | 1 for position in range(3)]
        self._forward = tuple(np.uint64(f) for f in factors)
        self._start = np.uint64(salt(f"{name}/start"))
        self._backward = tuple(np.uint64(pow(f, -1, _WORD)) for f in reversed(factors))
        self._mask = None if bits == 64 else np.uint64((1 << bits) - 1)
        # A fold undoes itself where its shift is half the width or more.
        self._shift = np.uint64((bits + 1) // 2)

    def __call__(self, values: Ids) -> Ids:
        made = np.array(values)
        with np.errstate(over="ignore"):
            made += self._start
            self._pass(made, self._forward)
        return made

    def inverse(self, values: Ids) -> Ids:
        made = np.array(values)
        with np.errstate(over="ignore"):
            self._pass(made, self._backward)
            made -= self._start
        self._cut(made)
        return made

    def _cut(self, values: Ids) -> None:
        if self._mask is not None:
            values &= self._mask

    def _pass(self, values: Ids, factors: Sequence[np.uint64]) -> None:
        """In place.  What is above the width does no harm until it is shifted down."""
        for factor in factors[:2]:
            values *= factor
            self._cut(values)
            values ^= values >> self._shift
        values *= factors[2]
        self._cut(values)


class Noted:
    """Hashes and a row of numbers noted about each; the first note of a hash stays.

    Sorted runs that grow by merging keep many small additions cheap, a filter on some
    bits keeps it so for the many lookups of what is not there.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[Ids, tuple[NDArray[Any], ...]]] = []
        self._filter = np.zeros(1 << 12, bool)
        self.size = 0

    def note(self, ids: Ids, *columns: NDArray[Any]) -> tuple[Ids, tuple[NDArray[Any], ...]]:
        """Note rows; gives those that are new, each once, by ascending hash."""
        ids, first = np.unique(ids.reshape(-1), return_index=True)
        columns = tuple(np.asarray(column).reshape(-1)[first] for column in columns)
        known = self.known(ids)
        if known is not None:
            ids, columns = ids[~known], tuple(column[~known] for column in columns)
        if not ids.size:
            return ids, columns
        self.size += ids.size
        run = (ids, columns)
        while self._runs and self._runs[-1][0].size < 2 * run[0].size:
            run = _merged(self._runs.pop(), run)
        self._runs.append(run)
        if 8 * self.size > self._filter.size < 1 << 24:
            self._filter = np.zeros(1 << min(24, (16 * self.size).bit_length()), bool)
            for noted, _ in self._runs:
                self._filter[self._low(noted)] = True
        else:
            self._filter[self._low(ids)] = True
        return ids, columns

    def known(self, ids: Ids) -> NDArray[np.bool_] | None:
        """Which hashes are noted; `None` for none of them."""
        ids = np.asarray(ids)
        if not self.size:
            return None
        found: NDArray[np.bool_] = np.asarray(self._filter[self._low(ids)])
        if not found.any():
            return None
        suspects = ids[found]
        hits = np.zeros(suspects.shape, bool)
        for noted, _ in self._runs:
            places = np.minimum(np.searchsorted(noted, suspects), noted.size - 1)
            hits |= noted[places] == suspects
        found[found] = hits
        return found if hits.any() else None

    def rows(self, ids: Ids) -> tuple[NDArray[Any], ...]:
        """What is noted about known hashes: the columns, of the shape of `ids`."""
        if len(self._runs) == 1:
            noted, columns = self._runs[0]
            places = np.searchsorted(noted, ids)
            return tuple(np.asarray(column[places]) for column in columns)
        made: list[NDArray[Any]] = []
        for noted, columns in self._runs:
            places = np.minimum(np.searchsorted(noted, ids), noted.size - 1)
            here = noted[places] == ids
            if not made:
                made = [np.zeros(np.shape(ids), column.dtype) for column in columns]
            for content, column in zip(made, columns, strict=True):
                content[here] = column[places[here]]
        return tuple(made)

    def _low(self, ids: Ids) -> NDArray[np.int64]:
        return np.asarray(ids & np.uint64(self._filter.size - 1)).view(np.int64)


def _merged(
    one: tuple[Ids, tuple[NDArray[Any], ...]], other: tuple[Ids, tuple[NDArray[Any], ...]]
) -> tuple[Ids, tuple[NDArray[Any], ...]]:
    ids = np.concatenate([one[0], other[0]])
    order = np.argsort(ids, kind="stable")
    pairs = zip(one[1], other[1], strict=True)
    return ids[order], tuple(np.concatenate(pair)[order] for pair in pairs)


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
