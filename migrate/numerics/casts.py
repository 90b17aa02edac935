"""Conversions between formats, by the rules the platforms document.

Every conversion rounds once.  `float -> float` goes straight from the source's value to
the destination; only NKI's store passes through fp32, because the platform does.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from migrate.numerics.dtypes import DType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


class Rule(Enum):
    """How a conversion rounds, and what it does outside the destination's range.

    Rules differ only where they say so: otherwise floats round to nearest with ties to
    even and overflow to infinity (IEEE 754), NaN stays NaN, and integers wrap.
    """

    # CUDA C++: float to integer truncates and saturates with NaN to 0, 8- and 16-bit
    # integers by way of int32 with a wrap (PTX ISA, cvt); fp8, fp6 and fp4 saturate to the
    # largest finite value, infinities too (cvt.rn.satfinite).
    CUDA = "cuda"
    # CUDA's __float2int_rn family: as CUDA, float to integer to nearest even.
    CUDA_NEAREST = "cuda-nearest"
    # CUDA's __float2int_rd and _ru families: as CUDA, float to integer down or up.
    CUDA_DOWN = "cuda-down"
    CUDA_UP = "cuda-up"
    # NKI: an engine computes in fp32 and converts at the store, rounding to nearest even;
    # float to integer rounds to nearest even and saturates (NKI 0.6 release notes); a DMA
    # converts by way of fp32 too.  32-bit integers above 2^24 lose their low bits.  NaN to
    # integer is undocumented: 0 here.
    NKI = "nki"
    # Toward zero: __float2bfloat16_rz, and how matrix units read tf32.
    TRUNCATE = "truncate"
    # To nearest, ties away from zero: cvt.rna.tf32.
    NEAREST_AWAY = "nearest-away"
    # Plain IEEE 754, with Python's and NumPy's truncation of floats to integers.
    IEEE = "ieee"

    @property
    def saturates(self) -> bool:
        """Whether floats beyond an 8-bit or narrower format become its largest value."""
        return self in {Rule.CUDA, Rule.CUDA_NEAREST, Rule.CUDA_DOWN, Rule.CUDA_UP}


def cast(values: Array, to: DType, rule: Rule, *, source: DType | None = None) -> Array:
    """Convert an array, in any format's storage, to `to`'s storage.

    `source` says the format where storage does not (`tfloat32` in float32).  Equal
    formats are copied bit for bit.
    """
    import numpy as np

    values = np.asarray(values)
    frm = source if source is not None else DType.of(values.dtype)
    if frm is to:
        return values.copy()
    with np.errstate(all="ignore"):
        if to is DType.BOOL:
            return np.asarray(values.astype(np.float64) != 0 if frm.is_float else values != 0)
        if not frm.is_float:
            if to.is_float:
                return _from_integer(values, to, rule)
            return _between_integers(values, frm, to, rule)
        if to.is_float:
            if rule is Rule.NKI and frm is DType.FLOAT64:
                values = round_float(values, DType.FLOAT32, rule)
            return round_float(values, to, rule)
        if rule is Rule.NKI and frm is DType.FLOAT64:
            values = values.astype(np.float32)
        return _to_integer(values.astype(np.float64), to, rule)


def round_float(values: Array, to: DType, rule: Rule = Rule.IEEE) -> Array:
    """Round floats of any format to `to`, once; the result is in `to`'s storage.

    `IEEE` rounds to nearest even and overflows as the format does.
    """
    import numpy as np

    if to is DType.FLOAT64:
        return values.astype(np.float64)
    nearest = rule not in {Rule.TRUNCATE, Rule.NEAREST_AWAY}
    if nearest and (
        to in {DType.FLOAT32, DType.FLOAT16}
        or (to is DType.BFLOAT16 and values.dtype.itemsize <= 4)
    ):
        # Library conversions known to round once; ml_dtypes takes float64 by way of float32.
        return values.astype(to.numpy)
    wide = values.astype(np.float64)
    saturate = rule.saturates and to.bits <= 8
    match rule:
        case Rule.TRUNCATE:
            rounded = _on_grid(wide, to, np.trunc)
        case Rule.NEAREST_AWAY:
            rounded = _on_grid(wide, to, _half_away)
        case _ if to is DType.FLOAT8_E8M0FNU:
            return _to_scale(wide)
        case _:
            rounded = _on_grid(wide, to, np.rint)
    return _within_range(wide, rounded, to, saturate, truncate=rule is Rule.TRUNCATE)


def _half_away(x: Array) -> Array:
    import numpy as np

    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _on_grid(wide: Array, to: DType, to_integer: Any) -> Array:
    """Round float64 to `to`'s precision (subnormals too), ignoring its range above."""
    import numpy as np

    _, exponent = np.frexp(wide)
    # frexp's significand lies in [1/2, 1): the last place is exponent - precision.
    least = int(np.frexp(to.min_subnormal)[1]) - 1
    place = np.maximum(exponent - to.precision, least)
    return np.asarray(np.ldexp(to_integer(np.ldexp(wide, -place)), place))


