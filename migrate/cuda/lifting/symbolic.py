"""What a lifted expression is: an index, a condition, a pointer, or data.

Integers that axes and sizes decide stay index expressions, so that the IR's indices and
conditions are exact; everything else is a value that operations compute.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from migrate.cuda.types import Scalar
from migrate.ir.index import (
    Atom,
    Extremum,
    Index,
    Monomial,
    Quotient,
    Range,
    Symbol,
    maximum,
    minimum,
)
from migrate.ir.nodes import Value
from migrate.ir.predicate import All, AnyOf, AtLeast, Never, Predicate, Zero
from migrate.source import Span

MAX_SOURCES = 8

MAX_COMBINED = 2
"""Facts that are added up to show that an index is not negative."""

MAX_REMAINDERS = 8
"""Remainders in one index that are seen as such."""

MAX_FACTS = 24
MAX_TERMS = 16
"""Facts, and terms of an index, that are looked at for it: proofs are short or not found."""


class NotLifted(Exception):
    """A construct whose meaning is not put into the IR, and why."""

    def __init__(self, reason: str, span: Span) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span


@dataclass(frozen=True, slots=True)
class Number:
    """An integer as an index expression; `sources` are the places that decide it."""

    index: Index
    sources: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Truth:
    """A condition on axes and sizes."""

    predicate: Predicate
    sources: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Data:
    """A computed value."""

    value: Value


@dataclass(frozen=True, slots=True)
class Pointer:
    """A place in a buffer, in scalars; no buffer is the null pointer."""

    buffer: str | None
    offset: Number | Data


@dataclass(frozen=True, slots=True)
class Parts:
    """The components of a short vector."""

    items: tuple[Symbolic, ...]


@dataclass(frozen=True, slots=True)
class Raw:
    """Memory read through a pointer of another width, to be copied on: what it really holds."""

    scalar: Scalar
    items: tuple[Data, ...]


@dataclass(frozen=True, slots=True)
class Unset:
    """A variable that nothing has been assigned to."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A variable whose value was lost where something was not understood."""

    reason: str


Symbolic: TypeAlias = Number | Truth | Data | Pointer | Parts | Raw | Unset | Unknown


def merged(*lists: tuple[Span, ...]) -> tuple[Span, ...]:
    """Sources without repetition, nearest first."""
    found = dict.fromkeys(span for spans in lists for span in spans)
    return tuple(found)[:MAX_SOURCES]


