"""Masks of NKI 0.1: conditions that make the operands of an instruction smaller.

A condition on one axis is taken off every operand along that axis; what is on several
axes at once, or repeats along one, stays with the instruction (NKI 0.1, NKI API masking:
the instruction works on the elements where the mask holds).  Which axis of which operand
a condition is about depends on the instruction (`mask_axes`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from migrate.nki import addresses
from migrate.nki.addresses import MINUS_ONE, ONE, ZERO, plus, times
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.index_arithmetic import truth
from migrate.nki.indexing import outside
from migrate.nki.indices import Condition, Masked
from migrate.nki.mask_axes import Operands, along, placed, references
from migrate.nki.symbols import Number, Origin, binary, constant, extremum
from migrate.nki.values import Address, Indirect, Mask, Member, Problem, View, describe

MASKED = frozenset(
    {
        "activate2", "activation", "affine_select", "dma_copy", "dropout", "exponential", "iota",
        "memset", "range_select", "reciprocal", "scalar_tensor_tensor", "select_reduce",
        "tensor_copy", "tensor_copy_predicated", "tensor_scalar", "tensor_tensor",
    }
)  # fmt: skip
"""Instructions that do the same at every element, so that any mask leaves out what it says."""


@dataclass(frozen=True, slots=True)
class Interval:
    """`count` positions of an axis from `start` on."""

    start: Number
    count: Number


def is_masked(mask: object, operands: Operands) -> bool:
    """Whether a mask, given or on an operand, may leave something out."""
    if mask is not None and mask is not True:
        return True
    return any(isinstance(value, Masked) for value in operands.values())


def narrow(
    opcode: str,
    operands: Operands,
    mask: object,
    origin: Origin,
    spend: Callable[[int], None] | None = None,
) -> tuple[dict[str, object], Mask | None] | None:
    """The operands of a masked instruction, and what is left of its mask.

    `None` where the mask, or one that an operand is indexed with, leaves nothing to do.
    `operands` are all arguments by name.  Raises `Unsupported` where it is open what a mask
    is about.  `spend` is told the steps of looking at an index point by point.
    """
    values = dict(operands)
    given: list[tuple[object, tuple[str, ...]]] = [(mask, references(opcode))]
    for name, value in operands.items():
        if isinstance(value, Masked):
            values[name] = value.view
            given.extend((part, (name,)) for part in value.masks)
    left: tuple[Address, ...] = ()
    over = ""
    for part, named in given:
        settled = _settled(part, origin)
        if settled is False:
            return None
        if settled is True:
            continue
        assert isinstance(part, Condition)
        if left:
            # What is left of the first one would be over axes that the second one cuts.
            raise Unsupported(f"several masks on {opcode}", origin)
        taken = _taken(opcode, part, values, named, origin)
        if taken is None:
            return None
        over, left = taken
    if left:
        smaller = values[over]
        assert isinstance(smaller, View)
        left = _open(left, smaller)
        if any(addresses.bounds(part, smaller.sizes)[1] < 0 for part in left):
            return None
        if left:
            _check_masked(opcode, values, smaller, origin)
    for name, value in values.items():
        if isinstance(value, View) and value.faults:
            conditions = _about(left, values.get(over), value)
            values[name] = _checked(value, conditions, spend)
    return values, Mask(left) if left else None


def _taken(
    opcode: str,
    mask: Condition,
    values: dict[str, object],
    named: tuple[str, ...],
    origin: Origin,
) -> tuple[str, tuple[Address, ...]] | None:
    """Narrow the operands by the conditions on one axis.

    The operand that the mask is about and the other conditions; `None` where nothing is left.
    """
    reference, parts = placed(opcode, mask, values, named, origin)
    view = values[reference]
    assert isinstance(view, View)
    intervals, rest = _intervals(parts, view.shape)
    if rest and opcode not in MASKED:
        raise Unsupported(f"a mask on several axes of {opcode}", origin)
    for axis, interval in intervals.items():
        if int(interval.count.value) <= 0:
            return None
        for name, place in along(opcode, values, reference, axis, origin):
            values[name] = _narrowed(values[name], place, interval)
    _repattern(opcode, values, intervals, len(view.shape), origin)
    return reference, _shifted(rest, intervals, len(view.shape)) if rest else ()


def _about(conditions: tuple[Address, ...], base: object, view: View) -> tuple[Address, ...]:
    """The conditions, where they are about the elements of a view one by one."""
    return conditions if isinstance(base, View) and base.sizes == view.sizes else ()


def _settled(mask: object, origin: Origin) -> bool | None:
    if isinstance(mask, View):
        raise Unsupported("a mask that is a tensor", origin)
    if not isinstance(mask, Condition | bool | Number | None):
        raise KernelFault("type", f"{describe(mask)} as a mask", origin)
    return truth(mask, origin)


def _intervals(
    parts: Sequence[Address], extents: Sequence[Number]
) -> tuple[dict[int, Interval], tuple[Address, ...]]:
    """Conditions on one axis as intervals of it, and the other conditions."""
    ends: dict[int, tuple[Number, Number]] = {}
    rest: list[Address] = []
    for part in parts:
        if part.digits or len(part.terms) != 1:
            rest.append(part)
            continue
        ((axis, step),) = part.terms
        start, stop = ends.get(axis) or (ZERO, extents[axis])
        if int(step.value) == 0:
            rest.append(part)
        elif int(step.value) > 0:
            first = _ceiling(times(part.start, MINUS_ONE), step)
            ends[axis] = (extremum("max", (start, first)), stop)
        else:
            down = times(step, MINUS_ONE)
            last = plus(_floor(part.start, down), ONE)
            ends[axis] = (start, extremum("min", (stop, last)))
    intervals = {axis: Interval(start, _count(start, stop)) for axis, (start, stop) in ends.items()}
    return intervals, tuple(rest)


def _count(start: Number, stop: Number) -> Number:
    if not start.symbolic and start.value == 0:
        return stop
    return binary("-", stop, start)


def _floor(number: Number, by: Number) -> Number:
    return number if by.value == 1 and not by.symbolic else binary("//", number, by)


def _ceiling(number: Number, by: Number) -> Number:
    if by.value == 1 and not by.symbolic:
        return number
    return binary("//", plus(number, binary("-", by, ONE)), by)


def _shifted(
    parts: Sequence[Address], intervals: Mapping[int, Interval], rank: int
) -> tuple[Address, ...]:
    """The conditions over what is left of each axis."""
    axes = {axis: Address(ZERO, ((axis, ONE),)) for axis in range(rank)}
    for axis, interval in intervals.items():
        axes[axis] = Address(interval.start, ((axis, ONE),))
    return tuple(addresses.substituted(part, axes) for part in parts)


def _open(parts: Sequence[Address], view: View) -> tuple[Address, ...]:
    """The conditions that are not settled for every iteration of the loops around."""
    return tuple(
        part
        for part in parts
        if addresses.bounds(part, view.sizes)[0] < 0
        or any(number.symbolic for number in addresses.numbers_of(part))
    )


def _narrowed(value: object, axis: int, interval: Interval) -> object:
    """The view with one axis cut to an interval."""
    if not isinstance(value, View):
        return value
    start = interval.start
    shape = (*value.shape[:axis], interval.count, *value.shape[axis + 1 :])
    indirect = value.indirect
    if indirect:
        indirect = tuple(_repositioned(part, axis, interval) for part in indirect)
    if not start.symbolic and start.value == 0:
        return _resized(value, shape, value.offset, value.index, indirect)
    parts = {a: Address(ZERO, ((a, ONE),)) for a in range(len(shape))}
    parts[axis] = Address(start, ((axis, ONE),))
    offset = value.offset + int(start.value) * value.strides[axis]
    index = tuple(addresses.substituted(address, parts) for address in value.index)
    return _resized(value, shape, offset, index, indirect)


def _repositioned(part: Indirect, axis: int, interval: Interval) -> Indirect:
    """The positions read from memory that are left of an axis cut to an interval."""
    if axis not in part.axes:
        return part
    offsets = _narrowed(part.offsets, part.axes.index(axis), interval)
    assert isinstance(offsets, View)
    return replace(part, offsets=offsets)


def _resized(
    view: View,
    shape: tuple[Number, ...],
    offset: int,
    index: tuple[Address, ...],
    indirect: tuple[Indirect, ...],
) -> View:
    # Written out: `replace` takes four times as long.
    return View(
        view.buffer,
        offset,
        view.strides,
        shape,
        view.dtype,
        view.base,
        index,
        view.faults,
        indirect,
    )


def _checked(
    view: View, conditions: Sequence[Address], spend: Callable[[int], None] | None
) -> View:
    """The view with what is out of bounds found anew, where the mask holds."""
    faults = [fault for fault in view.faults if fault.code != "out-of-bounds"]
    if len(faults) == len(view.faults):
        return view
    span = next(fault.span for fault in view.faults if fault.code == "out-of-bounds")
    found: list[Problem] = []
    for dimension, (address, extent) in enumerate(zip(view.index, view.base, strict=True)):
        outside(found, address, view.sizes, extent, dimension, span, view, conditions, spend)
    return replace(view, faults=(*faults, *found))


def _check_masked(opcode: str, values: Operands, view: View, origin: Origin) -> None:
    """Whether a mask on several axes says for every operand which elements it leaves out."""
    reduced = values.get("reduce_res") is not None
    command = values.get("reduce_cmd")
    if isinstance(command, Member) and command.name != "idle" and reduced:
        raise Unsupported(f"a mask on several axes of {opcode} that reduces", origin)
    for name, value in values.items():
        if not isinstance(value, View) or value.sizes == view.sizes:
            continue
        column = value.shape and value.shape[0].value in (1, view.shape[0].value)
        if not (column and value.free_elements == 1):
            raise Unsupported(
                f"a mask on several axes of {opcode} with {name} of another shape", origin
            )


def _repattern(
    opcode: str,
    values: dict[str, object],
    intervals: Mapping[int, Interval],
    rank: int,
    origin: Origin,
) -> None:
    """The index pattern of an instruction over the part that is left."""
    pattern = values.get("pattern")
    if pattern is None or not intervals:
        return
    if not isinstance(pattern, tuple | list) or len(pattern) != rank - 1:
        raise Unsupported(f"a mask on {opcode} with a pattern of another rank", origin)
    pairs = [tuple(pair) if isinstance(pair, tuple | list) else () for pair in pattern]
    offset = values.get("offset")
    for axis, interval in intervals.items():
        if axis == 0:
            step = values.get("channel_multiplier")
        else:
            if len(pairs[axis - 1]) != 2:
                raise Unsupported(f"{opcode} with a pattern that is not pairs", origin)
            step = pairs[axis - 1][0]
            pairs[axis - 1] = (step, interval.count)
        if interval.start.symbolic or interval.start.value:
            step = constant(step) if isinstance(step, int) else step
            offset = constant(offset) if isinstance(offset, int) else offset
            if not isinstance(step, Number) or not isinstance(offset, Number):
                raise Unsupported(f"{opcode} without a constant pattern", origin)
            offset = plus(offset, times(step, interval.start))
    values["pattern"], values["offset"] = tuple(pairs), offset
