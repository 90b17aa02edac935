"""Which construct of one kernel stands where which of the other stands.

Anchors are assigned first, exactly, by what they do and to which tensors; the rest is
assigned around them, by the partners of its neighbours as well.  What is left over on
either side joins a pair that does the same thing: a main and a remainder region are one
thing to a guarded thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from migrate import facts
from migrate.ir.constructs import ANCHORS, Construct
from migrate.numerics.single import as_float32

_LIMIT = 3.0
"""Cost above which two constructs are left without a partner rather than paired."""
_NEVER = 1e6

# Operators as the family in which `ir.rewrites` brings them together.
_FAMILY = {
    "subtract": "add",
    "negate": "add",
    "divide": "multiply",
    "reciprocal": "multiply",
    "square": "multiply",
    "fma": "add",
    "relu": "maximum",
    "maximum_number": "maximum",
    "minimum_number": "minimum",
    "less": "greater",
    "less_equal": "greater_equal",
    "rsqrt": "sqrt",
}


@dataclass(frozen=True, slots=True)
class Match:
    """Constructs that are one thing; either side may be empty, one of them is not."""

    cuda: tuple[Construct, ...]
    nki: tuple[Construct, ...]


@dataclass(slots=True)
class SideView:
    """One kernel's constructs with the logical names of the tensors around each.

    `names` maps buffers to logical tensors; `reads` and `writes` are the tensors a
    construct's value comes from and goes to, through whatever lies between.
    """

    constructs: Sequence[Construct]
    names: Mapping[str, str]
    reads: dict[str, frozenset[str]] = field(init=False, default_factory=dict)
    writes: dict[str, frozenset[str]] = field(init=False, default_factory=dict)
    before: dict[str, frozenset[str]] = field(init=False, default_factory=dict)
    behind: dict[str, set[str]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.before = {c.id: frozenset(c.after) for c in self.constructs}
        self.behind = {c.id: set() for c in self.constructs}
        for construct in self.constructs:
            for used in construct.after:
                self.behind[used].add(construct.id)
        own = {c.id: self.tensors(c) for c in self.constructs}
        stores = {c.id for c in self.constructs if c.kind in {"output-store", "scatter"}}
        for construct in self.constructs:
            above = self._reach(construct.id, self.before)
            below = self._reach(construct.id, self.behind)
            self.reads[construct.id] = frozenset(
                name for used in above - stores for name in own[used]
            )
            self.writes[construct.id] = frozenset(
                name for user in below & stores for name in own[user]
            )

    def tensors(self, construct: Construct) -> frozenset[str]:
        """The logical tensors that a construct touches itself."""
        return frozenset(self.names.get(buffer, buffer) for buffer in construct.tensors)

    def neighbours(self, construct: Construct) -> frozenset[str]:
        return self.before[construct.id] | self.behind[construct.id]

    @staticmethod
    def _reach(start: str, edges: Mapping[str, frozenset[str] | set[str]]) -> set[str]:
        found = {start}
        pending = [start]
        while pending:
            for other in edges[pending.pop()]:
                if other not in found:
                    found.add(other)
                    pending.append(other)
        return found


def assign(cuda: SideView, nki: SideView, *, proved: bool = False) -> tuple[Match, ...]:
    """Every construct of both kernels in exactly one match, in CUDA program order.

    Where the kernels are `proved` equal, a number is never the other's wrong number: unlike
    ones stay without a partner.
    """
    matching = _Matching(cuda, nki, proved)
    matching.assign(lambda construct: construct.kind in ANCHORS)
    matching.assign(lambda construct: construct.kind not in ANCHORS)
    matching.absorb()
    return matching.matches()


def operator_families(constructs: Sequence[Construct]) -> Counter[str]:
    """How often each operator is applied, alike ones as one."""
    return Counter(
        _FAMILY.get(operator, operator)
        for construct in constructs
        for operator in construct.operators
    )


class _Matching:
    def __init__(self, cuda: SideView, nki: SideView, proved: bool) -> None:
        self.cuda = cuda
        self.nki = nki
        self.proved = proved
        self.partner: dict[str, str] = {}
        """NKI construct of a CUDA construct, by id."""
        self.groups: dict[str, tuple[list[Construct], list[Construct]]] = {}
        """Both sides of a pair, by the CUDA construct it began with."""
        self.taken: dict[str, str] = {}
        """The pair that a NKI construct is in."""
        self.joined: dict[str, str] = {}
        """The pair that a CUDA construct is in."""
        self.loaded = frozenset(
            name for c in nki.constructs if c.kind == "stage-in" for name in nki.tensors(c)
        )
        self.rank = {
            **_ranks(cuda.constructs, "cuda"),
            **_ranks(nki.constructs, "nki"),
        }

    # -- exact ----------------------------------------------------------------------

    def assign(self, chosen: Callable[[Construct], bool]) -> None:
        left = [c for c in self.cuda.constructs if chosen(c) and c.id not in self.joined]
        right = [n for n in self.nki.constructs if chosen(n) and n.id not in self.taken]
        if not left or not right:
            return
        import numpy as np
        from lap import lapjv

        costs = np.array([[self.cost(c, n) for n in right] for c in left], np.float64)
        _, places, _ = lapjv(costs, cost_limit=_LIMIT)
        for row, column in enumerate(places.tolist()):
            if column >= 0 and costs[row, column] < _LIMIT:
                self.pair(left[row], right[column])

    def pair(self, c: Construct, n: Construct) -> None:
        self.partner[c.id] = n.id
        self.groups[c.id] = ([c], [n])
        self.joined[c.id] = c.id
        self.taken[n.id] = c.id

    def cost(self, c: Construct, n: Construct) -> float:
        """0 for the same thing in the same place, over `_LIMIT` for what cannot pair."""
        if c.kind == "opaque" or n.kind == "opaque":
            return _NEVER
        if c.kind != n.kind and not facts.realisations(c.kind, n.kind):
            return _NEVER
        if c.attribute("on") != n.attribute("on"):
            return _NEVER
        if self.proved and c.kind == n.kind == "constant" and not _akin(c.numbers, n.numbers):
            return _NEVER
        left, right = self.cuda.tensors(c), self.nki.tensors(n)
        total = 0.0 if c.kind == n.kind else 0.5
        if left != right:
            if c.kind in {"output-store", "scatter"}:
                return _NEVER
            if c.kind in {"stage-in", "gather"} and not self.mistaken(left, right):
                return _NEVER
            total += _distance(left, right)
        total += _distance(self.cuda.reads[c.id], self.nki.reads[n.id])
        total += _distance(self.cuda.writes[c.id], self.nki.writes[n.id])
        total += 0.6 * _unlike(c, n)
        if c.numbers or n.numbers:
            total += 0.0 if c.numbers == n.numbers else 0.6
        if c.dtypes and n.dtypes and not set(c.dtypes) & set(n.dtypes):
            total += 0.1
        total += 0.4 * self.strangers(c, n)
        return total + 0.2 * abs(self.rank["cuda", c.id] - self.rank["nki", n.id])

    def mistaken(self, left: frozenset[str], right: frozenset[str]) -> bool:
        """Whether NKI may read one tensor in place of another that it never reads."""
        known = set(self.nki.names.values())
        return not left & self.loaded and right <= known

    def strangers(self, c: Construct, n: Construct) -> float:
        """The share of the neighbours that are partnered, but not with each other."""
        near = self.nki.neighbours(n)
        partners = [self.partner[id_] for id_ in self.cuda.neighbours(c) if id_ in self.partner]
        if not partners:
            return 0.0
        return 1.0 - sum(partner in near for partner in partners) / len(partners)

    # -- leftovers ------------------------------------------------------------------

    def absorb(self) -> None:
        for n in self.nki.constructs:
            if n.id in self.taken:
                continue
            found = self.closest(
                [
                    (self.cost(c, n), key)
                    for key, (group, _) in self.groups.items()
                    for c in group
                    if self.same(c, n)
                ]
            )
            if found is not None:
                self.groups[found][1].append(n)
                self.taken[n.id] = found
        for c in self.cuda.constructs:
            if c.id in self.joined:
                continue
            found = self.closest(
                [
                    (self.cost(c, n), key)
                    for key, (_, group) in self.groups.items()
                    for n in group
                    if self.same(c, n)
                ]
            )
            if found is not None:
                self.groups[found][0].append(c)
                self.joined[c.id] = found

    @staticmethod
    def closest(candidates: list[tuple[float, str]]) -> str | None:
        usable = [(cost, int(key)) for cost, key in candidates if cost < _NEVER]
        return str(min(usable)[1]) if usable else None

    def same(self, c: Construct, n: Construct) -> bool:
        """Whether a construct may be a further part of what a paired one is."""
        if c.kind != n.kind:
            return False
        left, right = self.cuda.tensors(c), self.nki.tensors(n)
        match c.kind:
            case "mask":
                together = not left or not right or bool(left & right)
                return together and c.attribute("on") == n.attribute("on")
            case "stage-in" | "gather" | "output-store" | "scatter" | "stage-out":
                return left == right
            case "elementwise":
                shared = operator_families([c]) & operator_families([n])
                return bool(shared) and self.related(c, n)
            case "reduction" | "contraction" | "scan":
                return c.attribute("operator") == n.attribute("operator") and self.related(c, n)
            case "constant" | "initial-value":
                return c.numbers == n.numbers
            case "cast":
                return all(c.attribute(key) == n.attribute(key) for key in ("from", "to"))
            case "tile-axis" | "barrier":
                return True
            case _:
                return self.related(c, n)

    def related(self, c: Construct, n: Construct) -> bool:
        """Whether two constructs stand between tensors that they have in common."""
        before = self.cuda.reads[c.id] & self.nki.reads[n.id]
        behind = self.cuda.writes[c.id] & self.nki.writes[n.id]
        return bool(before or not self.cuda.reads[c.id]) and bool(behind)

    # -- result ---------------------------------------------------------------------

    def matches(self) -> tuple[Match, ...]:
        order = {c.id: number for number, c in enumerate(self.cuda.constructs)}
        found: list[Match] = []
        for c in self.cuda.constructs:
            if c.id in self.groups:
                left, right = self.groups[c.id]
                found.append(Match(tuple(sorted(left, key=lambda x: order[x.id])), tuple(right)))
            elif c.id not in self.joined:
                found.append(Match((c,), ()))
        found.sort(key=lambda match: order[match.cuda[0].id])
        extras = [Match((), (n,)) for n in self.nki.constructs if n.id not in self.taken]
        return (*found, *extras)


def _akin(left: Sequence[float], right: Sequence[float]) -> bool:
    """Whether numbers can stand for each other: as float32, negated, or as a reciprocal."""
    return {_core(number) for number in left} == {_core(number) for number in right}


def _core(number: float) -> float:
    size = abs(number)
    return as_float32(1.0 / size if 0.0 < size < 1.0 else size)


def _ranks(constructs: Sequence[Construct], side: str) -> dict[tuple[str, str], float]:
    """Where each construct stands among those of its kind, 0 to 1."""
    total = Counter(c.kind for c in constructs)
    seen: Counter[str] = Counter()
    ranks: dict[tuple[str, str], float] = {}
    for construct in constructs:
        ranks[side, construct.id] = seen[construct.kind] / total[construct.kind]
        seen[construct.kind] += 1
    return ranks


def _distance(left: frozenset[str], right: frozenset[str]) -> float:
    """0 for equal sets, 1 for sets without a common member."""
    union = left | right
    return 1.0 - len(left & right) / len(union) if union else 0.0


def _unlike(c: Construct, n: Construct) -> float:
    left, right = operator_families([c]), operator_families([n])
    if c.attribute("operator") and n.attribute("operator"):
        same = _family(c.attribute("operator")) == _family(n.attribute("operator"))
        return 0.0 if same else 1.0
    union = (left | right).total()
    return 1.0 - (left & right).total() / union if union else 0.0


def _family(operator: str | None) -> str | None:
    return _FAMILY.get(operator, operator) if operator is not None else None
