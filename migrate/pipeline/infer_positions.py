"""The sizes of a comparison: those of the case, of the host code, else around the tiles.

What the NKI kernel does not take is left out only where that is its contract: an assertion, or a
size that it does not cut into tiles at all.  Everything else it refuses is a fault, and stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from migrate.pipeline.infer_calls import Called, called_sizes
from migrate.pipeline.infer_case import Guess
from migrate.pipeline.infer_sizes import (
    Frame,
    Sizes,
    Tiles,
    positions,
    rounded,
    small,
    tiles_of,
    tiles_of_kernel,
)
from migrate.pipeline.infer_trial import Trials
from migrate.pipeline.kernels import Pair
from migrate.pipeline.nki_alone.examples import Example, examples

SMALL = 96
"""What a size without a tile of the NKI kernel is kept to where larger ones are refused."""

MAX_LOOKS = 4
"""Specialisations of the NKI kernel in search of its tiles."""


class Sizing:
    """Chooses the sizes for guesses about one pair."""

    def __init__(self, pair: Pair, trials: Trials) -> None:
        self.pair = pair
        self.trials = trials
        self._examples: tuple[Example, ...] | None = None

    def bases(self, guess: Guess) -> list[Sizes]:
        """Sizes to try a guess at: those of the case, or small ones."""
        stated = self.pair.case.runs()[0]
        names = [name for name in guess.subject.sizes() if name not in stated]
        if not names:
            return [dict(stated)]
        fixed = self.fixed(guess, self.frame(guess))
        bases = small(names, self.frame(guess))
        called = self.called(guess)
        if called is not None:
            bases.append(called.sizes)
        bases = [{**base, **fixed, **stated} for base in bases]
        return bases or [{**positions(names, {}, {}, self.frame(guess), fixed)[0], **stated}]

    def frame(self, guess: Guess) -> Frame:
        """What sizes must fit beside those that the case states."""
        subject = guess.subject.substituted(self.pair.case.runs()[0])
        shapes = tuple(a.extents for a in subject.arrays if a.extents is not None)
        return Frame(shapes, subject.block, subject.multiples)

    def fixed(self, guess: Guess, frame: Frame) -> dict[str, int]:
        """The sizes that the host code gives, as far as they are small enough."""
        names = guess.subject.sizes()
        stated = self.pair.case.sizes
        values = {n: v for n, v in guess.subject.values.items() if n in names and n not in stated}
        while values:
            ones = dict.fromkeys(names, 1)
            within = replace(frame, multiples=())
            loose = [name for name in values if name not in guess.subject.firm]
            if within.admits({**ones, **values}) or not loose:
                break
            del values[max(loose, key=lambda name: values[name])]
        return values

    def chosen(self, guess: Guess, base: Sizes, told: list[str]) -> dict[str, tuple[int, ...]]:
        """The values of the sizes that no case states, position by position.

        `base` are sizes at which the guess was tried.  Says in `told` what was chosen.
        """
        case = self.pair.case
        names = [name for name in guess.subject.sizes() if name not in case.sizes]
        if not names:
            return {}
        frame = self.frame(guess)
        fixed = self.fixed(guess, frame)
        if case.sizes:
            return self._beside(names, base, told)
        kernel = self.trials.cuda_kernel(guess, base)
        others = tiles_of_kernel(kernel, guess.subject.grid) if kernel is not None else {}
        tiles, wanted = self._tiled(guess, base, others, fixed)
        called = self.called(guess)
        if called is not None and called.sizes not in wanted:
            wanted.append(called.sizes)
        kept: list[Sizes] = []
        limits: dict[str, str] = {}
        for sizes in wanted:
            taken = self._taken(guess, sizes, tiles, frame, fixed, limits)
            if taken is not None and taken not in kept:
                kept.append(taken)
        if not kept:
            kept = [base]
        cuts = sorted({t for name in names for t in tiles.get(name, ()) if t > 1})
        about = f", around the tiles of {', '.join(map(str, cuts))}" if cuts else ""
        shown = "; ".join(f"{n} = {', '.join(str(sizes[n]) for sizes in kept)}" for n in names)
        given = [name for name in names if name in fixed]
        source = f" ({', '.join(given)} as the launch has it)" if given else ""
        told.append(f"sizes {shown}{about}{source}")
        told += limits.values()
        if called is not None and called.sizes in kept:
            at = ", ".join(f"{name} = {value}" for name, value in called.sizes.items())
            told.append(f"sizes {at} from the call at {called.where}")
        return {name: tuple(sizes[name] for sizes in kept) for name in names}

    def called(self, guess: Guess) -> Called | None:
        """The sizes of the first call in the NKI file that are all known and small enough."""
        if self._examples is None:
            self._examples = examples(self.pair.module, self.pair.nki)
        stated = self.pair.case.sizes
        names = tuple(name for name in guess.subject.sizes() if name not in stated)
        frame = self.frame(guess)
        fixed = self.fixed(guess, frame)
        for example in self._examples:
            found = called_sizes(example, guess, names)
            if found is not None and frame.admits(found) and {**found, **fixed} == found:
                return Called(found, f"{example.span.file}:{example.span.start_line}")
        return None

    def _tiled(
        self, guess: Guess, base: Sizes, others: Tiles, fixed: Mapping[str, int]
    ) -> tuple[Tiles, list[Sizes]]:
        """The tiles of the NKI kernel, and positions around them.

        A loop over tiles that has nothing to do at small sizes shows itself at larger ones.
        """
        names = guess.subject.sizes()
        tiles: dict[str, frozenset[int]] = {}
        frame = self.frame(guess)
        wanted = [base]
        for _ in range(MAX_LOOKS):
            look = self.trials.looked(guess, wanted[-1])
            frame = replace(frame, stepped=look.stepped)
            seen = tiles_of(look.expressions)
            united = {n: tiles.get(n, frozenset()) | seen.get(n, frozenset()) for n in seen | tiles}
            if united == tiles:
                break
            tiles = united
            wanted = positions(names, tiles, others, frame, fixed)
        return tiles, wanted if tiles else positions(names, {}, others, frame, fixed)

    def _beside(
        self, names: Sequence[str], base: Sizes, told: list[str]
    ) -> dict[str, tuple[int, ...]]:
        """Sizes beside those that the case states: one value, at every position."""
        shown = ", ".join(f"{name} = {base[name]}" for name in names)
        told.append(f"sizes {shown}: the case does not state them")
        return {name: (base[name],) for name in names}

    def _taken(
        self,
        guess: Guess,
        sizes: Sizes,
        tiles: Tiles,
        frame: Frame,
        fixed: Mapping[str, int],
        limits: dict[str, str],
    ) -> Sizes | None:
        """The sizes, or those near them that the NKI kernel takes; `None` for neither.

        What a kernel refuses in a size that it cuts into tiles is a fault, and shown as one.
        """
        outcome = self.trials.looked(guess, sizes).outcome
        if outcome.status in ("read", "gap"):
            return sizes
        where = f"{outcome.span}: " if outcome.span is not None else ""
        at = ", ".join(f"{name} = {value}" for name, value in sizes.items())
        stops = f"at {at} the NKI kernel stops ({where}{outcome.message})"
        if outcome.status == "assert" or outcome.message:
            whole = rounded(sizes, tiles, frame, fixed)
            if whole != sizes and frame.admits(whole):
                again = self.trials.looked(guess, whole).outcome
                if again.status == "read":
                    limits.setdefault("whole", f"only whole tiles: {stops}")
                    return whole
        less = {
            name: value if name in tiles or name in fixed else min(value, SMALL - 2 * i)
            for i, (name, value) in enumerate(sizes.items())
        }
        if less != sizes and frame.admits(less):
            again = self.trials.looked(guess, less).outcome
            if again.status == "read":
                limits.setdefault("less", f"no larger sizes: {stops}")
                return less
        if outcome.status == "assert":
            limits.setdefault(at, f"other sizes than {at}: {stops}")
            return None
        return sizes
