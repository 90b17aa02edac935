"""Executing `WarpContract`: the matrices of all warps taken together from registers, multiplied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from migrate.cuda.arithmetic import Arithmetic
from migrate.cuda.ast import WarpContract
from migrate.cuda.library.layout import Layout, layout
from migrate.cuda.runtime import WARP, Array, Mask, Raw
from migrate.cuda.types import Scalar, Type, Vector
from migrate.numerics.casts import Rule
from migrate.numerics.dtypes import DType
from migrate.source import Span


def contract(
    machine: Arithmetic,
    node: WarpContract,
    a: Sequence[Any],
    b: Sequence[Any],
    c: Sequence[Any],
    mask: Mask,
) -> list[Any]:
    """The registers of the result, from the registers of the operands.

    Products are exact and are summed in float (PTX ISA: at least single precision), in an order
    that is the domain's to choose; the addend comes last.  Operands in tf32 lose their low bits.
    """
    lanes, domain = machine.lanes, machine.domain
    if lanes.threads % WARP:
        raise machine.unsupported("a matrix product by a warp that is not whole", node.span)
    warps = mask.reshape(-1, WARP)
    if (warps.any(axis=1) & ~warps.all(axis=1)).any():
        raise machine.unsupported("a matrix product by a part of a warp", node.span)
    m, n, k = node.shape
    left = _matrix(machine, a, [v.type for v in node.a], "a", node, (m, k))
    right = _matrix(machine, b, [v.type for v in node.b], "b", node, (k, n))
    addend = _matrix(machine, c, [v.type for v in node.c], "c", node, (m, n))
    if node.element.is_integer:
        total = np.matmul(left.astype(np.int32), right.astype(np.int32)) + addend
        return _spread_integers(machine, total, node)
    if node.precision == "tf32":
        left, right = (domain.cast(v, DType.TFLOAT32, Rule.TRUNCATE) for v in (left, right))
    wide = DType.FLOAT64 if node.element.dtype is DType.FLOAT64 else DType.FLOAT32
    product = domain.matmul(left, right, wide)
    if node.accumulator.dtype is not wide:
        addend = domain.cast(addend, wide, Rule.CUDA)
    result = domain.apply("add", (product, addend), wide)
    if node.result.dtype is not wide:
        result = domain.cast(result, node.result.dtype, Rule.CUDA)
    made = layout("c", node.shape, node.element)
    flat = domain.reshape(result, (warps.shape[0] * m * n,))
    parts = [domain.take(flat, at) for at in _positions(made, (m, n), lanes.total)]
    return _packed(parts, [v.type for v in node.d], node.result, machine, node.span)


def _spread_integers(machine: Arithmetic, total: Array, node: WarpContract) -> list[Any]:
    m, n, _ = node.shape
    made = layout("c", node.shape, node.element)
    flat = total.reshape(-1)
    return [flat[at] for at in _positions(made, (m, n), machine.lanes.total)]


def _positions(made: Layout, shape: tuple[int, int], total: int) -> list[Array]:
    """For each element of a lane, where it is in the matrices of all warps."""
    number = np.arange(total, dtype=np.int64)
    lane, warp = number % WARP, number // WARP
    rows, columns = shape
    found = []
    for position in range(made.elements):
        row, column = made.place(lane, position)
        found.append(warp * (rows * columns) + row * columns + column)
    return found


def _matrix(
    machine: Arithmetic,
    registers: Sequence[Any],
    kinds: Sequence[Type],
    role: Any,
    node: WarpContract,
    shape: tuple[int, int],
) -> Any:
    """The matrices of all warps, [warp, row, column]."""
    element = node.element if role != "c" else node.accumulator
    made = layout(role, node.shape, node.element)
    parts: list[Any] = []
    for value, kind in zip(registers, kinds, strict=True):
        parts += _elements(machine, value, kind, element, node.span)
    if len(parts) != made.elements:
        raise machine.unsupported("these registers do not hold a matrix", node.span)
    total = machine.lanes.total
    count = total // WARP
    size = count * shape[0] * shape[1]
    places = _positions(made, shape, total)
    machine.meter.take(size * (element.size + 1))
    try:
        if element.is_integer:
            whole = np.zeros(size, element.dtype.numpy)
            for part, at in zip(parts, places, strict=True):
                whole[at] = part
            return whole.reshape(count, *shape)
        target = machine.domain.constant(0, element.dtype, (size,))
        for part, at in zip(parts, places, strict=True):
            machine.domain.put(target, at, machine.spread(part, element))
        return machine.domain.reshape(target, (count, *shape))
    finally:
        machine.meter.give(size * (element.size + 1))


def _elements(
    machine: Arithmetic, value: Any, kind: Type, element: Scalar, span: Span
) -> list[Any]:
    """What a register holds, element by element."""
    held = value.scalar if isinstance(value, Raw) else None
    if isinstance(value, Raw):
        parts = list(value.parts)
    elif isinstance(kind, Vector):
        held, parts = kind.element, list(value)
    elif isinstance(kind, Scalar):
        held, parts = kind, [value]
    if held is None:
        raise machine.unsupported(f"a register of {kind}", span)
    if held.dtype is element.dtype:
        return parts
    if held.is_integer and not held.is_bool and held.size >= element.size:
        return [one for part in parts for one in _unpacked(machine, part, held, element)]
    raise machine.unsupported(f"a register of {held} read as {element}", span)


def _unpacked(machine: Arithmetic, word: Array, held: Scalar, element: Scalar) -> list[Any]:
    """The bits of an integer as numbers, the lowest first."""
    bits = np.asarray(word).astype(f"u{held.size}")
    width = 8 * element.size
    pieces = [
        (bits >> np.asarray(width * at, bits.dtype)).astype(f"u{element.size}")
        for at in range(held.size // element.size)
    ]
    if element.is_integer:
        return [piece.view(element.dtype.numpy) for piece in pieces]
    unsigned = {2: DType.UINT16, 4: DType.UINT32, 8: DType.UINT64}[element.size]
    domain = machine.domain
    return [domain.bitcast(domain.from_array(piece, unsigned), element.dtype) for piece in pieces]


def _packed(
    parts: list[Any], kinds: Sequence[Type], element: Scalar, machine: Arithmetic, span: Span
) -> list[Any]:
    """Elements put into registers."""
    each, rest = divmod(len(parts), len(kinds))
    if rest:
        raise machine.unsupported("these registers do not hold a matrix", span)
    made: list[Any] = []
    for at, kind in enumerate(kinds):
        mine = tuple(parts[at * each : (at + 1) * each])
        if isinstance(kind, Vector) and kind.element == element and kind.lanes == each:
            made.append(mine)
        elif isinstance(kind, Scalar) and kind.dtype is element.dtype and each == 1:
            made.append(mine[0])
        else:
            made.append(Raw(element, mine))
    return made
