"""A kernel counts as read only if its IR gives what its execution gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from migrate.budget import Meter
from migrate.ir.evaluate import Unevaluable, evaluate
from migrate.ir.nodes import Kernel
from migrate.ir.reals import Reals
from migrate.numerics.errors import BoundedValue

_FLOOR = 1e-9
"""Relative slack for float64 itself: both sides are computed in it."""


def disagreement(
    kernel: Kernel,
    sizes: Mapping[str, int],
    inputs: Mapping[str, NDArray[Any]],
    executed: Mapping[str, BoundedValue],
    meter: Meter,
) -> str | None:
    """Why the IR is not what the execution did, as a sentence; `None` if they agree.

    `inputs` and `executed` are by buffer name, flat or shaped as the buffer.
    """
    try:
        evaluation = evaluate(kernel, sizes, Reals(inputs), meter=meter)
    except Unevaluable as reason:
        return f"its reading cannot be evaluated: {reason}"
    for buffer, content in evaluation.outputs.items():
        if buffer not in executed:
            continue
        reference = executed[buffer]
        expected = np.asarray(reference.value, np.float64).reshape(-1)
        allowed = reference.limit().reshape(-1) + _FLOOR * np.abs(expected)
        written = evaluation.writers[buffer].reshape(-1) >= 0
        doubts = reference.doubts().reshape(-1)
        if expected.size != content.size:
            return (
                f"{buffer} has {content.size} elements in its reading, {expected.size} in its run"
            )
        with np.errstate(all="ignore"):
            apart = np.abs(content - expected) > allowed
            classes = np.isfinite(content) != np.isfinite(expected)
        wrong = written & ~doubts & (apart | classes)
        if wrong.any():
            cell = int(np.flatnonzero(wrong)[0])
            return (
                f"element {cell} of {buffer} is {content[cell]:.9g} in its reading and"
                f" {expected[cell]:.9g} in its run"
            )
    return None
