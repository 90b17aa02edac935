"""A real value with a running error bound: what the `Bounded` domain's values are.

Four bounds travel with each float, all in its own unit:

* `bound`: errors that may all have one sign (published errors of functions,
  truncation, underflow), added up linearly;
* `deviation`: standard deviation of the roundings taken as independent and zero-mean;
* `coherent`: the same roundings added up linearly, as they would be if repeated values
  made them repeat;
* `worst`: the deterministic bound, over every way each rounding could go.

With m distinct magnitudes in the data, a result lies within
`bound + confidence * hypot(deviation, coherent / sqrt(m))`, and always within `worst`.
Sums of constant data err by the same amount at every step, which the independent model
alone misses by a factor of ten.

Operands are taken as fully correlated (their deviations add, not their variances):
it costs little, since the term that grows with a reduction's length is each step's own
rounding, and it is right when both come from one tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.numerics.dtypes import DType

Array: TypeAlias = NDArray[Any]

# sqrt(2 ln(2N / alpha)) for N = 10^6 outputs at a family-wise false-alarm level of 10^-3.
CONFIDENCE = 6.54
# The standard deviation of a rounding to nearest is at most this many unit roundoffs.
KAPPA = 3.0**-0.5
# A float64 evaluation of an operator is this close to the real value, relatively: a few
# ulp for a library's transcendental functions.
EVALUATION = 2.0**-50

# Windows in which distinct magnitudes are counted where rows are not known.
_WINDOW = 64


@dataclass(slots=True)
class BoundedValue:
    """Elements with their error bounds.  Written in place only by the domain's writes.

    `value` holds floats as float64, unrounded, and integers in their storage, exact.
    The error arrays have the same shape; all four are `None` where the value is exact.
    `whole` certifies exact integers: the sum of the sizes of the integer terms that led
    to the element, NaN where it is not certified (`None`: nowhere).  `ambiguous` marks
    elements that depend on a decision within the bound, or for which there is no bound.
    `distinct` is the number of distinct magnitudes in the data it came from.
    """

    dtype: DType
    value: Array
    bound: Array | None = None
    deviation: Array | None = None
    coherent: Array | None = None
    worst: Array | None = None
    whole: Array | None = None
    ambiguous: Array | None = None
    distinct: float = 1.0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def is_exact(self) -> bool:
        return self.worst is None

    def allowance(self, confidence: float = CONFIDENCE) -> Array:
        """How far a faithful computation may be from the value, short of the worst case."""
        if self.worst is None:
            return np.zeros(self.shape)
        assert self.bound is not None
        assert self.deviation is not None
        assert self.coherent is not None
        spread = np.hypot(self.deviation, self.coherent / np.sqrt(max(self.distinct, 1.0)))
        # A bound of infinity and a deviation of zero are both legal.
        within: Array = np.minimum(self.bound + confidence * spread, self.worst)
        return within

    def limit(self) -> Array:
        """The deterministic bound: no order of roundings leads outside it."""
        return np.zeros(self.shape) if self.worst is None else self.worst

    def doubts(self) -> Array:
        """The ambiguous elements, as a mask."""
        return np.zeros(self.shape, np.bool_) if self.ambiguous is None else self.ambiguous


# The component arrays and what an absent one means.
COMPONENTS: dict[str, float | bool] = {
    "bound": 0.0,
    "deviation": 0.0,
    "coherent": 0.0,
    "worst": 0.0,
    "whole": np.nan,
    "ambiguous": False,
}


def distinct_magnitudes(values: Array) -> float:
    """The number of distinct sizes among the values, in the least varied stretch.

    Rows (the last axis) are counted apart; a flat array is looked at in windows, since
    its rows are not known.  All-zero stretches do not count: their sums are exact.
    """
    if values.size == 0:
        return 1.0
    sizes = np.abs(np.asarray(values, np.float64))
    if sizes.ndim >= 2 and sizes.shape[-1] > 1:
        return float(_least(sizes.reshape(-1, sizes.shape[-1])))
    sizes = sizes.reshape(-1)
    whole = _least(sizes[None, :])
    if sizes.size < 2 * _WINDOW:
        return float(whole)
    windows = sizes[: sizes.size // _WINDOW * _WINDOW].reshape(-1, _WINDOW)
    local = _least(windows)
    return float(local if local < _WINDOW // 2 else whole)


def _least(rows: Array) -> int:
    counts = row_magnitudes(rows)[rows.any(axis=-1)]
    return int(counts.min()) if counts.size else 1


def row_magnitudes(rows: Array) -> Array:
    """The number of distinct sizes in each row (last axis)."""
    ordered = np.sort(np.abs(rows), axis=-1)
    return np.asarray(1 + np.count_nonzero(ordered[..., 1:] != ordered[..., :-1], axis=-1))


def either(*masks: Array | None) -> Array | None:
    """The union of masks, `None` being nowhere."""
    found: Array | None = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else found | mask
    return found


def compact(mask: Array | None) -> Array | None:
    """`None` for a mask that holds nowhere."""
    return mask if mask is not None and mask.any() else None
