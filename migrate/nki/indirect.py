"""Views whose position is in part read from memory: gathers, scatters, dynamic slices.

The numbers that say where a view stands are elements of a tile (`Indirect.offsets`), read when
the instruction runs.  A register is such a tile, of one element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from migrate.nki import addresses, indexing, indices, views
from migrate.nki.addresses import ONE, ZERO, plus, times
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.registers import DeviceSlice, Register
from migrate.nki.symbols import Number, Origin, binary, constant
from migrate.nki.values import (
    Address,
    DynamicSlice,
    Indirect,
    Problem,
    Slice,
    View,
    describe,
)
from migrate.nki.views import beyond, product
from migrate.numerics.dtypes import DType

Steps: TypeAlias = Sequence[tuple[Number, Number]]


def scalar(value: object, what: str, origin: Origin) -> View:
    """The one integer of a register or of a tile with one element."""
    view = value.view if isinstance(value, Register) else value
    if not isinstance(view, View):
        raise KernelFault("type", f"{what} is {describe(value)}", origin)
    if view.elements != 1:
        raise KernelFault("value", f"{what} has {view.elements} elements, not one", origin)
    _check_integers(view, what, origin)
    return view


def _column(value: object, count: Number, what: str, origin: Origin) -> View:
    """The integers of a (P, 1) tile, one a partition, for `count` partitions."""
    if not isinstance(value, View):
        raise KernelFault("type", f"{what} is {describe(value)}", origin)
    _check_integers(value, what, origin)
    if not value.shape or value.free_elements != 1:
        raise Unsupported(f"{what} with more than one integer a partition", origin)
    if value.shape[0].value < count.value:
        raise KernelFault(
            "value", f"{what} has {value.sizes[0]} elements for {count.value} rows", origin
        )
    if value.shape[0].value > count.value:
        return views.subscript(value, (Slice(None, count, None),), origin)
    return value


def _check_integers(view: View, what: str, origin: Origin) -> None:
    if view.indirect:
        raise Unsupported(f"{what} whose own position is read from memory", origin)
    if not view.dtype.is_integer:
        raise KernelFault("type", f"{what} is {view.dtype}, an integer is needed", origin)


def _direct(view: View, origin: Origin) -> None:
    if view.indirect:
        raise Unsupported("a second position from memory in a view that has one", origin)


def select(view: View, axis: int, index: object, origin: Origin) -> View:
    """`view.select(axis, index)` with an index that a tile or a register holds."""
    _direct(view, origin)
    tile = scalar(index, "the index", origin)
    if view.buffer.memory.on_chip and axis == views.block_axes(view):
        raise KernelFault("value", "the partition cannot be chosen by data", origin)
    return _placed(view, [(axis, index, tile)], _whole_but(view, axis, ZERO), origin)


def vector_select(view: View, axis: int, offsets: object, origin: Origin) -> View:
    """`view.vector_select(0, offsets)`: row `offsets[p]` at every partition p."""
    _direct(view, origin)
    if axis != 0 or view.buffer.memory.on_chip:
        raise KernelFault("value", "rows are chosen along axis 0 of a tensor in HBM", origin)
    count = offsets.shape[0] if isinstance(offsets, View) and offsets.shape else ONE
    tile = _column(offsets, count, "vector_offset", origin)
    dimension, step = _dimension(view, 0, origin)
    first = views.subscript(view, _whole_but(view, 0, Slice(ZERO, ONE, None)), origin)
    rows = views.broadcast(first, 0, count, origin)
    return replace(rows, indirect=(Indirect(dimension, tile, step, _along(tile, {0: 0})),))


def _whole_but(view: View, axis: int, key: object) -> list[object]:
    everything = Slice(None, None, None)
    return [key if a == axis else everything for a in range(len(view.shape))]


def is_dynamic(keys: Sequence[object]) -> bool:
    """Whether a subscript has a tile, a register, or a slice that starts at one in it."""
    return any(isinstance(key, View | Register | DeviceSlice) for key in keys)


def subscript(view: View, keys: Sequence[object], origin: Origin) -> View:
    """`view[keys]` where tiles, registers or `nl.ds(register, size)` are among the keys.

    A tile among index tensors broadcasts with them, as NumPy's integer arrays do.
    """
    _direct(view, origin)
    given = views.expanded(view, keys, origin)
    if any(isinstance(key, indices.IndexGrid) for key in given):
        flat: list[object] = []
        for key in keys:
            flat.extend(key.items if isinstance(key, indices.IndexGrid) else (key,))
        given = views.expanded(view, flat, origin)
    wide = any(isinstance(key, indices.IndexTensor) for key in given) or any(
        isinstance(key, View) and key.elements != 1 for key in given
    )
    fixed: list[object] = []
    found: list[tuple[int, object, View]] = []
    axis = 0
    for key in given:
        match key:
            case Register():
                found.append((axis, key, scalar(key, "an index", origin)))
                fixed.append(ZERO)
            case View() if not wide:
                found.append((axis, key, scalar(key, "an index", origin)))
                fixed.append(ZERO)
            case View():
                _check_integers(key, "an index", origin)
                found.append((axis, key, key))
                fixed.append(indices.IndexTensor(key.shape, Address(ZERO)))
            case DeviceSlice(start=start):
                found.append((axis, start, scalar(start, "the start of a slice", origin)))
                fixed.append(DynamicSlice(ZERO, key.size))
            case _:
                fixed.append(key)
        axis += key is not None
    return _placed(view, found, fixed, origin)


def _placed(
    view: View,
    found: Sequence[tuple[int, object, View]],
    fixed: Sequence[object],
    origin: Origin,
) -> View:
    """The view at index 0 of some axes, moved along them by tiles."""
    steps = [_dimension(view, axis, origin) for axis, _, _ in found]
    tensors = [key for key in fixed if isinstance(key, indices.IndexTensor)]
    places: Sequence[dict[int, int]] = ()
    first = 0
    if tensors:
        made = indexing.subscript(view, fixed, origin)
        _, places = indices.joint([tensor.shape for tensor in tensors], origin)
        head = next(k for k, key in enumerate(fixed) if isinstance(key, indices.IndexTensor))
        first = sum(isinstance(k, Slice | DynamicSlice) or k is None for k in fixed[:head])
    else:
        made = views.subscript(view, fixed, origin)
    positions = [k for k, key in enumerate(fixed) if isinstance(key, indices.IndexTensor)]
    key_of_axis: dict[int, int] = {}
    axis = 0
    for position, key in enumerate(fixed):
        if key is not None:
            key_of_axis[axis] = position
            axis += 1
    moved: list[Indirect] = []
    for (axis, _, tile), (dimension, step) in zip(found, steps, strict=True):
        position = key_of_axis[axis]
        ahead: dict[int, int] = {}
        if position in positions:
            place = places[positions.index(position)]
            ahead = {own: there + first for own, there in place.items()}
        moved.append(Indirect(dimension, tile, step, _along(tile, ahead)))
    return replace(made, indirect=tuple(moved))


def _along(tile: View, ahead: dict[int, int]) -> tuple[int | None, ...]:
    return tuple(
        ahead.get(axis) if extent.value != 1 else None for axis, extent in enumerate(tile.shape)
    )


def _dimension(view: View, axis: int, origin: Origin) -> tuple[int, Number]:
    """The dimension of the base that an axis goes along, and the step there."""
    found = [
        (dimension, step)
        for dimension, address in enumerate(view.index)
        for own, step in address.terms
        if own == axis
    ]
    inside = any(
        axis in addresses.axes_of(digit.inner) for address in view.index for digit in address.digits
    )
    if len(found) != 1 or inside:
        raise Unsupported("an axis of a reshaped view chosen by data", origin)
    return found[0]


def pattern(
    view: View,
    steps: Steps,
    offset: Number | None,
    origin: Origin,
    *,
    by_scalar: object = None,
    by_vector: object = None,
    dimension: int = 0,
    dtype: DType | None = None,
) -> View:
    """`.ap(...)` with an offset from memory, or in elements of another dtype.

    The offset counts steps of the view's axis `dimension`.  With one for each partition the
    first step of the pattern does not count (nki.language.NkiTensor.ap).
    """
    _direct(view, origin)
    if by_scalar is not None and by_vector is not None:
        raise KernelFault("type", "scalar_offset and vector_offset exclude each other", origin)
    views.placed(view, origin)
    if not steps:
        raise KernelFault("value", "an access pattern without axes", origin)
    if not 0 <= dimension < len(view.shape):
        raise KernelFault("value", f"indirect_dim {dimension} of rank {len(view.shape)}", origin)
    target = dtype if dtype is not None else view.dtype
    start = offset if offset is not None else _rescaled(view, view.offset, target, origin)
    if isinstance(by_scalar, Number):
        step = _rescaled(view, view.strides[dimension], target, origin)
        start, by_scalar = plus(start, times(by_scalar, step)), None
    tile: View | None = None
    if by_vector is not None:
        if view.buffer.memory.on_chip:
            raise KernelFault("value", "vector_offset into a tensor that is not in HBM", origin)
        if dimension != 0:
            raise KernelFault("value", "vector_offset goes along axis 0", origin)
        tile = _column(by_vector, steps[0][1], "vector_offset", origin)
    elif by_scalar is not None:
        tile = scalar(by_scalar, "scalar_offset", origin)
    static: list[tuple[Number, Number]] = list(steps)
    if by_vector is not None:
        static[0] = (ZERO, steps[0][1])
    made = _spread(view, static, start, target)
    along = dimension
    step = ONE
    if made is None:
        made = _flat(view, static, start, target, origin)
        along, step = 0, _rescaled(view, view.strides[dimension], target, origin)
    if tile is None:
        return made
    axes = _along(tile, {0: 0} if by_vector is not None else {})
    return replace(made, indirect=(Indirect(along, tile, step, axes),))


def _rescaled(view: View, elements: int, target: DType, origin: Origin) -> Number:
    """A distance in elements of the view, in elements of another dtype."""
    size = elements * view.dtype.bytes
    if size % target.bytes:
        raise Unsupported(f"a position in the middle of a {target}", origin)
    return constant(size // target.bytes, origin)


def _flat(view: View, steps: Steps, start: Number, target: DType, origin: Origin) -> View:
    total = product(view.buffer.shape)
    if target.bytes != view.buffer.dtype.bytes:
        size = int(total.value) * view.buffer.dtype.bytes
        if size % target.bytes:
            raise KernelFault("value", f"{size} bytes are no whole number of {target}", origin)
        total = constant(size // target.bytes, origin)
    faults = [*view.faults, *beyond(view, steps, start, int(total.value), origin)]
    terms = tuple((axis, step) for axis, (step, _) in enumerate(steps))
    return _viewed(view, steps, start, target, (total,), (Address(start, terms),), tuple(faults))


def _viewed(
    view: View,
    steps: Steps,
    start: Number,
    target: DType,
    base: tuple[Number, ...],
    index: tuple[Address, ...],
    faults: tuple[Problem, ...],
) -> View:
    return View(
        view.buffer,
        int(start.value),
        tuple(int(step.value) for step, _ in steps),
        tuple(count for _, count in steps),
        target,
        base,
        index,
        faults,
    )


def _spread(view: View, steps: Steps, start: Number, target: DType) -> View | None:
    """The pattern over the dimensions of a view that is a whole tensor.

    `None` where it is not, or where some row of the pattern runs over the end of a dimension.
    """
    if target.bytes != view.dtype.bytes or view.dtype.bytes != view.buffer.dtype.bytes:
        return None
    strides: list[Number] = [product(view.shape[d + 1 :]) for d in range(len(view.shape))]
    if view.offset or view.elements != view.buffer.elements:
        return None
    if any(
        own != int(wanted.value) and size != 1
        for own, wanted, size in zip(view.strides, strides, view.sizes, strict=True)
    ):
        return None
    starts: list[Number] = []
    for dimension, stride in enumerate(strides):
        here = start
        if dimension:
            here = _part("%", here, strides[dimension - 1])
        starts.append(_part("//", here, stride))
    terms: list[list[tuple[int, Number]]] = [[] for _ in strides]
    lasts = [int(number.value) for number in starts]
    for axis, (step, count) in enumerate(steps):
        if step.value == 0 or count.value == 1:
            continue
        place = next((d for d, s in enumerate(strides) if step.value % s.value == 0), None)
        if place is None or step.value < 0:
            return None
        terms[place].append((axis, _part("//", step, strides[place])))
        lasts[place] += int(step.value) // int(strides[place].value) * (int(count.value) - 1)
    if min(lasts) < 0 or any(last >= n for last, n in zip(lasts, view.sizes, strict=True)):
        return None
    index = tuple(Address(first, tuple(own)) for first, own in zip(starts, terms, strict=True))
    return _viewed(view, steps, start, target, view.shape, index, view.faults)


def _part(sign: str, number: Number, by: Number) -> Number:
    if not number.symbolic and number.value == 0:
        return number
    if by.value == 1:
        return number if sign == "//" else ZERO
    if sign == "//" and number.value == by.value:
        return ONE
    return binary(sign, number, by)


def reinterpreted(view: View, dtype: DType, origin: Origin) -> View:
    """`view.view(dtype)`: the same bytes as elements of another dtype, along the last axis.

    Raises `KernelFault` where the last axis is not contiguous or does not divide.
    """
    if view.indirect:
        raise Unsupported("another dtype of a view whose position is read from memory", origin)
    old, new = view.dtype.bytes, dtype.bytes
    if old == new:
        return replace(view, dtype=dtype)
    if not view.shape or not view.strided:
        raise Unsupported("another dtype of a view without strides", origin)
    if view.strides[-1] != 1 and view.sizes[-1] != 1:
        raise KernelFault("value", "the last axis is not contiguous", origin)
    if view.buffer.memory.on_chip and len(view.shape) < 2:
        raise Unsupported("another dtype along the partitions", origin)
    wide, narrow = max(old, new), min(old, new)
    ratio = constant(wide // narrow, origin)
    if wide % narrow:
        raise Unsupported(f"{view.dtype} read as {dtype}", origin)
    last = len(view.shape) - 1
    inner = view.index[-1]
    if inner.digits or any(own == last and step.value != 1 for own, step in inner.terms):
        raise Unsupported("another dtype of a reshaped view", origin)
    if view.sizes[-1] != 1 and not any(own == last for own, _ in inner.terms):
        raise Unsupported("another dtype of a reshaped view", origin)

    def resized(number: Number) -> Number:
        if new < old:
            return times(number, ratio)
        if int(number.value) % int(ratio.value):
            raise KernelFault(
                "value", f"{number.value} elements of {view.dtype} are no {dtype}", origin
            )
        return _part("//", number, ratio)

    terms = tuple((own, step if own == last else resized(step)) for own, step in inner.terms)
    address = Address(resized(inner.start), terms)
    if not any(own == last for own, _ in terms):
        address = replace(address, terms=(*terms, (last, ONE)))
    return replace(
        view,
        offset=int(resized(constant(view.offset)).value),
        strides=(*(int(resized(constant(s)).value) for s in view.strides[:-1]), 1),
        shape=(*view.shape[:-1], resized(view.shape[-1])),
        dtype=dtype,
        base=(*view.base[:-1], resized(view.base[-1])),
        index=(*view.index[:-1], address),
    )
