"""`nl.loop_reduce` of NKI 0.1: a value combined over the iterations of loops."""

from __future__ import annotations

from collections.abc import Iterator

from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.language.elementwise import viewed
from migrate.nki.language.expansion import Expansion
from migrate.nki.language.reductions import named
from migrate.nki.language.returning import operator_of
from migrate.nki.operations import items_of
from migrate.nki.symbols import Number, Origin
from migrate.nki.values import Builtin, OperatorName

MAX_WALK = 64
"""Parts of an index expression that are looked at for the loop it is of."""


def _loop_reduce(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """The tile in which a value is combined; it holds the result when the loops have ended.

    The first iteration copies the value, those after it combine theirs with what is there.
    """
    names = ("x", "op", "loop_indices", "dtype", "mask")
    given = named("loop_reduce", names, args, keywords, frame, origin)
    x, op = given.get("x"), operator_of(given.get("op"))
    view = viewed(x, origin)
    if view is None or not isinstance(op, OperatorName):
        raise KernelFault("type", "nl.loop_reduce takes a tensor and an operator", origin)
    if given.get("mask") is not None:
        raise Unsupported("nl.loop_reduce with a mask", origin)
    indices = given.get("loop_indices")
    items = items_of(indices, origin) if isinstance(indices, tuple | list) else [indices]
    wanted = {axis for item in items for axis in _axes(item, origin)}
    run = frame.run
    over = [value for value in run.loops if value.loop.axis in wanted]
    if len(over) != len(wanted):
        raise Unsupported("nl.loop_reduce over something else than the loops around", origin)
    outside = [value.iteration for value in run.loops if value.loop.axis not in wanted]
    key = (id(origin.node), id(frame.stack), *outside)
    e = Expansion(frame, origin)
    held = run.reductions.get(key)
    if held is None or all(value.iteration == 0 for value in over):
        held = run.reductions[key] = e.result(view.shape, view.dtype, given.get("dtype"))
        e.emit("tensor_copy", held, x)
    else:
        e.emit("tensor_tensor", held, held, x, op)
    return held


def _axes(item: object, origin: Origin) -> Iterator[str]:
    """The loop of which a number is the position."""
    if not isinstance(item, Number):
        raise KernelFault("type", "nl.loop_reduce takes positions of loops", origin)
    pending, seen = [item], 0
    while pending and seen < MAX_WALK:
        number = pending.pop()
        seen += 1
        if number.op == "axis":
            yield number.symbol
        pending.extend(number.args)


FUNCTIONS: dict[str, object] = {"loop_reduce": Builtin("loop_reduce", _loop_reduce)}
