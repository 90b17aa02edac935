"""Windows on tensors: slicing, reshaping and permuting `View`s.

Numbers carry through: the start and step of every dimension stay expressions in loop
positions and sizes.  A slice that leaves its tensor is not an exception but a fault on
the view, so that the instruction using it can report the figures; slices are not
clamped (NKI does not mask what lies past the end).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from migrate.nki import addresses
from migrate.nki.addresses import ONE, ZERO, plus, times
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.symbols import Number, Origin, binary, constant, sources
from migrate.nki.values import (
    Address,
    Buffer,
    DynamicSlice,
    Indirect,
    Problem,
    Slice,
    View,
    describe,
)
from migrate.source import Span


def product(factors: Sequence[Number]) -> Number:
    total = ONE
    for factor in factors:
        total = times(total, factor)
    return total


def whole(buffer: Buffer) -> View:
    """The view of a whole buffer."""
    strides: list[int] = []
    step = 1
    for extent in reversed(buffer.shape):
        strides.append(step)
        step *= int(extent.value)
    return View(
        buffer=buffer,
        offset=0,
        strides=tuple(reversed(strides)),
        shape=buffer.shape,
        dtype=buffer.dtype,
        base=buffer.shape,
        index=tuple(Address(ZERO, ((axis, ONE),)) for axis in range(len(buffer.shape))),
    )


def partition_dimension(view: View) -> int:
    """The dimension of a view's base that goes over the partitions; those before it are blocks."""
    blocks = view.buffer.partition
    if not blocks or view.base is view.buffer.shape:
        return blocks
    before = 1
    for extent in view.buffer.shape[:blocks]:
        before *= int(extent.value)
    position, passed = 0, 1
    while passed < before and position < len(view.base):
        passed *= int(view.base[position].value)
        position += 1
    while position < len(view.base) - 1 and int(view.base[position].value) == 1 < int(
        view.buffer.shape[blocks].value
    ):
        position += 1
    return position


def block_axes(view: View) -> int:
    """How many leading axes of an on-chip view go over blocks and not over partitions."""
    if not view.buffer.partition:
        return 0
    dimension = partition_dimension(view)
    blocks: set[int] = set()
    for address in view.index[:dimension]:
        blocks |= addresses.axes_of(address)
    leading = 0
    while leading in blocks:
        leading += 1
    return leading


def partitions_first(view: View) -> bool:
    """Whether no axis but the first goes over the partitions, as far as the base tells."""
    dimension = partition_dimension(view)
    if (
        len(view.base) < 2
        or view.base[dimension].value != view.buffer.shape[view.buffer.partition].value
    ):
        return True
    address = view.index[dimension]
    if address.digits:
        return addresses.axes_of(address) <= {0}
    return all(axis == 0 for axis, _ in address.terms)


def tile(view: View, origin: Origin) -> View:
    """An on-chip view with its partition axis first, as engines take it.

    Blocks become free axes.  Raises `Unsupported` where blocks and partitions are not apart.
    """
    blocks = block_axes(view)
    if not blocks:
        return view
    rank = len(view.shape)
    if blocks == rank:
        raise Unsupported("a tile of blocks without partitions", origin)
    order = (blocks, *range(blocks), *range(blocks + 1, rank))
    return _ordered(view, order)


