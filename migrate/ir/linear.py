"""How index expressions depend on axes, where they do so evenly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from migrate.ir.index import Extremum, Index, Quotient, Symbol


def forms_of(index: Index) -> Iterator[Index]:
    """The expression, and what is divided or compared in it."""
    pending = [index]
    while pending:
        current = pending.pop()
        yield current
        for monomial, _ in current.terms:
            for atom in monomial:
                match atom:
                    case Quotient(numerator, _):
                        pending.append(numerator)
                    case Extremum(_, args):
                        pending += args
                    case Symbol():
                        pass


def quotients(index: Index) -> Iterator[Quotient]:
    for form in forms_of(index):
        for monomial, _ in form.terms:
            yield from (atom for atom in monomial if isinstance(atom, Quotient))


def factor_of(index: Index, name: str) -> Index | None:
    """What an axis is multiplied by; `None` where it does not stand by itself."""
    found: list[tuple[tuple[Quotient | Extremum | Symbol, ...], int]] = []
    for monomial, coefficient in index.terms:
        rest = tuple(a for a in monomial if not (isinstance(a, Symbol) and a.name == name))
        if len(rest) == len(monomial) - 1:
            found.append((rest, coefficient))
    return Index(found) if found else None


def unit_of(index: Index, threads: Iterable[str]) -> Index | None:
    """What the fastest thread axis in an expression is multiplied by."""
    for name in sorted(threads):
        factor = factor_of(index, name)
        if factor is not None:
            return factor if str(factor)[0] != "-" else -factor
    return None


def is_multiple(value: Index, of: Index) -> bool:
    if value == of:
        return True
    a, b = value.constant, of.constant
    return a is not None and b is not None and b > 0 and a % b == 0 and a > 0
