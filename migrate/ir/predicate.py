"""Conditions on index expressions: which points of an iteration domain take part.

A `Predicate` is decided by axes and sizes alone; conditions on data are values of type
`bool` (`nodes.Value`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from migrate.ir.index import Index


@dataclass(frozen=True, slots=True)
class AtLeast:
    """`index >= 0`."""

    index: Index

    def __str__(self) -> str:
        return f"{self.index} >= 0"


@dataclass(frozen=True, slots=True)
class Zero:
    """`index == 0`."""

    index: Index

    def __str__(self) -> str:
        return f"{self.index} == 0"


@dataclass(frozen=True, slots=True)
class All:
    """Every one of the items holds; `TRUE` is none."""

    items: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " and ".join(_inner(item) for item in self.items) if self.items else "true"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of the items holds; `FALSE` is none."""

    items: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " or ".join(_inner(item) for item in self.items) if self.items else "false"


@dataclass(frozen=True, slots=True)
class Never:
    """The item does not hold (only around `Zero`: the others negate into themselves)."""

    item: Zero

    def __str__(self) -> str:
        return f"{self.item.index} != 0"


Predicate: TypeAlias = AtLeast | Zero | All | AnyOf | Never

TRUE = All(())
FALSE = AnyOf(())


def less(left: int | Index, right: int | Index) -> Predicate:
    """`left < right`."""
    return at_least(Index.of(right) - Index.of(left) - 1)


def at_least(index: Index) -> Predicate:
    """`index >= 0`, decided where it is constant."""
    value = index.constant
    if value is None:
        return AtLeast(index)
    return TRUE if value >= 0 else FALSE


def equal(left: int | Index, right: int | Index) -> Predicate:
    """`left == right`."""
    difference = Index.of(left) - Index.of(right)
    value = difference.constant
    if value is not None:
        return TRUE if value == 0 else FALSE
    negated = -difference
    return Zero(min(difference, negated, key=str))


def both(*items: Predicate) -> Predicate:
    """Conjunction, flat, sorted, without repetition."""
    kept: set[Predicate] = set()
    for item in items:
        if isinstance(item, All):
            kept.update(item.items)
        elif item == FALSE:
            return FALSE
        else:
            kept.add(item)
    if FALSE in kept:
        return FALSE
    if len(kept) == 1:
        return next(iter(kept))
    return All(tuple(sorted(kept, key=str)))


def either(*items: Predicate) -> Predicate:
    """Disjunction, flat, sorted, without repetition."""
    kept: set[Predicate] = set()
    for item in items:
        if isinstance(item, AnyOf):
            kept.update(item.items)
        elif item == TRUE:
            return TRUE
        else:
            kept.add(item)
    if TRUE in kept:
        return TRUE
    if len(kept) == 1:
        return next(iter(kept))
    return AnyOf(tuple(sorted(kept, key=str)))


def negate(item: Predicate) -> Predicate:
    """The opposite condition."""
    match item:
        case AtLeast(index):
            return at_least(-index - 1)
        case Zero():
            return Never(item)
        case Never(zero):
            return zero
        case All(items):
            return either(*map(negate, items))
        case AnyOf(items):
            return both(*map(negate, items))


def holds(item: Predicate, values: Mapping[str, Any]) -> Any:
    """Truth under `values`: a `bool`, or a bool array where values are arrays."""
    match item:
        case AtLeast(index):
            return index.evaluate(values) >= 0
        case Zero(index):
            return index.evaluate(values) == 0
        case Never(zero):
            return zero.index.evaluate(values) != 0
        case All(items):
            truth: Any = True
            for part in items:
                truth = truth & holds(part, values)
            return truth
        case AnyOf(items):
            truth = False
            for part in items:
                truth = truth | holds(part, values)
            return truth


def indices(item: Predicate) -> tuple[Index, ...]:
    """Every index expression in the condition."""
    match item:
        case AtLeast(index) | Zero(index):
            return (index,)
        case Never(zero):
            return (zero.index,)
        case All(items) | AnyOf(items):
            return tuple(index for part in items for index in indices(part))


def _inner(item: Predicate) -> str:
    return f"({item})" if isinstance(item, All | AnyOf) and len(item.items) > 1 else str(item)
