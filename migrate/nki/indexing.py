"""Tensors indexed with index tensors: `t[i_p, i_f + 512 * k]`.

The index tensors broadcast as NumPy's do, and the axes of the view are those they broadcast
to; slices beside them keep axes of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from migrate.nki import addresses
from migrate.nki.addresses import ONE, ZERO, plus
from migrate.nki.errors import Unsupported
from migrate.nki.indices import (
    MAX_CONDITIONS,
    Condition,
    IndexGrid,
    IndexTensor,
    Masked,
    joint,
)
from migrate.nki.symbols import Number, Origin, sources
from migrate.nki.values import Address, DynamicSlice, Problem, Slice, View, describe
from migrate.nki.views import expanded, resolved
from migrate.source import Span

MAX_CHECKED = 1 << 20
"""Points of a masked index that are looked at one by one to see whether one is out of bounds."""

MAX_DIGITAL = 1 << 16
"""The same for an index with quotients or remainders, without a mask."""

POINTS_A_STEP = 4096
"""Points that are looked at in a step of the budget."""


def is_indexed(keys: Sequence[object]) -> bool:
    """Whether a subscript has index tensors (or masks) in it."""
    return any(isinstance(key, IndexTensor | IndexGrid | Condition) for key in keys)


def masked(value: View | Masked, key: Condition | bool, origin: Origin) -> Masked:
    """`value[key]` with a mask as the key."""
    if isinstance(value, View):
        return Masked(value, (key,))
    if len(value.masks) >= MAX_CONDITIONS:
        raise Unsupported(f"more than {MAX_CONDITIONS} masks on a tensor", origin)
    return Masked(value.view, (*value.masks, key))


def subscript(view: View, keys: Sequence[object], origin: Origin) -> View:
    """`view[keys]` where some key is an index tensor.

    Raises `KernelFault` for keys that do not broadcast, `Unsupported` for masks beside other
    keys and for slices between index tensors.
    """
    if any(isinstance(key, Condition) for key in keys):
        raise Unsupported("indexing a tensor with a mask and something else", origin)
    if view.indirect:
        raise Unsupported("index tensors on a view whose position is read from memory", origin)
    located = _aligned(view, keys)
    if located is None:
        given = expanded(view, _flattened(keys), origin)
        located = _located(view, given, origin)
    shape, parts = located
    sizes = tuple(int(extent.value) for extent in shape)
    faults: list[Problem] = []
    offset, strides = view.offset, [0] * len(shape)
    for place, part in enumerate(parts):
        stride = view.strides[place]
        low = high = int(part.start.value)
        offset += low * stride
        for axis, step in part.terms:
            by = int(step.value)
            strides[axis] += by * stride
            reach = by * (sizes[axis] - 1)
            if reach < 0:
                low += reach
            else:
                high += reach
        if part.digits or low < 0 or high >= int(view.shape[place].value):
            outside(faults, part, sizes, view.shape[place], place, origin.span, view)
    index = tuple([_composed(address, parts) for address in view.index])
    return View(
        view.buffer,
        offset,
        tuple(strides),
        shape,
        view.dtype,
        view.base,
        index,
        (*view.faults, *faults),
        view.indirect,
    )


def _aligned(view: View, keys: Sequence[object]) -> tuple[tuple[Number, ...], list[Address]] | None:
    """`_located` for what most kernels write: one key an axis, and keys of one rank."""
    if len(keys) != len(view.shape):
        return None
    shape: list[Number] = []
    for key in keys:
        if isinstance(key, IndexTensor):
            if not shape:
                shape.extend(key.shape)
            elif len(key.shape) != len(shape):
                return None
            else:
                for axis, extent in enumerate(key.shape):
                    if extent.value != 1 and extent.value != shape[axis].value:
                        if shape[axis].value != 1:
                            return None
                        shape[axis] = extent
        elif not isinstance(key, Number) or not key.integral or key.value < 0:
            return None
    parts: list[Address] = []
    for key in keys:
        if isinstance(key, Number):
            parts.append(Address(key))
            continue
        assert isinstance(key, IndexTensor)
        address = key.address
        if address.digits:
            return None
        for axis, _ in address.terms:
            if key.shape[axis].value != shape[axis].value:
                return None
        parts.append(address)
    return tuple(shape), parts


def _composed(address: Address, parts: Sequence[Address]) -> Address:
    if not address.digits and len(address.terms) == 1 and address.start is ZERO:
        ((axis, step),) = address.terms
        if step is ONE:
            return parts[axis]
    return addresses.substituted(address, dict(enumerate(parts)))


def _flattened(keys: Sequence[object]) -> list[object]:
    """Keys with each index grid written out as the index tensors it stands for."""
    found: list[object] = []
    for key in keys:
        found.extend(key.items if isinstance(key, IndexGrid) else (key,))
    return found


def _located(
    view: View, given: Sequence[object], origin: Origin
) -> tuple[tuple[Number, ...], list[Address]]:
    """The view's new shape, and where each old axis is at every point of it."""
    tensors = [key for key in given if isinstance(key, IndexTensor)]
    common, places = joint([tensor.shape for tensor in tensors], origin)
    renamed = iter(places)
    shape: list[Number] = []
    parts: list[Address] = []
    pending: list[tuple[int, IndexTensor, dict[int, int]]] = []
    first: int | None = None
    ended = False
    axis = 0
    for key in given:
        if isinstance(key, Slice | DynamicSlice) or key is None:
            ended = first is not None
            if key is None:
                shape.append(ONE)
                continue
            start, size, step = _range(key, view.shape[axis], origin)
            parts.append(Address(start, ((len(shape), step),)))
            shape.append(size if size.value > 0 else ZERO)
        elif isinstance(key, IndexTensor):
            if ended:
                raise Unsupported("slices between index tensors", origin)
            if first is None:
                first = len(shape)
                shape.extend(common)
            pending.append((axis, key, next(renamed)))
            parts.append(Address(ZERO))
        elif isinstance(key, Number):
            extent = view.shape[axis]
            parts.append(Address(plus(extent, key) if key.value < 0 else key))
        else:
            raise Unsupported(f"indexing a tensor with {describe(key)}", origin)
        axis += 1
    assert first is not None
    for position, tensor, place in pending:
        ahead = {own: there + first for own, there in place.items()}
        parts[position] = addresses.renamed(tensor.address, ahead)
    _check_order(given, origin)
    return tuple(shape), parts


