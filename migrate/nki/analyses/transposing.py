"""Transposes that are made again, and those that DMA makes of elements wider than two bytes.

The hardware's DMA transpose takes two-byte elements (nki/api/nki/isa/__init__.py,
dma_transpose); wider ones leave its fast path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.nki.analyses import Base
from migrate.nki.instructions import INSTRUCTIONS
from migrate.nki.values import Problem, View
from migrate.numerics.dtypes import DType

if TYPE_CHECKING:
    from migrate.nki.frames import Instruction
    from migrate.nki.specialize import Specialization
    from migrate.nki.values import Site

MANY = 8
"""Transposes of what was transposed before, at one place, before they are told."""

MANY_BYTES = 256 * 1024
"""What DMA transposes of wide elements before it is told: four tiles of 128 by 128 float32."""

WHOLE_BYTES = 2
"""The width of the elements that the fast path takes."""

MOST = 4096
"""Regions that are remembered at one place."""

_Region = tuple[int, int, tuple[int, ...], tuple[int, ...]]


@dataclass(slots=True)
class _Place:
    site: Site
    tensor: str
    again: int = 0
    count: int = 0
    bytes: int = 0
    width: int = 0
    seen: dict[_Region, int] | None = None
    """How often its tensor had been written when a region was transposed."""


class Transposing(Base):
    """Codes `transposed-again` and `dma-transposes`, at the transpose."""

    codes = frozenset({"transposed-again", "dma-transposes"})

    def __init__(self, target: str, guessed: frozenset[str] = frozenset()) -> None:
        super().__init__(target, guessed)
        self._places: dict[int, _Place] = {}
        self._sources: dict[int, _Region] = {}
        """What every tile was loaded from, where one transfer filled it."""
        self._writes: dict[int, int] = {}

    def execute(self, instruction: Instruction) -> None:
        source = _transposed(instruction)
        if source is not None:
            self._transpose(instruction, source)
        spec = INSTRUCTIONS.get(instruction.opcode)
        for name, view in instruction.operands:
            if not isinstance(view, View):
                continue
            parameter = spec.parameter(name) if spec is not None else None
            if parameter is None or parameter.role != "in":
                ordinal = view.buffer.ordinal
                self._writes[ordinal] = self._writes.get(ordinal, 0) + 1
                self._sources.pop(ordinal, None)
        if instruction.opcode == "dma_copy":
            self._load(instruction.view("dst"), instruction.view("src"))

    def _load(self, dst: View | None, src: View | None) -> None:
        if dst is None or src is None or not (dst.strided and src.strided):
            return
        if dst.elements == dst.buffer.elements and src.buffer.role == "parameter":
            self._sources[dst.buffer.ordinal] = _region(src)

    def _transpose(self, instruction: Instruction, source: View) -> None:
        place = self._places.get(instruction.site.key)
        if place is None:
            place = self._places[instruction.site.key] = _Place(
                instruction.site, source.buffer.name, seen={}
            )
        place.count += 1
        place.bytes += source.elements * source.dtype.bytes
        if instruction.opcode == "dma_transpose":
            place.width = source.dtype.bytes
        if not source.strided or place.seen is None:
            return
        region, ordinal = _region(source), source.buffer.ordinal
        origin = self._sources.get(ordinal)
        if origin is not None:
            # The same part of a parameter in another tile.
            region = (origin[0], origin[1], origin[2] + region[2], (*origin[3], region[1]))
            ordinal = origin[0]
        version = self._writes.get(ordinal, 0)
        place.again += place.seen.get(region) == version
        if len(place.seen) < MOST:
            place.seen[region] = version

    def problems(self, found: Specialization) -> Iterator[Problem]:
        for place in self._places.values():
            if place.again >= MANY and place.again * 2 >= place.count:
                yield Problem(
                    "transposed-again",
                    f"{place.again:,} of the {place.count:,} transposes of {place.tensor} here are"
                    " of what was transposed before",
                    place.site.span,
                    numbers=(("again", place.again), ("transposes", place.count)),
                )
            sure = DType.FLOAT32.value not in self.guessed
            if sure and place.width > WHOLE_BYTES and place.bytes >= MANY_BYTES:
                yield Problem(
                    "dma-transposes",
                    f"DMA transposes {place.bytes:,} bytes of {place.tensor} in elements of"
                    f" {place.width} bytes, where its fast path takes {WHOLE_BYTES}",
                    place.site.span,
                    numbers=(("bytes", place.bytes), ("width", place.width)),
                )


def _transposed(instruction: Instruction) -> View | None:
    """What an instruction transposes."""
    match instruction.opcode:
        case "nc_transpose":
            return instruction.view("data")
        case "dma_transpose":
            return instruction.view("src")
        case "nc_matmul" if instruction.attribute("is_transpose") is True:
            # The moving operand is the identity (nki.isa.nc_transpose).
            return instruction.view("stationary")
    return None


def _region(view: View) -> _Region:
    return (view.buffer.ordinal, view.offset, view.sizes, view.strides)