def subscript(view: View, keys: Sequence[object], origin: Origin) -> View:
    """`view[keys]`, with `Number`, `Slice`, `DynamicSlice`, `Ellipsis` and `None` keys.

    Raises `KernelFault` for keys that Python would refuse, `Unsupported` for indirect
    ones.
    """
    given = expanded(view, keys, origin)
    on_chip = view.buffer.memory.on_chip
    partition = block_axes(view)
    offset = view.offset
    starts: list[Number | None] = []
    steps: list[Number | None] = []
    kept: list[int | None] = []
    shape: list[Number] = []
    strides: list[int] = []
    faults = list(view.faults)
    integer_keys = sum(isinstance(key, Number) for key in given)
    new_rank = len(given) - integer_keys
    source_axis = 0
    for key in given:
        if key is None:
            if on_chip and source_axis <= partition:
                raise KernelFault("index", "a new axis before the partition axis", origin)
            shape.append(ONE)
            strides.append(0)
            kept.append(None)
            continue
        axis = source_axis
        source_axis += 1
        extent = view.shape[axis]
        stride = view.strides[axis]
        match key:
            case Number():
                start, size, step = _wrapped(key, extent), ONE, None
                _check(faults, view, start, ONE, ONE, axis, origin.span)
                # On chip the partition axis stays, and no tile falls below rank 2.
                keep = on_chip and (axis == partition or (axis > partition and new_rank < 2))
                if keep and axis != partition:
                    new_rank += 1
                starts.append(start)
                steps.append(step)
                offset += int(start.value) * stride
                if keep:
                    shape.append(ONE)
                    strides.append(stride)
                    kept.append(axis)
                continue
            case DynamicSlice():
                start, size, step = _wrapped(key.start, extent), key.size, ONE
            case Slice():
                start, size, step = resolved(key, extent, origin)
            case _:
                raise Unsupported(f"indexing a tensor with {describe(key)}", origin)
        _check(faults, view, start, size, step, axis, origin.span)
        if size.value < 0:
            size = ZERO
        starts.append(start)
        steps.append(step)
        offset += int(start.value) * stride
        shape.append(size)
        strides.append(stride * int(step.value))
        kept.append(axis)
    renamed = {old: new for new, old in enumerate(kept) if old is not None}
    addressed: list[Address] = []
    for address in view.index:
        if address.digits:
            addressed.append(addresses.substituted(address, _parts(starts, steps, renamed)))
            continue
        begin = address.start
        terms: list[tuple[int, Number]] = []
        for axis, scale in address.terms:
            start_here = starts[axis]
            step_here = steps[axis]
            assert start_here is not None
            begin = plus(begin, times(start_here, scale))
            if axis in renamed and step_here is not None:
                terms.append((renamed[axis], times(scale, step_here)))
        addressed.append(Address(begin, tuple(terms)))
    moved = view.indirect
    if moved:
        keys_of = _parts(starts, steps, renamed)
        moved = tuple(_sliced(part, keys_of, shape, origin) for part in moved)
    return View(
        view.buffer,
        offset,
        tuple(strides),
        tuple(shape),
        view.dtype,
        view.base,
        tuple(addressed),
        tuple(faults),
        moved,
    )


def _sliced(
    part: Indirect, keys: Mapping[int, Address], shape: Sequence[Number], origin: Origin
) -> Indirect:
    """The positions that are left of those read from memory, when the view is sliced."""
    offsets = part.offsets
    axes = list(part.axes)
    for own, axis in enumerate(part.axes):
        if axis is None:
            continue
        key = keys[axis]
        count, by = ONE, ONE
        if key.terms:
            ((new, by),) = key.terms
            axes[own], count = new, shape[new]
        if by.value != 1:
            raise Unsupported("a step over positions that are read from memory", origin)
        slices: list[object] = [Slice(None, None, None)] * len(offsets.shape)
        slices[own] = DynamicSlice(key.start, count)
        offsets = subscript(offsets, slices, origin)
        if count.value == 1:
            axes[own] = None
    return replace(part, offsets=offsets, axes=tuple(axes))


def _parts(
    starts: Sequence[Number | None],
    steps: Sequence[Number | None],
    renamed: dict[int, int],
) -> dict[int, Address]:
    """What each axis of the old view is, over the axes of the new one."""
    found: dict[int, Address] = {}
    for axis, (start, step) in enumerate(zip(starts, steps, strict=True)):
        assert start is not None
        kept = axis in renamed and step is not None
        terms = ((renamed[axis], step),) if kept and step is not None else ()
        found[axis] = Address(start, terms)
    return found


