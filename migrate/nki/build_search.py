"""The part of the lifting `Machine` that rearranges, gathers and ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from migrate.ir.index import Index, TooComplex
from migrate.ir.nodes import (
    AxisKind,
    Block,
    Fold,
    Gather,
    Load,
    Parallel,
    Random,
    State,
    Store,
    Value,
)
from migrate.nki.build import Builder, Lifted
from migrate.nki.errors import Unsupported
from migrate.nki.parts import Part, part_of
from migrate.nki.positions import ONE, ZERO, Place, linear
from migrate.nki.semantics import Rearrangement
from migrate.nki.symbols import Number
from migrate.nki.values import View
from migrate.numerics.dtypes import DType

F32, I32 = DType.FLOAT32, DType.INT32

NOWHERE = 2**31 - 1
"""A position after every other."""


class InstructionBuilder(Builder):
    """Emits the operations of one site, of every instruction."""

    def rearrange(self, value: Lifted, shape: Sequence[Number], where: Rearrangement) -> Lifted:
        def at(place: Place) -> Value:
            return value.at(tuple(self._simple(here) for here in where(place, value.shape)))

        return self._recipe(tuple(n.index() for n in shape), value.dtype, at)

    def _simple(self, place: object) -> Index:
        index = place if isinstance(place, Index) else Index.of(int(str(place)))
        try:
            return index.simplify(self.ranges)
        except TooComplex:
            return index

    def gather(self, view: View, indices: Lifted, shape: tuple[Number, Number]) -> Lifted:
        from migrate.nki.semantics import flat_free

        table = (view.shape[0], flat_free(view))
        extents = tuple(n.index() for n in table)
        kept = self.read(view, table)
        name, outer = self._scratch("table", extents, view.dtype)
        self._store(name, extents, lambda place: (*outer, *place), kept, ())
        version = self.program.version(name)

        def at(place: Place) -> Value:
            chosen = indices.at(place)
            result = self.program.value(view.dtype)
            self.block.append(Gather(result, version, (*outer, place[0], chosen), self.span))
            return result

        return self._recipe(tuple(n.index() for n in shape), view.dtype, at)

    def part(self, view: View, parts: Sequence[Part]) -> View:
        found = part_of(view, parts)
        self._where[id(found)] = self._where[id(view)]
        self._alive.append(found)
        return found

    def bits(self, value: Lifted, dtype: DType) -> Lifted:
        raise Unsupported("numbers packed by four are seen by a run only")

    def quantize(self, value: Lifted, dtype: DType) -> tuple[Lifted, Sequence[Lifted]]:
        raise Unsupported("numbers packed by four are seen by a run only")

    def dequantize(self, packed: Lifted, dtype: DType, scales: Sequence[Lifted]) -> Lifted:
        raise Unsupported("numbers packed by four are seen by a run only")

    def random(self, distribution: str, shape: Sequence[Number], dtype: DType) -> Lifted:
        extents = tuple(n.index() for n in shape)

        def at(place: Place) -> Value:
            result = self.program.value(dtype)
            here = linear(place, extents)
            self.block.append(Random(result, distribution, (), here, self.span))
            return result

        return self._recipe(extents, dtype, at)

    def largest(
        self, value: Lifted, shape: tuple[Number, Number], count: Number
    ) -> tuple[Lifted, Lifted]:
        """A loop whose turn k finds, after the number found before it, the next one."""
        rows, turns = shape[0].index(), count.index()
        number = self.number
        numbers = self.position(shape, Number(0), (Number(0), Number(1)))

        def step(last: Lifted, place: Lifted) -> tuple[Lifted, Lifted]:
            below = self.apply("less", (value, last), F32)
            later = self.apply("greater", (numbers, place), I32)
            ties = self.apply("equal", (value, last), F32)
            nothing, nowhere = number(-math.inf, F32), number(Number(NOWHERE), I32)

            def left(here: Lifted, other: Lifted) -> Lifted:
                tied = self.select(ties, self.select(later, here, other), other)
                return self.select(below, here, tied)

            best = self.reduce("maximum", left(value, nothing), (1,), F32)
            found = self.select(
                self.apply("equal", (value, best), F32), left(numbers, nowhere), nowhere
            )
            return best, self.reduce("minimum", found, (1,), I32)

        start = (number(math.inf, F32), number(Number(-1), I32))
        return self._turns(rows, turns, start, step)

    def _turns(
        self,
        rows: Index,
        turns: Index,
        start: tuple[Lifted, Lifted],
        step: Callable[[Lifted, Lifted], tuple[Lifted, Lifted]],
    ) -> tuple[Lifted, Lifted]:
        """Every pair of states of a loop, a pair for each row."""
        called = ("largest", "places")
        kept = [
            self._scratch(name, (rows, turns), part.dtype)
            for name, part in zip(called, start, strict=True)
        ]
        names = set(self.axis_names)
        row = self._axis("p", rows, AxisKind.PARTITION, ())
        turn = self._axis("k", turns, AxisKind.SEQUENTIAL, ())
        place = (ZERO if rows == ONE else Index.axis(row.name), Index.axis(turn.name))
        here = (place[0], ZERO)
        before = [self.program.version(name) for name, _ in kept]
        inner, following, after = ([self.program.fresh(name) for name, _ in kept] for _ in range(3))
        states, last = ([self.program.value(part.dtype) for part in start] for _ in range(2))

        def turned() -> Value:
            carried = [
                self._recipe((rows, ONE), state.dtype, lambda _, state=state: state)  # type: ignore[misc]
                for state in states
            ]
            made.extend(part.at(here) for part in step(carried[0], carried[1]))
            return made[0]

        def started() -> Value:
            first = [part.at(()) for part in start]
            body, _ = self._region(turned, [turn])
            stores: Block = tuple(
                Store(follows, into, (*outer, *place), value, self.span)
                for follows, into, (_, outer), value in zip(
                    following, inner, kept, made, strict=True
                )
            )
            carried = tuple(map(State, last, first, states, made))
            content = tuple(map(State, after, before, inner, following))
            self.block.append(Fold((turn,), (*carried, *content), (*body, *stores), self.span))
            return last[0]

        made: list[Value] = []
        body, _ = self._region(started, [row])
        for (name, _), version in zip(kept, after, strict=True):
            self.program.current[name] = version.number
        self.axis_names = names
        self.block.extend(body if rows == ONE else (Parallel((row,), body, self.span),))

        def result(position: int) -> Lifted:
            (_, outer), version = kept[position], after[position]

            def at(spot: Place) -> Value:
                value = self.program.value(start[position].dtype)
                self.block.append(Load(value, version, (*outer, *spot), self.span))
                return value

            return self._recipe((rows, turns), start[position].dtype, at)

        return result(0), result(1)
