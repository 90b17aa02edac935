"""How much an evaluation will do at least, before it starts.

Loops inside loops multiply; one that would pass its bounds by far is refused at once
rather than after having used them up.
"""

from __future__ import annotations

from collections.abc import Mapping

from migrate.ir.nodes import Axis, Block, Contract, Fold, Parallel, Reduce
from migrate.ir.predicate import TRUE


def least_operations(block: Block, sizes: Mapping[str, int]) -> int:
    """Operations that evaluating a block executes, counted only where no condition decides."""
    total = 0
    for op in block:
        total += 1
        match op:
            case Fold(axes=axes, body=body, where=where):
                inner = least_operations(body, sizes) if where == TRUE else 0
                total += _rounds(axes, sizes) * (1 + inner)
            case Parallel(body=body) | Reduce(body=body) | Contract(body=body):
                total += least_operations(body, sizes)
    return total


def _rounds(axes: tuple[Axis, ...], sizes: Mapping[str, int]) -> int:
    rounds = 1
    for axis in axes:
        try:
            rounds *= max(int(axis.extent.evaluate(sizes)), 0)
        except (KeyError, ZeroDivisionError):
            return 0  # it hangs on where a loop around it is
    return rounds
