"""Finding the place by repair: the edit after which the two kernels agree.

Where a rule knows what is wrong but not which of several integers is to blame, each of them is
changed by one, and the kernel is read again.  If then every output element agrees at all sizes
at which it did not, that integer is the cause (mutation-based fault localisation; Papadakis and
Le Traon, "Metallaxis-FL", 2015).  Nothing is run, and nothing is suggested that was not checked.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from migrate.align.binding import Binding, logical_tensors
from migrate.budget import Budget, Exhausted, Meter
from migrate.ir.evaluate import Unevaluable
from migrate.ir.nodes import Kernel
from migrate.ir.normal import meaning
from migrate.pipeline.kernels import Pair, parse_nki
from migrate.pipeline.sides import nki_kernel_at
from migrate.rules.rule import Reading
from migrate.source import Source, SourceError, Span

MAX_TRIALS = 24
MAX_SHORTER = 3
MAX_SHOWN = 60
"""Characters of an expression in words about it."""
MAX_ELEMENTS = 1_500_000
"""Of all tensors, at all the sizes that a trial reads the kernel at."""


def repaired(
    pair: Pair, readings: Sequence[Reading], suspects: Sequence[Span]
) -> tuple[Span, str] | None:
    """The suspect whose change makes the kernels agree wherever they did not, and the change."""
    wanted = _wanted(readings)
    if not wanted:
        return None
    trials: list[tuple[Span, _Change]] = []
    tried: set[tuple[int, int, int, int]] = set()
    for span in suspects:
        key = (span.start_line, span.start_column, span.end_line, span.end_column)
        if span.file == pair.nki_source.name and key not in tried:
            tried.add(key)
            trials += [(span, change) for change in _changes(pair.nki_source.excerpt(span))]
    # What makes the expression shorter is the likelier slip.
    trials.sort(key=lambda trial: not trial[1].shorter)
    for span, change in trials[:MAX_TRIALS]:
        edited = pair.nki_source.replaced(span, change.text)
        if all(_agrees(edited, pair, binding, terms) for binding, terms in wanted):
            return span, change.words
    return None


def _wanted(readings: Sequence[Reading]) -> list[tuple[Binding, dict[str, NDArray[np.uint64]]]]:
    """Where the kernels differ, smallest first, with the terms of the CUDA kernel."""
    found: list[tuple[Binding, dict[str, NDArray[np.uint64]]]] = []
    room = MAX_ELEMENTS
    for reading in sorted(readings, key=_size):
        relation = reading.relation
        if relation is None or relation.status != "refuted" or reading.cuda is None:
            continue
        room -= _size(reading)
        if room < 0:
            break
        terms = _terms(reading.cuda, reading.binding, "cuda")
        if terms is None:
            return []
        found.append((reading.binding, terms))
    return found


def _size(reading: Reading) -> int:
    return sum(tensor.size for tensor in reading.binding.tensors)


@dataclass(frozen=True, slots=True)
class _Change:
    """An edit of an expression; `shorter` if it takes something away."""

    words: str
    text: str
    shorter: bool = False


def _changes(text: str) -> list[_Change]:
    try:
        node = ast.parse(f"({text})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    shown = " ".join(text.split())
    if len(shown) > MAX_SHOWN:
        shown = f"{shown[: MAX_SHOWN - 1]}…"
    match node:
        case ast.Compare() | ast.BoolOp():
            return [_Change(f"`{shown}` always taken", f"(({text}) or True)")]
        case ast.Tuple() | ast.List() | ast.Slice() | ast.Starred():
            return []
    shorter = [
        _Change(f"`{short}` in place of `{shown}`", f"({short})", shorter=True)
        for short in map(ast.unparse, _without_constants(node))
    ]
    plain = [_Change(f"`{shown}` {c}", f"(({text}) {c})") for c in ("+ 1", "- 1")]
    return [*shorter, *plain]


def _without_constants(node: ast.expr) -> list[ast.expr]:
    """What is left of a sum or product when terms at its ends, or roundings, are taken away."""
    found: list[ast.expr] = []
    while len(found) < MAX_SHORTER:
        match node:
            case ast.BinOp(
                left=ast.BinOp(left=kept, op=ast.FloorDiv(), right=tile), op=ast.Mult(), right=again
            ) if ast.dump(tile) == ast.dump(again):
                pass  # rounded down to whole tiles
            case ast.BinOp(
                left=ast.Constant(value=int(first)),
                op=ast.Mult(),
                right=ast.Constant(value=int(second)),
            ):
                kept = ast.Constant(max(first, second))
            case ast.BinOp(left=kept, op=ast.Add() | ast.Sub()):
                pass
            case ast.BinOp(left=kept, op=ast.Mult(), right=ast.Constant()):
                pass
            case ast.BinOp(left=ast.Constant(), op=ast.Add() | ast.Mult(), right=kept):
                pass
            case _:
                return found
        found.append(kept)
        node = kept
    return found


def _agrees(text: str, pair: Pair, binding: Binding, wanted: dict[str, NDArray[np.uint64]]) -> bool:
    try:
        module = parse_nki(Source.of(text, pair.nki_source.name))
        meter = Meter(Budget(), "looking for the cause")
        found = nki_kernel_at(module, pair.nki.name, pair.case, binding, meter)
    except (SourceError, Exhausted):
        return False
    if found.kernel is None or found.problems:
        return False
    terms = _terms(found.kernel, binding, "nki")
    return terms is not None and all(
        name in terms and np.array_equal(terms[name].reshape(-1), ids.reshape(-1))
        for name, ids in wanted.items()
    )


def _terms(kernel: Kernel, binding: Binding, side: str) -> dict[str, NDArray[np.uint64]] | None:
    tensors = logical_tensors(binding, kernel, "cuda" if side == "cuda" else "nki")
    sizes = {**binding.sizes, **dict(kernel.computed_at or ())}
    try:
        means = meaning(kernel, sizes, tensors)
    except (Unevaluable, Exhausted):
        return None
    outputs = {tensor.name for tensor in binding.outputs}
    return {name: ids for name, ids in means.terms.items() if name in outputs}
