"""Tensors that kernels make: `nl.ndarray` and the wrappers that also fill or move them."""

from __future__ import annotations

import math

from migrate.nki import checks, views
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.indices import PartitionExtent
from migrate.nki.operations import integer, items_of
from migrate.nki.symbols import Number, Origin, constant, over
from migrate.nki.values import Buffer, Memory, OperatorName, Problem, View, describe
from migrate.numerics.dtypes import DType


def ndarray(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nl.ndarray(shape, dtype, buffer=nl.sbuf, name="", address=None)`."""
    names = ("shape", "dtype", "buffer", "name", "address")
    given = arguments("ndarray", names, args, keywords, origin, lenient=frame.run.legacy)
    return allocate(frame, given, origin)


def zeros(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nl.zeros(shape, dtype, buffer=nl.sbuf, name="")`: an `ndarray` and a `memset`."""
    return _filled(
        "zeros", ("shape", "dtype", "buffer", "name"), constant(0.0), frame, args, keywords, origin
    )


def ones(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nl.ones(shape, dtype, buffer=nl.sbuf, name="")`."""
    return _filled(
        "ones", ("shape", "dtype", "buffer", "name"), constant(1.0), frame, args, keywords, origin
    )


def full(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nl.full(shape, fill_value, dtype, buffer=nl.sbuf, name="")`."""
    names = ("shape", "fill_value", "dtype", "buffer", "name")
    return _filled("full", names, None, frame, args, keywords, origin)


def _filled(
    function: str,
    names: tuple[str, ...],
    value: Number | None,
    frame: Frame,
    args: tuple[object, ...],
    keywords: dict[str, object],
    origin: Origin,
) -> object:
    from migrate.nki.issue import issue

    given = arguments(function, names, args, keywords, origin, lenient=frame.run.legacy)
    view = allocate(frame, given, origin)
    fill = given.get("fill_value", value)
    if isinstance(fill, Number) and view.dtype.is_integer and value is not None:
        fill = constant(int(fill.value), origin)
    if not view.buffer.memory.on_chip:
        raise Unsupported(f"nl.{function} in HBM", origin)
    issue("memset", (view, fill), {}, frame, origin)
    return view


def arguments(
    function: str,
    names: tuple[str, ...],
    args: tuple[object, ...],
    keywords: dict[str, object],
    origin: Origin,
    *,
    lenient: bool = False,
) -> dict[str, object]:
    """Arguments by name.  Raises `KernelFault` for ones that do not fit.

    `lenient` passes over keywords that are not known, as NKI 0.1 did.
    """
    if len(args) > len(names):
        raise KernelFault("type", f"nl.{function} takes {len(names)} arguments", origin)
    given = dict(zip(names, args, strict=False))
    for name, value in keywords.items():
        if name not in names and lenient:
            continue
        if name not in names:
            raise KernelFault("type", f"nl.{function} has no parameter {name}", origin)
        if name in given:
            raise KernelFault("type", f"nl.{function} is given {name} twice", origin)
        given[name] = value
    return given


def allocate(frame: Frame, given: dict[str, object], origin: Origin, part: int = 0) -> View:
    """A new buffer, viewed whole; what the hardware cannot hold is recorded.

    `part` tells tensors that one expression makes apart.
    """
    run = frame.run
    if not run.open:
        raise Unsupported("a tensor outside a kernel", origin)
    if "shape" not in given or "dtype" not in given:
        raise KernelFault("type", "a tensor without shape or dtype", origin)
    memory = given.get("buffer", Memory.SBUF)
    if memory is None:
        memory = Memory.SBUF
    if not isinstance(memory, Memory):
        if isinstance(memory, Number | DType | OperatorName):
            raise KernelFault("type", f"{describe(memory)} as a buffer", origin)
        raise Unsupported(f"{describe(memory)} as a buffer", origin)
    dtype = _dtype(given["dtype"], origin)
    shape = given["shape"]
    items = items_of(shape, origin) if isinstance(shape, tuple | list) else [shape]
    blocks = [k for k, item in enumerate(items) if isinstance(item, PartitionExtent)]
    if len(blocks) > 1:
        raise KernelFault("value", "a tensor with more than one nl.par_dim", origin)
    partition = blocks[0] if blocks and memory.on_chip else 0
    extents = tuple(
        item.extent if isinstance(item, PartitionExtent) else integer(item, origin)
        for item in items
    )
    for extent in extents:
        if extent.value <= 0:
            message = f"a tensor with an axis of {extent.value}"
            raise KernelFault("value", message, origin, ((extent, ">", constant(0)),))
    name = given.get("name")
    shown = name if isinstance(name, str) and name else run.hint or "tile"
    site = run.site(origin, frame.stack, part)
    place = _address(given.get("address")) if memory.on_chip else None
    buffer = run.buffer(shown, memory, extents, dtype, site, partition=partition, address=place)
    _check(buffer, frame)
    return views.whole(buffer)


def _address(value: object) -> tuple[int, int] | None:
    """`(partition, offset)`, where that is two numbers."""
    match value:
        case [Number() as partition, Number() as offset] if partition.integral and offset.integral:
            return int(partition.value), int(offset.value)
    return None


def _dtype(value: object, origin: Origin) -> DType:
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        try:
            return DType.named(value)
        except KeyError:
            raise KernelFault("value", f"no dtype is called {value[:40]!r}", origin) from None
    raise KernelFault("type", f"{describe(value)} as a dtype", origin)


def _check(buffer: Buffer, frame: Frame) -> None:
    """Rank, partitions and bytes a partition (architecture guides)."""
    if not buffer.memory.on_chip:
        return
    span, target = buffer.site.span, frame.run.target
    rank = len(buffer.shape) - buffer.partition
    if rank < 2:
        frame.run.problem(
            Problem(
                "tile-rank", f"the on-chip tile {buffer.name} has {rank} axis, 2 at least", span
            )
        )
        return
    rows = buffer.shape[buffer.partition]
    if int(rows.value) > checks.PARTITIONS:
        frame.run.problem(
            Problem(
                "partitions",
                f"tile {buffer.name} has {rows.value} partitions, {checks.PARTITIONS} at most",
                span,
                numbers=(("partitions", int(rows.value)),),
                sources=over(rows, checks.PARTITIONS),
            )
        )
    # Blocks before the partition axis need not be there at the same time.
    free = buffer.shape[buffer.partition + 1 :] if buffer.partition else buffer.shape[1:]
    size = math.prod(int(extent.value) for extent in free) * buffer.dtype.bytes
    limit = checks.PSUM_BYTES if buffer.memory is Memory.PSUM else checks.SBUF_BYTES[target]
    if size > limit:
        frame.run.problem(
            Problem(
                "tile-bytes",
                f"tile {buffer.name} takes {size} bytes a partition of "
                f"{buffer.memory.kind}, which has {limit}",
                span,
                numbers=(("bytes", size), ("limit", limit)),
                sources=buffer.shape[-1].sources(),
            )
        )
