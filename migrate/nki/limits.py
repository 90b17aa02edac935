"""Limits of the engines: memories, partitions, descriptors, cores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from migrate.nki import bounds
from migrate.nki.checks import PARTITIONS, Check, Given
from migrate.nki.opcodes.spec import Parameter
from migrate.nki.operators import OPERATORS
from migrate.nki.values import Member, Memory, OperatorName, Problem
from migrate.nki.views import block_axes, partition_dimension
from migrate.numerics.dtypes import DType

_EARLIER: Final = {("affine_select", "on_true_tile"): ("sbuf", "psum")}
"""What NKI 0.1 took besides: the vendor's attention of that version selects from PSUM."""


def memories(opcode: str, parameter: Parameter, *, legacy: bool) -> tuple[str, ...]:
    """Where an operand may be."""
    earlier = _EARLIER.get((opcode, parameter.name)) if legacy else None
    return earlier or parameter.memories


def memory(given: Given, name: str, allowed: tuple[str, ...]) -> Iterator[Problem]:
    """An operand in a memory its engine cannot reach."""
    view = given.view(name)
    if view is None or not allowed:
        return
    if view.buffer.memory.kind not in allowed and view.buffer.memory.value not in allowed:
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
    if given.opcode.startswith("dma_") or len(view.base) < 2 or _is_scale(given, name):
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


def _is_scale(given: Given, name: str) -> bool:
    """Whether an operand holds the scales of MX formats.

    Four partitions of each 32 are used, those of several tensors side by side
    (nki/deep-dives/mxfp-matmul.rst).
    """
    return given.opcode in ("quantize_mx", "nc_matmul_mx") and name.endswith("_scale")


def scalar_engine_pairs(given: Given) -> Iterator[Problem]:
    """The Scalar engine of trn2 multiplies, adds, or both in this order; trn1's does not."""
    engine = given.values.get("engine")
    if not isinstance(engine, Member) or engine.name not in ("scalar", "gpsimd"):
        return
    names = tuple(
        value.name
        for value in (given.values.get("op0"), given.values.get("op1"))
        if isinstance(value, OperatorName)
    )
    if engine.name == "gpsimd" and names != ("rsqrt",) and "power" not in names:
        yield given.problem("engine", "GpSimd takes nl.rsqrt only", "engine")
    pairs = (("multiply", "add"), ("multiply",), ("add",))
    if engine.name == "scalar" and given.target == "trn2" and names not in pairs:
        yield given.problem(
            "engine", "the Scalar engine of trn2 multiplies, then adds, and nothing else", "engine"
        )


def no_bias_of(operator: str, target: str) -> Check:
    """No bias with this function on that target."""

    def check(given: Given) -> Iterator[Problem]:
        value = given.values.get("op")
        if (
            given.target == target
            and isinstance(value, OperatorName)
            and value.name == operator
            and given.values.get("bias") is not None
        ):
            yield given.problem("argument", f"nl.{operator} takes no bias on {target}", "bias")

    return check


_STAGES = {
    ("multiply", "add"), ("multiply", "subtract"), ("multiply", "bypass"), ("add", "bypass"),
    ("subtract", "bypass"), ("bypass", "bypass"),
}  # fmt: skip


def stages(first: str, second: str) -> Check:
    """One of the six pairs of stages, of which nl.bypass does nothing and is not reversed."""

    def check(given: Given) -> Iterator[Problem]:
        a, b = given.values.get(first), given.values.get(second)
        if not isinstance(a, OperatorName) or not isinstance(b, OperatorName):
            return
        if (a.name, b.name) not in _STAGES:
            yield given.problem("operator", f"nl.{a.name} before nl.{b.name}", second)
        for operator, flag in ((a, "reverse0"), (b, "reverse1")):
            if operator.name == "bypass" and given.values.get(flag) is True:
                yield given.problem("argument", f"{flag} of nl.bypass", flag)

    return check


def probability_dtype(name: str, data: str) -> Check:
    """Integer data takes a float32 probability, other data a float one."""

    def check(given: Given) -> Iterator[Problem]:
        view, tile = given.view(name), given.view(data)
        if view is None or tile is None:
            return
        if not view.dtype.is_float or (tile.dtype.is_integer and view.dtype is not DType.FLOAT32):
            yield given.problem("dtype", f"{name} is {view.dtype} with {tile.dtype} data", name)

    return check


def float_columns(given: Given) -> Iterator[Problem]:
    """Scales, and operands of arithmetic with a scalar, are float32 (nki.isa.activation,
    nki.isa.tensor_scalar).  NKI 0.1 cast them in its `nl` functions.
    """
    match given.opcode:
        case "activation" | "activation_reduce":
            names: tuple[str, ...] = ("scale",)
        case "tensor_scalar":
            operators = (given.values.get("op0"), given.values.get("op1"))
            if any(isinstance(o, OperatorName) and OPERATORS[o.name].bitvec for o in operators):
                return
            names = ("operand0", "operand1")
        case _:
            return
    for name in names:
        view = given.view(name)
        if view is not None and view.dtype is not DType.FLOAT32:
            yield given.problem("dtype", f"{name} is {view.dtype}, float32 is needed", name)


