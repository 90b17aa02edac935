"""How long each version of a buffer is needed, to know which stores may be in place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from migrate.ir.nodes import (
    AsyncCopy,
    Block,
    Contract,
    Fold,
    Guard,
    Kernel,
    Op,
    Opaque,
    Parallel,
    Reduce,
    Scatter,
    Store,
    Version,
    operands,
    results,
    walk,
)


@dataclass(slots=True)
class Lives:
    """Where versions are made and last used, to know which stores may be in place."""

    last: dict[Version, int] = field(default_factory=dict)
    home: dict[Version, int] = field(default_factory=dict)
    parent: dict[Version, Version] = field(default_factory=dict)
    number: dict[int, int] = field(default_factory=dict)
    fold_of: dict[int, int] = field(default_factory=dict)
    latest: dict[str, Version] = field(default_factory=dict)
    inside: dict[int, frozenset[Version]] = field(default_factory=dict)

    @staticmethod
    def of(kernel: Kernel) -> Lives:
        lives = Lives()
        for buffer in kernel.buffers:
            lives.home[Version(buffer.name, 0)] = -1
        lives._block(kernel.body, -1)
        end = len(lives.number)
        for output in kernel.outputs:
            lives.last[output.version] = end
        return lives

    def _block(self, block: Block, fold: int) -> None:
        for op in block:
            position = len(self.number)
            self.number[id(op)] = position
            self.fold_of[id(op)] = fold
            self._use(op, position)
            match op:
                case Parallel(body=body) | Reduce(body=body) | Contract(body=body):
                    self._block(body, fold)
                case Guard(body=body, otherwise=otherwise):
                    self._block(body, fold)
                    self._block(otherwise, fold)
                case Fold(body=body, state=state):
                    for carried in state:
                        if isinstance(carried.inner, Version):
                            self.home[carried.inner] = position
                    first = len(self.number)
                    self._block(body, position)
                    end = len(self.number)
                    # The next round reads again what this one read from outside the loop.
                    for version, used in self.last.items():
                        if used >= first and self.home.get(version, -1) < position:
                            self.last[version] = end
                    for carried in state:
                        if isinstance(carried.next, Version):
                            self.last[carried.next] = end
                case (
                    Store(result=result, into=into)
                    | Scatter(result=result, into=into)
                    | AsyncCopy(result=result, into=into)
                ):
                    self.parent[result] = into
            self.parent.update(_origins(op))
            for made in results(op):
                if isinstance(made, Version):
                    self.home.setdefault(made, fold)
                    if isinstance(op, Opaque):
                        before = self.latest.get(made.buffer, Version(made.buffer, 0))
                        self.parent[made] = before
                    self.latest[made.buffer] = made

    def _use(self, op: Op, position: int) -> None:
        for used in operands(op):
            if isinstance(used, Version):
                self.last[used] = position

    def made_in(self, op: Guard) -> frozenset[Version]:
        """The versions made in the branches of a guard, at any depth."""
        if id(op) not in self.inside:
            made = (made for inner in walk((*op.body, *op.otherwise)) for made in results(inner))
            self.inside[id(op)] = frozenset(v for v in made if isinstance(v, Version))
        return self.inside[id(op)]

    def in_place(self, op: Op, into: Version) -> bool:
        return (
            self.last.get(into) == self.number[id(op)]
            and self.home.get(into) == self.fold_of[id(op)]
        )


def _origins(op: Op) -> Iterator[tuple[Version, Version]]:
    """Which version each result of a region continues."""
    match op:
        case Fold(state=state):
            pairs = [(s.result, s.initial) for s in state]
        case Guard(merges=merges):
            pairs = [(m.result, m.then) for m in merges]
        case _:
            return
    for result, origin in pairs:
        if isinstance(result, Version) and isinstance(origin, Version):
            yield result, origin
