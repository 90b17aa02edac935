"""Parts of views: every so many elements of an axis, from some element on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from migrate.nki.errors import Unsupported
from migrate.nki.symbols import Number, binary
from migrate.nki.values import Address, Digit, View


@dataclass(frozen=True, slots=True)
class Part:
    """Elements `start`, `start + step`, ... of one axis, `count` of them."""

    axis: int
    start: int
    step: int
    count: Number


def part_of(view: View, parts: Sequence[Part]) -> View:
    """A view of a part of a view's elements."""
    for part in parts:
        view = _part(view, part)
    return view


def cell(view: View, position: int) -> tuple[Part, ...]:
    """The element at a row-major position of the free axes, in every partition."""
    found: list[Part] = []
    for axis in range(len(view.shape) - 1, 0, -1):
        extent = view.sizes[axis]
        found.append(Part(axis, position % extent, 1, Number(1)))
        position //= extent
    return tuple(found)


def _part(view: View, part: Part) -> View:
    shape = list(view.shape)
    shape[part.axis] = part.count
    strides, offset = view.strides, view.offset
    if strides:
        offset += strides[part.axis] * part.start
        strides = tuple(
            stride * part.step if axis == part.axis else stride
            for axis, stride in enumerate(strides)
        )
    for indirect in view.indirect:
        if part.axis in indirect.axes:
            raise Unsupported("a part of a view that stands where numbers in memory say")
    return replace(
        view,
        shape=tuple(shape),
        offset=offset,
        strides=strides,
        index=tuple(_address(address, part) for address in view.index),
    )


def _address(address: Address, part: Part) -> Address:
    start = address.start
    terms: list[tuple[int, Number]] = []
    for axis, step in address.terms:
        if axis == part.axis:
            if part.start:
                start = binary("+", start, binary("*", step, Number(part.start)))
            step = binary("*", step, Number(part.step)) if part.step != 1 else step
        terms.append((axis, step))
    digits = tuple(
        Digit(digit.scale, _address(digit.inner, part), digit.divisor, digit.remainder)
        for digit in address.digits
    )
    return Address(start, tuple(terms), digits)
