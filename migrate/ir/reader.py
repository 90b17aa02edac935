"""Reads tensor expressions back from the log of canonical terms.

Downwards, each term that an output needs is looked up in the log, and nested sums,
products and extrema become one flat list of operands.  Upwards, terms of the same shape
(the same operators on the same tensors at other coordinates) get one skeleton and a row
of coordinates each.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from migrate.budget import Meter
from migrate.ir.fit import fitted
from migrate.ir.forms import (
    Apply,
    Combine,
    Element,
    Form,
    Hashed,
    Missing,
    Number,
    Part,
    Piece,
    Table,
    Unknown,
    Varying,
)
from migrate.ir.hashing import Ids, Places
from migrate.ir.literals import canonical
from migrate.ir.reals import real
from migrate.ir.terms import COMMUTATIVE_ONLY, GROUPS, IDEMPOTENT, INVERSES, Made, neutral_term
from migrate.source import Span

Numbers = NDArray[np.int64]

MAX_WIDTH = 4096
"""Coordinates of one expression; a larger one is kept as a hash."""
MAX_DEPTH = 150
"""Nesting of one expression; a deeper one is kept as a hash."""
MAX_NUMBERS = 64
"""Distinct numbers in an output that each make a shape of their own; more are coordinates."""

_EMPTY = np.zeros(0, np.uint64)


@dataclass(frozen=True, slots=True)
class _Skeleton:
    """An expression without its coordinates."""

    kind: str
    operator: str
    parts: tuple[tuple[int, int, int], ...]
    """(skeleton, power, count) of each part; arguments have power and count 1."""
    width: int
    depth: int
    digest: str
    number: float
    span: Span | None
    understood: bool


@dataclass(slots=True)
class _Group:
    """Terms that one logged operation made, with their arguments as a flat list."""

    made: int
    places: Numbers
    """Positions in the reader's sorted list of terms (filled in after the descent)."""
    ids: Ids
    parents: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    children: Ids = field(default_factory=lambda: _EMPTY)
    powers: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))


