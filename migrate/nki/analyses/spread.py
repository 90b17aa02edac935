"""Where elements that nothing wrote go: which elements of an instruction's results are made of
them.

Elements are marked with a number a place that read them first, 0 where none did.  Instructions
whose marks are not followed are said to be so, and what they read counts as used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from migrate.nki.frames import Instruction

    Array: TypeAlias = NDArray[Any]

_EACH: Final = frozenset(
    {"dma_copy", "tensor_copy", "tensor_tensor", "tensor_scalar", "scalar_tensor_tensor"}
    | {"reciprocal", "activation"}
)
"""Element from element, and from the whole of a lane where an operand has another shape."""

_LANES: Final = frozenset(
    {"tensor_reduce", "tensor_tensor_scan", "activation_reduce", "activate2", "exponential"}
    | {"tensor_scalar_reduce", "tensor_scalar_cumulative", "bn_stats", "bn_aggr", "max8"}
    | {"nc_find_index8", "nc_match_replace8", "affine_select", "range_select", "select_reduce"}
)
"""Lane from lane: no partition sees another."""


def spread(instruction: Instruction, read: Mapping[str, Array]) -> Mapping[str, Array] | None:
    """The marks of what `instruction` writes, an array a destination that broadcasts to it.

    `read` has the marks of its operands, by name and in their shapes.  `None` where the instruction
    is not followed.
    """
    if instruction.mask is not None or instruction.view("registers") is not None:
        return None
    outputs = {
        name: view.sizes
        for name in ("dst", "reduce_res", "dst_idx")
        if (view := instruction.view(name)) is not None
    }
    match instruction.opcode:
        case "nc_matmul":
            made = _product(read, outputs["dst"])
        case "nc_transpose" | "dma_transpose":
            made = _turned(read, outputs["dst"])
        case opcode if opcode in _EACH:
            made = _each(read, outputs["dst"])
        case _:
            made = None
    if made is not None and len(outputs) == 1:
        return {"dst": made}
    if instruction.opcode not in _EACH | _LANES or instruction.opcode == "dma_copy":
        return None
    lanes = _lanes(read)
    if lanes is None or any(len(lanes) != sizes[0] for sizes in outputs.values()):
        return None
    return {
        name: lanes.reshape((len(lanes), *(1 for _ in sizes[1:])))
        for name, sizes in outputs.items()
    }


def _each(read: Mapping[str, Array], sizes: tuple[int, ...]) -> Array | None:
    import numpy as np

    made = np.zeros(sizes, np.uint8)
    for marks in read.values():
        if marks.size != made.size:
            return None
        made = np.maximum(made, marks.reshape(sizes))
    return made


def _lanes(read: Mapping[str, Array]) -> Array | None:
    import numpy as np

    every = [marks.reshape(marks.shape[0], -1).max(axis=1) for marks in read.values()]
    if len({len(lanes) for lanes in every}) != 1:
        return None
    lanes: Array = np.maximum.reduce(every)
    return lanes


def _product(read: Mapping[str, Array], sizes: tuple[int, ...]) -> Array | None:
    """A column of `stationary` makes a row of the product, one of `moving` a column."""
    import numpy as np

    made = np.zeros((sizes[0], int(np.prod(sizes[1:]))), np.uint8)
    for name, marks in read.items():
        if name == "dst":
            made = np.maximum(made, marks.reshape(made.shape))
            continue
        line = marks.max(axis=0).reshape(-1)
        if len(line) != made.shape[0 if name == "stationary" else 1]:
            return None
        made = np.maximum(made, line[:, None] if name == "stationary" else line[None, :])
    return made.reshape(sizes)


def _turned(read: Mapping[str, Array], sizes: tuple[int, ...]) -> Array | None:
    (marks,) = read.values()
    if marks.ndim != 2 or marks.shape[::-1] != sizes:
        return None
    return marks.T.copy()
