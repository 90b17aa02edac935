"""Terms that are numbers.

A number's term is `f^-1(g(x))`, with `f` the bijection of `add`.  On multiples of 2^-16
`g` is linear, so that a sum of such terms is the term of the sum, in whatever order and
grouping it was made; on other numbers it is a hash, odd in its argument.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from migrate.ir.hashing import Bijection, Ids, salt, scramble

Floats = NDArray[np.float64]

_FRACTION = 65536.0
_UNIT = np.uint64(salt("one") | 1)
_HASHED = np.uint64(salt("number"))
_FILTER_BITS = 16


def canonical(numbers: Floats) -> Floats:
    """Numbers as float32 holds them, so that 1e-5 is one number in every float format.

    What float32 cannot hold to within its rounding (2^24 + 1, 1e300, 1e-60) stays as it
    is.  -0.0 is 0.0, of which the reals have one, and there is one NaN.
    """
    numbers = np.asarray(numbers, np.float64) + 0.0
    with np.errstate(all="ignore"):
        short = numbers.astype(np.float32).astype(np.float64)
        close = np.abs(short - numbers) <= np.abs(numbers) * 2.0**-24
    numbers = np.where(close & (numbers != np.rint(numbers)), short, numbers)
    return np.asarray(np.where(np.isnan(numbers), np.nan, numbers))


class Literals:
    """Which terms are numbers, and which number each is."""

    def __init__(self, add: Bijection) -> None:
        self._add = add
        self._ids: Ids = np.zeros(0, np.uint64)
        self._numbers: Floats = np.zeros(0)
        # Most terms are no numbers: a filter on some bits spares the search.
        self._filter = np.zeros(1 << _FILTER_BITS, bool)

    def terms(self, numbers: Floats) -> Ids:
        """The term of each number (`canonical` ones), without making it known."""
        with np.errstate(all="ignore"):
            scaled = numbers * _FRACTION
            even = np.isfinite(scaled) & (scaled == np.rint(scaled)) & (np.abs(scaled) < 2.0**62)
            linear = np.where(even, scaled, 0.0).astype(np.int64).view(np.uint64) * _UNIT
            hashed = scramble(np.abs(numbers).view(np.uint64) ^ _HASHED)
            hashed = np.where(numbers < 0, np.uint64(0) - hashed, hashed)
            return self._add.inverse(np.where(even, linear, hashed))

    def learn(self, ids: Ids, numbers: Floats) -> tuple[Ids, Floats]:
        """Note that terms are numbers; gives those that were not known, each once."""
        ids, first = np.unique(ids.reshape(-1), return_index=True)
        numbers = np.asarray(numbers).reshape(-1)[first]
        known = self.known(ids)
        if known is not None:
            ids, numbers = ids[~known], numbers[~known]
        if ids.size:
            places = np.searchsorted(self._ids, ids)
            self._ids = np.insert(self._ids, places, ids)
            self._numbers = np.insert(self._numbers, places, numbers)
            self._filter[self._low(ids)] = True
        return ids, numbers

    def known(self, ids: Ids) -> NDArray[np.bool_] | None:
        """Which terms are numbers; `None` for none of them."""
        ids = np.asarray(ids)
        maybe = np.asarray(self._filter[self._low(ids)])
        if not maybe.any():
            return None
        suspects = ids[maybe]
        places = np.minimum(np.searchsorted(self._ids, suspects), self._ids.size - 1)
        maybe[maybe] = self._ids[places] == suspects
        return maybe if maybe.any() else None

    def numbers(self, ids: Ids) -> Floats:
        """The numbers that known terms are."""
        return np.asarray(self._numbers[np.searchsorted(self._ids, ids)])

    @staticmethod
    def _low(ids: Ids) -> NDArray[np.int64]:
        return np.asarray(ids & np.uint64((1 << _FILTER_BITS) - 1)).astype(np.int64)