def expanded(view: View, keys: Sequence[object], origin: Origin) -> list[object]:
    """Keys with the ellipsis and missing trailing axes written out."""
    rank = len(view.shape)
    used = sum(key is not None and key is not Ellipsis for key in keys)
    if used > rank:
        raise KernelFault("index", f"{used} indices into a tensor of rank {rank}", origin)
    everything = Slice(None, None, None)
    given: list[object] = []
    for key in keys:
        if key is Ellipsis:
            if any(other is Ellipsis for other in given):
                raise KernelFault("index", "more than one ellipsis in a subscript", origin)
            given.extend([everything] * (rank - used))
            used = rank
        elif isinstance(key, Number) and not key.integral:
            raise KernelFault("type", f"{describe(key)} used as an index", origin)
        else:
            given.append(key)
    given.extend([everything] * (rank - used))
    return given


def _wrapped(index: Number, extent: Number) -> Number:
    """A negative index counts from the end."""
    return plus(extent, index) if index.value < 0 else index


def resolved(key: Slice, extent: Number, origin: Origin) -> tuple[Number, Number, Number]:
    """(start, size, step) of a slice."""
    for part in (key.start, key.stop, key.step):
        if part is not None and not part.integral:
            raise KernelFault("type", f"{describe(part)} used in a slice", origin)
    step = key.step if key.step is not None else ONE
    if step.value <= 0:
        raise Unsupported(f"a slice with step {step.value}", origin)
    start = _wrapped(key.start, extent) if key.start is not None else ZERO
    stop = _wrapped(key.stop, extent) if key.stop is not None else extent
    if key.start is None:
        length = stop
    else:
        length = binary("-", stop, start, origin)
    if step.symbolic or step.value != 1:
        length = binary("//", plus(length, binary("-", step, ONE)), step, origin)
    return start, length, step


def _check(
    faults: list[Problem],
    view: View,
    start: Number,
    size: Number,
    step: Number,
    axis: int,
    span: Span,
) -> None:
    extent = view.shape[axis]
    first, count, limit = int(start.value), int(size.value), int(extent.value)
    last = first + (count - 1) * int(step.value)
    if count > 0 and first >= 0 and last < limit:
        return
    numbers = (("axis", axis), ("first", first), ("last", last), ("size", limit))
    places = dict.fromkeys((*sources((start, size)), view.buffer.site.span, *extent.sources()))
    found = tuple(places)
    if count <= 0:
        faults.append(
            Problem(
                "empty-slice",
                f"the slice of axis {axis} from {first} has {count} elements",
                span,
                numbers=numbers,
                sources=found,
            )
        )
        return
    faults.append(
        Problem(
            "out-of-bounds",
            f"elements {first} to {last} of axis {axis}, whose size is {limit}",
            span,
            numbers=numbers,
            sources=found,
        )
    )


def permute(view: View, order: Sequence[int], origin: Origin) -> View:
    """Axes in another order."""
    if sorted(order) != list(range(len(view.shape))):
        raise KernelFault("value", f"{tuple(order)} is not an order of the axes", origin)
    partition = block_axes(view)
    if view.buffer.memory.on_chip and order[partition] != partition:
        raise KernelFault("value", "the partition axis must stay first", origin)
    return _ordered(view, order)


def _ordered(view: View, order: Sequence[int]) -> View:
    renamed = {old: new for new, old in enumerate(order)}
    return renamed_axes(
        replace(
            view,
            shape=tuple(view.shape[axis] for axis in order),
            strides=tuple(view.strides[axis] for axis in order),
        ),
        renamed,
    )


def expand_dim(view: View, axis: int, origin: Origin) -> View:
    """A new axis of size 1 before `axis`."""
    first = axis <= block_axes(view) and view.buffer.memory.on_chip
    if not 0 <= axis <= len(view.shape) or first:
        raise KernelFault("value", f"no new axis can stand at {axis}", origin)
    renamed = {a: a + (a >= axis) for a in range(len(view.shape))}
    return renamed_axes(
        replace(
            view,
            shape=(*view.shape[:axis], ONE, *view.shape[axis:]),
            strides=(*view.strides[:axis], 0, *view.strides[axis:]),
        ),
        renamed,
    )


