"""The buffers and outputs of a kernel being lifted."""

from __future__ import annotations

from collections.abc import Mapping

from migrate.ir.index import Index, Range
from migrate.ir.nodes import (
    Axis,
    AxisKind,
    Buffer,
    Load,
    Op,
    Output,
    Parallel,
    Role,
    Space,
    Store,
    Version,
)
from migrate.nki.fold import AllocationNode, Folder, SiteNode
from migrate.nki.instructions import INSTRUCTIONS
from migrate.nki.positions import element_index
from migrate.nki.program import Program
from migrate.nki.specialize import Specialization
from migrate.nki.values import Memory, View

_SPACES = {
    Memory.HBM: Space.HBM,
    Memory.SHARED_HBM: Space.HBM,
    Memory.SBUF: Space.ONCHIP,
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
    returned = {folder.allocation(view.buffer) for view in found.returned}
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
        whole = tuple(int(n.value) for n in view.buffer.shape)
        if view.offset == 0 and view.sizes == whole:
            results.append(Output(program.version(buffer), position))
        else:
            results.append(Output(_copied(program, buffer, view, found, ranges, ops), position))
    for _, view in found.parameters:
        buffer = program.names[folder.allocation(view.buffer)]
        if program.buffers[buffer].role == "inout":
            results.append(Output(program.version(buffer), None))
    return results, ops


def _copied(
    program: Program,
    buffer: str,
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
    axes = tuple(Axis(f"d{k}", extent, AxisKind.FREE, span) for k, extent in enumerate(shape))
    place = tuple(Index.axis(axis.name) for axis in axes)
    bounds = dict(ranges)
    for axis, length in zip(axes, view.sizes, strict=True):
        bounds[axis.name] = (0, max(length - 1, 0))
    value = program.value(view.dtype)
    result = program.fresh(name)
    load = Load(value, program.version(buffer), element_index(view, place, bounds), span)
    store = Store(result, program.version(name), place, value, span)
    program.current[name] = result.number
    ops.append(Parallel(axes, (load, store), span))
    return result