class Reader:
    def __init__(
        self, log: Sequence[Made], shapes: Mapping[str, tuple[int, ...]], meter: Meter
    ) -> None:
        self.log = log
        self.shapes = shapes
        self.meter = meter
        ids = np.concatenate([made.ids.reshape(-1) for made in log])
        sizes = [made.ids.size for made in log]
        order = np.argsort(ids, kind="stable")
        ids = ids[order]
        first = np.ones(ids.size, bool)
        first[1:] = ids[1:] != ids[:-1]
        self.logged = ids[first]
        self.places = Places(self.logged)
        self.standing = np.zeros(0, np.int64)
        where = order[first]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        self.logged_made = np.searchsorted(starts, where, side="right") - 1
        self.logged_row = where - starts[self.logged_made]
        self.families: dict[str, NDArray[np.bool_]] = {}
        self.groups: list[_Group] = []
        self.known = _EMPTY
        self.many_numbers = False
        self.skeletons: list[_Skeleton] = []
        self.numbers: dict[tuple[object, ...], int] = {}
        self.coordinates: list[list[Numbers]] = []
        self.filled: list[int] = []
        self.skeleton_of = np.zeros(0, np.int64)
        self.row_of = np.zeros(0, np.int64)

    def lookup(self, ids: Ids) -> tuple[Numbers, Numbers]:
        """The logged operation and row that first made each term."""
        places = self.places.of(ids)
        return self.logged_made[places], self.logged_row[places]

    def place(self, ids: Ids) -> Numbers:
        """The positions of described terms in `known`."""
        return np.asarray(self.standing[self.places.of(ids)])

    # -- down -----------------------------------------------------------------------

    def read(self, roots: Ids) -> None:
        """Describe some logged terms and all they are made of."""
        wanted = np.zeros(self.logged.size, bool)
        wanted[self.places.of(roots)] = True
        by_made = np.argsort(self.logged_made, kind="stable")
        bounds = np.searchsorted(self.logged_made[by_made], np.arange(len(self.log) + 1))
        # What a term is made of was logged before it.
        for made in range(len(self.log) - 1, -1, -1):
            places = by_made[bounds[made] : bounds[made + 1]]
            places = places[wanted[places]]
            if not places.size:
                continue
            self.meter.step(places.size // 16 + 1)
            group = self.group(made, self.logged_row[places], self.logged[places])
            self.groups.append(group)
            wanted[self.places.of(group.children)] = True
        self.known = self.logged[wanted]
        self.standing = np.cumsum(wanted) - 1
        self.skeleton_of = np.full(self.known.size, -1, np.int64)
        self.row_of = np.full(self.known.size, -1, np.int64)
        constants = [g.ids.size for g in self.groups if self.log[g.made].operator == "constant"]
        self.many_numbers = sum(constants) > MAX_NUMBERS
        for group in reversed(self.groups):
            group.places = self.place(group.ids)
            self.describe(group)

    def group(self, made: int, rows: Numbers, ids: Ids) -> _Group:
        entry = self.log[made]
        parents, children, powers = self.arguments(made, rows)
        group = _Group(made, rows, ids)
        operator = INVERSES.get(entry.operator, entry.operator)
        if operator in GROUPS:
            parents, children, powers = self.flatten(operator, parents, children, powers)
        elif entry.operator == "element":
            return _Group(made, rows, ids, children=_EMPTY)
        group.parents, group.children, group.powers = parents, children, powers
        return group

    def arguments(self, made: int, rows: Numbers) -> tuple[Numbers, Ids, Numbers]:
        """(parent, child, power) of every argument of some rows, in order."""
        entry = self.log[made]
        if not entry.args or entry.operator == "element":
            nothing = np.zeros(0, np.int64)
            return nothing, _EMPTY, nothing
        if len(entry.args) == 1 and entry.args[0].ndim == 2 and entry.operator in GROUPS:
            table = entry.args[0][rows]
        elif entry.ids.ndim == 0:
            table = np.stack([np.asarray(arg).reshape(1) for arg in entry.args], axis=1)[rows]
        else:
            cells = np.unravel_index(rows, entry.ids.shape)
            table = np.stack(
                [np.broadcast_to(arg, entry.ids.shape)[cells] for arg in entry.args], axis=1
            )
        parents = np.repeat(np.arange(len(rows)), table.shape[1])
        power = -1 if entry.operator in INVERSES else 1
        return parents, table.reshape(-1), np.full(table.size, power, np.int64)

    def flatten(
        self, operator: str, parents: Numbers, children: Ids, powers: Numbers
    ) -> tuple[Numbers, Ids, Numbers]:
        """Replace arguments made by the same operator by their own arguments."""
        inner = self.family(operator)
        neutral = neutral_term(operator)
        done: list[tuple[Numbers, Ids, Numbers]] = []
        while parents.size:
            # A level costs some twenty array operations, however few operands it has.
            self.meter.step(parents.size // 8 + 256)
            which, rows = self.lookup(children)
            opened = inner[which]
            kept = ~opened & (children != neutral)
            done.append((parents[kept], children[kept], powers[kept]))
            if not opened.any():
                break
            next_parents, next_children, next_powers = [], [], []
            for made in np.unique(which[opened]):
                chosen = opened & (which == made)
                sub_parents, sub_children, sub_powers = self.arguments(int(made), rows[chosen])
                next_parents.append(parents[chosen][sub_parents])
                next_children.append(sub_children)
                next_powers.append(powers[chosen][sub_parents] * sub_powers)
            parents = np.concatenate(next_parents)
            children = np.concatenate(next_children)
            powers = np.concatenate(next_powers)
        all_parents = np.concatenate([d[0] for d in done])
        all_children = np.concatenate([d[1] for d in done])
        all_powers = np.concatenate([d[2] for d in done])
        return _collected(all_parents, all_children, all_powers)

    def family(self, operator: str) -> NDArray[np.bool_]:
        """Which logged operations are the operator or its inverse."""
        found = self.families.get(operator)
        if found is None:
            inner = [operator in (m.operator, INVERSES.get(m.operator)) for m in self.log]
            found = self.families[operator] = np.array(inner)
        return found

    # -- up -------------------------------------------------------------------------

    def describe(self, group: _Group) -> None:
        entry = self.log[group.made]
        _, rows = self.lookup(group.ids)
        match entry.operator:
            case "element":
                shape = self.shapes[entry.tensor]
                elements = entry.args[0][rows].astype(np.int64)
                if shape:
                    places = np.stack(np.unravel_index(elements, shape), axis=1)
                else:
                    places = np.zeros((len(rows), 0), np.int64)
                skeleton = self.skeleton("element", entry.tensor, (), len(shape), 0, entry.span)
                self.assign(group.places, skeleton, places)
            case "constant":
                assert entry.numbers is not None
                self.describe_numbers(group, canonical(entry.numbers[rows]))
            case "missing" | "undefined" | "opaque":
                skeleton = self.skeleton(entry.operator, "", (), 0, 0, entry.span)
                self.assign(group.places, skeleton, np.zeros((len(rows), 0), np.int64))
            case _:
                self.describe_operation(group, entry)

    def describe_numbers(self, group: _Group, numbers: NDArray[np.float64]) -> None:
        if self.many_numbers:
            whole = (numbers == np.rint(numbers)) & (np.abs(numbers) < 2.0**53)
            for kind, chosen in (("whole", whole), ("real", ~whole)):
                if chosen.any():
                    given = numbers[chosen]
                    column = given.astype(np.int64) if kind == "whole" else given.view(np.int64)
                    skeleton = self.skeleton(kind, "", (), 1, 0, None)
                    self.assign(group.places[chosen], skeleton, column.reshape(-1, 1))
            return
        for place, number in zip(group.places, numbers.tolist(), strict=True):
            skeleton = self.skeleton("constant", "", (), 0, 0, None, number=number)
            self.assign(place.reshape(1), skeleton, np.zeros((1, 0), np.int64))

    def describe_operation(self, group: _Group, entry: Made) -> None:
        operator = INVERSES.get(entry.operator, entry.operator)
        places = self.place(group.children)
        skeletons, rows = self.skeleton_of[places], self.row_of[places]
        parents, powers = group.parents, group.powers
        combining = operator in GROUPS
        if operator in IDEMPOTENT:
            powers = np.ones_like(powers)
        if combining or operator in COMMUTATIVE_ONLY:
            order = self.sorted_parts(parents, powers, skeletons, rows)
            parents, powers = parents[order], powers[order]
            skeletons, rows = skeletons[order], rows[order]
        count = len(group.ids)
        starts = np.searchsorted(parents, np.arange(count))
        lengths = np.searchsorted(parents, np.arange(count), side="right") - starts
        for members in _alike(parents, starts, lengths, skeletons, powers):
            first, length = int(starts[members[0]]), int(lengths[members[0]])
            runs = _runs(skeletons[first : first + length], powers[first : first + length])
            understood = all(self.skeletons[s].understood for s, _, _ in runs)
            if not combining:
                runs = [(s, p, 1) for s, p, c in runs for _ in range(c)]
            width = sum(self.skeletons[s].width * c for s, _, c in runs)
            depth = 1 + max((self.skeletons[s].depth for s, _, _ in runs), default=0)
            if width > MAX_WIDTH or depth > MAX_DEPTH:
                self.hashed(group, members, entry, understood)
                continue
            columns: list[Numbers] = []
            offset = 0
            for number, _, repeat in runs:
                table = self.table(number)
                for step in range(repeat):
                    columns.append(table[rows[starts[members] + offset + step]])
                offset += repeat
            coordinates = (
                np.concatenate(columns, axis=1)
                if columns
                else np.zeros((len(members), 0), np.int64)
            )
            kind = "combine" if combining else "apply"
            if combining:
                runs = self.with_one_number(operator, runs)
            skeleton = self.skeleton(kind, operator, tuple(runs), width, depth, entry.span)
            self.assign(group.places[members], skeleton, coordinates)

    def hashed(self, group: _Group, members: Numbers, entry: Made, understood: bool) -> None:
        if not understood:
            skeleton = self.skeleton("opaque", "", (), 0, 0, entry.span)
            nothing = np.zeros((len(members), 0), np.int64)
            self.assign(group.places[members], skeleton, nothing)
            return
        skeleton = self.skeleton("hashed", "", (), 1, 0, entry.span)
        identity = group.ids[members].view(np.int64).reshape(-1, 1)
        self.assign(group.places[members], skeleton, identity)

    def with_one_number(
        self, operator: str, runs: list[tuple[int, int, int]]
    ) -> list[tuple[int, int, int]]:
        """The parts of a combination with its numbers, if it has several, as one, last."""
        others = [run for run in runs if self.skeletons[run[0]].kind != "constant"]
        numbers = [
            (self.skeletons[s].number, power * count)
            for s, power, count in runs
            if self.skeletons[s].kind == "constant"
        ]
        if not numbers or not others:
            return runs
        total = combined(operator, numbers)
        if total == GROUPS[operator]:
            return others
        return [*others, (self.skeleton("constant", "", (), 0, 0, None, number=total), 1, 1)]

    def sorted_parts(
        self, parents: Numbers, powers: Numbers, skeletons: Numbers, rows: Numbers
    ) -> Numbers:
        """Order by parent, then skeleton, power and coordinates: the canonical order."""
        rank = np.zeros(parents.size, np.int64)
        present = np.unique(skeletons)
        for number in present:
            chosen = skeletons == number
            table = self.table(int(number))
            if not table.shape[1]:
                continue
            distinct, places = np.unique(rows[chosen], return_inverse=True)
            content = table[distinct]
            order = np.lexsort(content.T[::-1])
            position = np.empty(len(distinct), np.int64)
            position[order] = np.arange(len(distinct))
            rank[chosen] = position[places]
        by_digest = sorted(present, key=lambda number: self.skeletons[int(number)].digest)
        standing = {int(number): place for place, number in enumerate(by_digest)}
        lookup = np.zeros(len(self.skeletons), np.int64)
        for number, place in standing.items():
            lookup[number] = place
        return np.lexsort((rank, powers, lookup[skeletons], parents))

    def skeleton(
        self,
        kind: str,
        operator: str,
        parts: tuple[tuple[int, int, int], ...],
        width: int,
        depth: int,
        span: Span | None,
        *,
        number: float = 0.0,
    ) -> int:
        key = (kind, operator, parts, repr(number))
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.skeletons)
            inner = ";".join(f"{self.skeletons[s].digest},{p},{c}" for s, p, c in parts)
            text = f"{kind}|{operator}|{number!r}|{inner}"
            digest = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
            clear = kind not in {"opaque", "undefined"}
            clear = clear and all(self.skeletons[s].understood for s, _, _ in parts)
            self.skeletons.append(
                _Skeleton(kind, operator, parts, width, depth, digest, number, span, clear)
            )
            self.coordinates.append([])
            self.filled.append(0)
        return found

    def assign(self, places: Numbers, skeleton: int, coordinates: Numbers) -> None:
        self.meter.take(coordinates.nbytes)
        self.skeleton_of[places] = skeleton
        self.row_of[places] = self.filled[skeleton] + np.arange(len(places))
        self.coordinates[skeleton].append(coordinates)
        self.filled[skeleton] += len(places)

    def table(self, skeleton: int) -> Numbers:
        parts = self.coordinates[skeleton]
        if len(parts) > 1:
            self.coordinates[skeleton] = parts = [np.concatenate(parts)]
        return parts[0]

    # -- out ------------------------------------------------------------------------

    def pieces(
        self, ids: Ids, shape: tuple[int, ...], elements: Numbers | None = None
    ) -> tuple[Piece, ...]:
        ids = ids.reshape(-1)
        if elements is None:
            elements = np.arange(ids.size, dtype=np.int64)
        if not elements.size:
            return ()
        places = self.place(ids[elements])
        skeletons, rows = self.skeleton_of[places], self.row_of[places]
        pieces: list[Piece] = []
        for number in np.unique(skeletons):
            alike = np.flatnonzero(skeletons == number)
            chosen = elements[alike]
            if shape:
                cells = np.stack(np.unravel_index(chosen, shape), axis=1)
            else:
                cells = np.zeros((1, 0), np.int64)
            columns = self.table(int(number))[rows[alike]]
            form = self.form(int(number), cells, columns)
            digest = hashlib.blake2b(chosen.tobytes(), digest_size=12).hexdigest()
            box = tuple((int(c.min()), int(c.max()) + 1) for c in cells.T)
            full = len(chosen) == math.prod(high - low for low, high in box)
            pieces.append(Piece(form, digest, box, full, cells))
        return tuple(sorted(pieces, key=lambda piece: (piece.box, str(piece.form), piece.digest)))

    def varying(self, whole: bool, cells: Numbers, column: Numbers) -> Form:
        first = column.reshape(-1)[0]
        if (column == first).all():
            return Number(float(first if whole else first.view(np.float64)))
        return Varying(fitted(cells, column) if whole else Table.of(column), whole)

    def form(self, number: int, cells: Numbers, columns: Numbers) -> Form:
        """The expression of a skeleton; `columns` has shape (cells, *counts, width)."""
        skeleton = self.skeletons[number]
        match skeleton.kind:
            case "element":
                index = tuple(
                    fitted(cells, columns[..., column]) for column in range(skeleton.width)
                )
                return Element(skeleton.operator, index, skeleton.span)
            case "constant":
                return Number(skeleton.number, skeleton.span)
            case "whole" | "real":
                return self.varying(skeleton.kind == "whole", cells, columns[..., 0])
            case "missing" | "undefined":
                return Missing(skeleton.kind == "undefined", skeleton.span)
            case "opaque":
                return Unknown("not understood", skeleton.span)
            case "hashed":
                return Hashed(Table.of(columns[..., 0]), skeleton.span)
        parts: list[Part] = []
        start = 0
        for inner, power, count in skeleton.parts:
            width = self.skeletons[inner].width
            block = columns[..., start : start + width * count]
            start += width * count
            if count > 1:
                block = block.reshape((*block.shape[:-1], count, width))
            parts.append(Part(self.form(inner, cells, block), power, count))
        if skeleton.kind == "apply":
            return Apply(skeleton.operator, tuple(p.form for p in parts), skeleton.span)
        return Combine(skeleton.operator, tuple(parts), skeleton.span)


def combined(operator: str, numbers: Sequence[tuple[float, int]]) -> float:
    """Numbers combined, each as often as its power says; independent of their order."""
    with np.errstate(all="ignore"):
        match operator:
            case "add":
                products = [number * power for number, power in numbers]
                if all(map(math.isfinite, products)):
                    return math.fsum(products)
                return float(np.sum(products))
            case "multiply":
                total = 1.0
                for number, power in sorted(numbers):
                    total *= float(np.float64(number) ** power)
                return total
        total = GROUPS[operator]
        for number, _ in sorted(numbers):
            total = float(real(operator, total, number))
        return total


def _collected(parents: Numbers, children: Ids, powers: Numbers) -> tuple[Numbers, Ids, Numbers]:
    """Add up the powers of equal children of a parent; drop what cancels."""
    order = np.lexsort((children, parents))
    parents, children, powers = parents[order], children[order], powers[order]
    if not parents.size:
        return parents, children, powers
    first = np.ones(parents.size, bool)
    first[1:] = (parents[1:] != parents[:-1]) | (children[1:] != children[:-1])
    starts = np.flatnonzero(first)
    totals = np.add.reduceat(powers, starts)
    kept = totals != 0
    return parents[starts][kept], children[starts][kept], totals[kept]


def _alike(
    parents: Numbers, starts: Numbers, lengths: Numbers, skeletons: Numbers, powers: Numbers
) -> list[Numbers]:
    """Parents with the same sequence of (skeleton, power)."""
    if not parents.size:
        return [np.arange(len(starts))] if len(starts) else []
    position = (np.arange(parents.size) - starts[parents]).astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed = (skeletons.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = mixed ^ (powers.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F))
        mixed = mixed ^ mixed >> np.uint64(29)
        mixed = (mixed + position * np.uint64(0x165667B19E3779F9)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = mixed ^ mixed >> np.uint64(32)
        sums = np.zeros(len(starts), np.uint64)
        np.add.at(sums, parents, mixed)
        sums = sums + lengths.astype(np.uint64) * np.uint64(0xD6E8FEB86659FD93)
    order = np.argsort(sums, kind="stable")
    return list(np.split(order, np.flatnonzero(np.diff(sums[order])) + 1))


def _runs(skeletons: Numbers, powers: Numbers) -> list[tuple[int, int, int]]:
    runs: list[tuple[int, int, int]] = []
    for skeleton, power in zip(skeletons.tolist(), powers.tolist(), strict=True):
        if runs and runs[-1][:2] == (skeleton, power):
            runs[-1] = (skeleton, power, runs[-1][2] + 1)
        else:
            runs.append((skeleton, power, 1))
    return runs
