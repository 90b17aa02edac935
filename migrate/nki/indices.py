"""Index tensors: `nl.arange`, `nl.mgrid`, their parts and shapes.

NKI 0.1 indexes tensors with them and writes masks as comparisons of them (NKI 0.1 API
reference, nki.language.arange and mgrid, NKI API masking).  Shapes broadcast as NumPy's do;
an axis of size 1 that is repeated loses its step.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from migrate.nki import addresses
from migrate.nki.addresses import ONE, ZERO, plus
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.symbols import Number, Origin, binary, constant
from migrate.nki.values import (
    MAX_ITEMS,
    Address,
    Builtin,
    DynamicSlice,
    Slice,
    View,
    describe,
)

if TYPE_CHECKING:
    from migrate.nki.frames import Frame

MAX_RANK = 10
"""Axes of an index tensor; kernels use up to seven."""

MAX_CONDITIONS = 16
"""Comparisons joined in one mask."""


@dataclass(frozen=True, slots=True)
class IndexTensor:
    """An integer at every point of a shape: `address` over the axes of that shape."""

    described: ClassVar[str] = "an index tensor"
    shape: tuple[Number, ...]
    address: Address

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(int(extent.value) for extent in self.shape)


@dataclass(frozen=True, slots=True)
class IndexGrid:
    """`nl.mgrid[...]`: one index tensor an axis, each of the whole grid's shape."""

    described: ClassVar[str] = "an index grid"
    items: tuple[IndexTensor, ...]


@dataclass(frozen=True, slots=True)
class GridMaker:
    """`nl.mgrid` itself."""

    described: ClassVar[str] = "nl.mgrid"


