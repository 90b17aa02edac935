"""What a lifted expression is: an index, a condition, a pointer, or data.

Integers that axes and sizes decide stay index expressions, so that the IR's indices and
conditions are exact; everything else is a value that operations compute.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from migrate.cuda.types import Scalar
from migrate.ir.index import Index, Quotient, Range
from migrate.ir.nodes import Value
from migrate.ir.predicate import All, AtLeast, Predicate
from migrate.source import Span

MAX_SOURCES = 8


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
        low, _ = self.bounds(index)
        if low is not None and low >= 0:
            return True
        for fact in self.facts:
            for held in fact.items if isinstance(fact, All) else (fact,):
                if isinstance(held, AtLeast):
                    low, _ = self.bounds(index - held.index)
                    if low is not None and low >= 0:
                        return True
        return False

    def bounds(self, index: Index) -> Range:
        """Inclusive bounds; a remainder counts as one, not as the difference it is kept as."""
        for monomial, coefficient in index.terms:
            match monomial:
                case (Quotient(numerator=numerator, denominator=denominator) as quotient,):
                    divisor = denominator.constant
                case _:
                    continue
            if divisor is None or divisor <= 0 or coefficient >= 0 or coefficient % divisor:
                continue
            times = -coefficient // divisor
            rest = index - times * numerator + Index([((quotient,), -coefficient)])
            if len(rest.terms) >= len(index.terms):
                continue
            low, high = self.bounds(rest)
            return low, None if high is None else high + times * (divisor - 1)
        return index.bounds(self.ranges)

    def exact(self, index: Index, kind: Scalar) -> bool:
        """Whether a C integer of this type surely has the index's value.

        Signed overflow is undefined and taken not to happen; unsigned arithmetic below zero
        wraps, so it must be shown not to get there.  That sizes stay below 2^31 is taken for
        granted.
        """
        return not kind.is_unsigned or self.natural(index)
