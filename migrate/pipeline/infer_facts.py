"""What holds at each access of a kernel: the ranges of its axes, its guards and its loops.

A fact is an index expression that is not negative wherever the access is made.  From facts,
`upper` derives bounds in which no axis is left: a fact `n - i - 1 >= 0` bounds `i` by `n - 1`,
and `2*i` by twice that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from migrate.ir.index import (
    ZERO,
    Atom,
    Extremum,
    Index,
    Monomial,
    Quotient,
    Symbol,
    TooComplex,
    maximum,
    minimum,
)
from migrate.ir.nodes import (
    AsyncCopy,
    Axis,
    Block,
    Contract,
    Fold,
    Gather,
    Guard,
    Kernel,
    Load,
    Op,
    Parallel,
    Reduce,
    Scatter,
    Store,
    Value,
    Version,
)
from migrate.ir.predicate import All, AnyOf, AtLeast, Never, Predicate, Zero, negate
from migrate.source import Span

MAX_FACTS = 64
MAX_STEPS = 8
MAX_TRIED = 400
"""Expressions that one search for a bound looks at."""


@dataclass(frozen=True, slots=True)
class Access:
    """One access to a flat buffer; `index` is `None` where data decides it."""

    buffer: str
    index: Index | None
    facts: tuple[Index, ...]
    span: Span
    writes: bool


def accesses(kernel: Kernel) -> tuple[Access, ...]:
    """Every access of a kernel with what holds where it is made, in program order."""
    found: list[Access] = []
    pending: list[tuple[Block, tuple[Index, ...]]] = [(kernel.body, ())]
    while pending:
        block, facts = pending.pop()
        for op in block:
            found += _accesses(op, facts)
            match op:
                case Guard(condition=condition, body=body, otherwise=otherwise):
                    then: tuple[Index, ...] = ()
                    other: tuple[Index, ...] = ()
                    if not isinstance(condition, Value):
                        then, other = _held(condition), _held(negate(condition))
                    pending += ((body, (*facts, *then)), (otherwise, (*facts, *other)))
                case (
                    Parallel(axes=axes, body=body, where=where)
                    | Fold(axes=axes, body=body, where=where)
                    | Reduce(axes=axes, body=body, where=where)
                    | Contract(axes=axes, body=body, where=where)
                ):
                    ranges = tuple(fact for axis in axes for fact in _range(axis))
                    pending.append((body, (*facts, *ranges, *_held(where))))
    return tuple(sorted(found, key=lambda a: (a.span.start_line, a.span.start_column)))


def _accesses(op: Op, facts: tuple[Index, ...]) -> Iterator[Access]:
    def access(
        version: Version, index: tuple[Index | Value, ...], where: Predicate, *, writes: bool
    ) -> Access:
        last = index[-1] if index else ZERO
        flat = last if isinstance(last, Index) else None
        return Access(version.buffer, flat, (*facts, *_held(where)), op.span, writes)

    match op:
        case Load(source=source, index=index, where=where):
            yield access(source, index, where, writes=False)
        case Gather(source=source, index=places, where=where):
            yield access(source, places, where, writes=False)
        case Store(into=into, index=index, where=where):
            yield access(into, index, where, writes=True)
        case Scatter(into=into, index=places, where=where):
            yield access(into, places, where, writes=True)
        case AsyncCopy(into=into, index=index, source=source, source_index=read, where=where):
            yield access(into, index, where, writes=True)
            yield access(source, read, where, writes=False)
        case _:
            return


def _range(axis: Axis) -> tuple[Index, ...]:
    place = Index.axis(axis.name)
    return place, axis.extent - 1 - place


def _held(condition: Predicate) -> tuple[Index, ...]:
    """The expressions that a condition says are not negative; nothing where it is a choice."""
    match condition:
        case AtLeast(index):
            return (index,)
        case Zero(index):
            return (index, -index)
        case All(items):
            return tuple(fact for item in items for fact in _held(item))
        case AnyOf() | Never():
            return ()


def cleared(facts: Iterable[Index]) -> tuple[Index, ...]:
    """Facts without quotients, minima and maxima, as far as they follow from those given."""
    found: dict[Index, None] = {}
    pending = list(facts)
    while pending and len(found) < MAX_FACTS:
        fact = pending.pop(0)
        weaker = _weaker(fact)
        if weaker:
            pending = [*weaker, *pending]
        else:
            found.setdefault(fact)
    return tuple(found)


def _weaker(fact: Index) -> list[Index]:
    for monomial, coefficient in fact.terms:
        if len(monomial) != 1:
            continue
        rest = fact - Index([(monomial, coefficient)])
        try:
            match monomial[0]:
                case Quotient(numerator, denominator):
                    # q = n // d lies between (n - d + 1) / d and n / d.
                    edge = numerator if coefficient > 0 else numerator - denominator + 1
                    return [coefficient * edge + denominator * rest]
                case Extremum(which, args) if (which == "min") == (coefficient > 0):
                    return [coefficient * arg + rest for arg in args]
        except TooComplex:
            return []
    return []


def upper(expression: Index, facts: Iterable[Index]) -> Index | None:
    """An upper bound without axes, from as few facts as possible."""
    usable = list(facts)[:MAX_FACTS]
    frontier = [expression]
    seen = {expression}
    for _ in range(MAX_STEPS):
        free = [e for e in frontier if not e.axes()]
        if free:
            return min(free, key=lambda e: (e.weight, str(e)))
        following: list[Index] = []
        for candidate in frontier:
            for fact in usable:
                for lowered in _eliminated(candidate, fact):
                    if lowered not in seen and len(seen) < MAX_TRIED:
                        seen.add(lowered)
                        following.append(lowered)
        frontier = following
    return None


def _eliminated(expression: Index, fact: Index) -> Iterator[Index]:
    """The expression plus a multiple of the fact, in which its first axis is gone."""
    for monomial, coefficient in expression.terms:
        moving, fixed = parted(monomial)
        if not moving:
            continue
        for other, number in fact.terms:
            its_moving, its_fixed = parted(other)
            if moving != its_moving or (number > 0) == (coefficient > 0):
                continue
            factor = divided(fixed, its_fixed)
            if factor is None or coefficient % number:
                continue
            try:
                yield expression + fact * Index([(factor, abs(coefficient // number))])
            except TooComplex:
                continue
        return


def parted(monomial: Monomial) -> tuple[Monomial, Monomial]:
    """The atoms that vary with an axis, and those that do not."""
    moving = tuple(atom for atom in monomial if varies(atom))
    return moving, tuple(atom for atom in monomial if not varies(atom))


def varies(atom: Atom) -> bool:
    """Whether an axis is in the atom."""
    match atom:
        case Symbol(kind=kind):
            return kind == "axis"
        case Quotient(numerator, denominator):
            return bool(numerator.axes() or denominator.axes())
        case Extremum(_, args):
            return any(arg.axes() for arg in args)


def divided(monomial: Monomial, by: Monomial) -> Monomial | None:
    """The exact quotient of two products of atoms; `None` where there is none."""
    rest = Counter(monomial)
    rest.subtract(Counter(by))
    if any(count < 0 for count in rest.values()):
        return None
    return tuple(sorted(rest.elements(), key=str))


def exactly(numerator: Index, denominator: Index) -> Index | None:
    """The quotient of two expressions where it is a polynomial; the denominator has one term."""
    if len(denominator.terms) != 1:
        return None
    ((by, divisor),) = denominator.terms
    terms: list[tuple[Monomial, int]] = []
    for monomial, coefficient in numerator.terms:
        rest = divided(monomial, by)
        if rest is None or coefficient % divisor:
            return None
        terms.append((rest, coefficient // divisor))
    return Index(terms)


def without_quotients(index: Index, facts: tuple[Index, ...]) -> tuple[Index, tuple[Index, ...]]:
    """Divisions by sizes as axes of their own: `i // w` and `i % w` become a row and a column.

    Where `n // d` is found, `n` is written `d*q + r` with two new axes `q` and `r < d`.
    """
    for number in range(MAX_STEPS):
        found = _innermost(index)
        if found is None:
            return index, facts
        atom, axis, sign = found
        quotient = Index.axis(f"//{number}")
        rest = Index.axis(f"%{number}")
        whole = atom.denominator * quotient + rest
        others = atom.numerator - sign * axis
        name = next(iter(axis.axes()))
        moved = {name: sign * (whole - others)}
        try:
            index = _rewritten(index, atom, quotient).substitute(moved)
            facts = tuple(_rewritten(fact, atom, quotient).substitute(moved) for fact in facts)
        except TooComplex:
            return index, facts
        rows = []
        for fact in facts:
            edge = fact + whole
            if not edge.axes():
                count = exactly(edge + 1, atom.denominator)
                if count is None:
                    count = (edge + atom.denominator) // atom.denominator
                rows.append(count - 1 - quotient)
        facts = (*rows, *facts, quotient, rest, atom.denominator - 1 - rest)
    return index, facts


def _rewritten(index: Index, atom: Quotient, quotient: Index) -> Index:
    """A quotient by its new axis, also where the same is divided further."""
    for other in _quotients(index):
        if other.numerator == atom.numerator:
            times = exactly(other.denominator, atom.denominator)
            if times is not None:
                index = replaced(index, other, quotient // times)
    return index


def _innermost(index: Index) -> tuple[Quotient, Index, int] | None:
    """A quotient of axes by a size, an axis of its numerator to solve for, and its sign."""
    for atom in _quotients(index):
        if not atom.numerator.axes() or atom.denominator.axes():
            continue
        if any(inner.numerator.axes() for inner in _quotients(atom.numerator)):
            continue
        for monomial, coefficient in atom.numerator.terms:
            if len(monomial) == 1 and abs(coefficient) == 1 and isinstance(monomial[0], Symbol):
                axis = Index.of(monomial[0])
                others = atom.numerator - coefficient * axis
                if monomial[0].kind == "axis" and monomial[0].name not in others.axes():
                    return atom, axis, coefficient
    return None


def _quotients(index: Index) -> list[Quotient]:
    """The quotients in an expression, those with the smallest denominator first."""
    found: dict[Quotient, None] = {}
    pending = [index]
    while pending:
        for monomial, _ in pending.pop().terms:
            for atom in monomial:
                match atom:
                    case Quotient(numerator, denominator):
                        found.setdefault(atom)
                        pending += (numerator, denominator)
                    case Extremum(_, args):
                        pending += args
                    case Symbol():
                        pass
    return sorted(found, key=lambda q: (q.denominator.weight, str(q)))


def replaced(index: Index, atom: Atom, by: Index) -> Index:
    """The expression with one atom replaced wherever it is."""
    total = ZERO
    for monomial, coefficient in index.terms:
        product = Index.of(coefficient)
        for part in monomial:
            product = product * (by if part == atom else _inside(part, atom, by))
        total = total + product
    return total


def _inside(part: Atom, atom: Atom, by: Index) -> Index:
    match part:
        case Symbol():
            return Index.of(part)
        case Quotient(numerator, denominator):
            return replaced(numerator, atom, by) // replaced(denominator, atom, by)
        case Extremum(which, args):
            choose = minimum if which == "min" else maximum
            return choose(*(replaced(arg, atom, by) for arg in args))
