"""The shapes of flat arrays, from the indices and guards of a kernel's accesses.

An index `n*r + c` is a matrix with rows of `n`: the products of sizes in an index are its
strides, what multiplies them its coordinates (Grosser et al., "Optimistic delinearization of
parametrically sized arrays", ICS 2015).  Each stride is the extent of the axes inside it; the
outermost coordinate is bounded by what holds where the access is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from migrate.ir.index import ONE, ZERO, Index, Monomial, Quotient, Symbol, TooComplex
from migrate.ir.nodes import Kernel
from migrate.pipeline.infer_facts import (
    Access,
    accesses,
    cleared,
    divided,
    parted,
    upper,
    without_quotients,
)

Extents = tuple[Index, ...]

MAX_EDGE = 16
"""Elements at the end of an axis that a kernel may leave alone, as stencils do."""

MAX_SHIFTED = 4
"""Sizes with something added to them in the strides of one access."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape; for it each expression in `multiples` must be a multiple of its number."""

    extents: Extents
    multiples: tuple[tuple[Index, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Open:
    """Why a shape is not known."""

    reason: str


def shapes(kernel: Kernel) -> dict[str, Shape | Open]:
    """The shape of every array parameter that the kernel accesses, by name."""
    made: dict[str, list[Access]] = {}
    names = {buffer.name for buffer in kernel.buffers if buffer.role != "scratch" and buffer.shape}
    for access in accesses(kernel):
        if access.buffer in names:
            made.setdefault(access.buffer, []).append(access)
    return _alike({name: _shape(found) for name, found in made.items()})


def _alike(found: dict[str, Shape | Open]) -> dict[str, Shape | Open]:
    """An outermost extent that falls short of a size by a little is that size.

    Kernels leave edges alone, as stencils do; the extents inside it are strides, and exact.
    """
    whole = {
        extent
        for shape in found.values()
        if isinstance(shape, Shape)
        for extent in shape.extents
        if () not in dict(extent.terms)
    }

    def grown(extent: Index) -> Index:
        for larger in whole:
            over = (larger - extent).constant
            if over is not None and 0 < over <= MAX_EDGE:
                return larger
        return extent

    return {
        name: Shape((grown(shape.extents[0]), *shape.extents[1:]), shape.multiples)
        if isinstance(shape, Shape)
        else shape
        for name, shape in found.items()
    }


def _shape(found: Sequence[Access]) -> Shape | Open:
    read: list[Shape] = []
    opened: list[Open] = []
    for access in found:
        shape = shape_of(access)
        if isinstance(shape, Shape):
            read.append(shape)
        else:
            opened.append(shape)
    if not read:
        return opened[0]
    rank = max(len(shape.extents) for shape in read)
    extents = next(shape.extents for shape in read if len(shape.extents) == rank)
    for shape in read:
        if len(shape.extents) == rank:
            merged = [_larger(*pair) for pair in zip(extents, shape.extents, strict=True)]
            known = tuple(extent for extent in merged if extent is not None)
            if len(known) < rank:
                both = " and by ".join(
                    f"[{', '.join(map(str, e))}]" for e in (extents, shape.extents)
                )
                return Open(f"{found[0].span}: accesses are bounded by {both}")
            extents = known
    if opened and all(access.index is None for access in found if access.writes):
        # A gather reads somewhere inside what direct accesses cover; nothing says so.
        return opened[0]
    outer, multiples = _divisible(extents[0])
    return Shape((outer, *extents[1:]), multiples)


def _larger(left: Index, right: Index) -> Index | None:
    """The larger of two extents, where sizes that are at least 1 decide it."""
    low, high = (left - right).bounds({s.name: (1, None) for s in (left - right).symbols()})
    if low is not None and low >= 0:
        return left
    return right if high is not None and high <= 0 else None


def shape_of(access: Access) -> Shape | Open:
    """The shape that one access implies."""
    if access.index is None:
        return Open(f"{access.span}: data decides where it is accessed")
    try:
        index, facts = without_quotients(access.index, access.facts)
        index, facts, shifted = _plain_strides(index, facts)
        shape = _delinearised(index, facts, access)
        if isinstance(shape, Shape):
            return replace(shape, extents=tuple(e.substitute(shifted) for e in shape.extents))
        return shape
    except TooComplex as error:
        return Open(f"{access.span}: {error}")


def _plain_strides(
    index: Index, facts: tuple[Index, ...]
) -> tuple[Index, tuple[Index, ...], dict[str, Index]]:
    """Rows of `n - 2` as rows of a size of their own, and what that size stands for.

    A stride `n + c` is told from a diagonal (`n*i + c*i`) by another axis that runs along it.
    """
    shifted: dict[str, Index] = {}
    for _ in range(MAX_SHIFTED):
        found = _shifted_stride(index, shifted)
        if found is None:
            break
        size, offset = found
        name = f"{size}{offset:+}"
        to = {size: Index.size(name) - offset}
        try:
            index, facts = index.substitute(to), tuple(fact.substitute(to) for fact in facts)
        except TooComplex:
            break
        shifted[name] = Index.size(size) + offset
    return index, facts, shifted


def _shifted_stride(index: Index, known: Mapping[str, Index]) -> tuple[str, int] | None:
    """A size and what is added to it in a stride; not one that `known` has introduced."""
    strides: dict[Monomial, list[tuple[Monomial, int]]] = {}
    for monomial, coefficient in index.terms:
        moving, fixed = parted(monomial)
        if moving:
            strides.setdefault(moving, []).append((fixed, coefficient))
    if not any(len(terms) == 1 for terms in strides.values()):
        return None
    for terms in strides.values():
        if len(terms) != 2:
            continue
        (small, offset), (large, one) = sorted(terms, key=lambda term: len(term[0]))
        step = divided(large, small)
        if one == 1 and step is not None and len(step) == 1:
            (atom,) = step
            if isinstance(atom, Symbol) and atom.kind == "size" and atom.name not in known:
                return atom.name, offset
    return None


def _delinearised(index: Index, facts: tuple[Index, ...], access: Access) -> Shape | Open:
    groups = _groups(index)
    strides = sorted(groups, key=len, reverse=True)
    inner = [divided(big, small) for big, small in pairwise(strides)]
    nested = all(step is not None for step in inner)
    if nested and len(strides) > 1:
        outer = bound(groups[strides[0]], facts)
        if outer is not None:
            extents = [Index([(step, 1)]) for step in inner if step is not None]
            coordinates = [groups[stride] for stride in strides[1:]]
            if all(
                _fits(coordinate, extent, facts)
                for coordinate, extent in zip(coordinates, extents, strict=True)
            ):
                return Shape((outer + 1, *extents))
    split = _split(index, facts) if len(strides) == 1 else _rows(index, facts, access)
    if split is not None:
        return split
    last = bound(index, facts)
    if last is None:
        return Open(f"{access.span}: nothing bounds the index {index}")
    return Shape((last + 1,))


def _groups(index: Index) -> dict[Monomial, Index]:
    """The coordinate of each stride, the stride 1 always among them."""
    groups: dict[Monomial, Index] = {(): ZERO}
    still: list[tuple[Monomial, int]] = []
    for monomial, coefficient in index.terms:
        moving, fixed = parted(monomial)
        if moving:
            groups[fixed] = groups.get(fixed, ZERO) + Index([(moving, coefficient)])
        else:
            still.append((fixed, coefficient))
    for fixed, coefficient in still:
        # An offset counts in the largest stride that divides it.
        for stride in sorted(groups, key=len, reverse=True):
            rest = divided(fixed, stride)
            if rest is not None:
                groups[stride] = groups[stride] + Index([(rest, coefficient)])
                break
    return groups


def bound(expression: Index, facts: Sequence[Index]) -> Index | None:
    """An upper bound without axes: from the facts as they are, else from weaker ones."""
    exact = upper(expression, facts)
    return exact if exact is not None else upper(expression, (*facts, *cleared(facts)))


def _fits(coordinate: Index, extent: Index, facts: Sequence[Index]) -> bool:
    """Whether a coordinate may stay below the extent: false only where it surely does not."""
    last = bound(coordinate, facts)
    if last is None:
        return True
    over = last - (extent - 1)
    low, _ = over.bounds({symbol.name: (1, None) for symbol in over.symbols()})
    return low is None or low <= 0


def _split(index: Index, facts: Sequence[Index]) -> Shape | None:
    """Rows of a constant length in a flat index: `64*row + column` with `column < 64`.

    Not where one condition bounds the whole index: then it counts elements.
    """
    terms = [(m, c) for m, c in index.terms if m]
    if any(not (index + fact).axes() for fact in facts):
        return None
    for width in sorted({c for _, c in terms if c > 1}):
        low = Index((m, c) for m, c in index.terms if c % width)
        high = Index((m, c // width) for m, c in index.terms if not c % width)
        if not low.axes() or not high.axes():
            continue
        last = bound(low, facts)
        rows = bound(high, facts)
        if last is None or last.constant != width - 1 or rows is None:
            continue
        extent = rows + 1
        if any(isinstance(atom, Quotient) for m, _ in extent.terms for atom in m):
            continue  # blocks of a launch, not rows of a matrix
        return Shape((extent, Index.of(width)))
    return None


def _rows(index: Index, facts: tuple[Index, ...], access: Access) -> Shape | None:
    """Innermost rows of a constant length, in rows of a size: `64*(n*i + j) + k` with `k < 64`."""
    moving = [(m, c) for m, c in index.terms if parted(m)[0]]
    for width in sorted({c for _, c in moving if c > 1}):
        low = Index((m, c) for m, c in index.terms if c % width)
        last = bound(low, facts) if low.axes() else None
        if last is None or last.constant != width - 1:
            continue
        outer = Index((m, c // width) for m, c in index.terms if not c % width)
        shape = _delinearised(outer, facts, access)
        if isinstance(shape, Shape) and len(shape.extents) > 1:
            return Shape((*shape.extents, Index.of(width)), shape.multiples)
    return None


def _divisible(extent: Index) -> tuple[Index, tuple[tuple[Index, int], ...]]:
    """`256*(n // 256)` as `n`, which then must be a multiple of 256; rounded up likewise."""
    match extent.terms:
        case (((Quotient(numerator=n, denominator=d),), factor),):
            constant = dict(n.terms).get((), 0)
            if d.constant == factor and factor > 1 and constant in (0, factor - 1):
                whole = n - constant
                return whole, ((whole, factor),)
        case _:
            pass
    return extent, ()


def factors(extent: Index) -> tuple[Index, ...]:
    """The factors of an extent that is a product."""
    if len(extent.terms) != 1:
        return (extent,)
    ((monomial, coefficient),) = extent.terms
    if not all(isinstance(atom, Symbol) for atom in monomial):
        return (extent,)
    found = tuple(Index.of(atom) for atom in monomial if isinstance(atom, Symbol))
    return (*((Index.of(coefficient),) if coefficient != 1 else ()), *found) or (ONE,)
