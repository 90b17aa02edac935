"""Limits of the Tensor engine: sizes, formats and modes of products and transposes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from migrate.nki import bounds
from migrate.nki.checks import PARTITIONS, Given
from migrate.nki.values import Member, Memory, Problem
from migrate.numerics.dtypes import DType

MOVING_MAX = {"trn1": 512, "trn2": 512, "trn3": 8192}
"""Columns of nc_matmul's moving operand (trn3: 4096 for an fp32 destination)."""


def matmul_shapes(given: Given) -> Iterator[Problem]:
    """[K, M] and [K, N] into [M, N]: M at most 128, N at most 512.

    On trn3 N is at most 8192, 4096 with an fp32 result.  With `double_row` the operands have a
    second axis of 2 that is contracted too.
    """
    dst, left, right = given.view("dst"), given.view("stationary"), given.view("moving")
    if dst is None or left is None or right is None or not left.shape or not right.shape:
        return
    k, k2 = int(left.shape[0].value), int(right.shape[0].value)
    m, n = left.free_elements, right.free_elements
    if doubled(given.values):
        m, n = m // 2, n // 2
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


def matmul_tiles(given: Given) -> Iterator[Problem]:
    """Parts of the systolic array: `tile_position` and `tile_size` together, and fitting.

    Rows of 64 or 128 on trn1, of 32 too from trn2; a start is a multiple of the size, and the
    operands are no larger than the part (nki.isa.nc_matmul).
    """
    position, size = (_pair(given.values.get(name)) for name in ("tile_position", "tile_size"))
    if position is None or size is None:
        given_one = [
            name
            for name in ("tile_position", "tile_size")
            if given.values.get(name) not in (None, ())
        ]
        if len(given_one) == 1:
            other = "tile_size" if given_one[0] == "tile_position" else "tile_position"
            yield given.problem("argument", f"{given_one[0]} without {other}", given_one[0])
        return
    allowed = (64, 128) if given.target == "trn1" else (32, 64, 128)
    for what, start, extent in zip(("rows", "columns"), position, size, strict=True):
        if extent not in allowed:
            yield given.problem(
                "tile-position",
                f"tile_size has {extent} {what}, {', '.join(map(str, allowed))} are possible",
                "tile_size",
                (what, extent),
            )
        elif start % extent or not 0 <= start < PARTITIONS:
            yield given.problem(
                "tile-position",
                f"tile_position starts at {start}, a multiple of {extent} below 128 is needed",
                "tile_position",
                (what, start),
            )
    left = given.view("stationary")
    if left is None or not left.shape:
        return
    for what, count, extent in (
        ("partitions", left.sizes[0], size[0]),
        ("columns", left.free_elements, size[1]),
    ):
        if count > extent and extent in allowed:
            yield given.problem(
                "stationary-size",
                f"stationary has {count} {what}, the tile of the array has {extent}",
                "stationary",
                (what, count),
            )


def _pair(value: object) -> tuple[int, int] | None:
    if not isinstance(value, tuple | list) or len(value) != 2:
        return None
    found = [bounds.integer(item) for item in value]
    return None if None in found else (int(found[0] or 0), int(found[1] or 0))


_EIGHT_BITS = (DType.FLOAT8_E4M3, DType.FLOAT8_E5M2, DType.FLOAT8_E4M3FN)


def doubled(values: Mapping[str, object]) -> bool:
    """Whether two rows of operands are contracted at once."""
    mode = values.get("perf_mode")
    return isinstance(mode, Member) and mode.name == "double_row"


def matmul_mode(given: Given) -> Iterator[Problem]:
    """`double_row` is for float8 operands from trn2 on, each with a second axis of 2.

    It excludes `is_transpose` and parts of the array with fewer columns than 128; float8_e4m3
    and float8_e4m3fn do not meet, and the latter is an operand on trn3 only.
    """
    operands = {name: given.view(name) for name in ("stationary", "moving")}
    formats = {view.dtype for view in operands.values() if view is not None}
    if {DType.FLOAT8_E4M3, DType.FLOAT8_E4M3FN} <= formats:
        yield given.problem("dtype-mix", "float8_e4m3 with float8_e4m3fn", "moving")
    for name, view in operands.items():
        if bounds.is_format(view, DType.FLOAT8_E4M3FN) and given.target != "trn3":
            yield given.problem("dtype", f"{name} is float8_e4m3fn, which only trn3 takes", name)
    if not doubled(given.values):
        return
    if given.target == "trn1":
        yield given.problem("target", "perf_mode.double_row does not exist on trn1", "perf_mode")
    for name, view in operands.items():
        if view is None:
            continue
        if view.dtype not in _EIGHT_BITS:
            yield given.problem("dtype", f"{name} is {view.dtype}, double_row takes float8", name)
        if len(view.shape) < 3 or view.sizes[1] != 2:
            yield given.problem(
                "double-row", f"{name} has shape {view.sizes}, a second axis of 2 is needed", name
            )
    if given.values.get("is_transpose") is True:
        yield given.problem("argument", "double_row with is_transpose", "perf_mode")
    size = _pair(given.values.get("tile_size"))
    if size is not None and size[1] != PARTITIONS:
        yield given.problem("argument", "double_row with column tiles", "tile_size")
