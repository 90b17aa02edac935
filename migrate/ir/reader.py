"""Reads tensor expressions back from the log of canonical terms.

Terms of the same shape (the same operators on the same tensors at other coordinates)
get one skeleton and a row of coordinates each, from the elements upwards (`ir.descent`
lists the operands).  A term is a skeleton or its negation: of a sum and its negation the
one counts as positive whose first part does.

Operands of one shape whose coordinates go up by equal steps are kept as the coordinates
of the first two, so that a sum of 700 elements is no wider than a sum of two.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from migrate.budget import Meter
from migrate.ir.descent import Descent, Group, Numbers, Truths
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
from migrate.ir.hashing import Ids
from migrate.ir.literals import Floats, canonical
from migrate.ir.rings import COMMUTATIVE_ONLY, GROUPS, INVERSES
from migrate.ir.runs import Lengths, Regular, alike, grids, runs, sorted_by, turned
from migrate.ir.skeletons import Run, Skeletons
from migrate.ir.terms import Made

MAX_WIDTH = 4096
"""Coordinates of one expression; a larger one is kept as a hash."""
MAX_DEPTH = 150
"""Nesting of one expression; a deeper one is kept as a hash."""
MAX_NUMBERS = 64
"""Distinct numbers in an output that each make a shape of their own; more are coordinates."""

_NUMBERS = frozenset({"constant", "whole", "real"})


@dataclass(slots=True)
class _Parts:
    """The operands of the terms of a group, described, by term and in canonical order.

    Those of term `i` are `lengths[i]` from `starts[i]`, and its number if it has one
    (`number_shapes[i]` is -1 if not).
    """

    parents: Numbers
    powers: Numbers
    skeletons: Numbers
    rows: Numbers
    negative: Truths
    number: Floats
    starts: Numbers
    lengths: Numbers
    number_shapes: Numbers
    number_rows: Numbers

    def runs(self, term: int) -> list[Run]:
        """The operands of a term but its number."""
        some = slice(self.starts[term], self.starts[term] + self.lengths[term])
        return [Run(*run) for run in runs(self.skeletons[some], self.powers[some])]


class Reader:
    def __init__(
        self, log: Sequence[Made], shapes: Mapping[str, tuple[int, ...]], meter: Meter
    ) -> None:
        self.shapes = shapes
        self.meter = meter
        self.descent = Descent(log, meter)
        self.standing = np.zeros(0, np.int64)
        self.skeletons = Skeletons(meter)
        self.skeleton_of = np.zeros(0, np.int64)
        self.row_of = np.zeros(0, np.int64)
        self.negative_of = np.zeros(0, bool)

    def place(self, ids: Ids) -> Numbers:
        """The positions of described terms in `skeleton_of` and its like."""
        return np.asarray(self.standing[self.descent.places.of(ids)])

    def read(self, roots: Ids) -> None:
        """Describe some logged terms and all they are made of."""
        groups, wanted = self.descent.groups(roots)
        count = int(wanted.sum())
        self.standing = np.cumsum(wanted) - 1
        self.skeleton_of = np.full(count, -1, np.int64)
        self.row_of = np.full(count, -1, np.int64)
        self.negative_of = np.zeros(count, bool)
        used = [self.numbers_in(group) for group in groups]
        distinct = np.unique(np.concatenate([np.zeros(0), *used]))
        self.skeletons.many_numbers = distinct.size > MAX_NUMBERS
        for group in reversed(groups):
            self.describe(group)

    def numbers_in(self, group: Group) -> Floats:
        """The numbers that a group's expressions name."""
        if group.operands is not None:
            return np.unique(group.operands.number[group.operands.numbered])
        listed = self.descent.log[group.made].numbers
        if listed is None:
            return np.zeros(0)
        return np.unique(canonical(listed.reshape(-1)[group.rows]))

    # -- terms ----------------------------------------------------------------------

    def describe(self, group: Group) -> None:
        entry = self.descent.log[group.made]
        rows = group.rows
        places = self.place(group.ids)
        nothing = np.zeros((len(rows), 0), np.int64)
        if group.operands is not None:
            self.describe_operation(group, entry, places)
            return
        match entry.operator:
            case "element":
                shape = self.shapes[entry.tensor]
                elements = entry.args[0].reshape(-1)[rows].astype(np.int64)
                at = np.stack(np.unravel_index(elements, shape), axis=1) if shape else nothing
                skeleton = self.skeletons.make(
                    "element", entry.tensor, (), len(shape), 0, entry.span
                )
                self.assign(places, skeleton, at)
            case "constant":
                assert entry.numbers is not None
                numbers = canonical(entry.numbers.reshape(-1)[rows])
                self.skeleton_of[places], self.row_of[places] = self.skeletons.number_shapes(
                    numbers
                )
            case _:
                self.assign(
                    places, self.skeletons.make(entry.operator, "", (), 0, 0, entry.span), nothing
                )

    def describe_operation(self, group: Group, entry: Made, places: Numbers) -> None:
        operator = INVERSES.get(entry.operator, entry.operator)
        parts = self.parts(group, operator)
        assert group.operands is not None
        numbered = group.operands.numbered
        self.negative_of[places] = parts.negative
        if operator in {"add", "multiply"}:
            # A sum or product of one part is that part.
            alone = (parts.lengths == 1) & ~numbered
            alone[alone] = parts.powers[parts.starts[alone]] == 1
            self.skeleton_of[places[alone]] = parts.skeletons[parts.starts[alone]]
            self.row_of[places[alone]] = parts.rows[parts.starts[alone]]
        else:
            alone = np.zeros(len(group.ids), bool)
        shown = numbered & ~alone
        numbers = self.skeletons.number_shapes(parts.number[shown])
        parts.number_shapes[shown], parts.number_rows[shown] = numbers
        for members in alike(
            parts.parents,
            parts.starts,
            parts.lengths,
            parts.skeletons,
            parts.powers,
            parts.number_shapes,
        ):
            members = members[~alone[members]]
            if members.size:
                self.describe_members(group, entry, places, parts, members)

    def parts(self, group: Group, operator: str) -> _Parts:
        """The operands of a group in canonical order, with signs taken out."""
        operands = group.operands
        assert operands is not None
        places = self.place(operands.children)
        skeletons, rows = self.skeleton_of[places], self.row_of[places]
        minus = self.negative_of[places]
        parents, powers = operands.parents, operands.powers
        negative, number = operands.negative.copy(), operands.number.copy()
        if operator == "add":
            powers = np.where(minus, -powers, powers)
        elif operator == "multiply":
            np.logical_xor.at(negative, parents[minus], powers[minus] % 2 != 0)
        else:
            skeletons, rows = self.skeletons.plain(skeletons, rows, minus)
        if operator in GROUPS or operator in COMMUTATIVE_ONLY:
            standing = self.skeletons.by_digest(skeletons)
            rank = self.skeletons.rank(skeletons, rows)
            if operator == "add" and (powers < 0).any():
                negative = turned(parents, powers, standing, rank, len(negative))
                powers = np.where(negative[parents], -powers, powers)
                number = np.where(negative, -number, number)
            order = sorted_by(parents, standing, powers, rank)
            parents, powers = parents[order], powers[order]
            skeletons, rows = skeletons[order], rows[order]
        terms = np.arange(len(group.ids))
        starts = np.searchsorted(parents, terms)
        return _Parts(
            parents=parents,
            powers=powers,
            skeletons=skeletons,
            rows=rows,
            negative=negative,
            number=number + 0.0,
            starts=starts,
            lengths=np.searchsorted(parents, terms, side="right") - starts,
            number_shapes=np.full(terms.size, -1, np.int64),
            number_rows=np.zeros(terms.size, np.int64),
        )

    def describe_members(
        self, group: Group, entry: Made, places: Numbers, parts: _Parts, members: Numbers
    ) -> None:
        """Terms of a group whose operands have the same shapes."""
        operator = INVERSES.get(entry.operator, entry.operator)
        combining = operator in GROUPS
        found = parts.runs(int(members[0]))
        if not combining:
            found = [replace(run, count=1) for run in found for _ in range(run.count)]
        offsets = np.cumsum([0, *(run.count for run in found)])[: len(found)]
        steps: list[list[tuple[Lengths, Regular]]] = []
        # Which of its `steps` each run of a term takes; 0 is none.
        taken = np.zeros((len(found), members.size), np.int64)
        for position, (run, offset) in enumerate(zip(found, offsets, strict=True)):
            steps.append([])
            if run.count > 1:
                self.meter.step(members.size * run.count // 64 + 1)
                begins = parts.starts[members] + offset
                even = grids(self.skeletons.table(run.skeleton), parts.rows, begins, run.count)
                for number, (lengths, regular) in enumerate(sorted(even.items())):
                    taken[position, regular.runs] = number + 1
                    steps[-1].append((lengths, regular))
        number = int(parts.number_shapes[members[0]])
        last = [Run(number, 1, 1)] if number >= 0 else []
        for pattern in np.unique(taken, axis=1).T:
            chosen = np.flatnonzero((taken == pattern[:, None]).all(axis=0))
            these = members[chosen]
            even_ = [s[t - 1] if t else None for s, t in zip(steps, pattern.tolist(), strict=True)]
            shape = [
                run if step is None else self.skeletons.grid(operator, run, step[0], entry.span)
                for run, step in zip(found, even_, strict=True)
            ]
            shape += last
            understood = all(self.skeletons[run.skeleton].understood for run in shape)
            width = sum(self.skeletons.width(run) for run in shape)
            depth = 1 + max((self.skeletons[run.skeleton].depth for run in shape), default=0)
            if width > MAX_WIDTH or depth > MAX_DEPTH:
                self.hashed(group, places, these, parts.negative, entry, understood)
                continue
            columns = [np.zeros((these.size, 0), np.int64)]
            for run, offset, step in zip(found, offsets, even_, strict=True):
                if step is not None:
                    columns.append(step[1].columns[np.searchsorted(step[1].runs, chosen)])
                    continue
                table = self.skeletons.table(run.skeleton)
                for part in range(run.count):
                    columns.append(table[parts.rows[parts.starts[these] + offset + part]])
            if last:
                columns.append(self.skeletons.table(number)[parts.number_rows[these]])
            kind = "combine" if combining else "apply"
            skeleton = self.skeletons.make(kind, operator, tuple(shape), width, depth, entry.span)
            self.assign(places[these], skeleton, np.concatenate(columns, axis=1))

    def hashed(
        self,
        group: Group,
        places: Numbers,
        members: Numbers,
        negative: Truths,
        entry: Made,
        understood: bool,
    ) -> None:
        if not understood:
            skeleton = self.skeletons.make("opaque", "", (), 0, 0, entry.span)
            self.assign(places[members], skeleton, np.zeros((len(members), 0), np.int64))
            return
        with np.errstate(over="ignore"):
            ids = np.where(negative[members], np.uint64(0) - group.ids[members], group.ids[members])
        skeleton = self.skeletons.make("hashed", "", (), 1, 0, entry.span)
        self.assign(places[members], skeleton, ids.view(np.int64).reshape(-1, 1))

    def assign(self, places: Numbers, skeleton: int, coordinates: Numbers) -> None:
        self.skeleton_of[places] = skeleton
        self.row_of[places] = self.skeletons.add_rows(skeleton, coordinates)

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
        skeletons, rows = self.skeletons.plain(
            self.skeleton_of[places], self.row_of[places], self.negative_of[places]
        )
        pieces: list[Piece] = []
        for number in np.unique(skeletons):
            alike_ = np.flatnonzero(skeletons == number)
            chosen = elements[alike_]
            if shape:
                cells = np.stack(np.unravel_index(chosen, shape), axis=1)
            else:
                cells = np.zeros((1, 0), np.int64)
            columns = self.skeletons.table(int(number))[rows[alike_]]
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
        """The expression of a skeleton; `columns` has shape (cells, *counts, width).

        A count of equal steps is 2 there.
        """
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
        for run in skeleton.parts:
            width = self.skeletons[run.skeleton].width
            block = columns[..., start : start + self.skeletons.width(run)]
            start += self.skeletons.width(run)
            if run.count > 1:
                listed = 2 if run.regular else run.count
                block = block.reshape((*block.shape[:-1], listed, width))
            parts.append(Part(self.form(run.skeleton, cells, block), run.power, run.count))
        if skeleton.kind == "apply":
            return Apply(skeleton.operator, tuple(p.form for p in parts), skeleton.span)
        return Combine(skeleton.operator, tuple(parts), skeleton.span)
