"""The points an evaluation is at: which axes are in scope, and which points exist.

Parallel axes are array dimensions, the innermost first; axes of a loop are one integer at
a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from migrate.budget import Meter
from migrate.ir.evaluation import Array, Mask, Unevaluable, simple, unless_all
from migrate.ir.index import Index
from migrate.ir.nodes import Axis
from migrate.ir.predicate import TRUE, Predicate, holds
from migrate.source import Span

_Saved: TypeAlias = tuple[int, Mask, tuple[int, ...]]


class Points:
    """`active` tells which points exist; `guards` are the conditions on data around them."""

    def __init__(self, sizes: Mapping[str, int], meter: Meter) -> None:
        self.meter = meter
        self.scope: dict[str, Any] = dict(sizes)
        self.depth = 0
        self.active: Mask = True
        self.extents: tuple[int, ...] = ()
        self.guards: list[Array] = []

    def enter(self, axes: Sequence[Axis], where: Predicate) -> _Saved:
        """Put axes in front of the others; gives what `leave` needs."""
        saved = (self.depth, self.active, self.extents)
        for axis in axes:
            extent = self.index(axis.extent, axis.span)
            longest = int(np.max(extent)) if np.size(extent) else 0
            longest = max(longest, 0)
            points = np.arange(longest, dtype=np.int64).reshape((-1,) + (1,) * self.depth)
            self.scope[axis.name] = points
            self.depth += 1
            self.extents = (longest, *self.extents)
            count = math.prod(self.extents)
            self.meter.step(max(1, count // 64))
            # Refused before an array over all points is made.
            self.meter.take(8 * count)
            self.meter.give(8 * count)
            if np.ndim(extent):
                self.active = unless_all(self.active & (points < extent))
        if where != TRUE:
            self.active = simple(self.active & holds(where, self.scope))
        return saved

    def leave(self, axes: Sequence[Axis], saved: _Saved) -> None:
        self.depth, self.active, self.extents = saved
        for axis in axes:
            del self.scope[axis.name]

    def rounds(self, axes: Sequence[Axis]) -> Iterator[Mask]:
        """Bind the axes to each point in order; yields where the point exists."""
        if not axes:
            yield True
            return
        axis, *rest = axes
        extent = self.index(axis.extent, axis.span)
        longest = int(np.max(extent)) if np.size(extent) else 0
        for number in range(longest):
            self.scope[axis.name] = number
            exists = number < extent
            for inner in self.rounds(rest):
                yield exists & inner
        self.scope.pop(axis.name, None)

    def taking(self, where: Predicate) -> Mask:
        """The points that exist and for which a condition on positions holds."""
        return self.active if where == TRUE else self.active & holds(where, self.scope)

    def index(self, index: Index, span: Span) -> Any:
        constant = index.constant
        if constant is not None:
            return constant
        try:
            return index.evaluate(self.scope)
        except KeyError as error:
            raise Unevaluable(f"{error.args[0]} has no value", span) from None
        except ZeroDivisionError:
            raise Unevaluable(f"division by zero in {index}", span) from None

    def number(self, index: Index, span: Span) -> int:
        return int(self.index(index, span))

    def spread(self, value: Array, dims: int) -> Array:
        """Give the first `dims` dimensions of the scope their full extent."""
        missing = len(self.extents) - value.ndim
        if missing > 0:
            value = value.reshape((1,) * missing + value.shape)
        shape = (*self.extents[:dims], *value.shape[dims:])
        return np.broadcast_to(value, shape)
