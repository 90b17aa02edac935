"""Finding the place by repair: the edit after which the two kernels agree.

Where a rule knows what is wrong but not which of several integers is to blame, each of them is
changed by one, and the kernel is read again; after those that the rule suspects come the bounds
of the kernel's loops and slices, the nearest first, and then slices that do not move with a loop
around them are moved.  If then every output element agrees at all sizes
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
from migrate.nki.parse import parse
from migrate.pipeline.infer_signature import parameters
from migrate.pipeline.kernels import Pair
from migrate.pipeline.sides import nki_kernel_at
from migrate.python_text import span_of
from migrate.rules.rule import Reading
from migrate.source import Source, SourceError, Span

MAX_TRIALS = 24
MAX_BOUNDS = 12
"""Trials with bounds that no rule suspects."""
MAX_STARTS = 8
MAX_GIVEN = 3
MAX_SHORTER = 3
MAX_SHOWN = 60
"""Characters of an expression in words about it."""
MAX_ELEMENTS = 1_500_000
"""Of all tensors, at all the sizes that a trial reads the kernel at."""


def repaired(
    pair: Pair, readings: Sequence[Reading], suspects: Sequence[Span]
) -> tuple[Span, str] | None:
    """The place whose change makes the kernels agree wherever they did not, and the change.

    The numbers that tiles are filled with are always suspected; bounds of loops and slices only
    where something else is.
    """
    wanted = _wanted(readings)
    if not wanted:
        return None
    tried: set[tuple[int, int, int, int]] = set()
    trials = _trials(pair, suspects, tried)[:MAX_TRIALS]
    trials += _filled(pair)[:MAX_STARTS]
    if suspects:
        bounds, still = _others(pair, suspects)
        trials += _trials(pair, bounds, tried)[:MAX_BOUNDS]
        trials += still[:MAX_BOUNDS]
    for span, change in trials:
        edited = pair.nki_source.replaced(span, change.text)
        if all(_agrees(edited, pair, binding, terms) for binding, terms in wanted):
            return span, change.words
    return None


def _trials(
    pair: Pair, suspects: Sequence[Span], tried: set[tuple[int, int, int, int]]
) -> list[tuple[Span, _Change]]:
    """What to try at places that were not `tried` yet."""
    trials: list[tuple[Span, _Change]] = []
    for span in suspects:
        key = (span.start_line, span.start_column, span.end_line, span.end_column)
        if span.file == pair.nki_source.name and key not in tried:
            tried.add(key)
            trials += [(span, change) for change in _changes(pair.nki_source.excerpt(span))]
    # What makes the expression shorter is the likelier slip.
    trials.sort(key=lambda trial: not trial[1].shorter)
    return trials


def _others(pair: Pair, suspects: Sequence[Span]) -> tuple[list[Span], list[tuple[Span, _Change]]]:
    """Bounds of the kernel's loops and slices, and its slices moved, the nearest first."""
    here = next((s.start_line for s in suspects if s.file == pair.nki_source.name), 0)
    bounds: list[ast.expr] = []
    still: list[tuple[ast.expr, str]] = []
    pending: list[tuple[ast.AST, tuple[str, ...]]] = [(pair.nki.node, ())]
    while pending:
        node, around = pending.pop()
        match node:
            case ast.For(target=ast.Name(id=counter), iter=ast.Call(args=args)):
                bounds += args
                around = (*around, counter)
            case ast.Subscript(slice=where):
                parts = where.elts if isinstance(where, ast.Tuple) else [where]
                slices = [part for part in parts if isinstance(part, ast.Slice)]
                bounds += [b for s in slices for b in (s.lower, s.upper) if b is not None]
                used = {name.id for name in ast.walk(where) if isinstance(name, ast.Name)}
                still += [(s, c) for s in slices for c in around if c not in used and s.upper]
        pending += [(child, around) for child in ast.iter_child_nodes(node)]
    bounds.sort(key=lambda node: abs(node.lineno - here))
    still.sort(key=lambda move: abs(move[0].lineno - here))
    source = pair.nki_source
    return (
        [span_of(source, node) for node in bounds],
        [(span_of(source, n), change) for n, counter in still for change in _moved(n, counter)],
    )


def _filled(pair: Pair) -> list[tuple[Span, _Change]]:
    """The numbers that tiles are filled with, changed to what sums and products start at, and to
    the numbers that the kernel is given."""
    given = [p.name for p in parameters(pair.module, pair.nki) if p.kind != "tensor"]
    likely = ["0.0", "1.0", *given[:MAX_GIVEN]]
    found: list[tuple[Span, _Change]] = []
    for node in ast.walk(pair.nki.node):
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            match keyword:
                case ast.keyword(arg="value", value=ast.Constant(value=int() | float() as filled)):
                    span = span_of(pair.nki_source, keyword.value)
                    found += [
                        (span, _Change(f"`{text}` in place of `{filled}`", text))
                        for text in likely
                        if text != str(float(filled))
                    ]
    return found


def _moved(node: ast.expr, counter: str) -> list[_Change]:
    """A slice with a loop's counter added to both ends, and one of its length that starts there."""
    assert isinstance(node, ast.Slice)
    assert node.upper is not None
    step = f" : {ast.unparse(node.step)}" if node.step is not None else ""
    upper = ast.unparse(node.upper)
    match node.lower:
        case None | ast.Constant(value=0):
            texts = [f"{counter} : {counter} + {upper}"]
        case lower:
            texts = [
                f"{counter} + {ast.unparse(lower)} : {counter} + {upper}",
                f"{counter} : {counter} + ({upper} - ({ast.unparse(lower)}))",
            ]
            match lower, node.upper:
                case ast.Constant(value=int(first)), ast.Constant(value=int(last)):
                    texts[1] = f"{counter} : {counter} + {last - first}"
                case _, ast.BinOp(left=start, op=ast.Add(), right=length) if ast.dump(
                    start
                ) == ast.dump(lower):
                    texts[1] = f"{counter} : {counter} + {ast.unparse(length)}"
    return [_Change(f"`{t}{step}` in place of `{ast.unparse(node)}`", t + step) for t in texts]


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
        module = parse(Source.of(text, pair.nki_source.name), pair.module.project)
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
