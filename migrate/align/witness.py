"""Inputs that tell two kernels apart: both readings evaluated in float64.

An element with different numbers for the same inputs is a witness; it refutes, without a run,
that the kernels compute the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.align.binding import Binding, BoundTensor
from migrate.align.overflow import WIDE, Overflow, Watched
from migrate.budget import Meter
from migrate.ir.evaluate import evaluate
from migrate.ir.nodes import Fill, Kernel, Load, Map, walk
from migrate.ir.nodes import Value as Operand
from migrate.ir.normal import Tensor
from migrate.ir.reals import Reals
from migrate.results import Inputs, Value, Witness, value

Make: TypeAlias = "Callable[[Binding, Inputs], Mapping[str, NDArray[np.generic]]]"

FAMILIES: Final = ("normal", "uniform", "int")
"""Input families tried, in order."""

MAX_THRESHOLDS: Final = 4
"""Numbers that are compared with, around which inputs are drawn."""

_REACH: Final = 1e7
"""A larger number that a maximum or minimum is taken with stands for infinity."""

_COMPARING: Final = frozenset(
    {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}
)
_SPECIAL: Final = frozenset({"is_nan", "is_inf", "is_finite"})
_LIMITING: Final = frozenset({"maximum", "minimum", "maximum_number", "minimum_number"})

_SAME: Final = 1e-6
"""Relative difference below which two float64 evaluations count as equal."""

_NOISE: Final = 1e-9
"""Difference, in units of the largest element of the output, that cancellation may leave:
1 + tanh(-20) is 0 in float64, and 4e-18 in truth."""

Sides: TypeAlias = tuple[
    tuple[Kernel, Mapping[str, int], dict[str, Tensor]],
    tuple[Kernel, Mapping[str, int], dict[str, Tensor]],
]


def witnesses(
    sides: Sides,
    binding: Binding,
    make: Make,
    differing: Mapping[str, NDArray[np.int64]],
    meter: Meter,
) -> dict[str, Witness]:
    """An element of each output, of those given, on which float64 evaluation differs."""
    found: dict[str, Witness] = {}
    wanted = {name for name, elements in differing.items() if elements.size}
    for family in (*FAMILIES, *_around_thresholds(sides, binding)):
        inputs = Inputs(family=family, seed=0)
        arrays = make(binding, inputs)
        results = [_evaluated(*side, arrays, meter) for side in sides]
        for name in sorted(wanted - found.keys()):
            tensor = next(t for t in binding.outputs if t.name == name)
            left, right = (result[name] for result in results)
            if left.shape != right.shape:
                continue
            elements = differing[name]
            different = _different(left[elements], right[elements], _scale(left, right))
            if different.any():
                cell = int(elements[np.flatnonzero(different)[0]])
                found[name] = _witness(binding, tensor, inputs, cell, left, right)
        if wanted <= found.keys():
            break
    return found


def _around_thresholds(sides: Sides, binding: Binding) -> tuple[str, ...]:
    """Families that reach the numbers which either kernel compares with, clamps or tests for.

    Usual inputs never come near a clamp at 1000, and hold no NaN: without these families neither
    would seem to matter.
    """
    inputs = [tensor for tensor in binding.tensors if tensor.is_input]
    if any(not tensor.cuda_dtype.is_float for tensor in inputs):
        return ()  # integers may be positions, which must not be drawn so
    found: set[int] = set()
    special = False
    for kernel, _, _ in sides:
        numbers: dict[Operand, float] = {}
        loads: dict[Operand, object] = {}
        for op in walk(kernel.body):
            match op:
                case Fill(result=result, number=number):
                    numbers[result] = float(number)
                case Map(operator=operator) if operator in _SPECIAL:
                    special = True
                case Load(result=result, source=source, index=index):
                    loads[result] = (source, index)
                case Map(operator="equal" | "not_equal", args=(one, other)) if loads.get(
                    one, one
                ) == loads.get(other, other):
                    special = True  # what is not equal to itself is NaN
                case Map(operator=operator, args=args) if operator in _COMPARING | _LIMITING:
                    for arg in args:
                        size = abs(numbers.get(arg, 0.0))
                        most = _REACH if operator in _LIMITING else _WHOLE
                        if 2.0 < size < most:
                            found.add(ceil(size))
    largest = sorted(found)[-MAX_THRESHOLDS:]
    around = [f"int({-2 * size}, {2 * size + 1})" for size in largest]
    return (*around, *(["special"] if special else []))


_WHOLE = 2.0**53
"""Below it float64 has all whole numbers."""


def _witness(
    binding: Binding,
    tensor: BoundTensor,
    inputs: Inputs,
    cell: int,
    cuda: NDArray[np.float64],
    nki: NDArray[np.float64],
) -> Witness:
    return Witness(
        found_by="evaluation",
        sizes=dict(binding.sizes),
        inputs=inputs,
        output=tensor.name,
        index=tuple(int(i) for i in np.unravel_index(cell, tensor.shape)),
        cuda=_shown(cuda[cell]),
        nki=_shown(nki[cell]),
    )


def overflowing(
    sides: Sides,
    binding: Binding,
    make: Make,
    differing: Mapping[str, NDArray[np.int64]],
    meter: Meter,
) -> dict[str, tuple[Witness, Overflow]]:
    """Outputs that are no number on the NKI side, for large inputs, but are in CUDA."""
    wanted = {name for name, elements in differing.items() if elements.size}
    if not wanted:
        return {}
    inputs = Inputs(family=WIDE, seed=0)
    arrays = make(binding, inputs)
    watched: list[Watched] = []

    def watching(given: Mapping[str, NDArray[np.float64]]) -> Reals:
        watched.append(Watched(given))
        return watched[-1]

    cuda = _evaluated(*sides[0], arrays, meter)
    nki = _evaluated(*sides[1], arrays, meter, watching)
    overflow = watched[0].first
    if overflow is None:
        return {}
    found: dict[str, tuple[Witness, Overflow]] = {}
    for name in sorted(wanted):
        tensor = next(t for t in binding.outputs if t.name == name)
        left, right, elements = cuda[name], nki[name], differing[name]
        if left.shape == right.shape:
            lost = np.isfinite(left[elements]) & ~np.isfinite(right[elements])
            if lost.any():
                cell = int(elements[np.flatnonzero(lost)[0]])
                found[name] = (_witness(binding, tensor, inputs, cell, left, right), overflow)
    return found


def _evaluated(
    kernel: Kernel,
    sizes: Mapping[str, int],
    tensors: Mapping[str, Tensor],
    arrays: Mapping[str, NDArray[np.generic]],
    meter: Meter,
    algebra: Callable[[Mapping[str, NDArray[np.float64]]], Reals] = Reals,
) -> dict[str, NDArray[np.float64]]:
    """The outputs as logical tensors, flat; unwritten elements are `_UNWRITTEN`."""
    inputs: dict[str, NDArray[np.float64]] = {}
    for buffer, tensor in tensors.items():
        if tensor.name not in arrays:
            continue
        flat = np.asarray(arrays[tensor.name]).astype(np.float64).reshape(-1)
        if tensor.elements is not None:
            held = tensor.elements >= 0
            placed = np.zeros(tensor.elements.size)
            placed[held] = flat[tensor.elements[held]]
            flat = placed
        inputs[buffer] = flat
    evaluation = evaluate(kernel, sizes, algebra(inputs), meter=meter)
    results: dict[str, NDArray[np.float64]] = {}
    for buffer, content in evaluation.outputs.items():
        if buffer not in tensors:
            continue
        tensor = tensors[buffer]
        unwritten = (evaluation.writers[buffer] < 0) & (buffer not in inputs)
        marked = np.where(unwritten, _UNWRITTEN, content)
        if tensor.elements is not None:
            size = int(np.prod(tensor.shape, dtype=object)) if tensor.shape else 1
            logical = np.full(size, _UNWRITTEN)
            held = tensor.elements >= 0
            logical[tensor.elements[held]] = marked[held]
            marked = logical
        results[tensor.name] = marked
    return results


# A NaN with a payload of its own, so that "nobody wrote this" survives as a value.
_UNWRITTEN = np.array([0x7FF8_0000_DEAD_0000], np.uint64).view(np.float64)[0]


def _unwritten(number: np.float64) -> bool:
    return int(np.float64(number).view(np.uint64)) == 0x7FF8_0000_DEAD_0000


def _different(
    left: NDArray[np.float64], right: NDArray[np.float64], scale: float
) -> NDArray[np.bool_]:
    """Where two evaluations differ by more than float64 itself explains."""
    with np.errstate(all="ignore"):
        largest = np.maximum(np.abs(left), np.abs(right))
        apart = np.abs(left - right) > np.maximum(_SAME * largest, _NOISE * scale)
        finite = np.isfinite(left) & np.isfinite(right)
        infinite = np.isinf(left) | np.isinf(right)
        classes = (np.isnan(left) != np.isnan(right)) | (infinite & (left != right))
    marked = np.uint64(0x7FF8_0000_DEAD_0000)
    lost = (left.view(np.uint64) == marked) ^ (right.view(np.uint64) == marked)
    return np.asarray(np.where(finite, apart, classes) | lost)


def _scale(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """The largest finite element of both."""
    both = np.concatenate([left.reshape(-1), right.reshape(-1)])
    return float(np.abs(both[np.isfinite(both)]).max(initial=0.0))


def _shown(number: np.float64) -> Value:
    return "uninitialised" if _unwritten(number) else value(float(number))