def _within_range(wide: Array, rounded: Array, to: DType, saturate: bool, truncate: bool) -> Array:
    import numpy as np

    over = np.abs(rounded) > to.max
    largest = np.copysign(to.max, wide)
    infinite = np.isinf(wide)
    if saturate or to.overflow == "saturate":
        rounded = np.where(over, largest, rounded)
    elif to.overflow == "inf":
        beyond = np.where(infinite | (not truncate), np.copysign(np.inf, wide), largest)
        rounded = np.where(over, beyond, rounded)
    else:
        rounded = np.where(over, largest if truncate else np.nan, rounded)
        rounded = np.where(infinite, np.nan, rounded)
    if to is DType.FLOAT4_E2M1FN:
        # No NaN in the format: OCP leaves it open, CUDA gives the largest value.
        rounded = np.where(np.isnan(rounded), to.max, rounded)
    # Everything is representable now, so that this conversion is exact.
    return rounded.astype(to.numpy)


def _to_scale(wide: Array) -> Array:
    """The nearest power of two (E8M0): ties to the larger, range clamped, else NaN.

    OCP microscaling has no zero, sign or infinity in this format.
    """
    import numpy as np

    significand, exponent = np.frexp(wide)
    power = np.clip(exponent - 1 + (significand >= 0.75), -127, 127)
    valid = np.isfinite(wide) & (wide >= 0)
    power = np.where(wide == 0, -127, power)
    return np.where(valid, np.ldexp(1.0, power), np.nan).astype(DType.FLOAT8_E8M0FNU.numpy)


def _to_integer(wide: Array, to: DType, rule: Rule) -> Array:
    import numpy as np

    match rule:
        case Rule.NKI | Rule.CUDA_NEAREST:
            whole = np.rint(wide)
        case Rule.CUDA_DOWN:
            whole = np.floor(wide)
        case Rule.CUDA_UP:
            whole = np.ceil(wide)
        case Rule.NEAREST_AWAY:
            whole = _half_away(wide)
        case _:
            whole = np.trunc(wide)
    if rule is not Rule.NKI and to.bits < 32:
        return _saturated(whole, DType.INT32).astype(to.numpy)
    return _saturated(whole, to)


def _saturated(whole: Array, to: DType) -> Array:
    """Integral float64 values clamped to an integer format's range; NaN to 0."""
    import numpy as np

    low, high = to.range
    # 2^63 - 1 and 2^64 - 1 are no float64: clamp below the power of two, then set the rest.
    limit = float(high + 1)
    inside = (whole >= low) & (whole < limit)
    result = np.where(inside, whole, 0.0).astype(to.numpy)
    result = np.where(whole >= limit, to.numpy.type(high), result)
    return np.where(whole < low, to.numpy.type(low), result)


def _from_integer(values: Array, to: DType, rule: Rule) -> Array:
    """An integer rounded to a float format: once, or by way of fp32 (NKI)."""
    import numpy as np

    if values.dtype == np.bool_:
        return round_float(values.astype(np.float64), to, rule)
    if rule is Rule.NKI:
        return round_float(values.astype(np.float32), to, rule)
    nearest = rule not in {Rule.TRUNCATE, Rule.NEAREST_AWAY}
    if to is DType.FLOAT64 or (to is DType.FLOAT32 and nearest):
        # NumPy converts each integer type to these directly, to nearest even.
        return values.astype(to.numpy)
    if values.dtype.itemsize < 8:
        return round_float(values.astype(np.float64), to, rule)
    return round_float(_integer_odd(values), to, rule)


def _integer_odd(values: Array) -> Array:
    """64-bit integers as float64 rounded to odd, safe to round once more below 52 bits."""
    import numpy as np

    negative = values < 0
    size = np.where(negative, -values, values).astype(np.uint64)
    # Low bits that cannot survive are folded into one sticky bit.
    folded = np.where(
        size >= np.uint64(1) << np.uint64(53),
        (size >> np.uint64(12)) | ((size & np.uint64(0xFFF)) != 0).astype(np.uint64),
        size,
    )
    scale = np.where(size >= np.uint64(1) << np.uint64(53), 4096.0, 1.0)
    return np.where(negative, -1.0, 1.0) * (folded.astype(np.float64) * scale)


def _between_integers(values: Array, frm: DType, to: DType, rule: Rule) -> Array:
    import numpy as np

    if rule is Rule.NKI and frm is not DType.BOOL:
        return _saturated(np.rint(values.astype(np.float32).astype(np.float64)), to)
    return values.astype(to.numpy)
