"""Rearranging bounded values: whatever happens to the value happens to its bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.numerics.errors import COMPONENTS, BoundedValue

Array: TypeAlias = NDArray[Any]


def mapped(v: BoundedValue, move: Callable[[Array], Array]) -> BoundedValue:
    """The same rearrangement of the value and everything that travels with it."""
    moved = {
        name: None if getattr(v, name) is None else move(getattr(v, name)) for name in COMPONENTS
    }
    return BoundedValue(v.dtype, move(v.value), distinct=v.distinct, **moved)


def joined_parts(
    a: BoundedValue, b: BoundedValue, join: Callable[[Array, Array], Array]
) -> BoundedValue:
    """A value from two, component by component."""
    parts: dict[str, Array | None] = {}
    for name, absent in COMPONENTS.items():
        one, two = getattr(a, name), getattr(b, name)
        if one is None and two is None:
            parts[name] = None
            continue
        one = one if one is not None else np.full(a.shape, absent)
        two = two if two is not None else np.full(b.shape, absent)
        parts[name] = join(one, two)
    value = join(a.value, b.value)
    return BoundedValue(a.dtype, value, distinct=max(a.distinct, b.distinct), **parts)


def chosen_value(
    mask: Array, a: BoundedValue, b: BoundedValue, shape: tuple[int, ...]
) -> BoundedValue:
    return joined_parts(a, b, lambda x, y: np.array(np.broadcast_to(np.where(mask, x, y), shape)))


def appended(a: BoundedValue, b: BoundedValue) -> BoundedValue:
    return joined_parts(a, b, lambda x, y: np.concatenate([x, y], axis=-1))
