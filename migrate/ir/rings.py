"""What a term is made of: the arithmetic on terms, without what is known about numbers.

`Hashes` is the arithmetic of the normal form.  Sums are sums modulo 2^64.  A product is
a number times a sum, modulo 2^63, of the scrambled sizes of its factors: a term and its
negation have one size, so that signs come out of products; numbers come out since the
products with a number are noted.  Other associative, commutative operators are additions
seen through a bijection `f` of their own, `id(a + b) = f^-1(f(a) + f(b))`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from migrate.ir.hashing import Bijection, Ids, Noted, mix, salt, scramble
from migrate.ir.literals import Floats, Literals, canonical
from migrate.numerics.operators import OPERATORS

GROUPS = {
    "add": 0.0,
    "multiply": 1.0,
    "maximum": -np.inf,
    "minimum": np.inf,
    "logical_and": 1.0,
    "logical_or": 0.0,
    "bitwise_and": -1.0,
    "bitwise_or": 0.0,
    "bitwise_xor": 0.0,
}
"""Associative, commutative operators and their neutral elements."""

INVERSES = {"negate": "add", "reciprocal": "multiply"}
IDEMPOTENT = frozenset(
    {"maximum", "minimum", "logical_and", "logical_or", "bitwise_and", "bitwise_or"}
)
COMMUTATIVE_ONLY = frozenset(
    name for name, entry in OPERATORS.items() if entry.commutative and name not in GROUPS
)


class Ring(Protocol):
    """The arithmetic on terms.  Arguments of one call broadcast against each other."""

    keeps: frozenset[str]
    """Operators whose results on numbers are made like all others, not from the number."""

    spelled: frozenset[str]
    """Operators that are rewritten by those before numbers are computed."""

    def numbers(self, numbers: Floats) -> Ids:
        """The term of each number."""
        ...

    def elements(self, tensor: str, elements: NDArray[np.int64]) -> Ids:
        """The terms of some elements (flat, row-major) of an input."""
        ...

    def mark(self, text: str) -> np.uint64:
        """A term that no expression has."""
        ...

    def unknown(self, text: str, size: int) -> Ids:
        """Terms of what is not understood: each its own."""
        ...

    def combine(self, operator: str, args: Sequence[Ids]) -> Ids:
        """One of `GROUPS` on some terms."""
        ...

    def total(self, operator: str, rows: Ids) -> Ids:
        """One of `GROUPS` over the last dimension."""
        ...

    def inverse(self, operator: str, arg: Ids) -> Ids:
        """One of `INVERSES`."""
        ...

    def call(self, operator: str, args: Sequence[Ids]) -> Ids:
        """Any other operator."""
        ...


def hashed(operator: str, args: Sequence[Ids]) -> Ids:
    """A hash of an operator and its arguments, in order unless they commute."""
    start = np.uint64(salt(f"operator {operator}/{len(args)}"))
    with np.errstate(over="ignore"):
        ids = np.asarray(start)
        if operator in COMMUTATIVE_ONLY:
            first, second = args
            ids = start + (scramble(first) + scramble(second))
        else:
            for position, arg in enumerate(args):
                ids = scramble(ids ^ scramble(arg ^ np.uint64(mix(position + 1))))
        return scramble(ids)


def element_terms(tensor: str, elements: NDArray[np.int64]) -> Ids:
    """The terms of some elements (flat, row-major) of an input in the normal form."""
    return scramble(elements.astype(np.uint64) ^ np.uint64(salt(f"tensor {tensor}")))


_FRACTION = 65536.0
_UNIT = np.uint64(salt("one") | 1)
_HASHED = np.uint64(salt("number"))
_FACTOR = np.uint64(salt("a number as a factor"))
_SIZE = np.uint64((1 << 63) - 1)
_ZERO = np.uint64(0)


def number_terms(numbers: Floats) -> Ids:
    """The term of each number in the normal form.

    On multiples of 2^-16 it is linear, so that a sum of such terms is the term of the
    sum, in whatever order and grouping it was made; on other numbers it is a hash, odd
    in its argument.
    """
    with np.errstate(all="ignore"):
        numbers = canonical(numbers)
        scaled = numbers * _FRACTION
        even = np.isfinite(scaled) & (scaled == np.rint(scaled)) & (np.abs(scaled) < 2.0**62)
        linear = np.where(even, scaled, 0.0).astype(np.int64).view(np.uint64) * _UNIT
        mixed = scramble(np.abs(numbers).view(np.uint64) ^ _HASHED)
        mixed = np.where(numbers < 0, _ZERO - mixed, mixed)
        return np.asarray(np.where(even, linear, mixed))


def sizes(ids: Ids) -> Ids:
    """What a term and its negation have in common."""
    return np.asarray(np.abs(np.asarray(ids).view(np.int64)).view(np.uint64) & _SIZE)


@dataclass(frozen=True, slots=True)
class _Factors:
    """A product as its sign, its number (`None`: 1) and the sum of what the rest is seen as."""

    negative: NDArray[np.bool_]
    scales: Floats | None
    rest: Ids

    def times(self, other: _Factors) -> _Factors:
        negative = np.asarray(self.negative ^ other.negative)
        rest = np.asarray(self.rest + other.rest)
        if self.scales is None or other.scales is None:
            scales = self.scales if other.scales is None else other.scales
            return _Factors(negative, scales, rest)
        given = np.broadcast_arrays(self.scales, other.scales)
        return _Factors(negative, *_numbers_times(np.stack(given, axis=-1), rest))

    def over_rows(self) -> _Factors:
        """All along the last dimension."""
        negative = np.asarray(np.bitwise_xor.reduce(self.negative, axis=-1))
        rest = np.asarray(self.rest.sum(axis=-1, dtype=np.uint64))
        if self.scales is None:
            return _Factors(negative, None, rest)
        return _Factors(negative, *_numbers_times(self.scales, rest))

    def inverted(self) -> _Factors:
        rest = np.asarray(_ZERO - self.rest)
        if self.scales is None:
            return _Factors(self.negative, None, rest)
        return _Factors(self.negative, *_numbers_times(1.0 / self.scales[..., None], rest))


def _numbers_times(scales: Floats, rest: Ids) -> tuple[Floats, Ids]:
    """The product of numbers along the last dimension; what overflows goes to the rest."""
    product = np.asarray(scales.prod(axis=-1))
    lost = ~np.isfinite(product) | (product == 0.0)
    if lost.any():
        each = scramble(scales.view(np.uint64) ^ _FACTOR).sum(axis=-1, dtype=np.uint64)
        rest = np.asarray(rest + np.where(lost, each, _ZERO))
        product = np.where(lost, 1.0, product)
    return product, rest


class Hashes:
    """Terms as hashes: equal if made alike, up to the laws above."""

    keeps = frozenset({"add", "negate"})
    spelled = frozenset({"subtract", "fma"})

    def __init__(self, literals: Literals) -> None:
        self._literals = literals
        self._groups = {name: Bijection(name) for name in GROUPS if name != "add"}
        self._neutral = {name: number_terms(np.asarray(n)) for name, n in GROUPS.items()}
        self._product = Bijection("multiply", bits=63)
        self._scaled = Noted()

    def numbers(self, numbers: Floats) -> Ids:
        return number_terms(numbers)

    def elements(self, tensor: str, elements: NDArray[np.int64]) -> Ids:
        return element_terms(tensor, elements)

    def mark(self, text: str) -> np.uint64:
        return np.uint64(salt(text))

    def unknown(self, text: str, size: int) -> Ids:
        return scramble(np.arange(size, dtype=np.uint64) ^ np.uint64(salt(text)))

    def combine(self, operator: str, args: Sequence[Ids]) -> Ids:
        first, second = args
        with np.errstate(all="ignore"):
            if operator == "add":
                return np.asarray(first + second)
            if operator == "multiply":
                return self._made(self._factors(first).times(self._factors(second)))
            inside = self._in_group(operator, first) + self._in_group(operator, second)
            return self._out_of_group(operator, np.asarray(inside))

    def total(self, operator: str, rows: Ids) -> Ids:
        with np.errstate(all="ignore"):
            if operator == "add":
                return np.asarray(rows.sum(axis=-1, dtype=np.uint64))
            if operator == "multiply":
                return self._made(self._factors(rows).over_rows())
            inside = self._in_group(operator, rows)
            return self._out_of_group(operator, inside.sum(axis=-1, dtype=np.uint64))

    def inverse(self, operator: str, arg: Ids) -> Ids:
        with np.errstate(all="ignore"):
            if operator == "negate":
                return np.asarray(_ZERO - arg)
            return self._made(self._factors(arg).inverted())

    def call(self, operator: str, args: Sequence[Ids]) -> Ids:
        return hashed(operator, args)

    def _in_group(self, operator: str, ids: Ids) -> Ids:
        seen = self._groups[operator](ids)
        return np.where(ids == self._neutral[operator], _ZERO, seen)

    def _out_of_group(self, operator: str, total: Ids) -> Ids:
        ids = self._groups[operator].inverse(total)
        return np.where(total == _ZERO, self._neutral[operator], ids)

    # -- products -------------------------------------------------------------------

    def _factors(self, ids: Ids) -> _Factors:
        ids = np.asarray(ids)
        negative = np.asarray(ids.view(np.int64) < 0)
        size = sizes(ids)
        scales: Floats | None = None
        scaled = self._scaled.known(size)
        if scaled is not None:
            scales = np.ones(ids.shape)
            size = size.copy()
            scales[scaled], size[scaled] = self._scaled.rows(size[scaled])
        rest = self._product(size)
        known = self._literals.known(ids)
        if known is not None:
            numbers = self._literals.numbers_or_one(ids, known)
            # Infinity is a factor like any other: what it multiplies may be 0.
            known = known & np.isfinite(numbers) & (numbers != 0.0)
            scales = np.ones(ids.shape) if scales is None else scales
            scales[known] = np.abs(numbers[known])
            rest = np.where(known, _ZERO, rest)
            negative = np.where(known, numbers < 0.0, negative)
        return _Factors(negative, scales, rest)

    def _made(self, given: _Factors) -> Ids:
        scales = np.ones(()) if given.scales is None else given.scales
        rest = np.asarray(given.rest & _SIZE)
        shape = np.broadcast_shapes(rest.shape, scales.shape, given.negative.shape)
        size = self._product.inverse(rest)
        if size.shape != shape:
            size = np.array(np.broadcast_to(size, shape))
        if given.scales is not None:
            self._scale(size, np.broadcast_to(scales, shape), np.broadcast_to(rest, shape))
        np.negative(size, out=size, where=given.negative)
        if not rest.all():
            # Nothing is left but the number.
            alone = np.broadcast_to(rest == _ZERO, shape)
            numbers = np.broadcast_to(np.where(given.negative, -scales, scales), shape)[alone]
            size[alone] = number_terms(numbers)
            self._literals.learn(size[alone], numbers)
        return size

    def _scale(self, size: Ids, scales: Floats, rest: Ids) -> None:
        """Multiply sizes by numbers, in place, with a note of what they were."""
        short = canonical(scales)
        odd = (short != 1.0) & (rest != _ZERO)
        if odd.any():
            factor = scramble(short[odd].view(np.uint64) ^ _FACTOR)
            made = self._product.inverse((rest[odd] + factor) & _SIZE)
            self._scaled.note(made, scales[odd], size[odd])
            size[odd] = made
