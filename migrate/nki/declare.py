"""The buffers and outputs of a kernel being lifted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from migrate.ir.index import Index, Range
from migrate.ir.nodes import (
    Axis,
    AxisKind,
    Buffer,
    Load,
    Op,
    Opaque,
    Output,
    Parallel,
    Role,
    Space,
    Store,
    Version,
)
from migrate.nki import addresses, views
from migrate.nki.fold import AllocationNode, Folder, SiteNode
from migrate.nki.instructions import INSTRUCTIONS
from migrate.nki.positions import element_index
from migrate.nki.program import Program
from migrate.nki.specialize import Specialization
from migrate.nki.symbols import Number, constant
from migrate.nki.values import Memory, View

_SPACES = {
    Memory.HBM: Space.HBM,
    Memory.SHARED_HBM: Space.HBM,
    Memory.SBUF: Space.ONCHIP,
    Memory.REGISTER: Space.PRIVATE,
    Memory.PSUM: Space.ACCUMULATOR,
}


def writes(node: SiteNode, operand: str) -> bool:
    """Whether a site may write an operand; one that is not understood may write all."""
    spec = INSTRUCTIONS.get(node.first.opcode)
    parameter = spec.parameter(operand) if spec is not None else None
    return parameter is None or parameter.role != "in"


def written_allocations(folder: Folder) -> frozenset[AllocationNode]:
    """Allocations that some site writes."""
    return frozenset(
        allocation
        for node in folder.root.sites()
        for name, allocation in node.allocations
        if writes(node, name)
    )


def declare(program: Program, folder: Folder, found: Specialization) -> None:
    """Every allocation as a buffer, in the order of their first appearance."""
    written = written_allocations(folder)
    returned = {folder.allocation(v.buffer) for v in found.returned if _is_whole(v, folder)}
    for allocation in folder.allocations.values():
        first = allocation.first
        role: Role = "scratch"
        if first.role == "parameter":
            role = "inout" if allocation in written else "in"
        elif allocation in returned:
            role = "out"
        name = program.names[allocation] = program.unique(first.name)
        shape, space = _shape(allocation, program.sizes), _SPACES[first.memory]
        copies = len(allocation.trips)
        program.declare(Buffer(name, shape, first.dtype, space, role, first.site.span, copies))


def _shape(allocation: AllocationNode, sizes: Mapping[str, int]) -> tuple[Index, ...]:
    """One axis for each loop around the allocation, then the tile at its largest."""
    shape = [Index.of(trips) for trips in allocation.trips]
    for largest, extent in zip(allocation.shape, allocation.first.shape, strict=True):
        index = extent.index()
        fits = not index.axes() and index.evaluate(sizes) == largest
        shape.append(index if fits else Index.of(largest))
    return tuple(shape)


def outputs(
    program: Program, folder: Folder, found: Specialization, ranges: Mapping[str, Range]
) -> tuple[list[Output], list[Op]]:
    """Returned tensors, then those changed in place; and ops that make the returned ones."""
    results: list[Output] = []
    ops: list[Op] = []
    for position, view in enumerate(found.returned):
        buffer = program.names[folder.allocation(view.buffer)]
        if _is_whole(view, folder):
            results.append(Output(program.version(buffer), position))
            continue
        instance = tuple(Index.of(v.iteration) for v in folder.folded(view.buffer.loops))
        made = _copied(program, buffer, instance, _settled(view), found, ranges, ops)
        results.append(Output(made, position))
    for _, view in found.parameters:
        buffer = program.names[folder.allocation(view.buffer)]
        if program.buffers[buffer].role == "inout":
            results.append(Output(program.version(buffer), None))
    return results, ops


def _is_whole(view: View, folder: Folder) -> bool:
    """Whether a returned view is all of a tensor that is allocated once, as it was."""
    shape = tuple(n.value for n in view.buffer.shape)
    base = tuple(n.value for n in view.base)
    alone = not folder.folded(view.buffer.loops)
    straight = view.strided and view.strides == views.whole(view.buffer).strides
    same = view.dtype is view.buffer.dtype
    return alone and straight and same and view.offset == 0 and shape == base == view.sizes


def _plain(number: Number) -> Number:
    """A number after the loops it depends on have ended."""
    return constant(number.value) if number.index().axes() else number


def _settled(view: View) -> View:
    """A view after its loops have ended: their positions are what they were in it."""

    return replace(
        view,
        shape=tuple(map(_plain, view.shape)),
        base=tuple(map(_plain, view.base)),
        index=tuple(
            addresses.rebuilt(address, map(_plain, addresses.numbers_of(address)))
            for address in view.index
        ),
    )


def _copied(
    program: Program,
    buffer: str,
    instance: tuple[Index, ...],
    view: View,
    found: Specialization,
    ranges: Mapping[str, Range],
    ops: list[Op],
) -> Version:
    """A returned part or reshape of a tensor, as a buffer of its own."""
    span = found.kernel.span
    name = program.unique(f"{buffer}_returned")
    shape = tuple(n.index() for n in view.shape)
    program.declare(Buffer(name, shape, view.dtype, Space.HBM, "out", span))
    result = program.fresh(name)
    if view.indirect or view.dtype is not view.buffer.dtype:
        reason = "a returned tensor in another dtype than it was written in"
        if view.indirect:
            reason = "a returned tensor whose position is read from memory"
        program.current[name] = result.number
        ops.append(Opaque((result,), (program.version(buffer),), name, reason, span))
        return result
    axes = tuple(Axis(f"d{k}", extent, AxisKind.FREE, span) for k, extent in enumerate(shape))
    place = tuple(Index.axis(axis.name) for axis in axes)
    bounds = dict(ranges)
    for axis, length in zip(axes, view.sizes, strict=True):
        bounds[axis.name] = (0, max(length - 1, 0))
    value = program.value(view.dtype)
    own = tuple(_plain(n).index() for n in view.buffer.shape)
    index = (*instance, *element_index(view, place, own, bounds))
    load = Load(value, program.version(buffer), index, span)
    store = Store(result, program.version(name), place, value, span)
    program.current[name] = result.number
    ops.append(Parallel(axes, (load, store), span))
    return result
