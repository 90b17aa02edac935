"""Each side read alone: from a parsed kernel to IR at the sizes of a case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.align.binding import Binding, BoundTensor
from migrate.budget import Meter
from migrate.case.expression import parse as parse_expression
from migrate.case.layout import LayoutError
from migrate.case.types import Case
from migrate.ir.fix import fixed
from migrate.ir.index import Index
from migrate.ir.nodes import Kernel, Opaque, walk
from migrate.ir.validate import problems as malformed
from migrate.pipeline.kernels import Pair
from migrate.pipeline.launches import symbolic_launch
from migrate.rules.codes import REFUSING
from migrate.rules.hw202 import OUT_OF_BOUNDS
from migrate.rules.rule import Problem
from migrate.source import SourceError

if TYPE_CHECKING:
    from migrate.nki.parse import Module
    from migrate.nki.symbols import Number


@dataclass(frozen=True, slots=True)
class CudaReading:
    """The CUDA kernel as IR, valid at every size; `None` where it could not be lifted."""

    kernel: Kernel | None
    problems: tuple[Problem, ...]
    gaps: tuple[str, ...]

    @property
    def coverage(self) -> float:
        return self.kernel.statements.coverage if self.kernel is not None else 0.0


@dataclass(frozen=True, slots=True)
class NkiReading:
    """The NKI kernel as IR at one position of the sizes.

    `stopped`: a bound ended the reading.
    """

    kernel: Kernel | None
    problems: tuple[Problem, ...]
    gaps: tuple[str, ...]
    stopped: bool = False

    @property
    def coverage(self) -> float:
        return self.kernel.statements.coverage if self.kernel is not None else 0.0


def read_cuda(pair: Pair, binding: Binding, meter: Meter) -> CudaReading:
    """Lift the CUDA kernel; raises `SourceError` where its launch or arguments are open."""
    from migrate.cuda.lift import lift

    grid, block = symbolic_launch(pair)
    sizes, values = _cuda_scalars(pair, binding)
    lengths = {
        tensor.cuda: _length(tensor.name, pair)
        for tensor in binding.tensors
        if tensor.cuda is not None
    }
    kernel = lift(
        pair.program,
        pair.cuda.name,
        sizes,
        grid,
        block,
        dict(pair.launch.template) or None,
        lengths=lengths,
        shared_bytes=_index(pair.launch.dynamic_shared),
        meter=meter,
    )
    kernel = fixed(kernel, values)
    return CudaReading(_sound(kernel), (), _gaps(kernel))


@dataclass(frozen=True, slots=True)
class NkiKernel:
    """An NKI kernel as read, with why if it was not."""

    kernel: Kernel | None
    problems: tuple[Problem, ...]
    reasons: tuple[str, ...]
    stopped: bool = False


def read_nki(pair: Pair, binding: Binding, meter: Meter) -> NkiReading:
    """Specialise and lift the NKI kernel at the binding's sizes."""
    found = nki_kernel_at(pair.module, pair.nki.name, pair.case, binding, meter)
    gaps = (*found.reasons, *_gaps(found.kernel))
    return NkiReading(_sound(found.kernel), found.problems, gaps, found.stopped)


def nki_kernel_at(
    module: Module, name: str, case: Case, binding: Binding, meter: Meter
) -> NkiKernel:
    """One kernel of a module at the binding's sizes; raises `SourceError` and `Exhausted`."""
    args = nki_arguments(case, binding)
    return nki_kernel_with(
        module, name, args, binding.nki_grid, dict(binding.sizes), case.nki.target, meter
    )


