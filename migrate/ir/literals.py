"""Terms that are numbers: which they are, and which number each is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from migrate.ir.hashing import Ids, Noted

Floats = NDArray[np.float64]


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
    """The terms known to be numbers.

    `told` is called with those that become known.
    """

    def __init__(self, told: Callable[[Ids, Floats], None]) -> None:
        self._noted = Noted()
        self._told = told

    def learn(self, ids: Ids, numbers: Floats) -> None:
        """Note which number each term is, with all its digits; the first told stays."""
        new, (their,) = self._noted.note(ids, numbers)
        if new.size:
            self._told(new, their)

    def known(self, ids: Ids) -> NDArray[np.bool_] | None:
        """Which terms are numbers; `None` for none of them."""
        return self._noted.known(ids)

    def numbers(self, ids: Ids) -> Floats:
        """The numbers that known terms are."""
        return np.asarray(self._noted.rows(ids)[0])

    def numbers_or_one(self, ids: Ids, known: NDArray[np.bool_] | None) -> Floats:
        """The numbers of the known terms; 1 for the others."""
        numbers = np.ones(np.shape(ids))
        if known is not None:
            numbers[known] = self.numbers(ids[known])
        return numbers
