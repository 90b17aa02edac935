"""The accumulation registers of an engine as a tensor that instructions have beside their operands.

They are followed only where a run asks for it (`Run.accumulators`): a kernel that never goes on
with what another instruction left there needs none of it, and a loop that only ever starts anew
in them carries nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrate.nki import views
from migrate.nki.checks import PARTITIONS
from migrate.nki.frames import Operand, Run
from migrate.nki.opcodes.spec import Spec
from migrate.nki.parts import Part, part_of
from migrate.nki.symbols import Number, binary
from migrate.nki.values import Address, Buffer, Member, Memory, Site, View
from migrate.numerics.dtypes import DType
from migrate.source import Span

_SITES = {"vector": -1, "scalar": -2}


def registers(
    run: Run,
    spec: Spec,
    operands: Sequence[tuple[str, Operand]],
    attributes: Sequence[tuple[str, object]],
    span: Span,
) -> View | None:
    """The registers that an instruction uses, one for each partition of what it reads.

    `None` where it uses none.
    """
    if spec.accumulator is None or run.accumulators is None:
        return None
    command = dict(attributes).get("reduce_cmd")
    tiles = {name: view for name, view in operands if isinstance(view, View)}
    idle = isinstance(command, Member) and command.name == "idle"
    if idle and (spec.accumulator != "scalar" or "reduce_res" not in tiles):
        return None
    data = next((tiles[name] for name in _DATA if name in tiles), None)
    if data is None or not data.shape or data.indirect:
        return None
    # Each program of a grid has a core of its own.
    place = ".".join((spec.accumulator, *(str(value.iteration) for value in run.programs)))
    buffer = run.accumulators.get(place)
    if buffer is None:
        buffer = run.accumulators[place] = _made(run, spec.accumulator, span)
    view = part_of(views.whole(buffer), (Part(0, 0, 1, data.shape[0]),))
    return _from(view, data)


_DATA = ("data", "src", "on_true_tile", "on_true")
"""Operands that an engine reads; a lane is a partition of one of them."""


def _made(run: Run, engine: str, span: Span) -> Buffer:
    site = Site(_SITES[engine], span, "", None)
    shape = (Number(PARTITIONS), Number(1))
    kept, run.loops = run.loops, run.programs
    try:
        name = f"{engine} accumulators"
        return run.buffer(name, Memory.REGISTER, shape, DType.FLOAT32, site)
    finally:
        run.loops = kept


def _from(view: View, data: View) -> View:
    """The registers from the partition on that the data starts at."""
    if len(data.base) < 2 or not data.buffer.memory.on_chip:
        return view
    start = data.index[views.partition_dimension(data)].start
    if start.value == 0 and not start.symbolic:
        return view
    first, *rest = view.index
    moved = Address(binary("+", first.start, start), first.terms, first.digits)
    offset = view.offset + int(start.value) * (view.strides[0] if view.strides else 0)
    return View(
        view.buffer, offset, view.strides, view.shape, view.dtype, view.base, (moved, *rest)
    )
