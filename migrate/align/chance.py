"""What a CUDA kernel leaves to chance: no migration can be held against it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from migrate.ir.evaluate import Write
from migrate.ir.nodes import Kernel
from migrate.ir.normal import Meaning, Tensor


def left_to_chance(
    output: str, kernel: Kernel, means: Meaning, tensors: Mapping[str, Tensor]
) -> NDArray[np.bool_]:
    """The elements whose value the kernel does not define, flat.

    They are computed from what nobody wrote, or written with different numbers by threads
    that race.  What a race elsewhere spoils is not traced: then it is every element.
    """
    found = means.undefined(output)
    outputs = {written.version.buffer for written in kernel.outputs}
    for trouble in means.evaluation.trouble:
        if trouble.kind != "conflict":
            continue
        if trouble.buffer not in outputs:
            return np.ones(found.size, bool)
        if trouble.buffer in tensors and tensors[trouble.buffer].name == output:
            for write in means.evaluation.writes.get(trouble.buffer, ()):
                if write.op.span == trouble.span:
                    found[_logical(_contested(write), tensors[trouble.buffer])] = True
    return found


def _contested(write: Write) -> NDArray[np.int64]:
    """The cells that one statement writes different numbers to."""
    order = np.lexsort((write.content, write.cells))
    cells, content = write.cells[order], write.content[order]
    apart = (cells[1:] == cells[:-1]) & (content[1:] != content[:-1])
    return np.unique(cells[1:][apart]).astype(np.int64)


def _logical(cells: NDArray[np.int64], tensor: Tensor) -> NDArray[np.int64]:
    """The logical elements that cells of a buffer hold; padding holds none."""
    if tensor.elements is None:
        return cells
    elements = tensor.elements[cells]
    return np.asarray(elements[elements >= 0])
