"""Expressions without their coordinates, and the coordinates of all that share one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from migrate.budget import Meter
from migrate.ir.descent import Numbers, Truths
from migrate.ir.literals import Floats
from migrate.ir.runs import Lengths, ranked
from migrate.source import Span

_NUMBERS = frozenset({"constant", "whole", "real"})


@dataclass(frozen=True, slots=True)
class Run:
    """Parts of one shape: `power` times each of `count`; `regular`: in equal steps."""

    skeleton: int
    power: int
    count: int
    regular: bool = False


@dataclass(frozen=True, slots=True)
class Skeleton:
    """An expression without its coordinates."""

    kind: str
    operator: str
    parts: tuple[Run, ...]
    width: int
    depth: int
    digest: str
    number: float
    span: Span | None
    understood: bool


class Skeletons:
    """Skeletons by number, each with a table of coordinates.

    `many_numbers`: numbers are coordinates, not skeletons of their own.
    """

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.many_numbers = False
        self.listed: list[Skeleton] = []
        self.numbers: dict[tuple[object, ...], int] = {}
        self.coordinates: list[list[Numbers]] = []
        self.filled: list[int] = []
        self.ranks: dict[int, Numbers] = {}

    def __getitem__(self, number: int) -> Skeleton:
        return self.listed[number]

    def number_shapes(self, numbers: Floats) -> tuple[Numbers, Numbers]:
        """The skeleton and row of each number."""
        skeletons = np.zeros(numbers.size, np.int64)
        rows = np.zeros(numbers.size, np.int64)
        if self.many_numbers:
            whole = (numbers == np.rint(numbers)) & (np.abs(numbers) < 2.0**53)
            for kind, chosen in (("whole", whole), ("real", ~whole)):
                if chosen.any():
                    given = numbers[chosen]
                    column = given.astype(np.int64) if kind == "whole" else given.view(np.int64)
                    skeletons[chosen] = skeleton = self.make(kind, "", (), 1, 0, None)
                    rows[chosen] = self.add_rows(skeleton, column.reshape(-1, 1))
            return skeletons, rows
        for number in np.unique(numbers):
            chosen = (numbers == number) | (np.isnan(numbers) & np.isnan(number))
            skeleton = self.make("constant", "", (), 0, 0, None, number=float(number))
            skeletons[chosen] = skeleton
            rows[chosen] = self.add_rows(skeleton, np.zeros((int(chosen.sum()), 0), np.int64))
        return skeletons, rows

    def by_digest(self, skeletons: Numbers) -> Numbers:
        """Where each skeleton stands in an order that does not depend on how it was met."""
        standing = np.zeros(len(self.listed), np.int64)
        present = [int(number) for number in np.unique(skeletons)]
        present.sort(key=lambda number: self.listed[number].digest)
        standing[present] = np.arange(len(present))
        return np.asarray(standing[skeletons])

    def grid(self, operator: str, run: Run, lengths: Lengths, span: Span | None) -> Run:
        """A run in equal steps; rows of a grid are combinations of their own."""
        made = Run(run.skeleton, 1, lengths[-1], regular=True)
        for length in reversed(lengths[:-1]):
            depth = self.listed[made.skeleton].depth + 1
            row = self.make("combine", operator, (made,), self.width(made), depth, span)
            made = Run(row, 1, length, regular=True)
        return replace(made, power=run.power)

    def width(self, run: Run) -> int:
        return self.listed[run.skeleton].width * (2 if run.regular else run.count)

    def plain(self, skeletons: Numbers, rows: Numbers, minus: Truths) -> tuple[Numbers, Numbers]:
        """Skeletons and rows of terms, their signs part of the expression."""
        if not minus.any():
            return skeletons, rows
        skeletons, rows = skeletons.copy(), rows.copy()
        for number in np.unique(skeletons[minus]):
            chosen = minus & (skeletons == number)
            content = self.table(int(number))[rows[chosen]]
            skeletons[chosen], content = self.negated(int(number), content)
            rows[chosen] = self.add_rows(int(skeletons[chosen][0]), content)
        return skeletons, rows

    def negated(self, number: int, content: Numbers) -> tuple[int, Numbers]:
        """The skeleton of the negations of terms of a skeleton, and their coordinates."""
        given = self.listed[number]
        if (given.kind, given.operator) != ("combine", "add"):
            single = (Run(number, -1, 1),)
            return (
                self.make("combine", "add", single, given.width, given.depth + 1, given.span),
                content,
            )
        turned_parts: list[Run] = []
        for run in given.parts:
            inner = self.listed[run.skeleton]
            if inner.kind not in _NUMBERS:
                turned_parts.append(replace(run, power=-run.power))
                continue
            if inner.kind == "constant":
                opposite = self.make("constant", "", (), 0, 0, None, number=0.0 - inner.number)
                run = replace(run, skeleton=opposite)
            elif inner.kind == "whole":
                content = np.concatenate([content[:, :-1], -content[:, -1:]], axis=1)
            else:
                last = -np.ascontiguousarray(content[:, -1:]).view(np.float64)
                content = np.concatenate([content[:, :-1], last.view(np.int64)], axis=1)
            turned_parts.append(run)
        parts = tuple(turned_parts)
        return self.make("combine", "add", parts, given.width, given.depth, given.span), content

    def make(
        self,
        kind: str,
        operator: str,
        parts: tuple[Run, ...],
        width: int,
        depth: int,
        span: Span | None,
        *,
        number: float = 0.0,
    ) -> int:
        key = (kind, operator, parts, repr(number))
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.listed)
            inner = ";".join(
                f"{self.listed[r.skeleton].digest},{r.power},{r.count},{r.regular}" for r in parts
            )
            text = f"{kind}|{operator}|{number!r}|{inner}"
            digest = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
            clear = kind not in {"opaque", "undefined"}
            clear = clear and all(self.listed[run.skeleton].understood for run in parts)
            self.listed.append(
                Skeleton(kind, operator, parts, width, depth, digest, number, span, clear)
            )
            self.coordinates.append([np.zeros((0, width), np.int64)])
            self.filled.append(0)
        return found

    def add_rows(self, skeleton: int, coordinates: Numbers) -> Numbers:
        self.meter.take(coordinates.nbytes)
        self.coordinates[skeleton].append(coordinates)
        begin = self.filled[skeleton]
        self.filled[skeleton] += len(coordinates)
        return begin + np.arange(len(coordinates))

    def table(self, skeleton: int) -> Numbers:
        parts = self.coordinates[skeleton]
        if len(parts) > 1:
            self.coordinates[skeleton] = parts = [np.concatenate(parts)]
        return parts[0]

    def rank(self, skeletons: Numbers, rows: Numbers) -> Numbers:
        """Where each operand's coordinates stand among those of its skeleton."""
        rank = np.zeros(skeletons.size, np.int64)
        for number in np.unique(skeletons).tolist():
            known = self.ranks.get(number)
            if known is None or known.size != self.filled[number]:
                table = self.table(number)
                self.meter.step(table.size // 64 + 1)
                known = self.ranks[number] = ranked(table)
            chosen = skeletons == number
            rank[chosen] = known[rows[chosen]]
        return rank
