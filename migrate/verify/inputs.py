"""The arrays a run starts from: the same binding, family and seed give the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from migrate.align.binding import Binding, BoundTensor
from migrate.case import fills
from migrate.results import Inputs


def make(
    binding: Binding, inputs: Inputs, *, folder: Path | None = None
) -> dict[str, NDArray[Any]]:
    """An array in logical shape for every tensor that is read, in its CUDA dtype.

    A fill of the case takes precedence over the family.  Raises `fills.FillError`.
    """
    return {
        tensor.name: _array(tensor, binding, inputs, folder)
        for tensor in binding.tensors
        if tensor.is_input
    }


def _array(
    tensor: BoundTensor, binding: Binding, inputs: Inputs, folder: Path | None
) -> NDArray[Any]:
    wanted = tensor.fill or _FAMILIES.get(inputs.family, inputs.family)
    return fills.make(
        fills.parse(wanted),
        tensor.shape,
        tensor.cuda_dtype.numpy,
        name=tensor.name,
        seed=inputs.seed,
        sizes=binding.sizes,
        folder=folder,
    )


# Small whole numbers make every operation exact, so that any difference at all is a fault.
_FAMILIES = {"int": "int(-8, 9)"}