def nki_kernel_with(
    module: Module,
    name: str,
    args: Mapping[str, object],
    grid: tuple[int, ...],
    sizes: dict[str, int],
    target: str,
    meter: Meter,
) -> NkiKernel:
    """One kernel of a module with these arguments; raises `SourceError` and `Exhausted`."""
    from migrate.nki.errors import Unsupported
    from migrate.nki.lift import lift

    here = module.kernel(name).span
    try:
        found = lift(module, name, args, meter=meter, target=target, grid=grid)
    except Unsupported as gap:
        where = gap.origin.span if gap.origin is not None else here
        return NkiKernel(None, (), (f"{where}: not understood: {gap.reason}",))
    special = found.specialization
    problems = [
        Problem(_code(p.code), p.message, p.span, "nki", sizes, p.sources) for p in special.problems
    ]
    reasons: list[str] = []
    for event in special.events:
        where = event.span or here
        match event.kind:
            case "assert" | "error":
                problems.append(Problem(f"stops:{event.kind}", event.message, where, "nki", sizes))
                reasons.append(f"{where}: {event.message}")
            case "unsupported" | "stopped":
                reasons.append(f"{where}: {event.message}")
            case "ambiguous":
                problems.append(
                    Problem("ambiguous-accumulation", event.message, where, "nki", sizes)
                )
            case "print":
                pass
    stopped = any(event.kind == "stopped" for event in special.events)
    return NkiKernel(found.kernel, tuple(problems), tuple(reasons), stopped)


def _code(code: str) -> str:
    """Problems of the front end by what they mean: a refusal, unless an index is at fault."""
    return code if code == OUT_OF_BOUNDS else f"{REFUSING}{code}"


def nki_arguments(case: Case, binding: Binding) -> dict[str, object]:
    """The NKI kernel's arguments: tensors by shape and dtype, the rest by value."""
    from migrate.nki.values import TensorSpec

    arguments: dict[str, object] = dict(case.nki.args)
    for tensor in binding.tensors:
        if tensor.nki is None:
            continue
        try:
            shape = _nki_shape(tensor, case, binding)
        except LayoutError as error:
            raise SourceError(f"{tensor.name}: {error}", file=case.file or "case") from None
        arguments[tensor.nki] = TensorSpec(shape, tensor.nki_dtype)
    for scalar in binding.scalars:
        if scalar.nki is not None:
            arguments[scalar.nki] = scalar.value
    return arguments


def _nki_shape(tensor: BoundTensor, case: Case, binding: Binding) -> tuple[Number, ...]:
    from migrate.nki.symbols import size

    values = binding.nki_shape(tensor)
    names: tuple[str | None, ...] = (None,) * len(values)
    if not tensor.steps:
        stated = next(t for t in case.tensors if t.name == tensor.name)
        names = tuple(e if isinstance(e, str) and e.isidentifier() else None for e in stated.shape)
    return tuple(
        size(name if name is not None else f"{tensor.nki}.shape[{axis}]", value)
        for axis, (name, value) in enumerate(zip(names, values, strict=True))
    )


def _cuda_scalars(
    pair: Pair, binding: Binding
) -> tuple[dict[str, Index | int], dict[str, bool | int | float]]:
    """Integer parameters as index expressions, the others as values."""
    indices: dict[str, Index | int] = {}
    values: dict[str, bool | int | float] = {}
    for stated, scalar in zip(pair.case.scalars, binding.scalars, strict=True):
        if scalar.cuda is None:
            continue
        if isinstance(stated.value, str):
            indices[scalar.cuda] = parse_expression(stated.value).index()
        elif isinstance(stated.value, int) and not _is_float(scalar.dtype):
            indices[scalar.cuda] = int(stated.value)
        else:
            values[scalar.cuda] = scalar.value
    return indices, values


def _is_float(dtype: str | None) -> bool:
    from migrate.numerics.dtypes import DType

    return dtype is not None and DType.named(dtype).kind == "float"


def _length(name: str, pair: Pair) -> Index:
    stated = next(tensor for tensor in pair.case.tensors if tensor.name == name)
    total = Index.of(1)
    for extent in stated.shape:
        total = total * _index(extent)
    return total


def _index(value: int | str) -> Index:
    return Index.of(value) if isinstance(value, int) else parse_expression(value).index()


def _sound(kernel: Kernel | None) -> Kernel | None:
    """The kernel, unless its IR is malformed: then nothing may be concluded from it."""
    return None if kernel is None or malformed(kernel) else kernel


def _gaps(kernel: Kernel | None) -> tuple[str, ...]:
    """What was not understood, as sentences with places."""
    if kernel is None:
        return ()
    found = [
        f"{op.span}: not understood: {op.reason}"
        for op in walk(kernel.body)
        if isinstance(op, Opaque)
    ]
    return (*found, *(f"internal: {problem}" for problem in malformed(kernel)))
