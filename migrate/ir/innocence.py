"""Which instructions of one kernel compute only what the other computes too.

Where two kernels compute different numbers, their expressions may part at places that are no
fault: a moment by another formula, a sum in other groups.  Evaluated in a finite field
(`ir.residues`), a value that the other kernel has as well, in whatever form, is known by its
residue: an instruction all of whose results are such values is not where the fault is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from migrate.budget import Meter
from migrate.ir.evaluation import Array, Mask
from migrate.ir.hashing import Ids
from migrate.ir.identity import Side
from migrate.ir.literals import Literals
from migrate.ir.nodes import Buffer, Op, Rounding
from migrate.ir.normal import logical_terms
from migrate.ir.residues import PRIMES, Residues
from migrate.ir.scene import place
from migrate.ir.terms import Leaves, Terms
from migrate.numerics.dtypes import DType
from migrate.source import Span

_LOW = np.uint64(0xFFFFFFFF)


def innocent(cuda: Side, nki: Side, meter: Meter) -> frozenset[Span]:
    """The places of NKI instructions whose results the CUDA kernel computes too.

    Raises `ir.evaluate.Unevaluable` and `budget.Exhausted`.
    """
    with meter.scratch():
        theirs = _Watched.over(cuda, meter)
        if theirs.unlucky:
            return frozenset()
        known = np.unique(np.concatenate([np.zeros(0, np.uint64), *theirs.values]))
        theirs.values.clear()
        mine = _Watched.over(nki, meter, known)
        return frozenset() if mine.unlucky else frozenset(mine.good - mine.bad)


class _Watched(Terms):
    """Residues, with what every operation gave: kept, or looked up in what is known."""

    def __init__(self, leaves: Leaves, meter: Meter, known: NDArray[np.uint64] | None) -> None:
        rings: list[Residues] = []

        def ring(literals: Literals) -> Residues:
            rings.append(Residues(literals, PRIMES[0], 0, "either"))
            return rings[0]

        super().__init__(leaves, meter, keep=False, ring=ring)
        # What happens at points that do not exist is nobody's result: it is not a number.
        self.idle = self.missing
        self._residues = rings[0]
        self._bytes = meter
        self.known = known
        self.values: list[Ids] = []
        self.good: set[Span] = set()
        self.bad: set[Span] = set()

    @property
    def unlucky(self) -> bool:
        return self._residues.unlucky

    @staticmethod
    def over(side: Side, meter: Meter, known: NDArray[np.uint64] | None = None) -> _Watched:
        made: list[_Watched] = []

        def algebra(leaves: Leaves) -> Terms:
            made.append(_Watched(leaves, meter, known))
            return made[0]

        logical_terms(*side, meter, algebra)
        return made[0]

    def content(self, buffer: Buffer, size: int) -> Array:
        found = super().content(buffer, size)
        self._keep_values(found)
        return found

    def apply(self, operator: str, args: Sequence[Array], op: Op) -> Array:
        return self._seen(super().apply(operator, args, op), op)

    def cast(self, value: Array, source: DType, to: DType, rounding: Rounding, op: Op) -> Array:
        return self._seen(super().cast(value, source, to, rounding, op), op)

    def reduce(self, operator: str, value: Array, active: Mask, dims: int, op: Op) -> Array:
        return self._seen(super().reduce(operator, value, active, dims, op), op)

    def scan(self, operator: str, value: Array, dim: int, inclusive: bool, op: Op) -> Array:
        return self._seen(super().scan(operator, value, dim, inclusive, op), op)

    def _seen(self, result: Array, op: Op) -> Array:
        here = place(op.span)
        if self.known is None:
            self._keep_values(result)
        elif here not in self.bad:
            undefined = (result == self.missing) | (result == self._nan)
            found = np.unique(result[~undefined] & _LOW)
            at = np.minimum(np.searchsorted(self.known, found), self.known.size - 1)
            held = bool((self.known[at] == found).all()) if self.known.size else not found.size
            (self.good if held else self.bad).add(here)
        return result

    def _keep_values(self, result: Array) -> None:
        if self.known is None:
            found = np.unique(result & _LOW)
            self._bytes.take(found.nbytes)
            self.values.append(found)
