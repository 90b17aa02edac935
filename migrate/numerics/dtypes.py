"""Number formats.

`DType` names a format; its properties are derived from the few integers that define it
(IEEE 754-2019, OCP 8-bit and microscaling formats).  Importing this module does not
import NumPy: `DType.numpy` does, when asked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["float", "int", "uint", "bool", "packed"]
Overflow = Literal["inf", "nan", "saturate"]


@dataclass(frozen=True, slots=True)
class _Format:
    """What defines a format.

    `precision` counts the significand with its leading bit (value bits for integers),
    `largest` and `smallest` are the exponents of the largest and the smallest normal
    number's leading bit, `tail` is how far the largest significand lies below
    2 - 2^(1-precision), in units of the last place.
    """

    kind: Kind
    bits: int
    precision: int
    largest: int = 0
    smallest: int = 0
    tail: int = 0
    overflow: Overflow = "inf"
    signed: bool = True


class DType(Enum):
    """A number format, as stored in memory or computed in.

    The value is the canonical name, so that the format survives a round trip as text.
    """

    FLOAT64 = "float64"
    FLOAT32 = "float32"
    TFLOAT32 = "tfloat32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"
    FLOAT8_E5M2 = "float8_e5m2"
    # IEEE-like, with infinities and maximum 240: the only e4m3 of trn1 and trn2.
    FLOAT8_E4M3 = "float8_e4m3"
    # OCP, no infinities and maximum 448: CUDA's e4m3, and trn3's.
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E3M4 = "float8_e3m4"
    FLOAT8_E8M0FNU = "float8_e8m0fnu"
    FLOAT4_E2M1FN = "float4_e2m1fn"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    BOOL = "bool"
    # Four elements of a microscaling format in one of storage: moved, never computed with.
    FLOAT8_E5M2_X4 = "float8_e5m2_x4"
    FLOAT8_E4M3FN_X4 = "float8_e4m3fn_x4"
    FLOAT4_E2M1FN_X4 = "float4_e2m1fn_x4"

    # Members are looked up by the thousand, and each is one object.
    __hash__ = object.__hash__

    @staticmethod
    def named(spelling: str) -> DType:
        """The format a common spelling means: `bf16`, `half`, `np.float32`, `nl.int8`.

        Raises `KeyError` for a spelling that names no format.
        """
        found = _SPELLINGS.get(spelling) or _SPELLINGS.get(spelling.rpartition(".")[2])
        if found is None:
            raise KeyError(spelling)
        return found

    @staticmethod
    def of(numpy_dtype: np.dtype[Any]) -> DType:
        """The format of a NumPy (or `ml_dtypes`) storage type.

        `tfloat32` is stored as `float32` and reads back as that, a packed format as unsigned
        integers.  Raises `KeyError` for a type that is no format of ours (object, complex, text).
        """
        found = _KNOWN.get(numpy_dtype)
        if found is None:
            found = _KNOWN[numpy_dtype] = _SPELLINGS[numpy_dtype.name]
        return found

    def __str__(self) -> str:
        return self.value

    @property
    def kind(self) -> Kind:
        return _FORMATS[self].kind

    @property
    def is_float(self) -> bool:
        return _FORMATS[self].kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether this is a signed or unsigned integer (a bool is not)."""
        return _FORMATS[self].kind in {"int", "uint"}

    @property
    def is_packed(self) -> bool:
        """Whether an element is several numbers; as a number it stands for its bits."""
        return _FORMATS[self].kind == "packed"

    @property
    def bits(self) -> int:
        """Bits of storage (`tfloat32` occupies 32, `float4_e2m1fn` 4)."""
        return _FORMATS[self].bits

    @property
    def bytes(self) -> int:
        """Bytes of storage of one element that is not packed with others."""
        return max(1, _FORMATS[self].bits // 8)

    @property
    def precision(self) -> int:
        """Significand bits with the leading one; value bits of an integer."""
        return _FORMATS[self].precision

    @property
    def unit_roundoff(self) -> float:
        """The largest relative error of rounding to nearest, 2^-precision; 0 for integers."""
        return math.ldexp(1.0, -self.precision) if self.is_float else 0.0

    @property
    def max(self) -> float:
        """The largest finite value (of 64-bit integers: that value as a float; see `range`)."""
        form = _FORMATS[self]
        if form.kind == "float":
            # 2^(largest + 1) itself is beyond float64 where the format is float64.
            significand = 2.0 - math.ldexp(1.0 + form.tail, 1 - form.precision)
            return math.ldexp(significand, form.largest)
        return float(self.range[1])

    @property
    def range(self) -> tuple[int, int]:
        """The least and greatest integer of an integer format.  Raises `ValueError` otherwise."""
        form = _FORMATS[self]
        match form.kind:
            case "float":
                raise ValueError(f"{self} is not an integer format")
            case "int":
                return -(1 << (form.bits - 1)), (1 << (form.bits - 1)) - 1
            case "uint" | "packed":
                return 0, (1 << form.bits) - 1
            case "bool":
                return 0, 1

    @property
    def min_normal(self) -> float:
        """The smallest positive normal value; 1 for integers."""
        return math.ldexp(1.0, _FORMATS[self].smallest) if self.is_float else 1.0

    @property
    def min_subnormal(self) -> float:
        """The smallest positive value; `min_normal` where there are no subnormals."""
        form = _FORMATS[self]
        if form.kind != "float":
            return 1.0
        return math.ldexp(1.0, form.smallest - form.precision + 1)

    @property
    def overflow(self) -> Overflow:
        """What rounding to nearest gives beyond the range, unless a conversion saturates."""
        return _FORMATS[self].overflow

    @property
    def is_signed(self) -> bool:
        return _FORMATS[self].signed

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type that stores it (`ml_dtypes` for the narrow floats)."""
        return _storage(self)


_FORMATS: dict[DType, _Format] = {
    DType.FLOAT64: _Format("float", 64, 53, 1023, -1022),
    DType.FLOAT32: _Format("float", 32, 24, 127, -126),
    DType.TFLOAT32: _Format("float", 32, 11, 127, -126),
    DType.BFLOAT16: _Format("float", 16, 8, 127, -126),
    DType.FLOAT16: _Format("float", 16, 11, 15, -14),
    DType.FLOAT8_E5M2: _Format("float", 8, 3, 15, -14),
    DType.FLOAT8_E4M3: _Format("float", 8, 4, 7, -6),
    DType.FLOAT8_E4M3FN: _Format("float", 8, 4, 8, -6, tail=1, overflow="nan"),
    DType.FLOAT8_E3M4: _Format("float", 8, 5, 3, -2),
    DType.FLOAT8_E8M0FNU: _Format("float", 8, 1, 127, -127, overflow="nan", signed=False),
    DType.FLOAT4_E2M1FN: _Format("float", 4, 2, 2, 0, overflow="saturate"),
    DType.INT8: _Format("int", 8, 7),
    DType.INT16: _Format("int", 16, 15),
    DType.INT32: _Format("int", 32, 31),
    DType.INT64: _Format("int", 64, 63),
    DType.UINT8: _Format("uint", 8, 8, signed=False),
    DType.UINT16: _Format("uint", 16, 16, signed=False),
    DType.UINT32: _Format("uint", 32, 32, signed=False),
    DType.UINT64: _Format("uint", 64, 64, signed=False),
    DType.BOOL: _Format("bool", 8, 1, signed=False),
    DType.FLOAT8_E5M2_X4: _Format("packed", 32, 32, signed=False),
    DType.FLOAT8_E4M3FN_X4: _Format("packed", 32, 32, signed=False),
    DType.FLOAT4_E2M1FN_X4: _Format("packed", 16, 16, signed=False),
}

_ALIASES: dict[DType, tuple[str, ...]] = {
    DType.FLOAT64: ("fp64", "f64", "double"),
    DType.FLOAT32: ("fp32", "f32", "float", "single"),
    DType.TFLOAT32: ("tf32",),
    DType.BFLOAT16: ("bf16", "__nv_bfloat16", "nv_bfloat16"),
    DType.FLOAT16: ("fp16", "f16", "half", "__half"),
    DType.FLOAT8_E5M2: ("e5m2", "fp8_e5m2", "__nv_fp8_e5m2"),
    DType.FLOAT8_E4M3: ("e4m3", "fp8_e4m3"),
    DType.FLOAT8_E4M3FN: ("e4m3fn", "fp8_e4m3fn", "__nv_fp8_e4m3"),
    DType.FLOAT8_E3M4: ("e3m4", "fp8_e3m4"),
    DType.FLOAT8_E8M0FNU: ("e8m0fnu", "e8m0", "float8_e8m0"),
    DType.FLOAT4_E2M1FN: ("e2m1fn", "e2m1", "fp4"),
    DType.INT8: ("i8", "int8_t"),
    DType.INT16: ("i16", "int16_t", "short"),
    DType.INT32: ("i32", "int32_t", "int"),
    DType.INT64: ("i64", "int64_t"),
    DType.UINT8: ("u8", "uint8_t"),
    DType.UINT16: ("u16", "uint16_t"),
    DType.UINT32: ("u32", "uint32_t"),
    DType.UINT64: ("u64", "uint64_t"),
    DType.BOOL: ("bool_", "boolean"),
    DType.FLOAT8_E5M2_X4: ("e5m2_x4",),
    DType.FLOAT8_E4M3FN_X4: ("e4m3fn_x4",),
    DType.FLOAT4_E2M1FN_X4: ("e2m1fn_x4",),
}

_SPELLINGS: dict[str, DType] = {
    spelling: dtype for dtype in DType for spelling in (dtype.value, *_ALIASES[dtype])
}

_KNOWN: dict[np.dtype[Any], DType] = {}
"""Formats by the storage types that were asked for: their names take NumPy long to make."""


@cache
def _storage(dtype: DType) -> np.dtype[Any]:
    import ml_dtypes
    import numpy as np

    if dtype is DType.TFLOAT32:
        return np.dtype(np.float32)
    if dtype.is_packed:
        return np.dtype(f"uint{dtype.bits}")
    narrow = getattr(ml_dtypes, dtype.value, None)
    found: np.dtype[Any] = np.dtype(narrow if narrow is not None else dtype.value)
    return found
