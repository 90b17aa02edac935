"""Elements of one dtype in memory that was allocated for another: the bytes are what counts.

Memory is little endian: the first of several elements in the place of a wider one are its low
bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from migrate.nki.errors import Unsupported
from migrate.nki.symbols import Number
from migrate.nki.values import View
from migrate.numerics.domain import Domain
from migrate.numerics.dtypes import DType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from migrate.nki.frames import Instruction

    Array: TypeAlias = NDArray[Any]

V = TypeVar("V")

_MOVES = frozenset({"dma_copy", "tensor_copy", "dma_transpose"})
"""Instructions that leave elements as they are where both sides have one format."""

_COMPUTES = frozenset({"nc_matmul_mx", "quantize_mx"})
"""Instructions that make packed numbers, or compute with them."""


def check_packed(instruction: Instruction) -> None:
    """Raise `Unsupported` where an instruction does not just move packed numbers."""
    for _, operand in instruction.operands:
        if isinstance(operand, View) and operand.dtype.is_packed:
            break
    else:
        return
    views = [(name, v) for name, v in instruction.operands if isinstance(v, View)]
    if instruction.opcode in _MOVES:
        if len({view.dtype for name, view in views if ":" not in name}) == 1:
            return
    elif instruction.opcode in _COMPUTES:
        return
    elif instruction.opcode == "memset":
        value = instruction.operand("value")
        if isinstance(value, Number) and value.value == 0:
            return
    raise Unsupported(f"{instruction.opcode} of packed numbers")


_UNSIGNED = {1: DType.UINT8, 2: DType.UINT16, 4: DType.UINT32}


def cells(positions: Array, stored: DType, dtype: DType) -> Array:
    """The elements of the tensor in whose bytes elements of another dtype are.

    With a wider dtype there is one more axis, over the elements that one of it covers.
    """
    if dtype.bytes == stored.bytes:
        return positions
    if dtype.bytes < stored.bytes:
        return positions // (stored.bytes // dtype.bytes)
    ratio = dtype.bytes // stored.bytes
    return positions[..., None] * ratio + np.arange(ratio)


def taken(domain: Domain[V], content: V, positions: Array, stored: DType, dtype: DType) -> V:
    """Elements of `dtype` from the content of a tensor of dtype `stored`."""
    if dtype is stored:
        return domain.take(content, positions)
    there = cells(positions, stored, dtype)
    found = domain.take(content, there)
    if dtype.bytes == stored.bytes:
        return domain.bitcast(found, dtype)
    bits = _bits(domain, found, stored).astype(np.uint64)
    if dtype.bytes < stored.bytes:
        part = (positions % (stored.bytes // dtype.bytes)).astype(np.uint64)
        bits = (bits >> (part * np.uint64(8 * dtype.bytes))) & _mask(dtype)
    else:
        shifts = np.arange(bits.shape[-1], dtype=np.uint64) * np.uint64(8 * stored.bytes)
        bits = np.bitwise_or.reduce(bits << shifts, axis=-1)
    return _from_bits(domain, bits, dtype)


def put(
    domain: Domain[V],
    content: V,
    positions: Array,
    value: V,
    stored: DType,
    dtype: DType,
    mask: Array | None,
) -> None:
    """Write elements of `dtype` into the content of a tensor of dtype `stored`."""
    if dtype is stored:
        domain.put(content, positions, value, mask)
        return
    if dtype.bytes == stored.bytes:
        domain.put(content, positions, domain.bitcast(value, stored), mask)
        return
    bits = _bits(domain, value, dtype).astype(np.uint64)
    bits = np.broadcast_to(bits, positions.shape)
    if mask is not None:
        bits, positions = bits[mask], positions[mask]
    there = cells(positions, stored, dtype)
    if dtype.bytes > stored.bytes:
        shifts = np.arange(there.shape[-1], dtype=np.uint64) * np.uint64(8 * stored.bytes)
        parts = (bits[..., None] >> shifts) & _mask(stored)
        domain.put(content, there, _from_bits(domain, parts, stored))
        return
    wide, back = np.unique(there.reshape(-1), return_inverse=True)
    old = _bits(domain, domain.take(content, wide), stored).astype(np.uint64)
    ratio = stored.bytes // dtype.bytes
    part = (positions % ratio).reshape(-1)
    flat = bits.reshape(-1)
    for place in range(ratio):
        chosen = part == place
        shift = np.uint64(8 * dtype.bytes * place)
        old[back[chosen]] = (old[back[chosen]] & ~(_mask(dtype) << shift)) | (flat[chosen] << shift)
    domain.put(content, wide, _from_bits(domain, old, stored))


def _mask(dtype: DType) -> np.uint64:
    return np.uint64((1 << (8 * dtype.bytes)) - 1)


def _bits(domain: Domain[V], value: V, dtype: DType) -> Array:
    unsigned = _UNSIGNED.get(dtype.bytes)
    if unsigned is None or dtype is DType.BOOL:
        raise Unsupported(f"the bytes of a {dtype}")
    return domain.to_array(domain.bitcast(value, unsigned))


def _from_bits(domain: Domain[V], bits: Array, dtype: DType) -> V:
    unsigned = _UNSIGNED.get(dtype.bytes)
    if unsigned is None or dtype is DType.BOOL:
        raise Unsupported(f"the bytes of a {dtype}")
    return domain.bitcast(domain.from_array(bits.astype(unsigned.numpy), unsigned), dtype)
