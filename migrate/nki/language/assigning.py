"""Assignments to tensors in NKI 0.1: `tile[...] = value`, `tile += value`.

A call on the right side that can write its result into the tensor does so: one statement, one
instruction.  Other values are copied there.  What is added to a tensor in PSUM by a matmul
accumulates there (NKI 0.1, NKI API reference, nisa.nc_matmul).
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from migrate.nki.errors import Unsupported
from migrate.nki.frames import Destination, Evaluate, Frame, Pending
from migrate.nki.gathering import QUADRANT
from migrate.nki.indices import Masked
from migrate.nki.language.elementwise import apply_to, viewed
from migrate.nki.language.expansion import Expansion, repeated
from migrate.nki.symbols import Number, Origin
from migrate.nki.values import View, describe


class _Written:
    __slots__ = ()


WRITTEN = _Written()
"""The value of an assignment has been written where it belongs."""


def into(target: Evaluate, compute: Evaluate, node: ast.expr) -> Evaluate:
    """`target[...] = node`: `WRITTEN`, or the value that is left to be assigned."""

    def execute(frame: Frame) -> object:
        run = frame.run
        outer = run.pending

        def find() -> Destination | None:
            place = target(frame)
            return Destination(place) if isinstance(place, View) else None

        pending = run.pending = Pending(node, find)
        try:
            found = compute(frame)
        finally:
            run.pending = outer
        place = pending.found
        if place is not None and place.taken:
            return WRITTEN
        if place is not None and place.mask is not None and isinstance(found, View):
            assert place.origin is not None
            assign(place.view, found, frame, place.origin, place.mask)
            return WRITTEN
        return found

    return execute


def onto(
    load: Evaluate, compute: Evaluate, node: ast.expr, sign: str, origin: Origin
) -> Callable[[Frame], bool]:
    """`target sign= node` where the target is a tensor; whether it was one."""

    def execute(frame: Frame) -> bool:
        before = load(frame)
        if not isinstance(before, View):
            return False
        run = frame.run
        outer = run.pending
        pending = Pending(node, lambda: Destination(before, accumulate=True))
        run.pending = pending if sign == "+" else None
        try:
            operand = compute(frame)
        finally:
            run.pending = outer
        if pending.found is None or not pending.found.taken:
            apply_to(Expansion(frame, origin), before, sign, before, operand)
        return True

    return execute


def assign(place: object, value: object, frame: Frame, origin: Origin, mask: object = None) -> None:
    """Copy a value into a tensor, where a mask leaves it."""
    if not isinstance(place, View | Masked):
        raise Unsupported(f"assigning to {describe(place)}", origin)
    target = place.view if isinstance(place, Masked) else place
    view = viewed(value, origin)
    e = Expansion(frame, origin, mask)
    if not target.buffer.memory.on_chip:
        raise Unsupported("assigning to a tensor in HBM, which nl.store does", origin)
    if view is None:
        assert isinstance(value, Number | bool)
        if isinstance(place, View) and not _starts_a_quadrant(place):
            # No engine begins there; by which way the compiler gets there is not documented.
            filled = e.tile(place.shape, place.dtype)
            e.bare("memset", filled, value)
            e.bare("dma_copy", place, filled)
            return
        e.emit("memset", place, value)
        return
    given = value
    if view.sizes != target.sizes and not isinstance(value, Masked):
        same = [n for n in view.sizes if n != 1] == [n for n in target.sizes if n != 1]
        given = view if same else repeated(view, target.shape, origin)
    e.emit("tensor_copy" if view.buffer.memory.on_chip else "dma_copy", place, given)


def _starts_a_quadrant(place: View) -> bool:
    """Whether an engine can begin at a tile's first partition (0, 32, 64 or 96)."""
    address = place.index[place.buffer.partition]
    return int(address.start.value) % QUADRANT == 0
