"""What the instructions of a kernel say about it: one analysis a file.

An analysis sees allocations and instructions as they come, in the order in which the kernel
issues them, and tells `Problem`s once the kernel has ended.  It keeps what it needs and no more:
a kernel has up to 300,000 instructions.  `registry.ANALYSES` is the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Protocol

from migrate.nki.symbols import Number, sizes_of

if TYPE_CHECKING:
    from migrate.nki.frames import Instruction
    from migrate.nki.specialize import Specialization
    from migrate.nki.values import Buffer, Problem


class Analysis(Protocol):
    """One pass over the stream of instructions of one kernel, for one target.

    `codes` are those of the problems it may tell; `rules.codes` says whose they are.
    """

    codes: ClassVar[frozenset[str]]

    def __init__(self, target: str, guessed: frozenset[str] = frozenset()) -> None: ...

    def allocated(self, buffer: Buffer) -> None:
        """A tensor was made."""
        ...

    def execute(self, instruction: Instruction) -> None:
        """An instruction was issued; `opcode` may be "opaque"."""
        ...

    def problems(self, found: Specialization) -> Iterator[Problem]:
        """What is wrong, after the last instruction.

        Where the specialisation is not `complete`, nothing may be concluded from what is
        missing.
        """
        ...


class Analyses:
    """All analyses of the registry at once, for `specialize`'s callbacks."""

    def __init__(self, target: str, guessed: frozenset[str] = frozenset()) -> None:
        """`guessed` are sizes, and tensors, of which nothing tells how large they are."""
        from migrate.nki.analyses.registry import ANALYSES

        self._each: tuple[Analysis, ...] = tuple(make(target, guessed) for make in ANALYSES)

    def allocated(self, buffer: Buffer) -> None:
        for analysis in self._each:
            analysis.allocated(buffer)

    def execute(self, instruction: Instruction) -> None:
        for analysis in self._each:
            analysis.execute(instruction)

    def problems(self, found: Specialization) -> Iterator[Problem]:
        for analysis in self._each:
            yield from analysis.problems(found)


class Base:
    """An analysis that looks at nothing; those of the registry override what they need."""

    codes: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, target: str, guessed: frozenset[str] = frozenset()) -> None:
        self.target = target
        self.guessed = guessed

    def open(self, *extents: Number) -> bool:
        """Whether an extent is a matter of what was guessed: it says nothing of the kernel."""
        return bool(self.guessed) and any(self.guessed & sizes_of(extent) for extent in extents)

    def allocated(self, buffer: Buffer) -> None:
        pass

    def execute(self, instruction: Instruction) -> None:
        pass

    def problems(self, found: Specialization) -> Iterator[Problem]:
        yield from ()