def from_here(value: Symbolic, span: Span) -> Symbolic:
    """A number or condition that passed through a place: it becomes the nearest source."""
    match value:
        case Number(sources=sources) | Truth(sources=sources):
            return replace(value, sources=merged((span,), sources))
        case Pointer(offset=Number() as offset):
            return replace(value, offset=replace(offset, sources=merged((span,), offset.sources)))
        case _:
            return value


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the symbols: their ranges, and the conditions that hold here."""

    ranges: dict[str, Range]
    facts: tuple[Predicate, ...] = ()

    def under(self, *facts: Predicate) -> Known:
        return Known(self.ranges, (*self.facts, *facts))

    def natural(self, index: Index) -> bool:
        """Whether the index is surely not negative."""
        return self._natural(index, MAX_COMBINED)

    def _natural(self, index: Index, combined: int) -> bool:
        low, _ = self.bounds(index)
        if low is not None and low >= 0:
            return True
        if combined == 0:
            return False
        for fact in self.facts[-MAX_FACTS:]:
            for held in fact.items if isinstance(fact, All) else (fact,):
                if isinstance(held, AtLeast):
                    for rest in self._without(index, held.index):
                        if self._natural(rest, combined - 1):
                            return True
        return False

    def _without(self, index: Index, held: Index) -> Iterator[Index]:
        """The index less so much of something not negative that a negative term vanishes."""
        if len(index.terms) > MAX_TERMS or len(held.terms) > MAX_TERMS:
            return
        yield index - held
        for monomial, coefficient in held.terms:
            if not monomial or coefficient >= 0:
                continue
            for other, amount in index.terms:
                times = amount // coefficient if amount % coefficient == 0 else 0
                factor = _divided(other, monomial)
                if times <= 0 or factor is None or (times == 1 and not factor):
                    continue
                scale = Index([(factor, times)])
                low, _ = self.bounds(scale)
                if low is not None and low >= 0:
                    yield index - scale * held

    def bounds(self, index: Index) -> Range:
        """Inclusive bounds; a remainder counts as one, not as the difference it is kept as."""
        return self._bounds(index, MAX_REMAINDERS)

    def _bounds(self, index: Index, remainders: int) -> Range:
        plain = self._plain(index)
        if remainders == 0 or (plain[0] is not None and plain[0] >= 0 and plain[1] is not None):
            return plain
        for monomial, coefficient in index.terms:
            found = _remainder(monomial, coefficient)
            if found is None:
                continue
            # numerator = divisor * quotient + remainder
            quotient, divisor, times = found
            numerator = quotient.numerator
            whole = Index([((quotient,), 1)]) * divisor * times
            rest = index - times * numerator + whole
            if len(rest.terms) > len(index.terms):
                continue
            low, high = self._bounds(rest, remainders - 1)
            largest = divisor.constant
            if high is not None and largest is not None:
                return low, high + times * (largest - 1)
            return low, None
        return plain

    def _plain(self, index: Index) -> Range:
        """Bounds of the terms one by one, what is compared in them looked into."""
        if not any(isinstance(atom, Extremum) for monomial, _ in index.terms for atom in monomial):
            return index.bounds(self.ranges)
        named: dict[Atom, Symbol] = {}
        ranges = dict(self.ranges)
        terms: list[tuple[Monomial, int]] = []
        for monomial, coefficient in index.terms:
            moved: list[Atom] = []
            for atom in monomial:
                if isinstance(atom, Extremum):
                    each = [self.bounds(arg) for arg in atom.args]
                    name = named.setdefault(atom, Symbol(f"extremum?{len(named)}", "size"))
                    ranges[name.name] = _extreme(atom.which, each)
                    moved.append(name)
                else:
                    moved.append(atom)
            terms.append((tuple(moved), coefficient))
        total = Index([])
        for term in terms:
            total = total + Index([term])
        return total.bounds(ranges)

    def exact(self, index: Index, kind: Scalar) -> bool:
        """Whether a C integer of this type surely has the index's value.

        Signed overflow is undefined and taken not to happen; unsigned arithmetic below zero
        wraps, so it must be shown not to get there.  That sizes stay below 2^31 is taken for
        granted.
        """
        return not kind.is_unsigned or self.natural(index)


def _remainder(monomial: Monomial, coefficient: int) -> tuple[Quotient, Index, int] | None:
    """A term that takes whole divisors away: `-times * (divisor * quotient)`, or less."""
    if coefficient >= 0:
        return None
    for quotient in monomial:
        if not isinstance(quotient, Quotient):
            continue
        rest = list(monomial)
        rest.remove(quotient)
        divisor = quotient.denominator
        constant = divisor.constant
        if constant is not None and constant > 0 and not rest:
            return quotient, divisor, -(coefficient // constant)
        if constant is None and len(divisor.terms) == 1:
            ((factors, by),) = divisor.terms
            if sorted(map(str, factors)) == sorted(map(str, rest)) and by > 0:
                return quotient, divisor, -(coefficient // by)
    return None


def _extreme(which: str, each: list[Range]) -> Range:
    lows, highs = [low for low, _ in each], [high for _, high in each]
    known_lows = [low for low in lows if low is not None]
    known_highs = [high for high in highs if high is not None]
    if which == "min":
        low = min(known_lows) if len(known_lows) == len(lows) else None
        return low, min(known_highs) if known_highs else None
    high = max(known_highs) if len(known_highs) == len(highs) else None
    return max(known_lows) if known_lows else None, high


def _divided(monomial: Monomial, by: Monomial) -> Monomial | None:
    """The factors that are left; `None` where it does not divide."""
    rest = list(monomial)
    for atom in by:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def chosen(condition: Predicate, then: Index, otherwise: Index, known: Known) -> Index:
    """`condition ? then : otherwise` as an index expression."""
    return otherwise + indicator(condition, known) * (then - otherwise)


def indicator(condition: Predicate, known: Known) -> Index:
    """1 where the condition holds, else 0."""
    match condition:
        case AtLeast(index):
            return minimum(1, maximum(0, index + 1))
        case Zero(index):
            return 1 - _nonzero(index, known)
        case Never(zero):
            return _nonzero(zero.index, known)
        case All(items):
            return minimum(1, *(indicator(item, known) for item in items))
        case AnyOf(items):
            return maximum(0, *(indicator(item, known) for item in items))


def _nonzero(index: Index, known: Known) -> Index:
    for magnitude in (index, -index):
        if known.natural(magnitude):
            return minimum(1, magnitude)
    return minimum(1, maximum(index, -index))
