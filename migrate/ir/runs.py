"""Operands of many expressions at once: their canonical order, and runs of like ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Truths = NDArray[np.bool_]

Lengths: TypeAlias = tuple[int, ...]
"""The lengths of a grid, outer first."""

_AT_ONCE = 1 << 20
"""Coordinates looked at in one go."""
_SHORTEST = 3
"""Parts of a row of a grid: any two are in equal steps."""


@dataclass(frozen=True, slots=True)
class Regular:
    """Some runs in equal steps: which they are, and the coordinates that tell all others.

    `columns` has those of the first two parts; of a grid, of the first two of its first
    two rows, and so on.
    """

    runs: Numbers
    columns: Numbers


def ranked(content: Numbers) -> Numbers:
    """Where each row of coordinates stands among all, in lexicographic order."""
    count, width = content.shape
    if not width:
        return np.zeros(count, np.int64)
    if width == 1:
        order = np.argsort(content[:, 0], kind="stable")
    else:
        # One comparison a pair of rows, and not one sort a column: as bytes, the most
        # significant first, numbers of either sign are in the order of their values.
        flipped = content.view(np.uint64) ^ np.uint64(1 << 63)
        packed = np.ascontiguousarray(flipped.astype(">u8")).view(f"V{8 * width}")
        order = np.argsort(packed.reshape(-1), kind="stable")
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    return rank


def sorted_by(parents: Numbers, standing: Numbers, powers: Numbers, rank: Numbers) -> Numbers:
    """The canonical order: by parent, then skeleton, power and coordinates."""
    if not parents.size:
        return np.zeros(0, np.int64)
    keys = [parents, standing, powers - powers.min(), rank]
    spans = [int(key.max()) + 1 for key in keys]
    total = 1
    for span in spans:
        total *= span
    if total >= 1 << 62:
        return np.lexsort(keys[::-1])
    packed = keys[0]
    for key, span in zip(keys[1:], spans[1:], strict=True):
        packed = packed * span + key
    return np.argsort(packed, kind="stable")


def turned(
    parents: Numbers, powers: Numbers, standing: Numbers, rank: Numbers, count: int
) -> Truths:
    """Which of `count` sums are the negation of the one that counts as positive.

    Positive is a sum in which the parts of the first skeleton have more plus than minus;
    if there are as many of either, the first of them has plus.
    """
    order = sorted_by(parents, standing, np.zeros_like(parents), rank)
    parents, powers, standing = parents[order], powers[order], standing[order]
    present, starts = np.unique(parents, return_index=True)
    first = np.zeros(count, np.int64)
    first[present] = standing[starts]
    leading = standing == first[parents]
    balance = np.zeros(count, np.int64)
    np.add.at(balance, parents[leading], powers[leading])
    decided = np.zeros(count, np.int64)
    decided[present] = powers[starts]
    return np.asarray(np.where(balance == 0, decided, balance) < 0)


def alike(
    parents: Numbers,
    starts: Numbers,
    lengths: Numbers,
    skeletons: Numbers,
    powers: Numbers,
    more: Numbers,
) -> list[Numbers]:
    """Parents with the same sequence of (skeleton, power), and the same `more`."""
    with np.errstate(over="ignore"):
        sums = lengths.astype(np.uint64) * np.uint64(0xD6E8FEB86659FD93)
        sums = sums ^ (more + 1).astype(np.uint64) * np.uint64(0x9FB21C651E98DF25)
        position = (np.arange(parents.size) - starts[parents]).astype(np.uint64)
        mixed = (skeletons.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = mixed ^ (powers.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F))
        mixed = mixed ^ mixed >> np.uint64(29)
        mixed = (mixed + position * np.uint64(0x165667B19E3779F9)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = mixed ^ mixed >> np.uint64(32)
        np.add.at(sums, parents, mixed)
    order = np.argsort(sums, kind="stable")
    return list(np.split(order, np.flatnonzero(np.diff(sums[order])) + 1)) if order.size else []


def runs(skeletons: Numbers, powers: Numbers) -> list[tuple[int, int, int]]:
    """(skeleton, power, how many) of parts that follow each other."""
    found: list[tuple[int, int, int]] = []
    for skeleton, power in zip(skeletons.tolist(), powers.tolist(), strict=True):
        if found and found[-1][:2] == (skeleton, power):
            found[-1] = (skeleton, power, found[-1][2] + 1)
        else:
            found.append((skeleton, power, 1))
    return found


def grids(table: Numbers, rows: Numbers, begins: Numbers, count: int) -> dict[Lengths, Regular]:
    """Those of some runs of `count` parts whose coordinates go up by equal steps, by shape.

    Run `i` has the coordinates `table[rows[begins[i] + k]]`.  Equal steps may be those of a
    grid: rows of equal steps, the rows in equal steps too.
    """
    width = table.shape[1]
    found: dict[Lengths, list[Regular]] = {}
    at_once = max(1, _AT_ONCE // max(1, count * width))
    for first in range(0, begins.size, at_once):
        some = begins[first : first + at_once]
        content = table[rows[some[:, None] + np.arange(count)]]
        for shape, grid in _grids(content, first + np.arange(some.size)):
            found.setdefault(shape, []).append(grid)
    return {
        shape: Regular(
            np.concatenate([grid.runs for grid in several]),
            np.concatenate([grid.columns for grid in several]),
        )
        for shape, several in found.items()
    }


def _grids(content: Numbers, numbers: Numbers) -> list[tuple[Lengths, Regular]]:
    """`content` has shape (runs, count, width), `numbers` says which runs they are."""
    pending: list[tuple[Numbers, Numbers, Lengths]] = [(content, numbers, ())]
    found: list[tuple[Lengths, Regular]] = []
    while pending:
        content, numbers, inner = pending.pop()
        count, width = content.shape[1:]
        with np.errstate(over="ignore"):
            steps = np.diff(content, axis=1)
            uneven = (steps != steps[:, :1]).any(axis=2)
        lengths = np.where(uneven.any(axis=1), uneven.argmax(axis=1) + 1, count)
        for length in np.unique(lengths).tolist():
            if length < count and (length < _SHORTEST or count % length):
                continue
            chosen = lengths == length
            which = numbers[chosen]
            if length == count:
                pairs = content[chosen, :2].reshape(which.size, 2 * width)
                found.append(((count, *inner), Regular(which, pairs)))
                continue
            lines = content[chosen].reshape(which.size, count // length, length, width)
            with np.errstate(over="ignore"):
                steps = np.diff(lines, axis=2)
            even = (steps == steps[:, :, :1]).all(axis=(1, 2, 3))
            pairs = lines[even][:, :, :2].reshape(-1, count // length, 2 * width)
            if len(pairs):
                pending.append((pairs, which[even], (length, *inner)))
    return found
