"""The part of a log of terms that some terms are made of.

A log has every term of an evaluation, and reading an expression back sorts all of it.  Where
only a few expressions are asked for, nearly all of that is wasted: the log is gone through once,
from its end, and only the rows that are needed are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from migrate.budget import Meter
from migrate.ir.hashing import Ids
from migrate.ir.rings import GROUPS
from migrate.ir.terms import Made

_FILTER_BITS = 20
_MASK = np.uint64((1 << _FILTER_BITS) - 1)

Rows = NDArray[np.intp]


def needed(log: Sequence[Made], roots: Ids, meter: Meter) -> list[Made]:
    """The entries of a log that make some terms and all that those are made of, in order.

    What a term is made of was logged before it.
    """
    wanted = np.unique(roots)
    # Most terms are not wanted: a table over some of their bits spares the search.
    table = np.zeros(1 << _FILTER_BITS, bool)
    table[_low(wanted)] = True
    kept: list[Made] = []
    for made in reversed(log):
        meter.step(made.ids.size // 64 + 1)
        ids = made.ids.reshape(-1)
        rows = np.flatnonzero(table[_low(ids)])
        if rows.size:
            places = np.minimum(np.searchsorted(wanted, ids[rows]), wanted.size - 1)
            rows = rows[wanted[places] == ids[rows]]
        if not rows.size:
            continue
        part = _rows(made, rows)
        kept.append(part)
        if made.operator != "element" and part.args:
            more = np.unique(np.concatenate([arg.reshape(-1) for arg in part.args]))
            places = np.minimum(np.searchsorted(wanted, more), wanted.size - 1)
            new = more[wanted[places] != more]
            wanted = np.insert(wanted, np.searchsorted(wanted, new), new)
            table[_low(new)] = True
    kept.reverse()
    return kept


def _rows(made: Made, rows: Rows) -> Made:
    """Some rows of an entry; its arguments are then lists of the same length."""
    ids = made.ids.reshape(-1)[rows]
    if made.operator == "constant":
        assert made.numbers is not None
        return replace(made, ids=ids, numbers=made.numbers.reshape(-1)[rows])
    combined = made.operator in GROUPS and len(made.args) == 1 and made.args[0].ndim == 2
    if combined or made.operator == "element":
        return replace(made, ids=ids, args=(made.args[0][rows],))
    cells = np.unravel_index(rows, made.ids.shape) if made.ids.ndim else ()
    args = tuple(
        np.broadcast_to(arg, made.ids.shape)[cells] if cells else arg.reshape(1)[rows]
        for arg in made.args
    )
    return replace(made, ids=ids, args=args)


def _low(ids: Ids) -> Rows:
    return (ids & _MASK).astype(np.intp)
