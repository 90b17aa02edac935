"""Reshaping a view: its axes split and joined, where that needs no copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from migrate.nki import addresses
from migrate.nki.addresses import ONE, ZERO, times
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.symbols import Number, Origin, binary
from migrate.nki.values import Address, Indirect, View
from migrate.nki.views import block_axes, product, renamed_axes


def reshape(view: View, shape: Sequence[Number], origin: Origin) -> View:
    """The same elements under another shape, in row-major order.

    Raises `KernelFault` where the counts differ or the layout would need a copy.
    """
    wanted = _completed(view, shape, origin)
    if view.buffer.memory.on_chip and view.shape and not _keeps_partitions(view, wanted):
        raise KernelFault("value", "a reshape may not change the partition axis", origin)
    merged, groups = _merged(view, [int(n.value) for n in wanted], origin)
    strides: list[int] = []
    terms_of: dict[int, list[tuple[int, Number]]] = {}
    for axis, group in enumerate(groups):
        inner = ONE
        stride = merged.strides[axis]
        pieces: list[tuple[int, Number]] = []
        strides_here: list[int] = []
        for new in reversed(group):
            pieces.append((new, inner))
            strides_here.append(stride * int(inner.value))
            inner = times(wanted[new], inner)
        strides.extend(reversed(strides_here))
        terms_of[axis] = pieces
    parts = {axis: Address(ZERO, tuple(pieces)) for axis, pieces in terms_of.items()}
    index = tuple(_split(address, terms_of, parts) for address in merged.index)
    return replace(
        view,
        shape=tuple(wanted),
        strides=tuple(strides),
        base=merged.base,
        index=index,
        indirect=tuple(_positioned(part, groups, wanted) for part in merged.indirect),
    )


def _positioned(
    part: Indirect, groups: Sequence[Sequence[int]], wanted: Sequence[Number]
) -> Indirect:
    """Positions read from memory over the axes that each of the view's is split into."""
    axes: list[int | None] = []
    for axis in part.axes:
        wide = [new for new in groups[axis] if wanted[new].value != 1] if axis is not None else []
        if len(wide) > 1:
            raise Unsupported("a reshape of an axis along which positions are read from memory")
        axes.append(wide[0] if wide else None)
    return replace(part, axes=tuple(axes))


def _split(
    address: Address,
    terms_of: Mapping[int, Sequence[tuple[int, Number]]],
    parts: Mapping[int, Address],
) -> Address:
    """The address over the axes that each of its own is split into."""
    if address.digits:
        return addresses.substituted(address, parts)
    return Address(
        address.start,
        tuple(
            (new, times(step, inner))
            for axis, step in address.terms
            for new, inner in terms_of[axis]
        ),
    )


def _keeps_partitions(view: View, wanted: Sequence[Number]) -> bool:
    """Whether the axis over the partitions stays as it is; the blocks before it may not."""
    blocks = block_axes(view)
    if blocks == len(view.shape):
        return True
    before, position = product(view.shape[:blocks]).value, 0
    passed = 1
    while passed < before and position < len(wanted):
        passed *= int(wanted[position].value)
        position += 1
    fits = passed == before and position < len(wanted)
    return fits and wanted[position].value == view.shape[blocks].value


def _completed(view: View, shape: Sequence[Number], origin: Origin) -> list[Number]:
    wanted = list(shape)
    unknown = [axis for axis, extent in enumerate(wanted) if extent.value == -1]
    if len(unknown) > 1:
        raise KernelFault("value", "more than one -1 in a shape", origin)
    known = product([n for n in wanted if n.value != -1])
    if unknown:
        count = product(view.shape)
        if known.value == 0 or int(count.value) % int(known.value):
            raise KernelFault(
                "value",
                f"{count.value} elements do not divide by {known.value}",
                origin,
                ((binary("%", count, known), "==", ZERO),) if known.value else (),
            )
        wanted[unknown[0]] = binary("//", count, known, origin)
    elif known.value != view.elements:
        raise KernelFault(
            "value",
            f"cannot reshape {view.elements} elements into {known.value}",
            origin,
            ((product(view.shape), "==", known),),
        )
    return wanted


