"""Microscaling formats: four numbers an element, one scale for 8 partitions of four.

Scales are powers of two (E8M0).  Those of each 32 partitions of the data stand in the first 4
partitions of the same 32 of the scales' tile (NKI API reference, nki.isa.quantize_mx;
nki/deep-dives/mxfp-matmul.rst).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from migrate.nki.errors import Unsupported
from migrate.nki.frames import Instruction
from migrate.nki.parts import Part, part_of
from migrate.nki.semantics import F32, Machine, flat_free, required_view
from migrate.nki.symbols import Number
from migrate.nki.values import View
from migrate.numerics.casts import Rule
from migrate.numerics.domain import Domain
from migrate.numerics.dtypes import DType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

V = TypeVar("V")

ELEMENTS = {
    DType.FLOAT8_E5M2_X4: DType.FLOAT8_E5M2,
    DType.FLOAT8_E4M3FN_X4: DType.FLOAT8_E4M3FN,
    DType.FLOAT4_E2M1FN_X4: DType.FLOAT4_E2M1FN,
}
"""What an element of a packed format holds four of."""

LARGEST = {DType.FLOAT8_E4M3FN_X4: 8, DType.FLOAT8_E5M2_X4: 15}
"""The exponent of the largest number of what `quantize_mx` makes."""

BIAS = 127
"""Of the exponent that a scale is."""

NO_SCALE = 255
"""E8M0's NaN."""

QUADRANT, ROWS, GROUP = 32, 4, 8
"""Partitions that share a part of SBUF; those of them that hold scales; partitions of a scale."""


def quantize_mx(m: Machine[V], i: Instruction) -> None:
    """Groups of 32 over a scale, converted to the nearest number, four to an element."""
    dst, src = required_view(i, "dst"), required_view(i, "src")
    scales = required_view(i, "dst_scale")
    if dst.dtype not in LARGEST:
        raise Unsupported(f"quantize_mx to {dst.dtype}")
    parts = _scale_parts(scales, src.sizes[0])
    value = m.convert(m.read(src, (src.shape[0], flat_free(src))), F32)
    packed, made = m.quantize(value, dst.dtype)
    m.write(dst, m.reshape(packed, dst.shape))
    for part, bits in zip(parts, made, strict=True):
        m.write(part, m.reshape(m.bits(bits, part.dtype), part.shape))


def nc_matmul_mx(m: Machine[V], i: Instruction) -> None:
    """`stationary.T @ moving` over partitions and the four numbers of each element, in fp32."""
    dst = required_view(i, "dst")
    stationary, moving = (_dequantized(m, i, name) for name in ("stationary", "moving"))
    accumulate = i.attribute("accumulate")
    adds = accumulate if isinstance(accumulate, bool) else None
    m.accumulate(dst, m.reshape(m.contract(stationary, moving), dst.shape), adds)


def _dequantized(m: Machine[V], i: Instruction, name: str) -> V:
    """An operand's numbers times their scales, [4 partitions, columns]."""
    view, scales = required_view(i, name), required_view(i, f"{name}_scale")
    if view.dtype not in ELEMENTS:
        raise Unsupported(f"nc_matmul_mx of {view.dtype}")
    packed = m.read(view, (view.shape[0], flat_free(view)))
    parts = _scale_parts(scales, view.sizes[0])
    read = [m.read(part, (part.shape[0], flat_free(part))) for part in parts]
    return m.dequantize(packed, view.dtype, [m.bits(bits, DType.UINT8) for bits in read])


def _scale_parts(scales: View, rows: int) -> list[View]:
    """The partitions that hold the scales of each 32 partitions of the data."""
    quadrants = -(-rows // QUADRANT)
    used = min(rows // GROUP, ROWS)
    fits = scales.sizes[0] >= (quadrants - 1) * QUADRANT + used
    if rows % (QUADRANT if rows > QUADRANT else GROUP) or not used or not fits:
        raise Unsupported(f"scales of {rows} partitions in {scales.sizes[0]}")
    return [
        part_of(scales, (Part(0, quadrant * QUADRANT, 1, Number(used)),))
        for quadrant in range(quadrants)
    ]


def quantized(domain: Domain[V], value: V, dtype: DType) -> tuple[V, list[V]]:
    """Packed numbers, and the bits of their scales for each 32 partitions.

    Since NKI 0.5.0 a scale is 2^(floor(log2 of the largest magnitude) - (Emax - 1)), for a group
    of zeros 2^-127.
    """
    numbers = np.asarray(domain.to_array(value), np.float64)
    if not np.isfinite(numbers).all():
        raise Unsupported("quantize_mx of what is no finite number, which is not documented")
    rows, columns = numbers.shape[0], numbers.shape[1] // 4
    groups = np.abs(numbers).reshape(rows // GROUP, GROUP, columns, 4).max(axis=(1, 3))
    # frexp's significand lies in [1/2, 1).
    exponent = np.frexp(groups)[1] - 1 - (LARGEST[dtype] - 1)
    exponent = np.where(groups == 0, -BIAS, np.maximum(exponent, -BIAS))
    spread = np.ldexp(1.0, np.repeat(np.repeat(exponent, GROUP, axis=0), 4, axis=1))
    # A quotient by a power of two is exact but where it is subnormal in fp32.
    scale = domain.from_array(spread, DType.FLOAT32)
    quotient = domain.apply("divide", (value, scale), DType.FLOAT32)
    made = domain.cast(quotient, ELEMENTS[dtype], Rule.NKI)
    bits = domain.bitcast(made, DType.UINT8)
    if domain.truth(bits)[1] is not None:
        raise Unsupported("numbers packed by four that are known within bounds only")
    content = np.ascontiguousarray(domain.to_array(bits)).view(np.uint32)
    stored = (exponent + BIAS).astype(np.uint8)
    scales = [
        domain.from_array(stored[first : first + ROWS], DType.UINT8)
        for first in range(0, len(stored), ROWS)
    ]
    return domain.from_array(content, DType.UINT32), scales


def dequantized(domain: Domain[V], packed: V, dtype: DType, scales: Sequence[V]) -> V:
    """The numbers of packed elements times their scales: [4 partitions, columns], fp32."""
    bits = np.asarray(domain.to_array(packed))
    rows, columns = bits.shape
    element = ELEMENTS[dtype]
    width = element.bits
    numbers = (bits[..., None] >> (np.arange(4) * width).astype(bits.dtype)) & ((1 << width) - 1)
    values = numbers.astype(np.uint8).view(element.numpy).astype(np.float64)
    stored = np.concatenate([np.asarray(domain.to_array(part))[:, :columns] for part in scales])
    if (stored == NO_SCALE).any():
        raise Unsupported("a scale that is no number")
    exponent = np.repeat(stored.astype(np.int64) - BIAS, GROUP, axis=0)
    scaled = np.ldexp(values, exponent[:, :, None]).transpose(0, 2, 1).reshape(4 * rows, columns)
    return domain.from_array(scaled, DType.FLOAT32)
