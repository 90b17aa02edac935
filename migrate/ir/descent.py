"""From terms down the log: what each term is made of, as one flat list of operands.

Nested sums, products and extrema are opened until only other operators, elements and
one number are left.  Of a term and its negation, either stands for both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from migrate.budget import Meter
from migrate.ir.hashing import Ids, Places, scramble
from migrate.ir.literals import Floats, canonical
from migrate.ir.reals import real
from migrate.ir.rings import GROUPS, IDEMPOTENT, INVERSES, sizes
from migrate.ir.terms import Made

Numbers = NDArray[np.int64]
Truths = NDArray[np.bool_]

_NO_IDS = np.zeros(0, np.uint64)
_NOTHING = np.zeros(0, np.int64)
_BYTES = 160


@dataclass(frozen=True, slots=True)
class Operands:
    """Operands of some terms: `children[i]` is one of term `parents[i]`, `powers[i]` times.

    A product of the operands has the sign `negative` besides.
    `number` is one more operand where `numbered`.
    """

    parents: Numbers
    children: Ids
    powers: Numbers
    negative: Truths
    numbered: Truths
    number: Floats


@dataclass(frozen=True, slots=True)
class Group:
    """Terms that one logged operation made."""

    made: int
    ids: Ids
    rows: Numbers
    operands: Operands | None
    """None for what is not made of other terms."""


class Descent:
    """A log of terms, by term."""

    def __init__(self, log: Sequence[Made], meter: Meter) -> None:
        self.log = log
        self.meter = meter
        ids = np.concatenate([made.ids.reshape(-1) for made in log])
        order = np.argsort(ids, kind="stable")
        ids = ids[order]
        first = np.ones(ids.size, bool)
        first[1:] = ids[1:] != ids[:-1]
        self.logged = ids[first]
        self.places = Places(self.logged)
        where = order[first]
        starts = np.concatenate([[0], np.cumsum([made.ids.size for made in log])])
        self.logged_made = np.searchsorted(starts, where, side="right") - 1
        self.logged_row = where - starts[self.logged_made]
        self._families: dict[str, Truths] = {}

    def lookup(self, ids: Ids) -> tuple[Numbers, Numbers]:
        """The logged operation and row that first made each term."""
        places = self.places.of(ids)
        return self.logged_made[places], self.logged_row[places]

    def groups(self, roots: Ids) -> tuple[list[Group], Truths]:
        """Some logged terms and all they are made of, what is made of others first.

        Also gives which of `logged` these are.
        """
        wanted = np.zeros(self.logged.size, bool)
        wanted[self.places.of(roots)] = True
        by_made = np.argsort(self.logged_made, kind="stable")
        bounds = np.searchsorted(self.logged_made[by_made], np.arange(len(self.log) + 1))
        found: list[Group] = []
        # What a term is made of was logged before it.
        for made in range(len(self.log) - 1, -1, -1):
            places = by_made[bounds[made] : bounds[made + 1]]
            places = places[wanted[places]]
            if not places.size:
                continue
            self.meter.step(places.size // 16 + 1)
            rows = self.logged_row[places]
            operands = self._operands(made, rows)
            found.append(Group(made, self.logged[places], rows, operands))
            if operands is not None:
                wanted[self.places.of(operands.children)] = True
        return found, wanted

    def _operands(self, made: int, rows: Numbers) -> Operands | None:
        entry = self.log[made]
        if not entry.args or entry.operator == "element":
            return None
        parents, children, powers = self._arguments(made, rows)
        operator = INVERSES.get(entry.operator, entry.operator)
        if operator in GROUPS:
            return self._flat(operator, parents, children, powers, len(rows))
        nothing = np.zeros(len(rows), bool)
        return Operands(parents, children, powers, nothing, nothing, np.zeros(len(rows)))

    def _arguments(self, made: int, rows: Numbers) -> tuple[Numbers, Ids, Numbers]:
        """(parent, child, power) of every argument of some rows, in order."""
        entry = self.log[made]
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

    def _flat(
        self, operator: str, parents: Numbers, children: Ids, powers: Numbers, count: int
    ) -> Operands:
        """Replace arguments made by the same operator by their own arguments."""
        inner = self._family(operator)
        turning = self._family("negate") if operator == "multiply" else np.zeros_like(inner)
        constant = self._family("constant")
        negative = np.zeros(count, bool)
        done: list[tuple[Numbers, Ids, Numbers]] = []
        numbers: list[tuple[Numbers, Floats, Numbers]] = []
        while parents.size:
            # A level costs some twenty array operations, however few operands it has.
            self.meter.step(parents.size // 8 + 256)
            # Refused before some twenty arrays over all operands are made.
            self.meter.take(_BYTES * parents.size)
            self.meter.give(_BYTES * parents.size)
            which, rows = self.lookup(children)
            known = constant[which]
            if known.any():
                given = self._numbers(which[known], rows[known])
                numbers.append((parents[known], given, powers[known]))
            opened = (inner | turning)[which]
            kept = ~opened & ~known
            done.append((parents[kept], children[kept], powers[kept]))
            next_parents, next_children, next_powers = [_NOTHING], [_NO_IDS], [_NOTHING]
            for made in np.unique(which[opened]):
                chosen = opened & (which == made)
                sub_parents, sub_children, sub_powers = self._arguments(int(made), rows[chosen])
                if turning[made]:
                    np.logical_xor.at(negative, parents[chosen], powers[chosen] % 2 != 0)
                    sub_powers = np.ones_like(sub_powers)
                next_parents.append(parents[chosen][sub_parents])
                next_children.append(sub_children)
                next_powers.append(powers[chosen][sub_parents] * sub_powers)
            parents = np.concatenate(next_parents)
            children = np.concatenate(next_children)
            powers = np.concatenate(next_powers)
        parents, children, powers = (
            np.concatenate([d[0] for d in done] or [_NOTHING]),
            np.concatenate([d[1] for d in done] or [_NO_IDS]),
            np.concatenate([d[2] for d in done] or [_NOTHING]),
        )
        parents, children, powers = _collected(operator, parents, children, powers, negative)
        numbered, number = _one_number(operator, numbers, count)
        if operator == "multiply":
            negative ^= numbered & (number < 0)
            number = np.abs(number)
        # The neutral number is left out, but where there is nothing else.
        alone = np.ones(count, bool)
        alone[parents] = False
        numbered &= alone | (number != GROUPS[operator])
        return Operands(parents, children, powers, negative, numbered, number)

    def _numbers(self, which: Numbers, rows: Numbers) -> Floats:
        """The numbers of some rows of logged constants."""
        found = np.zeros(which.size)
        for made in np.unique(which):
            listed = self.log[made].numbers
            assert listed is not None
            chosen = which == made
            found[chosen] = listed.reshape(-1)[rows[chosen]]
        return found

    def _family(self, operator: str) -> Truths:
        """Which logged operations are the operator or its inverse."""
        found = self._families.get(operator)
        if found is None:
            inner = [operator in (m.operator, INVERSES.get(m.operator)) for m in self.log]
            found = self._families[operator] = np.array(inner)
        return found


def _collected(
    operator: str, parents: Numbers, children: Ids, powers: Numbers, negative: Truths
) -> tuple[Numbers, Ids, Numbers]:
    """Add up the powers of operands that are equal, in sums and products up to their sign.

    Drops what cancels; `negative` takes the signs of factors.
    """
    signed = operator in {"add", "multiply"}
    keys = sizes(children) if signed else children
    if _all_different(parents, keys):
        return parents, children, np.ones_like(powers) if operator in IDEMPOTENT else powers
    order = np.lexsort((children, keys, parents)) if signed else np.lexsort((keys, parents))
    parents, children, powers, keys = parents[order], children[order], powers[order], keys[order]
    if not parents.size:
        return parents, children, powers
    first = np.ones(parents.size, bool)
    first[1:] = (parents[1:] != parents[:-1]) | (keys[1:] != keys[:-1])
    starts = np.flatnonzero(first)
    # An operand stands for its negation where both occur.
    turned = children != children[starts][np.cumsum(first) - 1]
    if operator == "add":
        powers = np.where(turned, -powers, powers)
    elif operator == "multiply" and turned.any():
        np.logical_xor.at(negative, parents[turned], powers[turned] % 2 != 0)
    totals = np.add.reduceat(powers, starts)
    kept = totals != 0
    if operator in IDEMPOTENT:
        totals = np.ones_like(totals)
    return parents[starts][kept], children[starts][kept], totals[kept]


def _all_different(parents: Numbers, keys: Ids) -> bool:
    """Whether no parent has a key twice."""
    pairs = np.sort(keys ^ scramble(parents.astype(np.uint64)))
    return not bool((pairs[1:] == pairs[:-1]).any())


def _one_number(
    operator: str, given: Sequence[tuple[Numbers, Floats, Numbers]], count: int
) -> tuple[Truths, Floats]:
    """The numbers among the operands of each of `count` terms, as one."""
    numbered = np.zeros(count, bool)
    number = np.full(count, GROUPS[operator])
    if not given:
        return numbered, number
    parents = np.concatenate([g[0] for g in given])
    values = np.concatenate([g[1] for g in given])
    powers = np.concatenate([g[2] for g in given])
    numbered[parents] = True
    order = np.lexsort((powers, values, parents))
    parents, values, powers = parents[order], values[order], powers[order]
    starts = np.searchsorted(parents, np.flatnonzero(numbered))
    lengths = np.diff(np.append(starts, parents.size))
    for length in np.unique(lengths):
        begin = starts[lengths == length]
        places = begin[:, None] + np.arange(length)
        both = np.concatenate([values[places], powers[places].astype(np.float64)], axis=1)
        distinct, where = np.unique(both, axis=0, return_inverse=True)
        totals = [
            combined(operator, list(zip(row[:length], map(int, row[length:]), strict=True)))
            for row in distinct.tolist()
        ]
        number[parents[begin]] = np.array(totals)[where.reshape(-1)]
    return numbered, canonical(number)


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