@dataclass(frozen=True, slots=True)
class Condition:
    """Where every one of `parts` is at least 0, over the axes of a shape."""

    described: ClassVar[str] = "a mask"
    shape: tuple[Number, ...]
    parts: tuple[Address, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(int(extent.value) for extent in self.shape)


@dataclass(frozen=True, slots=True)
class Masked:
    """`tile[c < n]`: a view of which an instruction takes what the masks leave."""

    described: ClassVar[str] = "a tensor indexed with a mask"
    view: View
    masks: tuple[Condition | bool, ...]


@dataclass(frozen=True, slots=True)
class PartitionExtent:
    """`nl.par_dim(n)`: the extent of the axis that goes over the partitions."""

    described: ClassVar[str] = "nl.par_dim(...)"
    extent: Number


GRID = GridMaker()
_GRID_AXES = {"p": 0, "x": 1, "y": 2, "z": 3, "w": 4}


def arange(
    _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nl.arange(stop)`, `nl.arange(start, stop, step=1)`."""
    given = dict(zip(("start", "stop", "step"), args, strict=False)) | keywords
    numbers = {}
    for name, value in given.items():
        if name not in ("start", "stop", "step"):
            continue  # the dtype of an index is of no consequence
        if value is not None:
            numbers[name] = integer_of(value, origin)
    if len(args) == 1 and "stop" not in numbers:
        numbers = {**numbers, "start": ZERO, "stop": numbers["start"]}
    if "stop" not in numbers or len(args) > 4:
        raise KernelFault("type", "nl.arange is called with the wrong arguments", origin)
    start, step = numbers.get("start", ZERO), numbers.get("step", ONE)
    return counted(start, numbers["stop"], step, origin)


def counted(start: Number, stop: Number, step: Number, origin: Origin) -> IndexTensor:
    """`start`, `start + step`, ... below `stop`, along one axis."""
    if int(step.value) <= 0:
        raise Unsupported(f"index tensors with step {step.value}", origin)
    extent = stop if start is ZERO else binary("-", stop, start, origin)
    if step.symbolic or step.value != 1:
        extent = binary("//", plus(extent, binary("-", step, ONE)), step, origin)
    if int(extent.value) <= 0:
        raise KernelFault("value", f"an index tensor of {extent.value} elements", origin)
    alone = int(extent.value) == 1 and not extent.symbolic
    return IndexTensor((extent,), Address(start, () if alone else ((0, step),)))


def is_literal(node: ast.Subscript) -> bool:
    """Whether a subscript is of an `arange` of literals, by literals."""
    call = node.value
    if not isinstance(call, ast.Call) or call.keywords:
        return False
    named = isinstance(call.func, ast.Attribute) and call.func.attr == "arange"
    if not named and not (isinstance(call.func, ast.Name) and call.func.id == "arange"):
        return False
    keys = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    plain = (
        isinstance(key, ast.Constant)
        or (isinstance(key, ast.Slice) and (key.lower, key.upper, key.step) == (None, None, None))
        for key in keys
    )
    return all(isinstance(arg, ast.Constant) for arg in call.args) and all(plain)


def partition_extent(
    _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nl.par_dim(n)`."""
    if len(args) != 1 or keywords:
        raise KernelFault("type", "nl.par_dim takes one integer", origin)
    return PartitionExtent(integer_of(args[0], origin))


def grid(key: object, origin: Origin) -> IndexGrid:
    """`nl.mgrid[a:b, c:d, ...]`."""
    keys = key if isinstance(key, tuple) else (key,)
    if not 0 < len(keys) <= MAX_RANK:
        raise Unsupported(f"a grid of {len(keys)} axes", origin)
    lines: list[IndexTensor] = []
    for part in keys:
        match part:
            case Slice(start=start, stop=Number() as stop, step=step):
                lines.append(counted(start or ZERO, stop, step or ONE, origin))
            case DynamicSlice(start=first, size=size):
                lines.append(counted(first, plus(first, size), ONE, origin))
            case _:
                raise KernelFault("index", f"nl.mgrid with {describe(part)}", origin)
    shape = tuple(line.shape[0] for line in lines)
    return IndexGrid(
        tuple(
            IndexTensor(shape, addresses.renamed(line.address, {0: axis}))
            for axis, line in enumerate(lines)
        )
    )


def attribute(value: IndexTensor | IndexGrid, name: str, origin: Origin) -> object:
    """`.shape`, `.ndim`; of a grid also `.p`, `.x`, `.y`, `.z`, `.w`."""
    if isinstance(value, IndexGrid):
        position = _GRID_AXES.get(name)
        if position is not None:
            if position >= len(value.items):
                raise KernelFault("index", f".{name} of a grid of {len(value.items)} axes", origin)
            return value.items[position]
        if name == "shape":
            return (constant(len(value.items)), *value.items[0].shape)
        raise Unsupported(f"the attribute {name} of an index grid", origin)
    match name:
        case "shape":
            return value.shape
        case "ndim":
            return constant(len(value.shape))
        case "reshape":
            return Builtin("reshape", lambda _, args, __, place: _reshaped(value, args, place))
        case "max" | "min":
            return Builtin(name, lambda *call: _extreme(value, name, *call))
    raise Unsupported(f"the attribute {name} of an index tensor", origin)


def _extreme(
    value: IndexTensor,
    name: str,
    frame: Frame,
    args: tuple[object, ...],
    words: dict[str, object],
    origin: Origin,
) -> Number:
    """The largest or the smallest of the integers."""
    if args or words:
        raise Unsupported(f"{name} of an index tensor along axes", origin)
    count = math.prod(value.sizes)
    if not 0 < count <= MAX_ITEMS:
        raise Unsupported(f"{name} of {count:,} integers", origin)
    frame.run.step(1 + count // 8)
    found = addresses.evaluated(value.address, value.sizes)
    return constant(int(found.max() if name == "max" else found.min()), origin)


def _reshaped(value: IndexTensor, args: tuple[object, ...], origin: Origin) -> IndexTensor:
    """Axes of size 1 put in or taken out: more would take index arithmetic apart."""
    items = args[0] if len(args) == 1 and isinstance(args[0], tuple | list) else args
    shape = tuple(integer_of(item, origin) for item in items)
    if len(shape) > MAX_RANK:
        raise Unsupported(f"an index tensor of {len(shape)} axes", origin)
    wide = [axis for axis, extent in enumerate(value.sizes) if extent != 1]
    kept = [axis for axis, extent in enumerate(shape) if extent.value != 1]
    sizes = [value.sizes[axis] for axis in wide]
    if len(kept) == 1 and shape[kept[0]].value == -1 and len(wide) == 1:
        extents = tuple(value.shape[wide[0]] if axis in kept else ONE for axis in range(len(shape)))
    elif sizes == [int(shape[axis].value) for axis in kept]:
        extents = shape
    else:
        raise Unsupported("reshaping an index tensor", origin)
    return IndexTensor(
        extents, addresses.renamed(value.address, dict(zip(wide, kept, strict=True)))
    )


def subscript(value: IndexTensor, key: object, origin: Origin) -> object:
    """`value[:, None]` and the like; an integer for every axis gives a `Number`."""
    keys = list(key) if isinstance(key, tuple) else [key]
    rank = len(value.shape)
    used = sum(part is not None and part is not Ellipsis for part in keys)
    if used > rank:
        raise KernelFault("index", f"{used} indices into an index tensor of rank {rank}", origin)
    rest: list[object] = [Slice(None, None, None)] * (rank - used)
    if Ellipsis in keys:
        at = keys.index(Ellipsis)
        keys[at : at + 1] = rest
    else:
        keys.extend(rest)
    shape: list[Number] = []
    parts: dict[int, Address] = {}
    axis = 0
    for part in keys:
        if part is None:
            shape.append(ONE)
            continue
        if isinstance(part, Slice) and part == Slice(None, None, None):
            parts[axis] = Address(ZERO, ((len(shape), ONE),))
            shape.append(value.shape[axis])
        elif isinstance(part, Slice):
            extent = value.shape[axis]
            start, stop = part.start or ZERO, part.stop or extent
            start = plus(extent, start) if start.value < 0 else start
            stop = plus(extent, stop) if stop.value < 0 else stop
            if stop.value > extent.value:
                stop = extent
            line = counted(start, stop, part.step or ONE, origin)
            parts[axis] = addresses.renamed(line.address, {0: len(shape)})
            shape.append(line.shape[0])
        elif isinstance(part, Number) and part.integral:
            size = int(value.shape[axis].value)
            if not -size <= part.value < size:
                raise KernelFault("index", f"index {part.value} in an axis of {size}", origin)
            parts[axis] = Address(plus(value.shape[axis], part) if part.value < 0 else part)
        else:
            raise KernelFault("index", f"indexing an index tensor with {describe(part)}", origin)
        axis += 1
    if len(shape) > MAX_RANK:
        raise Unsupported(f"an index tensor of {len(shape)} axes", origin)
    address = addresses.substituted(value.address, parts)
    if not shape:
        return address.start if not address.digits else constant(_value(address), origin)
    return IndexTensor(tuple(shape), address)


def _value(address: Address) -> int:
    return int(addresses.evaluated(address, ()).reshape(()))


def elements(value: IndexTensor | IndexGrid, origin: Origin) -> tuple[object, ...]:
    """What a loop over it, or taking it apart, gives."""
    if isinstance(value, IndexGrid):
        return value.items
    count = value.sizes[0] if value.shape else 0
    if count > MAX_ITEMS:
        raise Unsupported(f"a sequence of more than {MAX_ITEMS:,} items", origin)
    return tuple(subscript(value, constant(k, origin), origin) for k in range(count))


def joint(
    shapes: Sequence[tuple[Number, ...]], origin: Origin
) -> tuple[tuple[Number, ...], list[dict[int, int]]]:
    """The shape that index tensors broadcast to, and for each where its axes go.

    An axis of size 1 that is repeated goes nowhere.
    """
    rank = max(len(shape) for shape in shapes)
    found = [ONE] * rank
    for shape in shapes:
        ahead = rank - len(shape)
        for axis, extent in enumerate(shape):
            now = found[axis + ahead]
            if extent.value == 1:
                continue
            if now.value != 1 and now.value != extent.value:
                raise KernelFault(
                    "value",
                    f"index tensors of {now.value} and {extent.value} elements along one axis",
                    origin,
                )
            if now.value == 1:
                found[axis + ahead] = extent
    places = [
        {
            axis: axis + rank - len(shape)
            for axis, extent in enumerate(shape)
            if extent.value == found[axis + rank - len(shape)].value
        }
        for shape in shapes
    ]
    return tuple(found), places


def pattern(
    address: Address, shape: Sequence[Number], origin: Origin
) -> tuple[tuple[tuple[Number, Number], ...], Number, Number]:
    """An address over the axes of a tile as `iota` and `affine_select` of 0.2 take it.

    (step, count) of every free axis, the offset, and the step of the partition axis.
    """
    if address.digits:
        raise Unsupported("an index pattern with quotients or remainders", origin)
    steps = dict(address.terms)
    pairs = tuple((steps.get(axis, ZERO), shape[axis]) for axis in range(1, len(shape)))
    return pairs, address.start, steps.get(0, ZERO)


def integer_of(value: object, origin: Origin) -> Number:
    if isinstance(value, Number) and value.integral:
        return value
    if isinstance(value, bool):
        return constant(int(value), origin)
    if isinstance(value, IndexTensor) and not value.address.terms and not value.address.digits:
        return value.address.start
    raise KernelFault("type", f"{describe(value)} in index arithmetic", origin)
