"""Grid and block of a kernel that no host code launches, from the kernel itself.

`c*blockIdx.x + threadIdx.x` in an index means blocks of `c` threads, and a guard on it says how
many there must be.  Where the kernel asks for its block's extent any will do, and one of the
usual is taken.  A block number that nothing bounds makes a size of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from migrate.ir.index import Index, TooComplex
from migrate.ir.nodes import Kernel, Position, Space, walk
from migrate.pipeline.infer_facts import Access, accesses, cleared
from migrate.source import SourceError

Triple = tuple[Index, Index, Index]

USUAL_BLOCKS = {1: (256,), 2: (16, 16), 3: (8, 8, 4)}
"""Extents in order of the dimensions that are open, by how many are."""

STRIDE_BLOCKS = 4
"""Blocks of a kernel whose threads stride over the grid: any number does."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Grid and block as expressions, and sentences on where they are from."""

    grid: Triple
    block: Triple
    told: tuple[str, ...]


def geometry(
    kernel: Kernel, grid: Triple | None, block: Triple | None, bounds: Sequence[int]
) -> Geometry:
    """Complete a launch; `kernel` was lifted for any grid and block.

    `bounds` are the kernel's `__launch_bounds__`.  Raises `SourceError` where the number of
    threads cannot be told.
    """
    looked = _Looked(kernel)
    told: list[str] = []
    if block is None:
        block = _block(kernel, looked, bounds, told)
    if grid is None:
        grid = _grid(looked, block, told)
    return Geometry(grid, block, tuple(told))


class _Looked:
    """The expressions of a kernel without the ranges of the launch's own axes."""

    def __init__(self, kernel: Kernel) -> None:
        own: set[Index] = set()
        for axis in "xyz":
            for place, extent in (("blockIdx", "gridDim"), ("threadIdx", "blockDim")):
                number = Index.axis(f"{place}.{axis}")
                own.update((number, Index.size(f"{extent}.{axis}") - 1 - number))
        # A shuffle counts the threads of a block along every axis there might be.
        self.accesses = [a for a in accesses(kernel) if not a.buffer.startswith("exchange")]
        global_buffers = {b.name for b in kernel.buffers if b.space is Space.HBM}
        self.guards: dict[Index, None] = {}
        indices: dict[Index, None] = {}
        for access in self.accesses:
            facts = [fact for fact in access.facts if fact not in own]
            if access.index is not None:
                indices.setdefault(access.index)
            indices.update(dict.fromkeys(facts))
            if access.buffer in global_buffers:
                self.guards.update(dict.fromkeys(cleared(facts)))
        for op in walk(kernel.body):
            if isinstance(op, Position):
                indices.setdefault(op.index)
        self.indices = tuple(indices)
        self.names = {symbol.name for index in self.indices for symbol in index.symbols()}

    def scales(self, axis: str) -> set[int]:
        """The constants `c` of `c*blockIdx + threadIdx` along an axis."""
        return self._beside(f"threadIdx.{axis}", lambda name: name.startswith("blockIdx."))

    def steps(self, axis: str) -> set[int]:
        """The constants `c` of `c*loop + threadIdx` along an axis, in whole warps."""
        found = self._beside(f"threadIdx.{axis}", lambda name: "Idx." not in name)
        return {step for step in found if step % 32 == 0}

    def _beside(self, thread: str, wanted: Callable[[str], bool]) -> set[int]:
        found: set[int] = set()
        for index in (*self.indices, *self.guards):
            linear = _linear(index)
            unit = linear.get(thread)
            if unit is None:
                continue
            for name, coefficient in linear.items():
                if wanted(name) and coefficient % unit == 0 and coefficient // unit > 1:
                    found.add(coefficient // unit)
        return found


def _linear(index: Index) -> dict[str, int]:
    """The coefficients of the symbols that stand alone."""
    return {
        monomial[0].name: coefficient
        for monomial, coefficient in index.terms
        if len(monomial) == 1 and hasattr(monomial[0], "name")
    }


def _block(kernel: Kernel, looked: _Looked, bounds: Sequence[int], told: list[str]) -> Triple:
    extents: dict[str, int] = {}
    free: list[str] = []
    for axis in "xyz":
        if f"threadIdx.{axis}" not in looked.names:
            extents[axis] = 1
            continue
        certain = looked.scales(axis) or looked.steps(axis)
        if len(certain) == 1:
            extents[axis] = certain.pop()
        elif f"blockDim.{axis}" in looked.names:
            free.append(axis)
        elif bounds and axis == "x":
            extents[axis] = bounds[0]
        else:
            raise SourceError(
                f"the launch of {kernel.name} is not known, and nothing in it says how many"
                f" threads a block has along {axis}; state grid and block in a case",
                file=kernel.span.file,
                where=kernel.span,
            )
    usual = USUAL_BLOCKS.get(len(free), ())
    for axis, extent in zip(free, usual, strict=False):
        extents[axis] = min(extent, *_shared_extents(kernel, looked.accesses, axis), 1024)
    x, y, z = (Index.of(extents[axis]) for axis in "xyz")
    shown = ", ".join(str(extents[axis]) for axis in "xyz"[: 3 if extents["z"] > 1 else 2])
    shown = shown.removesuffix(", 1")
    why = "which the kernel leaves open" if free else "from the indices of the kernel"
    told.append(f"block [{shown}], {why}: the file has no launch of {kernel.name}")
    return x, y, z


def _shared_extents(kernel: Kernel, found: Iterable[Access], axis: str) -> list[int]:
    """The lengths of on-chip arrays that are indexed by the thread's number alone."""
    lengths = {
        buffer.name: buffer.shape[-1].constant
        for buffer in kernel.buffers
        if buffer.space is Space.ONCHIP and buffer.shape
    }
    thread = Index.axis(f"threadIdx.{axis}")
    return [
        length
        for access in found
        if access.index == thread and (length := lengths.get(access.buffer)) is not None
    ]


def _grid(looked: _Looked, block: Triple, told: list[str]) -> Triple:
    widths = {f"blockDim.{axis}": extent for axis, extent in zip("xyz", block, strict=True)}
    made: list[Index] = []
    said: list[str] = []
    for axis in "xyz":
        number = f"blockIdx.{axis}"
        if number not in looked.names:
            made.append(Index.of(1))
            continue
        bounded = _bounded(looked, widths, axis)
        if bounded is not None:
            made.append(bounded)
            said.append(f"{axis}: {bounded}, from its guard")
        elif f"gridDim.{axis}" in looked.names:
            made.append(Index.of(STRIDE_BLOCKS))
            said.append(f"{axis}: {STRIDE_BLOCKS}, any will do for a loop over the grid")
        else:
            made.append(Index.size(f"grid_{axis}"))
            said.append(f"{axis}: a size of its own, grid_{axis}, since nothing bounds it")
    if said:
        told.append(f"grid ({'; '.join(said)})")
    x, y, z = made
    return x, y, z


def _bounded(looked: _Looked, widths: dict[str, Index], axis: str) -> Index | None:
    """How many blocks the guards leave something to do."""
    number, thread = f"blockIdx.{axis}", f"threadIdx.{axis}"
    for guard in looked.guards:
        try:
            fact = guard.substitute(widths)
        except TooComplex:
            continue
        linear = _linear(fact)
        per_block = -linear.get(number, 0)
        if per_block <= 0 or not fact.axes() <= {number, thread}:
            continue
        moving = -per_block * Index.axis(number) + linear.get(thread, 0) * Index.axis(thread)
        last = fact - moving
        if last.axes() or linear.get(thread, 0) > 0:
            continue
        return last // per_block + 1
    return None