def _check_order(given: Sequence[object], origin: Origin) -> None:
    """Integers and index tensors must stand together where there are slices too.

    NumPy moves their axes to the front otherwise, and NKI never said that it does.
    """
    chosen = [k for k, key in enumerate(given) if isinstance(key, IndexTensor | Number)]
    apart = chosen[-1] - chosen[0] + 1 != len(chosen)
    if apart:
        raise Unsupported("slices between integers and index tensors", origin)


def _range(
    key: Slice | DynamicSlice, extent: Number, origin: Origin
) -> tuple[Number, Number, Number]:
    if isinstance(key, DynamicSlice):
        return key.start, key.size, ONE
    return resolved(key, extent, origin)


def outside(
    faults: list[Problem],
    part: Address,
    sizes: Sequence[int],
    extent: Number,
    axis: int,
    span: Span,
    view: View,
    conditions: Sequence[Address] = (),
    spend: Callable[[int], None] | None = None,
) -> None:
    """Record that an axis is left, where a point that meets the conditions leaves it.

    `spend` is told the steps that looking at the points takes.
    """
    limit = int(extent.value)
    if any(size == 0 for size in sizes):
        return
    low, high = addresses.bounds(part, sizes)
    if low >= 0 and high < limit:
        return
    if part.digits or conditions:
        found = _reached(part, sizes, conditions, spend)
        if found is None:
            return
        low, high = found
        if low >= 0 and high < limit:
            return
    places = dict.fromkeys(
        (*sources(addresses.numbers_of(part)), view.buffer.site.span, *extent.sources())
    )
    faults.append(
        Problem(
            "out-of-bounds",
            f"elements {low} to {high} of axis {axis}, whose size is {limit}",
            span,
            numbers=(("axis", axis), ("first", low), ("last", high), ("size", limit)),
            sources=tuple(places),
        )
    )


def _reached(
    part: Address,
    sizes: Sequence[int],
    conditions: Sequence[Address],
    spend: Callable[[int], None] | None,
) -> tuple[int, int] | None:
    """The least and the greatest value at points that meet the conditions, if there are any.

    `None` too where there are too many points to look at.
    """
    import numpy as np

    used = addresses.axes_of(part).union(*map(addresses.axes_of, conditions))
    shape = [size if axis in used else 1 for axis, size in enumerate(sizes)]
    count = 1
    for size in shape:
        count *= size
    if count > (MAX_CHECKED if spend is not None else MAX_DIGITAL):
        return None
    if spend is not None:
        spend(1 + count * (1 + len(conditions)) // POINTS_A_STEP)
    values = addresses.evaluated(part, shape)
    chosen = np.ones((), bool)
    for condition in conditions:
        chosen = chosen & (addresses.evaluated(condition, shape) >= 0)
    values, chosen = np.broadcast_arrays(values, chosen)
    reached = values[chosen]
    return (int(reached.min()), int(reached.max())) if reached.size else None