def state_size(name: str) -> Check:
    """A generator's state: 6 words a partition on GpSimd, 24 on the Vector engine."""

    def check(given: Given) -> Iterator[Problem]:
        view, engine = given.view(name), given.values.get("engine")
        wanted = {"gpsimd": 6, "vector": 24}.get(engine.name if isinstance(engine, Member) else "")
        if view is not None and wanted is not None and view.free_elements != wanted:
            yield given.problem(
                "size",
                f"{name} has {view.free_elements} elements a partition, {wanted} needed",
                name,
                ("elements a partition", view.free_elements),
            )

    return check


def hardware_descriptors(given: Given) -> Iterator[Problem]:
    """Descriptors made by hardware exist from trn2 on and cast nothing (nki.isa.dma_copy, 0.3)."""
    mode = given.values.get("dge_mode")
    if not isinstance(mode, Member) or mode.name != "hwdge":
        return
    if given.target == "trn1":
        yield given.problem("target", "dge_mode.hwdge does not exist on trn1", "dge_mode")
    dst, src = given.view("dst"), given.view("src")
    if dst is not None and src is not None and dst.dtype is not src.dtype:
        yield given.problem(
            "dtype", f"dge_mode.hwdge from {src.dtype} to {dst.dtype}", "dst", against=("src",)
        )


def exchanged_bytes(given: Given) -> Iterator[Problem]:
    """GpSimd's DMA exchanges 256 elements a partition at most.

    1024 bytes of 4-byte elements, 512 of 2-byte ones, 256 of 1-byte ones (nki.isa.sendrecv).
    """
    engine, view = given.values.get("dma_engine"), given.view("src")
    if isinstance(engine, Member) and engine.name == "gpsimd_dma" and view is not None:
        size, most = view.free_elements * view.dtype.bytes, 256 * view.dtype.bytes
        if size > most:
            yield given.problem(
                "size", f"{size} bytes a partition, {most} at most", "src", ("bytes", size)
            )


def both_cores(name: str) -> Check:
    """The two cores of a logical core."""

    def check(given: Given) -> Iterator[Problem]:
        value = given.values.get(name)
        if isinstance(value, tuple | list):
            cores = tuple(bounds.integer(item) for item in value)
            if None not in cores and cores != (0, 1):
                yield given.problem("argument", f"{name} is {cores}, (0, 1) is needed", name)

    return check


def shuffle_mask(name: str) -> Check:
    """32 numbers, each a partition of the group of 32, or 255."""

    def check(given: Given) -> Iterator[Problem]:
        value = given.values.get(name)
        if not isinstance(value, tuple | list):
            return
        if len(value) != 32:
            yield given.problem("argument", f"{name} has {len(value)} numbers, 32 needed", name)
        for item in value:
            number = bounds.integer(item)
            if number is not None and number != 255 and not 0 <= number < 32:
                yield given.problem("argument", f"{name} has {number}", name, of=item)
                return

    return check


def core_indices(name: str, count: str) -> Check:
    """At most 4096 indices for 16 partitions, of which no more are valid than there are."""

    def check(given: Given) -> Iterator[Problem]:
        view, valid = given.view(name), bounds.integer(given.values.get(count))
        if view is None:
            return
        indices = 16 * view.free_elements
        if indices > 4096:
            yield given.problem(
                "size", f"{indices} indices a core, 4096 at most", name, ("indices", indices)
            )
        if valid is not None and valid > indices:
            yield given.problem("argument", f"{count} is {valid} of {indices} indices", count)

    return check


def snake(src: str, result: str, count: str) -> Check:
    """`n` elements lie in 16 partitions, and no more are asked for than there are."""

    def check(given: Given) -> Iterator[Problem]:
        view, kept, n = given.view(src), given.view(result), bounds.integer(given.values.get(count))
        if n is None:
            return
        if view is not None and view.free_elements < -(-n // 16):
            yield given.problem(
                "size",
                f"{src} has {view.free_elements} elements a partition, {-(-n // 16)} needed",
                src,
                ("elements a partition", view.free_elements),
            )
        if kept is not None and kept.free_elements > n:
            yield given.problem("size", f"{kept.free_elements} of {n} elements", result)

    return check


def bounds_shape(dst: str, ids: str) -> Check:
    """Two results for each segment id."""

    def check(given: Given) -> Iterator[Problem]:
        view, data = given.view(dst), given.view(ids)
        if view is not None and data is not None and view.free_elements != 2 * data.free_elements:
            yield given.problem(
                "size-mismatch",
                f"{dst} has {view.free_elements} elements a partition, "
                f"{2 * data.free_elements} needed",
                dst,
                (dst, view.free_elements),
                against=(ids,),
            )

    return check
