"""Affine functions through listed numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from migrate.ir.forms import Affine, Place, Table

_SAMPLE = 256


def fitted(cells: NDArray[np.int64], numbers: NDArray[np.int64]) -> Place:
    """The affine function of cell and counters that gives `numbers`, else a table.

    `cells` has shape (cells, rank), `numbers` (cells, *counts).  Where several functions
    agree on the cells (a coordinate that does not vary, or that follows others), the one
    with zeros for the later coordinates is taken, so that the answer depends on nothing
    but the cells and the numbers.
    """
    rank = cells.shape[1]
    counts = numbers.shape[1:]
    base = numbers.reshape(len(cells), -1)[:, 0] if numbers.size else numbers.reshape(-1)
    solved = _solve(cells, base)
    if solved is None:
        return Table.of(numbers)
    coefficients, constant = solved
    steps: list[int] = []
    for position, count in enumerate(counts):
        if count < 2:
            steps.append(0)
            continue
        origin = [0] * (len(counts) + 1)
        origin[position + 1] = 1
        steps.append(int(numbers[tuple(origin)]) - int(numbers[(0,) * (len(counts) + 1)]))
    place = Affine(tuple(coefficients), tuple(steps), constant)
    assert len(coefficients) == rank
    if np.array_equal(np.broadcast_to(place.numbers(cells, counts), numbers.shape), numbers):
        return place
    return Table.of(numbers)


def _solve(cells: NDArray[np.int64], numbers: NDArray[np.int64]) -> tuple[list[int], int] | None:
    """Integer coefficients and constant, from a sample (the caller checks the rest)."""
    rank = cells.shape[1]
    count = len(cells)
    if count > _SAMPLE:
        chosen = np.unique(np.linspace(0, count - 1, _SAMPLE).astype(np.int64))
        # An evenly spaced sample can miss a fast coordinate; neighbours and rows do not.
        extremes = [int(f(cells[:, n])) for n in range(rank) for f in (np.argmin, np.argmax)]
        neighbours = np.arange(min(count, 64))
        chosen = np.unique(np.concatenate([chosen, extremes, neighbours]).astype(np.int64))
        cells, numbers = cells[chosen], numbers[chosen]
    offsets = (cells - cells[0]).astype(np.float64)
    wanted = (numbers - numbers[0]).astype(np.float64)
    used: list[int] = []
    for column in range(rank):
        if not offsets[:, column].any():
            continue
        if used:
            basis = offsets[:, used]
            solution, *_ = np.linalg.lstsq(basis, offsets[:, column], rcond=None)
            if np.allclose(basis @ solution, offsets[:, column], atol=1e-6):
                continue
        used.append(column)
    coefficients = [0] * rank
    if used:
        solution, *_ = np.linalg.lstsq(offsets[:, used], wanted, rcond=None)
        for column, coefficient in zip(used, solution, strict=True):
            if not np.isfinite(coefficient) or abs(coefficient) > 2**52:
                return None
            coefficients[column] = round(float(coefficient))
    constant = (
        int(numbers[0]) - int(cells[0] @ np.array(coefficients, np.int64))
        if rank
        else int(numbers[0])
    )
    return coefficients, constant
