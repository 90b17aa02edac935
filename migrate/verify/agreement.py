"""A kernel counts as read only if its IR gives what its execution gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from migrate.align.binding import Binding
from migrate.budget import Meter
from migrate.ir.evaluate import Unevaluable, evaluate
from migrate.ir.nodes import Kernel
from migrate.ir.reals import Reals
from migrate.numerics.errors import BoundedValue
from migrate.verify.run import Ran


def cuda_disagreement(
    kernel: Kernel, binding: Binding, ran: Ran, meter: Meter, *, undefined: bool = False
) -> str | None:
    """`disagreement` of the CUDA kernel with a run."""
    if ran.inputs is None or ran.cuda is None:
        return None
    inputs = {
        tensor.cuda: ran.inputs[tensor.name]
        for tensor in binding.tensors
        if tensor.cuda is not None and tensor.is_input
    }
    return disagreement(kernel, binding.sizes, inputs, ran.cuda, meter, undefined=undefined)


def nki_disagreement(
    kernel: Kernel, binding: Binding, ran: Ran, meter: Meter, *, undefined: bool = False
) -> str | None:
    """`disagreement` of the NKI kernel with a run."""
    if ran.inputs is None:
        return None
    inputs = {
        tensor.nki: binding.to_nki(tensor, ran.inputs[tensor.name])
        for tensor in binding.tensors
        if tensor.nki is not None and tensor.is_input
    }
    executed: dict[str, BoundedValue] = {}
    for output in kernel.outputs:
        buffer = output.version.buffer
        if output.position is not None and output.position < len(ran.nki):
            executed[buffer] = ran.nki[output.position]
        elif output.position is None and ran.nki_after is not None and buffer in ran.nki_after:
            executed[buffer] = ran.nki_after[buffer]
    sizes = {**binding.sizes, **dict(kernel.computed_at or ())}
    return disagreement(kernel, sizes, inputs, executed, meter, undefined=undefined)


_FLOOR = 1e-9
"""Relative slack for float64 itself: both sides are computed in it."""


def disagreement(
    kernel: Kernel,
    sizes: Mapping[str, int],
    inputs: Mapping[str, NDArray[Any]],
    executed: Mapping[str, BoundedValue],
    meter: Meter,
    *,
    undefined: bool = False,
) -> str | None:
    """Why the IR is not what the execution did, as a sentence; `None` if they agree.

    `inputs` and `executed` are by buffer name, flat or shaped as the buffer.  With `undefined`
    the kernel is known to read what nobody wrote: a run finds some number there.
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
        if undefined:
            written &= ~np.isnan(content)
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
