"""What DMA moves: the length of its pieces, and what it fetches again.

A transfer is cut into descriptors, each a piece that lies in one row on both sides.  Rows of an
on-chip tile are apart in memory, so that a piece never goes over more than one partition
(nki/guides/architecture/trainium_inferentia2_arch.rst).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.nki.analyses import Base
from migrate.nki.values import Problem, View

if TYPE_CHECKING:
    from migrate.nki.frames import Instruction
    from migrate.nki.specialize import Specialization
    from migrate.nki.values import Buffer, Site

SMALL_BYTES = 512
"""Pieces below this are bound by the cost of a descriptor (nki-dma-bandwidth-guide.rst asks for
2 KiB and shows less than 256 bytes as badly bound)."""

MANY_DESCRIPTORS = 1024
"""What one place must make in all before small pieces are told: 128 partitions, 8 times."""

AGAIN_BYTES = 256 * 1024
"""What must be fetched again before it is told: two full rows of 1 KiB on every partition."""

_Region = tuple[int, int, tuple[int, ...], tuple[int, ...]]


@dataclass(slots=True)
class _Traffic:
    """What one place moves in all."""

    site: Site
    tensor: str
    row_bytes: int
    transfers: int = 0
    descriptors: int = 0
    bytes: int = 0
    piece: int = 0
    """Bytes of the smallest piece."""
    again: int = 0
    """Bytes of transfers that fetch what the transfer before fetched."""
    open: bool = False
    """Whether the length of a piece is a matter of sizes that were guessed."""
    last: _Region | None = None
    version: int = -1
    regions: set[_Region] = field(default_factory=set)


class Transfers(Base):
    """Codes `small-descriptors` and `loaded-again`, at the transfer."""

    codes = frozenset({"small-descriptors", "loaded-again"})

    def __init__(self, target: str, guessed: frozenset[str] = frozenset()) -> None:
        super().__init__(target, guessed)
        self._places: dict[int, _Traffic] = {}
        self._writes: dict[int, int] = {}
        """How often each HBM tensor was written."""

    def execute(self, instruction: Instruction) -> None:
        if instruction.opcode != "dma_copy":
            return
        dst, src = instruction.view("dst"), instruction.view("src")
        if dst is None or src is None:
            return
        far = src if not src.buffer.memory.on_chip else dst
        place = self._places.get(instruction.site.key)
        if place is None:
            place = self._places[instruction.site.key] = _Traffic(
                instruction.site, far.buffer.name, _row(far.buffer)
            )
        size = dst.elements * far.dtype.bytes
        runs = _piece(dst), _piece(src)
        # Where it is not known what follows what, the transfer counts as one that is fine.
        piece = min(runs) * far.dtype.bytes if 0 not in runs else max(size, 1)
        place.open = place.open or self._open(far, dst, src)
        place.transfers += 1
        place.bytes += size
        place.descriptors += -(-size // max(piece, 1))
        place.piece = min(place.piece or piece, piece)
        if not dst.buffer.memory.on_chip:
            self._writes[dst.buffer.ordinal] = self._writes.get(dst.buffer.ordinal, 0) + 1
        if far is src and dst.buffer.memory.on_chip:
            self._fetched(place, src, size)

    def _open(self, far: View, *views: View) -> bool:
        return far.buffer.name in self.guessed or any(
            self.open(*(view.shape[axis] for axis in _run(view)[1])) for view in views
        )

    def _fetched(self, place: _Traffic, src: View, size: int) -> None:
        if not src.strided:
            place.last = None
            return
        region = (src.buffer.ordinal, src.offset, src.sizes, src.strides)
        version = self._writes.get(src.buffer.ordinal, 0)
        if region == place.last and version == place.version:
            place.again += size
        place.last, place.version = region, version

    def problems(self, found: Specialization) -> Iterator[Problem]:
        for place in self._places.values():
            if (
                not place.open
                and place.descriptors >= MANY_DESCRIPTORS
                and place.piece < min(SMALL_BYTES, place.row_bytes)
                and place.bytes < SMALL_BYTES * place.descriptors
            ):
                yield Problem(
                    "small-descriptors",
                    f"{place.bytes:,} bytes of {place.tensor} are moved in"
                    f" {place.descriptors:,} pieces of {place.bytes // place.descriptors} bytes"
                    f" on average, although its rows have {place.row_bytes:,}",
                    place.site.span,
                    numbers=(("bytes", place.bytes), ("descriptors", place.descriptors)),
                )
            if place.again >= AGAIN_BYTES:
                yield Problem(
                    "loaded-again",
                    f"{place.again:,} of the {place.bytes:,} bytes that are loaded of"
                    f" {place.tensor} here are those of the iteration before",
                    place.site.span,
                    numbers=(("bytes", place.again), ("all", place.bytes)),
                )


def _row(buffer: Buffer) -> int:
    """Bytes of a tensor's innermost row."""
    return int(buffer.shape[-1].value) * buffer.dtype.bytes if buffer.shape else 0


def _piece(view: View) -> int:
    """Elements of a view that follow each other in memory, in one partition; 0 if unknown.

    Numbers in memory say where rows begin; what is in a row follows as it does elsewhere.
    """
    if any(address.digits for address in view.index):
        return 0
    return _run(view)[0]


def _run(view: View) -> tuple[int, list[int]]:
    """The elements of a view that follow each other, and the axes that say so."""
    moved = {axis for part in view.indirect for axis in part.axes if axis is not None}
    axes = list(enumerate(zip(view.sizes, view.strides, strict=True)))
    if view.buffer.memory.on_chip:
        axes = axes[1:]
    run = 1
    over: list[int] = []
    for axis, (size, stride) in reversed(axes):
        if size != 1 and (axis in moved or stride != run):
            break
        over.append(axis)
        run *= size
    return run, over
