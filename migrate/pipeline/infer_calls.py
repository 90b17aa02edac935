"""The sizes at which a call in the NKI file, of a test or an example, gives its arrays."""

from __future__ import annotations

from dataclasses import dataclass

from migrate.ir.index import Index
from migrate.pipeline.infer_case import Guess
from migrate.pipeline.infer_match import laid_out
from migrate.pipeline.infer_sizes import Sizes
from migrate.pipeline.nki_alone.examples import Array, Example


@dataclass(frozen=True, slots=True)
class Called:
    """The sizes of a call, and where it is."""

    sizes: Sizes
    where: str


def called_sizes(example: Example, guess: Guess, names: tuple[str, ...]) -> Sizes | None:
    """The sizes of a call under a guess; `None` where it does not fit, or leaves one open."""
    pairs: list[tuple[Index, int]] = []
    for array in guess.subject.arrays:
        given = example.arguments.get(guess.match.arrays.get(array.name, ""))
        if array.extents is None or not isinstance(given, Array):
            continue
        extents = laid_out(array.extents, guess.layouts.get(array.name))
        if extents is None or len(extents) != len(given.shape):
            return None
        pairs += zip(extents, given.shape, strict=True)
    for scalar, parameter in guess.match.scalars.items():
        value = example.arguments.get(parameter)
        index = guess.subject.integers.get(scalar)
        if index is not None and isinstance(value, int) and not isinstance(value, bool):
            pairs.append((index, value))
    found: Sizes = {}
    for extent, number in pairs:
        name = str(extent)
        if name in names and extent == Index.size(name) and number > 0:
            found.setdefault(name, number)
    if any(name not in found for name in names):
        return None
    try:
        fits = all(extent.evaluate(found) == number for extent, number in pairs)
    except (KeyError, ZeroDivisionError):
        return None
    return {name: found[name] for name in names} if fits else None