def squeeze_dim(view: View, axis: int, origin: Origin) -> View:
    """Without an axis of size 1."""
    if not 0 <= axis < len(view.shape) or view.sizes[axis] != 1:
        raise KernelFault("value", f"axis {axis} is not an axis of size 1", origin)
    if axis == block_axes(view) and view.buffer.memory.on_chip:
        raise KernelFault("value", "the partition axis cannot be dropped", origin)
    renamed = {a: a - (a > axis) for a in range(len(view.shape)) if a != axis}
    return renamed_axes(
        replace(
            view,
            shape=(*view.shape[:axis], *view.shape[axis + 1 :]),
            strides=(*view.strides[:axis], *view.strides[axis + 1 :]),
        ),
        renamed,
    )


def broadcast(view: View, axis: int, extent: Number, origin: Origin) -> View:
    """An axis of size 1 repeated."""
    if not 0 <= axis < len(view.shape) or view.sizes[axis] != 1:
        raise KernelFault("value", f"axis {axis} is not an axis of size 1", origin)
    if axis == block_axes(view) and view.buffer.memory.on_chip:
        raise KernelFault("value", "the partition axis cannot be repeated", origin)
    others = {a: a for a in range(len(view.shape)) if a != axis}
    index = tuple(addresses.renamed(address, others) for address in view.index)
    shape = (*view.shape[:axis], extent, *view.shape[axis + 1 :])
    strides = (*view.strides[:axis], 0, *view.strides[axis + 1 :])
    return replace(view, shape=shape, strides=strides, index=index)


def renamed_axes(view: View, renamed: dict[int, int]) -> View:
    """The same view with its axes numbered anew in the index; others are dropped."""
    index = tuple(addresses.renamed(address, renamed) for address in view.index)
    return replace(view, index=index, indirect=moved_axes(view.indirect, renamed))


def moved_axes(parts: tuple[Indirect, ...], renamed: Mapping[int, int]) -> tuple[Indirect, ...]:
    """Positions read from memory along axes that are numbered anew."""
    return tuple(
        replace(
            part,
            axes=tuple(None if axis is None else renamed.get(axis) for axis in part.axes),
        )
        for part in parts
    )


def placed(view: View, origin: Origin) -> None:
    """Check that an access pattern on the view has one meaning."""
    if not view.strided:
        raise Unsupported("an access pattern on a view without strides", origin)
    if view.offset:
        raise Unsupported(
            "an access pattern on a part of a tensor: the documentation contradicts itself on"
            " where it starts",
            origin,
        )


def beyond(
    view: View, steps: Sequence[tuple[Number, Number]], start: Number, total: int, origin: Origin
) -> Iterator[Problem]:
    """What lies outside of a flat tensor of `total` elements, from `start` on by (step, count)."""
    low = high = int(start.value)
    for step, count in steps:
        reach = int(step.value) * (int(count.value) - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    if low < 0 or high >= total:
        yield Problem(
            "out-of-bounds",
            f"elements {low} to {high} of a tensor of {total}",
            origin.span,
            numbers=(("first", low), ("last", high), ("size", total)),
            sources=tuple(dict.fromkeys((*start.sources(), view.buffer.site.span))),
        )


def pattern(
    view: View, steps: Sequence[tuple[Number, Number]], offset: Number | None, origin: Origin
) -> View:
    """`.ap`: (step, count) pairs in elements of the buffer's storage.

    Raises `Unsupported` for a view that starts elsewhere than its buffer: the pattern starts
    there, too, or `offset` elements further (nki.language.NkiTensor.ap), or the view makes no
    difference (nki/deep-dives/nki-aps.rst).
    """
    placed(view, origin)
    total = product(view.buffer.shape)
    start = offset if offset is not None else constant(view.offset, origin)
    faults = [*view.faults, *beyond(view, steps, start, int(total.value), origin)]
    return View(
        view.buffer,
        int(start.value),
        tuple(int(step.value) for step, _ in steps),
        tuple(count for _, count in steps),
        view.dtype,
        (total,),
        (Address(start, tuple((axis, step) for axis, (step, _) in enumerate(steps))),),
        tuple(faults),
    )
