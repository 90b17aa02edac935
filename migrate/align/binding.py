"""Which parameter of one kernel is which of the other, and how each tensor is laid out.

A `Binding` is what a comparison stands on: the logical tensors at concrete sizes, the
buffer that holds each on either side, and the scalars.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from migrate.case import layout
from migrate.case.expression import evaluate
from migrate.case.layout import Step
from migrate.case.types import Case
from migrate.numerics.dtypes import DType
from migrate.results import Side

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from migrate.ir.nodes import Kernel
    from migrate.ir.normal import Tensor


class BindingError(Exception):
    """The two kernels cannot be bound: one sentence, and where the way out is a case."""


@dataclass(frozen=True, slots=True)
class BoundTensor:
    """A logical tensor at concrete sizes.

    `cuda` and `nki` name parameters, `nki_out` a position in the NKI kernel's return
    value; `steps` lead from the logical shape to the NKI side's.
    """

    name: str
    shape: tuple[int, ...]
    role: str
    cuda_dtype: DType
    nki_dtype: DType
    cuda: str | None
    nki: str | None
    nki_out: int | None
    steps: tuple[Step, ...] = ()
    fill: str | None = None
    expect: str | None = None

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def is_input(self) -> bool:
        return self.role in {"in", "inout"}

    @property
    def is_output(self) -> bool:
        return self.role in {"out", "inout"}


@dataclass(frozen=True, slots=True)
class BoundScalar:
    """A scalar argument with its value; `None` for a side that does not take it."""

    name: str
    value: bool | int | float
    dtype: str | None
    cuda: str | None
    nki: str | None


@dataclass(frozen=True, slots=True)
class Binding:
    """Both kernels' arguments at one position of the case's sizes.

    `nki_grid` are the programs that the NKI kernel is launched as, axis by axis.
    """

    sizes: Mapping[str, int]
    tensors: tuple[BoundTensor, ...]
    scalars: tuple[BoundScalar, ...]
    inferred: tuple[str, ...] = ()
    nki_grid: tuple[int, ...] = ()

    @property
    def outputs(self) -> tuple[BoundTensor, ...]:
        return tuple(t for t in self.tensors if t.is_output)

    def nki_shape(self, tensor: BoundTensor) -> tuple[int, ...]:
        """The shape of the tensor as the NKI kernel takes it."""
        return layout.shapes(tensor.steps, tensor.shape, self.sizes)[-1]

    def to_nki(self, tensor: BoundTensor, array: NDArray[Any]) -> NDArray[Any]:
        """The logical array as the NKI kernel takes it."""
        return layout.apply(tensor.steps, array, self.sizes)

    def from_nki(self, tensor: BoundTensor, array: NDArray[Any]) -> NDArray[Any]:
        """The logical array from what the NKI kernel gave; raises `layout.LayoutError`."""
        return layout.undo(tensor.steps, array, tensor.shape, self.sizes)


def bind(case: Case, sizes: Mapping[str, int]) -> Binding:
    """The binding a case states, at one position of its sizes."""
    tensors = []
    for tensor in case.tensors:
        if tensor.role == "scratch":
            continue
        both = tensor.dtype or "float32"
        tensors.append(
            BoundTensor(
                name=tensor.name,
                shape=tensor.extents(sizes),
                role=tensor.role or "in",
                cuda_dtype=DType.named(tensor.cuda_dtype or both),
                nki_dtype=DType.named(tensor.nki_dtype or both),
                cuda=tensor.cuda,
                nki=tensor.nki,
                nki_out=tensor.nki_out,
                steps=layout.parse(tensor.nki_layout) if tensor.nki_layout else (),
                fill=tensor.fill,
                expect=tensor.expect,
            )
        )
    scalars = tuple(
        BoundScalar(s.name, s.resolve(sizes), s.dtype, s.cuda, s.nki) for s in case.scalars
    )
    grid = tuple(evaluate(extent, sizes) for extent in case.nki.grid)
    return Binding(dict(sizes), tuple(tensors), scalars, nki_grid=grid)


def logical_tensors(binding: Binding, kernel: Kernel, side: Side) -> dict[str, Tensor]:
    """How the kernel's buffers hold the logical tensors."""
    from migrate.ir.normal import Tensor

    positions = {output.position: output.version.buffer for output in kernel.outputs}
    names = {buffer.name for buffer in kernel.buffers}
    found: dict[str, Tensor] = {}
    for tensor in binding.tensors:
        if side == "cuda":
            if tensor.cuda in names and tensor.cuda is not None:
                found[tensor.cuda] = Tensor(tensor.name, tensor.shape)
            continue
        elements = _elements(binding, tensor)
        if tensor.nki in names and tensor.nki is not None:
            found[tensor.nki] = Tensor(tensor.name, tensor.shape, elements)
        # A parameter that is handed back as it came stays what it is.
        if tensor.nki_out is not None and tensor.nki_out in positions:
            found.setdefault(positions[tensor.nki_out], Tensor(tensor.name, tensor.shape, elements))
    return found


def given_shape(
    binding: Binding, kernel: Kernel, tensor: BoundTensor, sizes: Mapping[str, int]
) -> tuple[int, ...] | None:
    """The shape of what the NKI kernel gives for an output; `None` where it gives nothing."""
    name = tensor.nki
    if tensor.nki_out is not None:
        positions = {output.position: output.version.buffer for output in kernel.outputs}
        name = positions.get(tensor.nki_out)
    if name is None or all(buffer.name != name for buffer in kernel.buffers):
        return None
    return tuple(int(extent.evaluate(sizes)) for extent in kernel.buffer(name).shape)


def _elements(binding: Binding, tensor: BoundTensor) -> NDArray[np.int64] | None:
    """The logical element of each cell of the NKI side's array, -1 in padding."""
    if not tensor.steps:
        return None
    import numpy as np

    numbered = np.arange(1, tensor.size + 1, dtype=np.int64).reshape(tensor.shape)
    return binding.to_nki(tensor, numbered).reshape(-1) - 1
