"""How a logical tensor lies on the NKI side: a chain of transpose, reshape and pad.

    nki_layout = "transpose(1, 0) reshape(C // 4, 4, R) pad(C // 4, 4, 128)"

`transpose` takes axis numbers, `reshape` the new extents, `pad` the extents after
padding at the end of each axis.  Extents are size expressions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from migrate.case import expression
from migrate.case.expression import Expression, ExpressionError
from migrate.case.types import Sizes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

MAX_STEPS: Final = 16

_STEP = re.compile(r"\s*(?P<name>\w+)\s*\(")


class LayoutError(ValueError):
    """A layout that cannot be read, or does not fit its tensor."""


@dataclass(frozen=True, slots=True)
class Transpose:
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reshape:
    extents: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Pad:
    extents: tuple[Expression, ...]


Step: TypeAlias = Transpose | Reshape | Pad


def parse(text: str) -> tuple[Step, ...]:
    """Read a chain; raises `LayoutError`."""
    steps: list[Step] = []
    position = 0
    while text[position:].strip():
        found = _STEP.match(text, position)
        if found is None:
            raise LayoutError(f"expected a step such as transpose(1, 0) at {text[position:]!r}")
        end = _closing(text, found.end())
        try:
            arguments = tuple(map(expression.parse, _split(text[found.end() : end])))
        except ExpressionError as error:
            raise LayoutError(str(error)) from None
        steps.append(_step(found["name"], arguments))
        if len(steps) > MAX_STEPS:
            raise LayoutError(f"has more than {MAX_STEPS} steps")
        position = end + 1
    return tuple(steps)


def shapes(
    steps: tuple[Step, ...], shape: tuple[int, ...], sizes: Sizes
) -> tuple[tuple[int, ...], ...]:
    """The shape before each step and after the last; raises `LayoutError` where one misfits."""
    seen = [shape]
    for step in steps:
        match step:
            case Transpose(axes):
                if len(axes) != len(shape):
                    raise LayoutError(f"transpose{axes} does not fit {len(shape)} axes")
                shape = tuple(shape[axis] for axis in axes)
            case Reshape(extents):
                new = _evaluated(extents, sizes)
                if prod(new) != prod(shape):
                    raise LayoutError(f"reshape to {new} does not hold the elements of {shape}")
                shape = new
            case Pad(extents):
                new = _evaluated(extents, sizes)
                if len(new) != len(shape) or any(a < b for a, b in zip(new, shape, strict=True)):
                    raise LayoutError(f"pad to {new} does not fit {shape}")
                shape = new
        seen.append(shape)
    return tuple(seen)


def apply(steps: tuple[Step, ...], array: Array, sizes: Sizes) -> Array:
    """From the logical tensor to the NKI side's; padding is zero."""
    import numpy as np

    along = shapes(steps, array.shape, sizes)
    for step, after in zip(steps, along[1:], strict=True):
        match step:
            case Transpose(axes):
                array = array.transpose(axes)
            case Reshape():
                array = array.reshape(after)
            case Pad():
                padded: Array = np.zeros(after, array.dtype)
                padded[_corner(array.shape)] = array
                array = padded
    return np.ascontiguousarray(array)


def undo(steps: tuple[Step, ...], array: Array, shape: tuple[int, ...], sizes: Sizes) -> Array:
    """From the NKI side's tensor back to the logical one of `shape`; padding is dropped."""
    import numpy as np

    along = shapes(steps, shape, sizes)
    if array.shape != along[-1]:
        raise LayoutError(f"shape {array.shape} is not the {along[-1]} that the layout gives")
    for step, before in zip(reversed(steps), reversed(along[:-1]), strict=True):
        match step:
            case Transpose(axes):
                array = array.transpose(np.argsort(axes))
            case Reshape():
                array = array.reshape(before)
            case Pad():
                array = array[_corner(before)]
    return np.ascontiguousarray(array)


def _step(name: str, arguments: tuple[Expression, ...]) -> Step:
    match name:
        case "transpose":
            try:
                axes = tuple(argument.evaluate({}) for argument in arguments)
            except ExpressionError:
                raise LayoutError("transpose takes axis numbers") from None
            if sorted(axes) != list(range(len(axes))):
                raise LayoutError(f"transpose{axes} is not a permutation of its axes")
            return Transpose(axes)
        case "reshape":
            return Reshape(arguments)
        case "pad":
            return Pad(arguments)
        case _:
            raise LayoutError(f"unknown step {name!r} (there are transpose, reshape, pad)")


def _closing(text: str, start: int) -> int:
    depth = 1
    for position in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position
    raise LayoutError("a parenthesis is not closed")


def _split(text: str) -> list[str]:
    parts = [""]
    depth = 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _evaluated(extents: tuple[Expression, ...], sizes: Sizes) -> tuple[int, ...]:
    try:
        values = tuple(extent.evaluate(sizes) for extent in extents)
    except ExpressionError as error:
        raise LayoutError(str(error)) from None
    if min(values, default=0) < 0:
        raise LayoutError(f"extents {values} must not be negative")
    return values


def _corner(shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(0, extent) for extent in shape)
