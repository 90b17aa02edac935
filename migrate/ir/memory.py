"""Buffers during an evaluation: loads, stores, atomics, and what goes wrong in them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from migrate.budget import Meter
from migrate.ir.evaluation import (
    Algebra,
    Array,
    Evaluation,
    Mask,
    Trouble,
    Unevaluable,
    Write,
    choose,
)
from migrate.ir.index import Index
from migrate.ir.lives import Lives
from migrate.ir.nodes import AsyncCopy, Kernel, Op, Scatter, Store, Value, Version
from migrate.ir.points import Points
from migrate.ir.predicate import Predicate
from migrate.numerics.dtypes import DType
from migrate.numerics.operators import OPERATORS


class Memory:
    """The content of every version, and what went wrong."""

    def __init__(self, kernel: Kernel, points: Points, algebra: Algebra, meter: Meter) -> None:
        self.points = points
        self.algebra = algebra
        self.meter = meter
        self.lives = Lives.of(kernel)
        self.idle = np.asarray(algebra.idle)
        self.content: dict[Version, Array] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.buffers = {buffer.name: buffer for buffer in kernel.buffers}
        self.writers: dict[str, NDArray[np.int32]] = {}
        self.writes: dict[str, list[Write]] = {}
        self.stores: list[Op] = []
        self.store_numbers: dict[int, int] = {}
        self.trouble: dict[tuple[str, int], Trouble] = {}
        written = {output.version.buffer for output in kernel.outputs}
        for buffer in kernel.buffers:
            shape = tuple(points.number(extent, buffer.span) for extent in buffer.shape)
            if min(shape, default=0) < 0:
                raise Unevaluable(f"{buffer.name} has a negative extent", buffer.span)
            size = math.prod(shape)
            meter.take(8 * size)
            self.shapes[buffer.name] = shape
            self.content[Version(buffer.name, 0)] = algebra.content(buffer, size)
            if buffer.name in written:
                self.writers[buffer.name] = np.full(size, -1, np.int32)

    def left(self, outputs: Sequence[Version]) -> Evaluation:
        """What an evaluation leaves in some versions."""
        content = {version.buffer: self.content[version] for version in outputs}
        return Evaluation(
            outputs=content,
            shapes={name: self.shapes[name] for name in content},
            writers=self.writers,
            stores=tuple(self.stores),
            writes={name: tuple(made) for name, made in self.writes.items()},
            trouble=tuple(self.trouble.values()),
        )

    def address(self, version: Version, index: Sequence[Index], op: Op) -> tuple[Array, Mask]:
        parts = [np.asarray(self.points.index(part, op.span), np.int64) for part in index]
        return self.flatten(version.buffer, parts)

    def data_address(
        self,
        version: Version,
        index: Sequence[Index | Value],
        values: Mapping[Value, Array],
        op: Op,
    ) -> tuple[Array, Mask] | None:
        """As `address`; `None` where the algebra does not know the data."""
        parts: list[Array] = []
        for part in index:
            if isinstance(part, Index):
                parts.append(np.asarray(self.points.index(part, op.span), np.int64))
                continue
            whole = self.algebra.whole(values[part])
            if whole is None:
                return None
            parts.append(whole)
        return self.flatten(version.buffer, parts)

    def flatten(self, buffer: str, parts: Sequence[Array]) -> tuple[Array, Mask]:
        flat: Array = np.int64(0)  # type: ignore[assignment]
        inside: Mask = True
        for part, extent in zip(parts, self.shapes[buffer], strict=True):
            flat = flat * extent + part
            if part.size and (part.min() < 0 or part.max() >= extent):
                inside = inside & (part >= 0) & (part < extent)
        return np.asarray(flat), inside

    def load(self, source: Version, flat: Array, inside: Mask, where: Predicate, op: Op) -> Array:
        taking = self.points.taking(where)
        content = self.content[source]
        ok = self.check(source.buffer, flat, inside, taking, op)
        if content.size == 0:
            return np.broadcast_to(np.asarray(self.algebra.missing), np.shape(flat))
        if ok is True:
            value = content[flat]
        else:
            safe = np.where(ok, flat, 0)
            lost = np.logical_not(ok) & self.points.active
            nowhere = self.idle
            if np.any(lost):
                nowhere = np.where(lost, self.algebra.missing, self.idle)
            value = choose(ok, content[safe], nowhere)
        self.algebra.loaded(self.buffers[source.buffer], value, op)
        return value

    def store(
        self,
        op: Store | Scatter | AsyncCopy,
        result: Version,
        into: Version,
        flat: Array,
        inside: Mask,
        value: Array,
        combine: str | None = None,
        mask: Array | None = None,
    ) -> None:
        """Make version `result` of a buffer: `into`, with a value in some cells."""
        content = self.content[into]
        if not self.lives.in_place(op, into):
            self.meter.step(content.size // 64 + 1)
            if result not in self.content:
                self.meter.take(content.nbytes)
            content = content.copy()
        self.content[result] = content
        taking = self.points.taking(op.where)
        ok = self.check(into.buffer, flat, inside, taking, op)
        conditions = list(self.points.guards)
        if mask is not None:
            truth = self.algebra.truth(mask)
            if truth is None:
                conditions.append(mask)
            else:
                ok = ok & truth
        # Points that all combine the same number into one cell still do so each.
        spread = self.points.extents if combine is not None else ()
        given = (np.shape(array) for array in (flat, ok, value, *conditions))
        shape = np.broadcast_shapes(*given, spread)
        if combine is not None:
            # Every point adds its own, also where no operand tells the points apart.
            shape = np.broadcast_shapes(shape, self.points.extents)
        self.meter.step(max(1, math.prod(shape) // 32))
        cells = np.broadcast_to(flat, shape)
        new = np.broadcast_to(value, shape)
        chosen = np.broadcast_to(ok, shape)
        cells, new = cells[chosen], new[chosen]
        if cells.size == 0:
            return
        held = [np.broadcast_to(condition, shape)[chosen] for condition in conditions]
        if combine is not None:
            self.combine(op, content, cells, new, combine, held)
        elif held:
            self.in_turn(op, content, cells, new, None, held)
        else:
            self.conflicts(into.buffer, content, cells, new, op)
            content[cells] = new
        if into.buffer in self.writers:
            self.writers[into.buffer][cells] = self.store_number(op)
            self.writes.setdefault(into.buffer, []).append(Write(op, cells, new))
            lost = self.algebra.unwritten(new)
            if lost.any():
                self.note(
                    "unwritten-read",
                    into.buffer,
                    "what is stored depends on a cell that nobody wrote",
                    op,
                    int(lost.sum()),
                    (int(cells[lost][0]), content.size),
                )

    def combine(
        self,
        op: Op,
        content: Array,
        cells: Array,
        new: Array,
        operator: str,
        held: Sequence[Array],
    ) -> None:
        """Apply an atomic: all at once where the order of the points does not matter."""
        entry = OPERATORS[operator]
        if not (entry.associative and entry.commutative) or entry.identity is None:
            self.in_turn(op, content, cells, new, operator, held)
            return
        neutral = self.algebra.constant(entry.identity, DType.FLOAT64)
        for condition in held:
            new = self.algebra.apply("select", (condition, new, neutral), op)
        order = np.argsort(cells, kind="stable")
        targets, starts, counts = np.unique(cells[order], return_index=True, return_counts=True)
        # Cells with about as many contributions make one table, so that little of it is empty.
        magnitude = np.ceil(np.log2(counts)).astype(np.int64)
        for size in np.unique(magnitude):
            alike = np.flatnonzero(magnitude == size)
            turn = np.arange(counts[alike].max())[:, None]
            taking = turn < counts[alike]
            self.meter.step(max(1, taking.size // 32))
            table = new[order[np.where(taking, starts[alike] + turn, 0)]]
            given = self.algebra.reduce(operator, table, taking, 1, op)
            where = targets[alike]
            content[where] = self.algebra.apply(operator, (content[where], given), op)

    def in_turn(
        self,
        op: Op,
        content: Array,
        cells: Array,
        new: Array,
        operator: str | None,
        held: Sequence[Array],
    ) -> None:
        """Store or combine in the order of the points, each where its conditions hold."""
        order = np.argsort(cells, kind="stable")
        while order.size:
            first = np.ones(order.size, bool)
            first[1:] = cells[order[1:]] != cells[order[:-1]]
            turn = order[first]
            old = content[cells[turn]]
            made = new[turn]
            if operator is not None:
                made = self.algebra.apply(operator, (old, made), op)
            for condition in held:
                made = self.algebra.apply("select", (condition[turn], made, old), op)
            content[cells[turn]] = made
            order = order[~first]
            self.meter.step(max(1, order.size // 64))

    def conflicts(self, buffer: str, content: Array, cells: Array, new: Array, op: Op) -> None:
        counts = np.bincount(cells, minlength=1)
        if counts.max(initial=0) <= 1:
            return
        content[cells] = new
        differing = content[cells] != new
        if np.issubdtype(new.dtype, np.floating):
            differing &= ~(np.isnan(content[cells]) & np.isnan(new))
        if differing.any():
            cell = int(cells[differing][0])
            self.note(
                "conflict",
                buffer,
                "several points write different numbers to one cell in one statement",
                op,
                int(differing.sum()),
                (cell, content.size),
            )

    def check(self, buffer: str, flat: Array, inside: Mask, taking: Mask, op: Op) -> Mask:
        if isinstance(inside, bool | np.bool_) and inside and taking is True:
            return True
        ok = inside & taking
        outside = np.logical_not(inside) & taking
        # Under a condition on data that this algebra cannot decide, out of range proves nothing.
        if np.any(outside) and np.size(flat) and not self.points.guards:
            shape = np.broadcast_shapes(np.shape(flat), np.shape(outside))
            spread = np.broadcast_to(outside, shape)
            cell = int(np.broadcast_to(flat, shape)[spread][0])
            size = math.prod(self.shapes[buffer])
            self.note(
                "out-of-range",
                buffer,
                f"an element outside {buffer} is touched",
                op,
                int(spread.sum()),
                (cell, size),
            )
        return ok

    def note(
        self, kind: Any, buffer: str, message: str, op: Op, count: int, example: tuple[int, int]
    ) -> None:
        key = (kind, id(op))
        if key not in self.trouble:
            self.trouble[key] = Trouble(kind, buffer, message, op.span, count, example)

    def store_number(self, op: Op) -> int:
        number = self.store_numbers.get(id(op))
        if number is None:
            number = self.store_numbers[id(op)] = len(self.stores)
            self.stores.append(op)
        return number
