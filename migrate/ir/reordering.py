"""What becomes of the order of elements that a kernel only moves."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from migrate.ir.index import Index, Quotient, Symbol
from migrate.ir.linear import factor_of
from migrate.ir.nodes import Load, Store, Value
from migrate.ir.scene import Scene

Order: TypeAlias = Literal["copied", "permuted", "picked"]


_STAGES: Final = 6
"""Memories on chip that an element is followed through."""


def order_of(scene: Scene) -> Order:
    """What becomes of the order of elements that are only moved.

    Of the digits that the number of a source's element has in terms of the axes, a permutation
    keeps every one and adds nothing; what drops a digit repeats or picks elements.
    """
    found: Order = "copied"
    shifted = False
    for op in scene.ops:
        if not isinstance(op, Store) or not scene.outside(op.into):
            continue
        source = _origin(scene, op.value)
        if source is None or source[-len(op.index) :] == op.index:
            continue
        if len(op.index) > 1:
            alike = sorted(map(str, op.index)) == sorted(map(str, source))
            if not alike:
                return "picked"
            found = "permuted"
            continue
        (place,), (start,) = op.index, source[-1:]
        if place == start:
            continue
        if not (_keeps(place) and _keeps(start)):
            return "picked"
        if _offset(place) or _offset(start):
            shifted = True
        else:
            found = "permuted"
    # Parts that begin elsewhere belong to a permutation whose other parts are moved too.
    return "picked" if shifted and found == "copied" else found


def _offset(index: Index) -> bool:
    """Whether a position begins at a place that sizes decide."""
    return any(monomial and not Index([(monomial, 1)]).axes() for monomial, _ in index.terms)


def _origin(scene: Scene, value: Value) -> tuple[Index, ...] | None:
    """The place outside that a moved element comes from, through memory on chip.

    Where an axis by itself says where in that memory it was put, the place is in terms of the
    axes at which it is taken from there.
    """
    taken: dict[str, Index] = {}
    for _ in range(_STAGES):
        source = scene.through_casts(value)
        if not isinstance(source, Load):
            return None
        index = tuple(part.substitute(taken) for part in source.index)
        if scene.outside(source.source):
            return index
        stores = scene.writes_of.get(source.source.buffer, ())
        if not stores:
            return None
        put = zip(stores[0].index, index, strict=False)
        taken = {name: at for part, at in put for name in part.axes() if part == Index.axis(name)}
        value = stores[0].value
    return None


def _keeps(index: Index) -> bool:
    """Whether a position has every digit of the numbers it is made of."""
    chains: dict[Index, list[tuple[Index, Index]]] = {}
    for monomial, coefficient in index.terms:
        moving = [atom for atom in monomial if Index([((atom,), 1)]).axes()]
        rest = Index([(tuple(a for a in monomial if a not in moving), coefficient)])
        if not moving:
            continue
        if len(moving) > 1:
            return False
        match moving[0]:
            case Symbol():
                continue
            case Quotient(numerator, denominator):
                chain = chains.setdefault(numerator, [])
                chain.append((denominator, rest))
            case _:
                return False
    return all(_digits(index, numerator, chain) for numerator, chain in chains.items())


def _digits(index: Index, number: Index, chain: list[tuple[Index, Index]]) -> bool:
    """Whether no digit of `n // a, n // (a b), ...` is left out.

    With `q_k = n // A_k` the digit between `A_k` and `A_(k+1)` is `q_k - (A_(k+1) / A_k) q_(k+1)`,
    so that its stride is the factor of `q_k` plus what the digit before carries over.
    """
    amounts: dict[Index, Index] = {}
    for denominator, factor in chain:
        amounts[denominator] = amounts.get(denominator, Index.of(0)) + factor
    ordered = sorted(amounts, key=lambda denominator: (denominator.weight, str(denominator)))
    constants = [denominator.constant for denominator in ordered]
    if all(constant is not None for constant in constants):
        ordered.sort(key=lambda denominator: denominator.constant or 0)
    stride = _lowest(index, number)
    before = Index.of(1)
    for denominator in ordered:
        ratio = _ratio(denominator, before)
        if ratio is None:
            return True
        stride = amounts[denominator] + ratio * stride
        if stride.constant == 0:
            return False
        before = denominator
    return True


def _lowest(index: Index, number: Index) -> Index:
    """What a number is multiplied by where it stands undivided, 0 for not at all."""
    for monomial, coefficient in number.terms:
        if len(monomial) != 1 or not isinstance(monomial[0], Symbol) or monomial[0].kind != "axis":
            continue
        whole = factor_of(index, monomial[0].name)
        if whole is None:
            return Index.of(0)
        if all(amount % coefficient == 0 for _, amount in whole.terms):
            return Index((m, amount // coefficient) for m, amount in whole.terms)
    return Index.of(0)


def _ratio(value: Index, by: Index) -> Index | None:
    """The quotient where a product of sizes is a multiple of another."""
    quotient = value // by
    return quotient if quotient * by == value else None
