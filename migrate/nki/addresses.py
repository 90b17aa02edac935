"""Arithmetic on addresses: integers that vary over the axes of a view or an index tensor.

Numbers keep their expressions throughout.  What depends on values (whether a quotient
comes out whole, what range an address has) is decided at the numbers at hand; consumers
that stand for many instances check theirs (`resolve`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from migrate.nki.errors import Unsupported
from migrate.nki.symbols import Number, binary, constant, unary
from migrate.nki.values import Address, Digit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

ZERO = constant(0)
ONE = constant(1)
MINUS_ONE = constant(-1)

MAX_DIGITS = 8
"""Quotients and remainders of one address, nested ones counted."""


def plus(left: Number, right: Number) -> Number:
    """Sum without a node for a plain zero that comes from nowhere."""
    if not right.symbolic and right.value == 0:
        return _with_places(left, right)
    if not left.symbolic and left.value == 0:
        return _with_places(right, left)
    return binary("+", left, right)


def times(left: Number, right: Number) -> Number:
    """Product without a node for a plain one or zero that comes from nowhere."""
    if not right.symbolic and right.value == 1:
        return _with_places(left, right)
    if not left.symbolic and left.value == 1:
        return _with_places(right, left)
    return binary("*", left, right)


def _with_places(number: Number, neutral: Number) -> Number:
    """The number, with the places of a neutral element that was combined with it."""
    if neutral.origin is None and not neutral.args:
        return number
    if number.origin is None and not number.args and number.value == neutral.value:
        return number if number.symbolic else neutral
    return Number(number.value, "same", (number, neutral))


def negative(number: Number) -> Number:
    return unary("-", number)


def fixed(number: Number) -> Address:
    """The same integer everywhere."""
    return Address(number)


def total(left: Address, right: Address) -> Address:
    """The sum of two addresses over the same axes."""
    start = plus(left.start, right.start)
    terms = left.terms or right.terms
    if left.terms and right.terms:
        merged = dict(left.terms)
        for axis, step in right.terms:
            merged[axis] = plus(merged[axis], step) if axis in merged else step
        terms = tuple(sorted(merged.items(), key=lambda term: term[0]))
    digits = left.digits + right.digits
    if digits:
        _limited(digits)
    return Address(start, terms, digits)


def scaled(address: Address, factor: Number) -> Address:
    """The address times a number."""
    if not factor.symbolic and factor.value == 1:
        return address
    return Address(
        times(address.start, factor),
        tuple((axis, times(step, factor)) for axis, step in address.terms),
        tuple(replace(digit, scale=times(digit.scale, factor)) for digit in address.digits),
    )


def shifted(address: Address, by: Number) -> Address:
    """The address plus a number."""
    return Address(plus(address.start, by), address.terms, address.digits)


def substituted(address: Address, parts: Mapping[int, Address]) -> Address:
    """The address with another one in place of each of its axes (0 where there is none)."""
    result = Address(address.start)
    for axis, step in address.terms:
        part = parts.get(axis)
        if part is not None:
            result = total(result, scaled(part, step))
    for digit in address.digits:
        inner = substituted(digit.inner, parts)
        result = total(result, Address(ZERO, (), (replace(digit, inner=inner),)))
    return result


def renamed(address: Address, axes: Mapping[int, int]) -> Address:
    """The address with its axes numbered anew; those that are not named are dropped."""
    terms = tuple((axes[axis], step) for axis, step in address.terms if axis in axes)
    if not address.digits:
        return Address(address.start, terms)
    digits = tuple(replace(d, inner=renamed(d.inner, axes)) for d in address.digits)
    return Address(address.start, terms, digits)


def affine_terms(address: Address, rank: int) -> tuple[Number, list[Number]] | None:
    """The start and the step along each of `rank` axes; `None` where there are quotients."""
    if address.digits:
        return None
    steps = [ZERO] * rank
    for axis, step in address.terms:
        steps[axis] = plus(steps[axis], step)
    return address.start, steps


def axes_of(address: Address) -> frozenset[int]:
    """The axes that it varies over."""
    found = frozenset(axis for axis, _ in address.terms)
    for digit in address.digits:
        found |= axes_of(digit.inner)
    return found


def divided(address: Address, divisor: Number, sizes: Sequence[int], *, remainder: bool) -> Address:
    """`address // divisor`, or `address % divisor`, over axes of the given sizes.

    What the divisor goes into leaves a quotient; of the rest there is none where it stays
    below the divisor.  The divisor is positive.
    """
    by = int(divisor.value)
    whole: list[tuple[int, Number]] = []
    rest: list[tuple[int, Number]] = []
    for axis, step in address.terms:
        (whole if int(step.value) % by == 0 else rest).append((axis, step))
    start_rest = address.start
    start_whole = ZERO
    if address.start.symbolic or not 0 <= int(address.start.value) < by:
        start_whole = binary("//", address.start, divisor)
        start_rest = binary("%", address.start, divisor)
    left = Address(start_rest, tuple(rest), address.digits)
    low, high = bounds(left, sizes)
    small = low >= 0 and high < by
    if remainder:
        return left if small else _digit(left, divisor, remainder=True)
    over = tuple((axis, binary("//", step, divisor)) for axis, step in whole)
    result = Address(start_whole, over)
    return result if small else total(result, _digit(left, divisor, remainder=False))


def _digit(inner: Address, divisor: Number, *, remainder: bool) -> Address:
    digits = (Digit(ONE, inner, divisor, remainder),)
    _limited(digits)
    return Address(ZERO, (), digits)


def _limited(digits: tuple[Digit, ...]) -> None:
    if _count(digits) > MAX_DIGITS:
        raise Unsupported("index arithmetic with many quotients and remainders")


def _count(digits: tuple[Digit, ...]) -> int:
    return sum(1 + _count(digit.inner.digits) for digit in digits)


def bounds(address: Address, sizes: Sequence[int]) -> tuple[int, int]:
    """A least and a greatest value over axes of the given sizes, exact without digits."""
    low = high = int(address.start.value)
    for axis, step in address.terms:
        reach = int(step.value) * (sizes[axis] - 1)
        if reach < 0:
            low += reach
        else:
            high += reach
    for digit in address.digits:
        inner_low, inner_high = bounds(digit.inner, sizes)
        by = int(digit.divisor.value)
        first, last = inner_low // by, inner_high // by
        if digit.remainder:
            within = first == last
            first, last = (inner_low % by, inner_high % by) if within else (0, by - 1)
        ends = (first * int(digit.scale.value), last * int(digit.scale.value))
        low, high = low + min(ends), high + max(ends)
    return low, high


def evaluated(address: Address, sizes: Sequence[int]) -> Array:
    """The integers at every point; axes that it does not vary over have size 1."""
    import numpy as np

    rank = len(sizes)
    found: Array = np.full((1,) * rank, int(address.start.value), np.int64)
    for axis, step in address.terms:
        shape = [1] * rank
        shape[axis] = sizes[axis]
        found = found + (np.arange(sizes[axis], dtype=np.int64) * int(step.value)).reshape(shape)
    for digit in address.digits:
        inner = evaluated(digit.inner, sizes)
        by = int(digit.divisor.value)
        part = inner % by if digit.remainder else inner // by
        found = found + part * int(digit.scale.value)
    return found


def numbers_of(address: Address) -> Iterator[Number]:
    """Every number of an address, in the order in which `rebuilt` takes them."""
    yield address.start
    for _, step in address.terms:
        yield step
    for digit in address.digits:
        yield digit.scale
        yield from numbers_of(digit.inner)
        yield digit.divisor


def structure(address: Address) -> tuple[object, ...]:
    """What an address is apart from its numbers."""
    axes = tuple(axis for axis, _ in address.terms)
    if not address.digits:
        return axes
    return (axes, *((d.remainder, structure(d.inner)) for d in address.digits))


def rebuilt(address: Address, source: Iterator[Number]) -> Address:
    """The address with other numbers."""
    start = next(source)
    terms = tuple((axis, next(source)) for axis, _ in address.terms)
    digits: list[Digit] = []
    for digit in address.digits:
        scale = next(source)
        inner = rebuilt(digit.inner, source)
        digits.append(Digit(scale, inner, next(source), digit.remainder))
    return Address(start, terms, tuple(digits))
