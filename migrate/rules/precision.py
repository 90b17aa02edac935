"""Where a kernel rounds its floats to a narrower format, and what becomes of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from migrate.ir.finder import Finder
from migrate.ir.nodes import (
    Carried,
    Cast,
    Contract,
    Fill,
    Kernel,
    Load,
    Map,
    Reduce,
    Select,
    Value,
)
from migrate.ir.scene import Scene
from migrate.numerics.dtypes import DType

_FAR = 256
"""Values followed backwards to see what one is made of."""

_LARGE = 1e4

_KEEPS = frozenset(
    {"maximum", "minimum", "maximum_number", "minimum_number", "abs", "negate", "relu"}
)
"""Operators whose result has no more significant bits than their operands."""


@dataclass(frozen=True, slots=True)
class Rounding:
    """A conversion that loses significant bits; `outputs` are where the result goes, if it goes
    nowhere else."""

    op: Cast
    outputs: tuple[str, ...]


def roundings(kernel: Kernel) -> Iterator[Rounding]:
    """The conversions of floats that lose bits: not those of what was as narrow before."""
    scene = Scene(kernel)
    finder = Finder(scene)
    for op in scene.ops:
        if not isinstance(op, Cast):
            continue
        to, given = op.result.dtype, op.arg.dtype
        if to.kind != "float" or given.kind != "float" or to.unit_roundoff <= given.unit_roundoff:
            continue
        if to.unit_roundoff > _held(op.arg, scene):
            yield Rounding(op, finder.stored(op.result))


def coarsest(kernel: Kernel) -> float:
    """The coarsest rounding of a float that the kernel goes on with; 0 for none."""
    found = [
        rounding.op.result.dtype.unit_roundoff
        for rounding in roundings(kernel)
        if not rounding.outputs
    ]
    found += [
        op.result.dtype.unit_roundoff
        for op in Scene(kernel).ops
        if isinstance(op, Map | Reduce | Contract) and op.result.dtype.kind == "float"
    ]
    return max(found, default=0.0)


def loses(number: float | int | bool, dtype: DType) -> bool:
    """Whether a float format that is coarser than float32 does not hold a number.

    Numbers that stand for infinity, to mask with, may be anything as large.
    """
    if dtype.kind != "float" or _short(float(number)) or abs(number) >= _LARGE:
        return False
    import numpy as np

    return float(np.float32(number)) != float(np.asarray(number).astype(dtype.numpy))


def _held(value: Value, scene: Scene) -> float:
    """The unit roundoff of a format that surely holds what a value can be."""
    finest = math.inf
    pending: list[tuple[Carried, float]] = [(value, 0.0)]
    seen: set[Carried] = set()
    while pending:
        current, coarse = pending.pop()
        if current in seen or not isinstance(current, Value):
            continue
        seen.add(current)
        if len(seen) > _FAR:
            return value.dtype.unit_roundoff
        own = current.dtype.unit_roundoff if current.dtype.kind == "float" else 0.0
        inner: list[Value] = []
        match scene.maker.get(current):
            case Fill(number=number) if _short(float(number)):
                continue
            case Cast(arg=arg):
                inner = [arg]
            case Load(source=source) if not scene.outside(source):
                inner = [store.value for store in scene.writes_of.get(source.buffer, ())]
            case Select(then=then, otherwise=otherwise):
                inner = [then, otherwise]
            case Map(operator=operator, args=args) if operator in _KEEPS:
                inner = list(args)
            case _:
                pass
        if inner:
            pending += [(each, max(own, coarse)) for each in inner]
        else:
            finest = min(finest, max(own, coarse))
    return finest


def _short(number: float) -> bool:
    """Whether every float format holds a number: few bits, or no number at all."""
    if not math.isfinite(number):
        return True
    mantissa, _ = math.frexp(number)
    return (mantissa * 4).is_integer()
