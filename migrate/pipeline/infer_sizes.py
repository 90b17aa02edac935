"""Sizes to compare at: below a tile, whole tiles, and more than one tile with a remainder.

The tiles are read from both kernels: constants that a size is divided by, or taken the minimum
with, in the trips, extents and tests of the specialised NKI kernel and in the grid and loops of
the CUDA kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from migrate.ir.index import Extremum, Index, Quotient, Symbol
from migrate.ir.nodes import Contract, Fold, Kernel, Parallel, Reduce, walk

MAX_ELEMENTS = 200_000
"""Of one tensor, at the sizes that are chosen here."""

MAX_WORK = 20_000_000
"""The product of all sizes, which is what a contraction costs."""

MAX_THREADS = 1024
"""Threads of a block (CUDA C++ Programming Guide, "Technical Specifications")."""

UNTILED = 48
"""Where no tile is known: well below what one NKI tile holds in any dimension."""

BEYOND = 131
"""A size that no NKI tile cuts is also tried beyond the 128 partitions that a tile has."""

FEW = 3
"""What sizes without tiles are reduced to before those with tiles are."""

Tiles = Mapping[str, frozenset[int]]
Sizes = dict[str, int]
Kind = Callable[[Sequence[int], int], int]


@dataclass(frozen=True, slots=True)
class Frame:
    """What sizes must fit: the shapes of all tensors, the block, and divisors of expressions.

    `stepped` are sizes that the NKI kernel goes through one by one: a few steps show all.
    """

    extents: tuple[tuple[Index, ...], ...]
    block: tuple[Index, ...] = ()
    multiples: tuple[tuple[Index, int], ...] = ()
    stepped: frozenset[str] = frozenset()

    def admits(self, sizes: Mapping[str, int]) -> bool:
        """Whether the sizes are possible, and small enough."""
        try:
            threads = prod(extent.evaluate(sizes) for extent in self.block)
            largest = max(
                (prod(e.evaluate(sizes) for e in shape) for shape in self.extents), default=0
            )
            least = min((e.evaluate(sizes) for shape in self.extents for e in shape), default=1)
            divided = all(e.evaluate(sizes) % number == 0 for e, number in self.multiples)
        except (KeyError, ZeroDivisionError):
            return False
        return (
            0 < threads <= MAX_THREADS
            and largest <= MAX_ELEMENTS
            and least > 0
            and divided
            and prod(sizes.values()) <= MAX_WORK
        )

    def minor(self) -> frozenset[str]:
        """Sizes that are only factors of an extent whose last factor has the tiles."""
        alone = {e for shape in self.extents for e in shape}
        found: set[str] = set()
        for extent in alone:
            for monomial, _ in extent.terms:
                names = [atom.name for atom in monomial if isinstance(atom, Symbol)]
                found.update(names[:-1])
        return frozenset(name for name in found if Index.size(name) not in alone)

    def divisor(self, name: str) -> int:
        """What a size is made a multiple of, so that the expressions it is in are."""
        here = Symbol(name)
        return max((n for e, n in self.multiples if here in e.symbols()), default=1)


def tiles_of(expressions: Iterable[Index]) -> dict[str, frozenset[int]]:
    """The constants that each size is cut by."""
    found: dict[str, set[int]] = {}

    def note(constant: int | None, within: Iterable[Index]) -> None:
        if constant is not None and constant > 1:
            for part in within:
                for symbol in part.symbols():
                    if symbol.kind == "size":
                        found.setdefault(symbol.name, set()).add(constant)

    pending = list(expressions)
    seen: set[Index] = set()
    while pending:
        expression = pending.pop()
        if expression in seen:
            continue
        seen.add(expression)
        for monomial, _ in expression.terms:
            for atom in monomial:
                match atom:
                    case Quotient(numerator, denominator):
                        note(denominator.constant, (numerator,))
                        pending += (numerator, denominator)
                    case Extremum("min", args):
                        for arg in args:
                            note(arg.constant, args)
                        pending += args
                    case Extremum(_, args):
                        pending += args
                    case Symbol():
                        pass
    return {name: frozenset(constants) for name, constants in found.items()}


def tiles_of_kernel(kernel: Kernel, grid: Iterable[Index]) -> dict[str, frozenset[int]]:
    """The tiles of a lifted kernel: of its grid and of the extents of its loops."""
    extents = [
        axis.extent
        for op in walk(kernel.body)
        if isinstance(op, Parallel | Fold | Reduce | Contract)
        for axis in op.axes
    ]
    return tiles_of((*grid, *extents))


def small(names: Sequence[str], frame: Frame) -> list[Sizes]:
    """Sizes to try hypotheses at, the cheapest first; all different where they can be."""
    minor = frame.minor()
    made = [
        {name: _up(5 + 2 * i, frame.divisor(name)) for i, name in enumerate(names)},
        {name: _up(128, frame.divisor(name)) for name in names},
        {name: _up(128 * (i + 1), frame.divisor(name)) for i, name in enumerate(names)},
        {name: _up(512, frame.divisor(name)) for name in names},
        {name: _up(512 if i else 128, frame.divisor(name)) for i, name in enumerate(names)},
    ]
    for sizes in made[1:]:
        sizes.update(
            {n: _up(2 + i % 2, frame.divisor(n)) for i, n in enumerate(names) if n in minor}
        )
    return [sizes for sizes in _distinct(made) if frame.admits(sizes)]


def positions(
    names: Sequence[str], tiles: Tiles, others: Tiles, frame: Frame, fixed: Mapping[str, int]
) -> list[Sizes]:
    """The positions of the sizes; `tiles` are those of the NKI kernel, `others` of the CUDA one.

    `fixed` sizes keep their value.  At least one position, as far as the frame admits any.
    """
    minor = frame.minor()
    made: list[Sizes] = []
    # Of three sizes or more, not all are large at once: their product is what it costs.
    many = sum(1 for name in names if tiles.get(name)) > 2
    for kinds in ALTERNATING if many else TOGETHER:
        sizes: Sizes = {}
        for i, name in enumerate(names):
            kind = kinds[i % 2]
            cuts = _cuts(tiles.get(name, frozenset()), others.get(name, frozenset()))
            wanted = kind(cuts, i) if cuts else _without(kind, i)
            if not tiles.get(name) and kind is _over:
                wanted = max(wanted, BEYOND + 2 * i)
            if name in minor or (name in frame.stepped and not tiles.get(name)):
                wanted = 2 + i % 2
            sizes[name] = fixed.get(name, _up(wanted, frame.divisor(name)))
        made.append(_shrunk(sizes, frame, fixed, tiles))
    fitting = [sizes for sizes in _distinct(made) if frame.admits(sizes)]
    return fitting or [_shrunk({**dict.fromkeys(names, 1), **fixed}, frame, fixed, tiles)]


def _cuts(tiles: frozenset[int], others: frozenset[int]) -> list[int]:
    """The tiles that count, ascending: the NKI kernel's; without any, the CUDA kernel's."""
    return sorted(tile for tile in (tiles or others) if tile <= MAX_ELEMENTS)


def _below(cuts: Sequence[int], i: int) -> int:
    """Less than the smallest tile that is more than a few elements."""
    tile = min(next((cut for cut in cuts if cut >= 32), cuts[-1]), 128)
    return max(tile * 3 // 4 + 1 + 2 * i, 1) if tile > 8 else max(tile - 1, 1)


def _whole(cuts: Sequence[int], i: int) -> int:
    del i
    return cuts[-1]


def _over(cuts: Sequence[int], i: int) -> int:
    """More than one of the largest tile, with a remainder."""
    return cuts[-1] + cuts[-1] // 8 + 1 + 2 * i


def _far(cuts: Sequence[int], i: int) -> int:
    """Several of a tile in the middle, where tiles of very different sizes are nested; else one
    element more than whole tiles, which a bound that is one too small leaves out alone."""
    middle = [cut for cut in cuts if cut * 8 <= cuts[-1]]
    if middle and middle[-1] >= 32:
        return 2 * middle[-1] + 2 * i
    return cuts[-1] * (1 + i % 2) + 1


def _without(kind: Kind, i: int) -> int:
    step = 0 if kind is _below else 1 if kind is _whole else 2
    return UNTILED // 2 + step * (UNTILED // 2) + 1 + 2 * i


TOGETHER = ((_below, _below), (_whole, _whole), (_over, _over), (_far, _far))
ALTERNATING = ((_below, _below), (_whole, _below), (_over, _below), (_below, _over))
"""Kinds of the sizes in even and in odd places, position by position."""


def _up(value: int, divisor: int) -> int:
    return -(-value // divisor) * divisor


def _shrunk(sizes: Sizes, frame: Frame, fixed: Mapping[str, int], tiles: Tiles) -> Sizes:
    """Sizes made smaller until the frame admits them: those without tiles first."""
    made = dict(sizes)
    while not frame.admits(made):
        free = [name for name in made if name not in fixed and made[name] > frame.divisor(name)]
        if not free:
            break
        untiled = [name for name in free if not tiles.get(name) and made[name] > FEW]
        largest = max(untiled or free, key=lambda name: (made[name], name))
        divisor = frame.divisor(largest)
        smaller = _up(made[largest] * 3 // 4, divisor)
        made[largest] = smaller if smaller < made[largest] else made[largest] - divisor
    return made


def _distinct(made: Iterable[Sizes]) -> list[Sizes]:
    found: list[Sizes] = []
    for sizes in made:
        if sizes not in found:
            found.append(sizes)
    return found


def rounded(sizes: Sizes, tiles: Tiles, frame: Frame, fixed: Mapping[str, int]) -> Sizes:
    """The sizes as whole tiles, for a kernel that takes no others."""
    made: Sizes = {}
    for name, value in sizes.items():
        cuts = [tile for tile in tiles.get(name, ()) if tile <= MAX_ELEMENTS]
        step = max((*cuts, frame.divisor(name)))
        made[name] = fixed.get(name, max(_up(value, step) if cuts else value, step))
    return made
