"""Sizes to read an NKI kernel at that nothing is compared with.

Every axis of every tensor is as long as every other: a whole tile at first, then beyond the
largest tile that the kernel was seen to use.  That suffices for kernels whose tensors agree in
their axes; where the kernel asserts otherwise, or needs a number, there is no telling.
"""

from __future__ import annotations

from migrate.align.binding import bind
from migrate.budget import Meter
from migrate.case.types import Case, Tensor
from migrate.ir.index import Index
from migrate.nki.errors import Unsupported
from migrate.nki.frames import Instruction
from migrate.nki.parse import Kernel, Module
from migrate.nki.specialize import specialize
from migrate.nki.values import View
from migrate.pipeline.infer_signature import Parameter, parameters
from migrate.pipeline.infer_sizes import MAX_ELEMENTS, tiles_of
from migrate.pipeline.sides import nki_arguments
from migrate.source import SourceError

LENGTHS = (128, 512)
"""What an axis is given first: the partitions of a tile, the columns that a matmul moves."""

MAX_RANK = 4


def alone(module: Module, kernel: Kernel, meter: Meter) -> Case | None:
    """A case with a shape for every tensor that the kernel takes, all of them inputs.

    `None` where none was found.  Raises `Exhausted`.
    """
    found = parameters(module, kernel)
    if any(p.kind == "scalar" and not p.optional for p in found):
        return None
    tensors = [p for p in found if p.kind != "scalar"]
    for least in (2, 1):
        for length in LENGTHS:
            case = _case(tensors, least, length)
            taken, lengths = _looked(module, kernel, case, meter)
            if not taken:
                continue
            for beyond in lengths:
                larger = _case(tensors, least, beyond)
                if _small(larger) and _looked(module, kernel, larger, meter)[0]:
                    return larger
            return case
    return None


def _case(tensors: list[Parameter], least: int, length: int) -> Case:
    """Tensors with axes of one length; those that do not show their rank have `least` axes."""
    sizes: dict[str, tuple[int, ...]] = {}
    made: list[Tensor] = []
    for parameter in tensors:
        rank = parameter.rank or max(parameter.least, least)
        names = tuple(f"{parameter.name}_{axis}" for axis in range(min(rank, MAX_RANK)))
        sizes.update(dict.fromkeys(names, (length,)))
        made.append(
            Tensor(name=parameter.name, shape=names, dtype="float32", role="in", nki=parameter.name)
        )
    return Case(sizes=sizes, tensors=tuple(made))


def _small(case: Case) -> bool:
    binding = bind(case, case.runs()[0])
    return all(tensor.size <= 4 * MAX_ELEMENTS for tensor in binding.tensors)


def _looked(
    module: Module, kernel: Kernel, case: Case, meter: Meter
) -> tuple[bool, tuple[int, ...]]:
    """Whether the kernel takes the shapes, and lengths beyond its tiles, the longest first."""
    seen: dict[Index, None] = {}

    def look(instruction: Instruction) -> None:
        for turn in instruction.loops:
            if turn.trips is not None:
                seen.setdefault(turn.trips.index())
        for _, operand in instruction.operands:
            if isinstance(operand, View):
                for extent in operand.shape:
                    seen.setdefault(extent.index())

    try:
        found = specialize(
            module,
            kernel.name,
            nki_arguments(case, bind(case, case.runs()[0])),
            meter=meter,
            on_instruction=look,
            target=case.nki.target,
        )
    except (SourceError, Unsupported):
        return False, ()
    tiles = {tile for cuts in tiles_of(seen).values() for tile in cuts if tile > 1}
    lengths = sorted({tile + tile // 8 + 1 for tile in tiles} | tiles, reverse=True)
    return found.complete and not found.problems, tuple(lengths)
