"""What a kernel demands of its sizes, and sizes that meet it.

A clause is a comparison of two numbers of a specialised kernel that has to hold.  Numbers know
the expression they were made by, so a clause can be tried at other sizes without running the
kernel again (loop positions stay where they were when it was met; the next run shows whether
that was enough).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from migrate.nki.symbols import (
    ArithmeticFault,
    Number,
    binary,
    constant,
    extremum,
    sizes_of,
    unary,
)

MAX_EXTENT = 1 << 20
"""The longest axis that is tried."""

MAX_REPAIRS = 64
"""Changes of one size at a time on the way to sizes that meet every clause."""

ROUND = (1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048)
"""Lengths that are tried where no expression gives one."""

FACTORS = (1, 2, 3, 4, 8, 16)

Right = Number | tuple[Number, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Clause:
    """`left sign right` has to hold; for `in` and `not in` the right side is several numbers."""

    left: Number
    sign: str
    right: Right

    @property
    def names(self) -> frozenset[str]:
        """The sizes that decide it."""
        rights = self.right if isinstance(self.right, tuple) else (self.right,)
        return frozenset(name for part in (self.left, *rights) for name in sizes_of(part))

    @property
    def subject(self) -> str:
        """Equal for clauses about the same expression."""
        return _text(self.left)

    @property
    def key(self) -> str:
        """Equal for clauses that say the same."""
        rights = self.right if isinstance(self.right, tuple) else (self.right,)
        return f"{_text(self.left)} {self.sign} {' '.join(map(_text, rights))}"

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether it holds at other sizes; false where an expression has no value there."""
        try:
            left = evaluated(self.left, sizes).value
            if isinstance(self.right, tuple):
                found = left in [evaluated(part, sizes).value for part in self.right]
                return found == (self.sign == "in")
            return _compared(left, self.sign, evaluated(self.right, sizes).value)
        except ArithmeticFault:
            return False

    def denied(self) -> Clause:
        """The clause that holds where this one does not."""
        return Clause(self.left, _OPPOSITE[self.sign], self.right)


_OPPOSITE = {
    "==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">",
    "in": "not in", "not in": "in",
}  # fmt: skip
SIGNS = frozenset(_OPPOSITE)


def _compared(left: float, sign: str, right: float) -> bool:
    match sign:
        case "==":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case _:
            return left >= right


def evaluated(number: Number, sizes: Mapping[str, int]) -> Number:
    """The number at other sizes.  Raises `ArithmeticFault`.

    An expression is at most `symbols.MAX_WEIGHT` deep.
    """
    if not number.symbolic:
        return number
    if number.op == "symbol":
        return constant(sizes.get(number.symbol, int(number.value)))
    if number.op == "axis" or not number.args:
        return number
    args = tuple(evaluated(arg, sizes) for arg in number.args)
    match number.op:
        case "same":
            return args[0]
        case "min" | "max":
            return extremum(number.op, args)
        case _ if len(args) == 2:
            return binary(number.op, *args)
        case _:
            return unary(number.op, args[0])


def _text(number: Number) -> str:
    if number.op == "symbol":
        return number.symbol
    if not number.symbolic or number.op == "axis" or not number.args:
        return str(number.value)
    if number.op == "same":
        return _text(number.args[0])
    return f"({number.op} {' '.join(map(_text, number.args))})"


def constants_of(number: Number) -> Iterator[int]:
    """The whole numbers in an expression."""
    pending = [number]
    while pending:
        part = pending.pop()
        if not part.symbolic:
            if isinstance(part.value, int) and 0 < part.value <= MAX_EXTENT:
                yield part.value
        else:
            pending.extend(part.args)


def repaired(
    sizes: Mapping[str, int], clauses: Sequence[Clause], stiff: Mapping[str, int]
) -> dict[str, int] | None:
    """Sizes near the given ones at which every clause holds; `None` where none were found.

    Sizes with a larger number in `stiff` are changed later.
    """
    current = dict(sizes)
    about: dict[str, list[Clause]] = {}
    for clause in clauses:
        for name in clause.names:
            about.setdefault(name, []).append(clause)
    left: set[tuple[str, int]] = set()
    for _ in range(MAX_REPAIRS):
        broken = [clause for clause in clauses if not clause.holds(current)]
        if not broken:
            return current
        step = _best(broken[-1], current, about, stiff, left)
        if step is None:
            return None
        name, value = step
        left.add((name, current[name]))
        current[name] = value
    return None


def _best(
    clause: Clause,
    sizes: Mapping[str, int],
    about: Mapping[str, Sequence[Clause]],
    stiff: Mapping[str, int],
    left: set[tuple[str, int]],
) -> tuple[str, int] | None:
    """The change of one size that makes a clause hold and breaks as few others as possible."""
    best: tuple[tuple[float, ...], str, int] | None = None
    for name in sorted(clause.names & sizes.keys()):
        now = sizes[name]
        for value in _candidates(name, clause, sizes):
            if value == now or (name, value) in left:
                continue
            changed = {**sizes, name: value}
            if not clause.holds(changed):
                continue
            broken = sum(1 for other in about[name] if not other.holds(changed))
            # Among values that fit, whole tiles and small changes.
            distance = abs(math.log2(value / now))
            cost = (broken, stiff.get(name, 0), distance, value)
            if best is None or (cost, name, value) < best:
                best = (cost, name, value)
    return None if best is None else best[1:]


def _candidates(name: str, clause: Clause, sizes: Mapping[str, int]) -> Iterable[int]:
    found: dict[int, None] = dict.fromkeys(_solutions(name, clause, sizes))
    rights = clause.right if isinstance(clause.right, tuple) else (clause.right,)
    constants = {c for part in (clause.left, *rights) for c in constants_of(part)}
    for value in sorted({*constants, *sizes.values()}):
        found.update(dict.fromkeys(value * factor for factor in FACTORS))
        found.update(dict.fromkeys(value // factor for factor in FACTORS))
    found.update(dict.fromkeys(ROUND))
    return [value for value in found if 0 < value <= MAX_EXTENT]


def _solutions(name: str, clause: Clause, sizes: Mapping[str, int]) -> Iterator[int]:
    """Where both sides meet, if the difference is linear in the size; and one beside it."""
    if isinstance(clause.right, tuple):
        return
    try:
        values = [
            evaluated(clause.left, changed).value - evaluated(clause.right, changed).value
            for step in (0, 1, 2)
            for changed in ({**sizes, name: sizes[name] + step},)
        ]
    except ArithmeticFault:
        return
    slope = values[1] - values[0]
    if slope == 0 or values[2] - values[1] != slope:
        return
    meeting = math.floor(sizes[name] - values[0] / slope)
    yield from (meeting, meeting + 1, meeting - 1)
