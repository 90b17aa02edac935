"""`nki.isa` of NKI 0.1: instructions that return their destination.

What a call returns is a new tile, or what the statement assigns it to.  Its format is that of
the first operand unless `dtype` says another (NKI 0.1, NKI API reference, nki.isa).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from migrate.nki.addresses import affine_terms
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.indices import Condition, IndexTensor
from migrate.nki.instructions import INSTRUCTIONS
from migrate.nki.issue import issue
from migrate.nki.language.elementwise import viewed
from migrate.nki.language.expansion import Expansion, dtype_of, promoted, repeated
from migrate.nki.language.products import contracted
from migrate.nki.language.reductions import REDUCTIONS, axes_of, left_over, trailing
from migrate.nki.operations import integer, items_of, truth
from migrate.nki.operators import OPERATORS
from migrate.nki.symbols import Number, Origin, binary, constant
from migrate.nki.values import Builtin, Issued, Member, Memory, OperatorName, View, describe
from migrate.numerics.dtypes import DType

Given: TypeAlias = dict[str, object]
Returning: TypeAlias = Callable[[Expansion, Given], object]

_SIGNATURES: dict[str, tuple[str, ...]] = {
    "activation": ("op", "data", "bias", "scale", "reduce_op", "reduce_res", "reduce_cmd"),
    "activation_reduce": ("op", "data", "reduce_op", "reduce_res", "bias", "scale"),
    "affine_select": ("pred", "on_true_tile", "on_false_value"),
    "bn_aggr": ("data",),
    "bn_stats": ("data",),
    "dma_copy": ("dst", "src", "dst_rmw_op", "oob_mode", "dge_mode"),
    "dma_transpose": ("src", "axes"),
    "dropout": ("data", "prob"),
    "iota": ("expr", "dtype"),
    "local_gather": ("src_buffer", "index", "num_elem_per_idx", "num_valid_indices"),
    "max8": ("src",),
    "memset": ("shape", "value", "dtype"),
    "nc_find_index8": ("data", "vals"),
    "nc_match_replace8": ("data", "vals", "imm", "dst_idx"),
    "nc_matmul": ("stationary", "moving", "is_stationary_onezero", "is_moving_onezero"),
    "nc_stream_shuffle": ("src", "dst", "shuffle_mask"),
    "nc_transpose": ("data", "mask", "dtype", "engine"),
    "range_select": (),
    "reciprocal": ("data", "dtype", "mask"),
    "scalar_tensor_tensor": (),
    "select_reduce": (),
    "sequence_bounds": (),
    "tensor_copy": ("src",),
    "tensor_copy_predicated": (),
    "tensor_partition_reduce": ("op", "data"),
    "tensor_reduce": ("op", "data", "axis"),
    "tensor_scalar": (
        "data", "op0", "operand0", "reverse0", "op1", "operand1", "reverse1",
    ),
    "tensor_scalar_cumulative": (),
    "tensor_scalar_reduce": (),
    "tensor_tensor": ("data1", "data2", "op"),
    "tensor_tensor_scan": (
        "data0", "data1", "initial", "op0", "op1", "reverse0", "reverse1",
    ),
}  # fmt: skip
"""Parameters by position; what follows them is given by name."""


def call(
    opcode: str,
    args: tuple[object, ...],
    keywords: dict[str, object],
    frame: Frame,
    origin: Origin,
) -> object:
    """`nisa.<opcode>(...)` in a kernel of NKI 0.1."""
    names = _SIGNATURES.get(opcode)
    if names is None or (args and isinstance(keywords.get("dst"), View)):
        return issue(opcode, args, _without(opcode, keywords), frame, origin)
    if len(args) > len(names):
        raise KernelFault("type", f"{opcode} takes {len(names)} arguments by position", origin)
    given: Given = dict(zip(names, args, strict=False))
    for name, value in keywords.items():
        if name in given:
            raise KernelFault("type", f"{opcode} is given {name} twice", origin)
        given[name] = value
    spec = INSTRUCTIONS[opcode]
    for parameter in spec.parameters:
        if parameter.kind == "operator" and parameter.name in given:
            given[parameter.name] = operator_of(given[parameter.name])
    e = Expansion(frame, origin, given.pop("mask", None))
    if opcode == "dma_copy" and given.get("dst_rmw_op") is not None:
        dst, operator = given.get("dst"), operator_of(given["dst_rmw_op"])
        e.emit("dma_compute", dst, (dst, given.get("src")), operator)
        return Issued("dma_compute")
    if given.get("dst") is not None:
        rest = _without(opcode, given)
        e.emit(opcode, **rest)
        return Issued(opcode)
    make = _SPECIAL.get(opcode, _plain(opcode))
    return make(e, given)


def operator_of(value: object) -> object:
    """An operator, which a reduction of that name may stand for (`op=np.max`)."""
    if isinstance(value, Builtin):
        operator = REDUCTIONS.get(value.name, value.name if value.name in OPERATORS else None)
        return OperatorName(operator) if operator is not None else value
    return value


def _without(opcode: str, keywords: dict[str, object]) -> dict[str, object]:
    """Arguments that the instruction has; NKI 0.1 ignored others."""
    spec = INSTRUCTIONS[opcode]
    kept = {name: value for name, value in keywords.items() if spec.parameter(name) is not None}
    if isinstance(kept.get("engine"), Number) or kept.get("engine") is None:
        kept.pop("engine", None)
    if "mask" in keywords:
        kept["mask"] = keywords["mask"]
    return kept


def _needed(given: Given, name: str, opcode: str, origin: Origin) -> View:
    if name not in given:
        raise KernelFault("type", f"{opcode} is not given {name}", origin)
    view = viewed(given[name], origin)
    if view is None:
        raise KernelFault("type", f"{opcode}: {name} is a number, a tensor is needed", origin)
    return view


_DATA = {
    "max8": "src", "tensor_copy": "src", "dma_transpose": "src", "range_select": "on_true_tile",
    "affine_select": "on_true_tile", "tensor_tensor": "data1", "tensor_tensor_scan": "data0",
    "sequence_bounds": "segment_ids", "local_gather": "src_buffer",
}  # fmt: skip
"""The operand that the result is like."""


def _plain(opcode: str) -> Returning:
    """An instruction whose result has the shape of its data."""

    def make(e: Expansion, given: Given) -> object:
        if opcode == "tensor_tensor":
            _spread(given, e.origin)
        view = _needed(given, _DATA.get(opcode, "data"), opcode, e.origin)
        dtype = view.dtype
        second = given.get("data2" if opcode == "tensor_tensor" else "operand1")
        if opcode in ("tensor_tensor", "scalar_tensor_tensor") and isinstance(second, View):
            dtype = promoted(dtype, second.dtype)
        return _into(e, opcode, view.shape, dtype, given)

    return make


def _spread(given: Given, origin: Origin) -> None:
    """A column beside a wider tile is repeated along its free axes, as NKI 0.1 did by itself."""
    left, right = (viewed(given.get(name), origin) for name in ("data1", "data2"))
    if left is None or right is None or left.sizes[0] != right.sizes[0]:
        return
    for name, narrow, wide in (("data1", left, right), ("data2", right, left)):
        if narrow.free_elements == 1 < wide.free_elements:
            given[name] = repeated(narrow, wide.shape, origin)


def _into(
    e: Expansion,
    opcode: str,
    shape: tuple[Number, ...],
    dtype: DType,
    given: Given,
    memory: Memory = Memory.SBUF,
) -> View:
    asked = given.pop("dtype", None)
    dst = e.result(shape, dtype, asked, memory)
    e.emit(opcode, dst, **_without(opcode, given))
    return dst


def _shaped(opcode: str, free: tuple[int, ...], dtype: DType | None = None) -> Returning:
    """An instruction with a fixed number of results a partition."""

    def make(e: Expansion, given: Given) -> object:
        view = _needed(given, _DATA.get(opcode, "data"), opcode, e.origin)
        shape = (view.shape[0], *map(constant, free))
        return _into(e, opcode, shape, dtype or view.dtype, given)

    return make


def _affine(parts: IndexTensor | Condition, origin: Origin) -> tuple[Number, list[Number]]:
    """The start of an index expression, and its step along every axis."""
    address = parts.parts[0] if isinstance(parts, Condition) else parts.address
    found = affine_terms(address, len(parts.sizes))
    if found is None:
        raise Unsupported("an index expression that is not affine", origin)
    return found


def _affine_select(e: Expansion, given: Given) -> object:
    predicate = given.pop("pred", None)
    if not isinstance(predicate, Condition) or len(predicate.parts) != 1:
        raise Unsupported("affine_select with more than one comparison", e.origin)
    view = _needed(given, "on_true_tile", "affine_select", e.origin)
    if not _repeats(predicate.sizes, view.sizes):
        raise Unsupported("affine_select with a predicate over another shape", e.origin)
    start, steps = _affine(predicate, e.origin)
    pairs = tuple(zip(steps[1:], view.shape[1:], strict=True))
    given |= {
        "pattern": pairs,
        "channel_multiplier": steps[0],
        "offset": start,
        "cmp_op": OperatorName("greater_equal"),
    }
    return _into(e, "affine_select", view.shape, view.dtype, given)


def _repeats(sizes: tuple[int, ...], over: tuple[int, ...]) -> bool:
    """Whether axes of size 1 repeat to a shape of the same rank, if any differ."""
    return len(sizes) == len(over) and all(a in (1, b) for a, b in zip(sizes, over, strict=True))


def _iota(e: Expansion, given: Given) -> object:
    expression = given.pop("expr", None)
    if not isinstance(expression, IndexTensor):
        raise KernelFault("type", f"iota of {describe(expression)}", e.origin)
    start, steps = _affine(expression, e.origin)
    extents = tuple(expression.shape)
    given |= {
        "pattern": tuple(zip(steps[1:], extents[1:], strict=True)),
        "channel_multiplier": steps[0],
        "offset": start,
    }
    return _into(e, "iota", extents, DType.INT32, given)


def _memset(e: Expansion, given: Given) -> object:
    shape = tuple(integer(n, e.origin) for n in items_of(given.pop("shape", ()), e.origin))
    dtype = dtype_of(given.get("dtype"), e.origin)
    return _into(e, "memset", shape, dtype, given)


def _matmul(e: Expansion, given: Given) -> object:
    left = _needed(given, "stationary", "nc_matmul", e.origin)
    right = _needed(given, "moving", "nc_matmul", e.origin)
    options = {
        name: value
        for name, value in given.items()
        if name in ("is_transpose", "tile_position", "tile_size", "perf_mode")
        and value not in (None, (), False)
    }
    if options:
        first = 1
        mode = options.get("perf_mode")
        if isinstance(mode, str):
            # A name of the generation that has it follows (`double_row_gen3`).
            options["perf_mode"] = Member("matmul_perf_mode", mode.partition("_gen")[0])
            first = 2 if mode.startswith("double_row") else 1
        shape = (*left.shape[first:], *right.shape[first:])
        dst = e.result(shape, DType.FLOAT32, None, Memory.PSUM)
        transposes = truth(options.get("is_transpose", False), e.origin)
        if transposes and dst.dtype is not right.dtype:
            dst = e.tile(dst.shape, right.dtype, Memory.PSUM)
        e.emit("nc_matmul", dst, given["stationary"], given["moving"], accumulate=False, **options)
        return dst
    return contracted(e, given["stationary"], given["moving"], left, right)


def _transpose(e: Expansion, given: Given) -> object:
    view = _needed(given, "data", "nc_transpose", e.origin)
    if len(view.shape) != 2:
        raise Unsupported("nc_transpose of a tile of another rank than 2", e.origin)
    shape = (view.shape[1], view.shape[0])
    engine = given.get("engine")
    vector = isinstance(engine, Member) and engine.name == "vector"
    if vector:
        return _into(e, "nc_transpose", shape, view.dtype, given)
    asked = given.pop("dtype", None)
    wanted = dtype_of(asked, e.origin) if asked is not None else view.dtype
    dst = e.result(shape, wanted, asked, Memory.PSUM)
    if dst.buffer.memory is Memory.PSUM and dst.dtype is view.dtype:
        e.emit("nc_transpose", dst, given["data"])
        return dst
    middle = e.tile(shape, view.dtype, Memory.PSUM)
    e.emit("nc_transpose", middle, given["data"])
    e.bare("tensor_copy", dst, middle)
    return dst


def _dma_transpose(e: Expansion, given: Given) -> object:
    view = _needed(given, "src", "dma_transpose", e.origin)
    rank = len(view.shape)
    order = tuple(reversed(range(rank))) if rank < 4 else (3, 1, 2, 0)
    axes = given.get("axes")
    if isinstance(axes, tuple | list):
        order = tuple(int(integer(n, e.origin).value) for n in axes)
    if sorted(order) != list(range(rank)):
        raise KernelFault("value", "dma_transpose with axes that are no order", e.origin)
    return _into(e, "dma_transpose", tuple(view.shape[k] for k in order), view.dtype, given)


def _reduce(e: Expansion, given: Given) -> object:
    view = _needed(given, "data", "tensor_reduce", e.origin)
    axes = axes_of(given.get("axis"), view, e.origin)
    keep = truth(given.get("keepdims", False), e.origin)
    shape = left_over(view, axes, keep)
    given["keepdims"] = len(shape) == len(view.shape)
    given["data"], axes = trailing(given["data"], axes, e.origin)
    given["axis"] = tuple(constant(axis) for axis in axes)
    return _into(e, "tensor_reduce", shape, view.dtype, given)


def _partition_reduce(e: Expansion, given: Given) -> object:
    view = _needed(given, "data", "tensor_partition_reduce", e.origin)
    shape = (constant(1), *view.shape[1:])
    return _into(e, "tensor_partition_reduce", shape, view.dtype, given)


def _local_gather(e: Expansion, given: Given) -> object:
    view = _needed(given, "src_buffer", "local_gather", e.origin)
    index = _needed(given, "index", "local_gather", e.origin)
    each = integer(given.get("num_elem_per_idx", constant(1)), e.origin)
    valid = given.get("num_valid_indices")
    count = integer(valid, e.origin) if valid is not None else constant(16 * index.free_elements)
    shape = (view.shape[0], binary("*", count, each, e.origin))
    return _into(e, "local_gather", shape, view.dtype, given)


def _sequence_bounds(e: Expansion, given: Given) -> object:
    view = _needed(given, "segment_ids", "sequence_bounds", e.origin)
    return _into(e, "sequence_bounds", (view.shape[0], constant(2), view.shape[-1]),
                 view.dtype, given)  # fmt: skip


_SPECIAL: dict[str, Returning] = {
    "affine_select": _affine_select,
    "bn_aggr": _shaped("bn_aggr", (2,)),
    "bn_stats": _shaped("bn_stats", (6,)),
    "dma_transpose": _dma_transpose,
    "iota": _iota,
    "local_gather": _local_gather,
    "max8": _shaped("max8", (8,)),
    "memset": _memset,
    "nc_find_index8": _shaped("nc_find_index8", (8,), DType.UINT32),
    "nc_matmul": _matmul,
    "nc_transpose": _transpose,
    "sequence_bounds": _sequence_bounds,
    "tensor_partition_reduce": _partition_reduce,
    "tensor_reduce": _reduce,
}