def _merged(view: View, wanted: list[int], origin: Origin) -> tuple[View, list[list[int]]]:
    """The view with its axes joined so that each covers a run of the wanted axes."""
    old, new = list(view.sizes), wanted
    joins: list[list[int]] = []
    groups: list[list[int]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        left, right = [i] if i < len(old) else [], [j] if j < len(new) else []
        a, b = (old[i] if left else 1), (new[j] if right else 1)
        i, j = i + len(left), j + len(right)
        while a != b:
            if a < b and i < len(old):
                a, left, i = a * old[i], [*left, i], i + 1
            elif j < len(new):
                b, right, j = b * new[j], [*right, j], j + 1
            else:
                raise KernelFault("value", "shapes do not agree", origin)
        if not left:
            if not groups:
                raise Unsupported("reshaping a scalar", origin)
            groups[-1].extend(right)
        else:
            joins.append(left)
            groups.append(right)
    for group in reversed(joins):
        for inner in reversed(group[1:]):
            view = _joined(view, inner - 1, origin)
    return view, groups


def _joined(view: View, outer: int, origin: Origin) -> View:
    """Axes `outer` and `outer + 1` as one."""
    inner = outer + 1
    count, inner_count = view.sizes[outer], view.sizes[inner]
    fixed = any(part.axes.count(axis) for part in view.indirect for axis in (outer, inner))
    fixed = fixed or any(address.digits for address in view.index)
    if fixed and count != 1 and inner_count != 1:
        raise Unsupported("a reshape that joins axes of a view without strides", origin)
    stride, inner_stride = view.strides[outer], view.strides[inner]
    shape = (
        *view.shape[:outer],
        times(view.shape[outer], view.shape[inner]),
        *view.shape[inner + 1 :],
    )
    renamed = {a: a - (a >= inner) for a in range(len(view.shape))}
    if count == 1 or inner_count == 1:
        dropped = inner if inner_count == 1 else outer
        strides = (*view.strides[:dropped], *view.strides[dropped + 1 :])
        others = {a: a for a in range(len(view.shape)) if a != dropped}
        index = tuple(addresses.renamed(address, others) for address in view.index)
        return renamed_axes(replace(view, shape=shape, strides=strides, index=index), renamed)
    if stride != inner_stride * inner_count:
        raise KernelFault("value", "the layout of the view needs a copy to reshape", origin)
    places = [
        [d for d, a in enumerate(view.index) if any(term[0] == axis for term in a.terms)]
        for axis in (outer, inner)
    ]
    if len(places[0]) != 1 or len(places[1]) != 1:
        raise Unsupported("a reshape that joins axes of a reshaped view", origin)
    (first,), (second,) = places
    strides = (*view.strides[:outer], inner_stride, *view.strides[inner + 1 :])
    low, high = view.index[second], view.index[first]
    if first == second:
        # Two axes that a split made: one term again, of the inner step.
        step = dict(low.terms)[inner]
        terms = tuple(t for t in low.terms if t[0] not in (outer, inner))
        joined = Address(low.start, (*terms, (outer, step)))
        index = (*view.index[:first], joined, *view.index[first + 1 :])
        return renamed_axes(replace(view, shape=shape, strides=strides, index=index), renamed)
    inner_whole = (
        second == first + 1
        and low.terms == ((inner, low.terms[0][1]),)
        and low.terms[0][1].value == 1
        and low.start.value == 0
        and view.base[second].value == inner_count
    )
    if not inner_whole or len(high.terms) != 1 or high.terms[0][1].value != 1:
        raise Unsupported("a reshape that joins axes of a partial view", origin)
    extent = view.base[second]
    joined = Address(times(high.start, extent), ((outer, ONE),))
    index = (*view.index[:first], joined, *view.index[second + 1 :])
    base = (*view.base[:first], times(view.base[first], extent), *view.base[second + 1 :])
    parts = tuple(
        replace(
            part,
            dimension=part.dimension - (part.dimension >= second),
            step=times(part.step, extent) if part.dimension == first else part.step,
        )
        for part in view.indirect
    )
    return renamed_axes(
        replace(view, shape=shape, strides=strides, index=index, base=base, indirect=parts), renamed
    )
