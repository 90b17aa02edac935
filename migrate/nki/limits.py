"""Limits of the engines: matmul and transpose sizes, memories, partitions."""

from __future__ import annotations

from collections.abc import Iterator

from migrate.nki.checks import PARTITIONS, Given
from migrate.nki.values import Member, Memory, Problem
from migrate.nki.views import block_axes, partition_dimension
from migrate.numerics.dtypes import DType

MOVING_MAX = {"trn1": 512, "trn2": 512, "trn3": 8192}
"""Columns of nc_matmul's moving operand (trn3: 4096 for an fp32 destination)."""


def matmul_shapes(given: Given) -> Iterator[Problem]:
    """[K, M] and [K, N] into [M, N]: M at most 128, N at most 512.

    On trn3 N is at most 8192, 4096 with an fp32 result.
    """
    dst, left, right = given.view("dst"), given.view("stationary"), given.view("moving")
    if dst is None or left is None or right is None or not left.shape or not right.shape:
        return
    k, k2 = int(left.shape[0].value), int(right.shape[0].value)
    m, n = left.free_elements, right.free_elements
    if k != k2:
        yield given.problem(
            "contraction-mismatch",
            f"stationary contracts {k} partitions, moving {k2}",
            "moving",
            ("stationary", k),
            ("moving", k2),
            of=right.shape[0],
            against=("stationary",),
        )
    if m > PARTITIONS:
        yield given.problem(
            "stationary-size",
            f"stationary has {m} columns, 128 at most",
            "stationary",
            ("columns", m),
            of=left.shape[-1],
            limit=PARTITIONS,
        )
    limit = MOVING_MAX.get(given.target, 512)
    if given.target == "trn3" and dst.dtype is DType.FLOAT32:
        limit = 4096
    if n > limit:
        yield given.problem(
            "moving-size",
            f"moving has {n} columns, {limit} at most",
            "moving",
            ("columns", n),
            of=right.shape[-1],
            limit=limit,
        )
    rows = int(dst.shape[0].value) if dst.shape else 0
    if rows != m or dst.free_elements != n:
        yield given.problem(
            "size-mismatch",
            f"the product is ({m}, {n}), dst is ({rows}, {dst.free_elements})",
            "dst",
            ("rows", rows),
            ("columns", dst.free_elements),
            against=("stationary", "moving"),
        )


def matmul_dtypes(given: Given) -> Iterator[Problem]:
    """Float operands, fp32 only with fp32; the result is fp32 (on trn3 bf16 too)."""
    dst, left, right = given.view("dst"), given.view("stationary"), given.view("moving")
    if dst is None or left is None or right is None:
        return
    for name, view in (("stationary", left), ("moving", right)):
        if not view.dtype.is_float:
            yield given.problem("dtype", f"{name} is {view.dtype}, floats only", name)
            return
    wide = {DType.FLOAT32, DType.TFLOAT32}
    if (left.dtype in wide) != (right.dtype in wide):
        yield given.problem(
            "dtype-mix",
            f"stationary is {left.dtype}, moving is {right.dtype}",
            "moving",
            against=("stationary",),
        )
    if given.values.get("is_transpose") is True:
        return
    allowed = {DType.FLOAT32, DType.BFLOAT16} if given.target == "trn3" else {DType.FLOAT32}
    if dst.dtype not in allowed:
        yield given.problem("psum-dtype", f"dst is {dst.dtype}, float32 is needed", "dst")


def transpose_shapes(given: Given) -> Iterator[Problem]:
    """128x128 from SBUF to PSUM on the Tensor engine, 32x32 on the Vector engine."""
    dst, data = given.view("dst"), given.view("data")
    if dst is None or data is None or not data.shape or not dst.shape:
        return
    p, f = int(data.shape[0].value), data.free_elements
    if int(dst.shape[0].value) != f or dst.free_elements != p:
        yield given.problem(
            "size-mismatch",
            f"({p}, {f}) transposed does not fit dst {dst.sizes}",
            "dst",
            ("partitions", int(dst.shape[0].value)),
            ("elements", dst.free_elements),
            against=("data",),
        )
    if dst.dtype is not data.dtype:
        yield given.problem(
            "dtype", f"dst is {dst.dtype}, data is {data.dtype}", "dst", against=("data",)
        )
    engine = given.values.get("engine")
    name = engine.name if isinstance(engine, Member) else "unknown"
    small = p <= 32 and f <= 32
    on_tensor = name == "tensor" or (name == "unknown" and not small)
    if name == "vector" and not small:
        yield given.problem(
            "transpose-size", f"({p}, {f}) on the Vector engine, 32x32 at most", "data"
        )
    if on_tensor:
        if p > 128 or f > 128:
            yield given.problem("transpose-size", f"({p}, {f}), 128x128 at most", "data")
        if dst.buffer.memory is not Memory.PSUM:
            yield given.problem("tile-memory", "dst must be in PSUM on the Tensor engine", "dst")
        if data.buffer.memory is not Memory.SBUF:
            yield given.problem("memory", "data must be in SBUF on the Tensor engine", "data")


def memory(given: Given, name: str, allowed: tuple[str, ...]) -> Iterator[Problem]:
    """An operand in a memory its engine cannot reach."""
    view = given.view(name)
    if view is not None and allowed and view.buffer.memory.kind not in allowed:
        # What only PSUM can take was made in the wrong place; what else is misplaced lacks a copy.
        misplaced = allowed == ("psum",) and view.buffer.memory is Memory.SBUF
        yield given.problem(
            "tile-memory" if misplaced else "memory",
            f"{name} is in {view.buffer.memory.kind}, {' or '.join(allowed)} is needed",
            name,
        )


def partitions(given: Given, name: str) -> Iterator[Problem]:
    """At most 128 partitions, starting where the hardware can start."""
    view = given.view(name)
    if view is None or not view.buffer.memory.on_chip or not view.shape:
        return
    # What DMA moves may have blocks before the partitions.
    axis = block_axes(view)
    if axis == len(view.shape):
        return
    count = int(view.shape[axis].value)
    if count > PARTITIONS:
        yield given.problem(
            "partitions",
            f"{name} has {count} partitions, {PARTITIONS} at most",
            name,
            ("partitions", count),
            of=view.shape[axis],
            limit=PARTITIONS,
        )
        return
    if given.opcode.startswith("dma_") or len(view.base) < 2:
        return
    place = view.index[partition_dimension(view)].start
    start = int(place.value)
    allowed = {0} if count > 64 else {0, 64} if count > 32 else {0, 32, 64, 96}
    if start not in allowed:
        yield given.problem(
            "partition-start",
            f"{name} takes {count} partitions from {start}, "
            f"allowed are {', '.join(map(str, sorted(allowed)))}",
            name,
            ("start", start),
            ("partitions", count),
            of=place,
        )
