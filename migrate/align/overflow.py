"""Where large inputs leave the range of numbers.

Two expressions can be equal over the reals and yet not serve the same inputs: a softmax
without its maximum is one example.  Evaluating with inputs of a deviation of 1000 shows which
operator is the first to give infinity for finite operands.  float64 holds exp of up to 709,
float32 of up to 88, so what overflows here overflows on the engines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from migrate.ir.evaluate import Array
from migrate.ir.nodes import Op
from migrate.ir.reals import Reals
from migrate.source import Span

WIDE: Final = "wide"
"""The input family that is tried."""

_GROWING: Final = frozenset({"exp", "exp2", "exp10", "expm1", "sinh", "cosh", "power", "square"})
"""Operators that give infinity for moderate numbers; a quotient by zero is another matter."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """An operator that gives infinity, and the operand of the first time it does."""

    operator: str
    operand: float
    span: Span


class Watched(Reals):
    """Real numbers that note the first overflow."""

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        super().__init__(inputs)
        self.first: Overflow | None = None

    def apply(self, operator: str, args: Sequence[Array], op: Op) -> Array:
        result = super().apply(operator, args, op)
        if self.first is None and operator in _GROWING:
            born = np.isinf(result)
            for arg in args:
                born = born & np.isfinite(arg)
            if born.any():
                place = int(np.flatnonzero(born)[0])
                operand = np.broadcast_to(args[0], born.shape).reshape(-1)[place]
                self.first = Overflow(operator, float(operand), op.span)
        return result
