"""Running both kernels on the same inputs, and judging the NKI result.

The reference is the CUDA kernel in the `Bounded` domain: real values with an error bound.
The NKI kernel runs in `Rounded`, with its own formats; its own `Bounded` run says how
much error its operations are allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from migrate.align.binding import Binding, BoundTensor
from migrate.budget import Budget, Exhausted, Meter
from migrate.case.layout import LayoutError
from migrate.cuda.execute import Execution as CudaExecution
from migrate.cuda.execute import execute
from migrate.cuda.runtime import Event, Fault, Unsupported
from migrate.nki.simulate import Execution as NkiExecution
from migrate.nki.simulate import simulate
from migrate.numerics.bounded import Bounded
from migrate.numerics.compare import judge
from migrate.numerics.domain import Domain
from migrate.numerics.dtypes import DType
from migrate.numerics.errors import BoundedValue
from migrate.numerics.parts import mapped
from migrate.numerics.rounded import Rounded
from migrate.results import Inputs, OutputResult, Run, Status
from migrate.source import SourceError
from migrate.verify.inputs import make
from migrate.verify.launch import Launch

if TYPE_CHECKING:
    from migrate.cuda.parse import Program
    from migrate.nki.parse import Module


@dataclass(frozen=True, slots=True)
class Pair:
    """Both kernels, ready to run."""

    program: Program
    module: Module
    nki_kernel: str
    target: str
    args: Mapping[str, object]
    folder: Path | None


@dataclass(frozen=True, slots=True)
class Ran:
    """One run, with what both kernels gave in the `Bounded` domain.

    `inputs` are the logical arrays; `cuda` are results by parameter, `nki` by position and
    `nki_after` by parameter.  `cut_short`: the clock ended it.  `faults` are what the CUDA
    kernel did wrong.
    """

    run: Run
    cut_short: bool = False
    inputs: Mapping[str, NDArray[Any]] | None = None
    cuda: Mapping[str, BoundedValue] | None = None
    nki: Sequence[BoundedValue] = ()
    nki_after: Mapping[str, BoundedValue] | None = None
    faults: tuple[Event, ...] = ()


class NotRun(Exception):
    """A kernel could not be run: one sentence, and the fault that ended it if there was one."""

    def __init__(self, reason: str, fault: Event | None = None) -> None:
        super().__init__(reason)
        self.fault = fault


ELEMENT_BYTES = 160
"""What a run holds for each element of a tensor, measured: values, bounds and temporaries of
both kernels."""

_RACES = frozenset({"conflicting-stores"})
"""What leaves the result to the order in which threads happen to run."""

_SPOILING = frozenset(
    {
        "uninitialised",
        "division-by-zero",
        "divergent-barrier",
        "inactive-shuffle-source",
        "assertion",
    }
)
"""What can have made the result undefined.  A result that agrees all the same did not need it."""

_TOLD = frozenset({"shared-race", "excluded-lane", "divergent-barrier", "inactive-shuffle-source"})
"""What CUDA leaves undefined although this run, in its fixed order, came out well."""


def run(pair: Pair, launch: Launch, binding: Binding, inputs: Inputs, budget: Budget) -> Ran:
    """One run of both kernels."""
    meter = Meter(budget, "running both kernels")

    def outcome(
        status: Status, reason: str | None = None, outputs: tuple[OutputResult, ...] = ()
    ) -> Run:
        return Run(
            sizes=dict(binding.sizes), inputs=inputs, status=status, reason=reason, outputs=outputs
        )

    try:
        with meter.scratch():
            # Refused before anything of that size is made.
            meter.take(ELEMENT_BYTES * sum(tensor.size for tensor in binding.tensors))
        arrays = make(binding, inputs, folder=pair.folder)
        bounded = Bounded()
        reference = run_cuda(pair.program, launch, binding, arrays, bounded, meter)
        actual = run_nki(pair, binding, arrays, Rounded(), meter)
        own = run_nki(pair, binding, arrays, bounded, meter)
    except NotRun as gap:
        ended = () if gap.fault is None else (gap.fault,)
        return Ran(outcome("not-run", str(gap)), faults=ended)
    except Exhausted as stop:
        place = f"{stop.where}: " if stop.where is not None else ""
        return Ran(outcome("not-run", f"{place}{stop}"), stop.kind == "seconds")
    results = tuple(_judged(tensor, binding, reference, actual, own) for tensor in binding.outputs)
    statuses = {result.status for result in results}
    worst: tuple[Status, ...] = ("fail", "not-run", "investigate", "pass")
    status: Status = next((s for s in worst if s in statuses), "pass")
    faults = tuple(event for event in reference.events if event.kind in _RACES)
    if status != "pass":
        faults += tuple(event for event in reference.events if event.kind in _SPOILING)
    if faults:
        # Whatever differs, the reference is no measure of it.
        reason = f"not judged: the CUDA kernel is at fault: {faults[0].span}: {faults[0].message}"
        return Ran(outcome("not-run", reason), faults=faults)
    return Ran(
        outcome(status, None, results),
        inputs=arrays,
        faults=tuple(event for event in reference.events if event.kind in _TOLD),
        cuda={
            t.cuda: _bounded(reference.outputs[t.cuda], t.cuda_dtype)
            for t in binding.tensors
            if t.cuda is not None
        },
        nki=own.outputs,
        nki_after=own.inputs_after,
    )


def run_cuda(
    program: Program,
    launch: Launch,
    binding: Binding,
    arrays: Mapping[str, NDArray[Any]],
    domain: Domain[Any],
    meter: Meter,
) -> CudaExecution:
    """The CUDA kernel on logical arrays; raises `NotRun` and `Exhausted`."""
    args: dict[str, Any] = {}
    for tensor in binding.tensors:
        if tensor.cuda is None:
            continue
        args[tensor.cuda] = (
            arrays[tensor.name]
            if tensor.is_input
            else np.zeros(tensor.shape, tensor.cuda_dtype.numpy)
        )
    for scalar in binding.scalars:
        if scalar.cuda is not None:
            args[scalar.cuda] = scalar.value
    try:
        return execute(
            program,
            launch.kernel,
            args,
            launch.grid,
            launch.block,
            domain=domain,
            template=launch.template,
            shared_bytes=launch.shared_bytes,
            meter=meter,
        )
    except Unsupported as gap:
        raise NotRun(f"the CUDA kernel cannot be run: {gap}") from None
    except Fault as fault:
        raise NotRun(f"the CUDA kernel is at fault: {fault}", fault.event) from None
    except SourceError as error:
        raise NotRun(str(error)) from None


def run_nki(
    pair: Pair,
    binding: Binding,
    arrays: Mapping[str, NDArray[Any]],
    domain: Domain[Any],
    meter: Meter,
) -> NkiExecution[Any]:
    """The NKI kernel on logical arrays; raises `NotRun` and `Exhausted`."""
    args: dict[str, Any] = dict(pair.args)
    for tensor in binding.tensors:
        if tensor.nki is None:
            continue
        array = arrays.get(tensor.name)
        if array is None:
            array = np.zeros(tensor.shape, tensor.nki_dtype.numpy)
        try:
            args[tensor.nki] = binding.to_nki(tensor, array.astype(tensor.nki_dtype.numpy))
        except LayoutError as error:
            raise NotRun(f"{tensor.name}: {error}") from None
    for scalar in binding.scalars:
        if scalar.nki is not None:
            args[scalar.nki] = scalar.value
    try:
        execution = simulate(
            pair.module,
            pair.nki_kernel,
            args,
            domain=domain,
            target=pair.target,
            grid=binding.nki_grid,
            meter=meter,
        )
    except SourceError as error:
        raise NotRun(str(error)) from None
    if not execution.complete:
        events = execution.specialization.events
        stopped = next((e.message for e in events if e.kind != "print"), None)
        found = next((h.message for h in execution.happenings), None)
        raise NotRun(f"the NKI kernel cannot be run: {stopped or found or 'it did not finish'}")
    return execution


def _judged(
    tensor: BoundTensor,
    binding: Binding,
    reference: CudaExecution,
    actual: NkiExecution[Any],
    own: NkiExecution[Any],
) -> OutputResult:
    total = tensor.size
    try:
        values = _output(actual, tensor, binding)
        bounds = _output(own, tensor, binding)
    except LayoutError:
        return OutputResult(name=tensor.name, status="fail", elements=total, mismatched=total)
    if values is None or bounds is None:
        return OutputResult(name=tensor.name, status="fail", elements=total, mismatched=total)
    if tensor.cuda is None:
        return OutputResult(name=tensor.name, status="not-run", elements=total)
    found = _bounded(reference.outputs[tensor.cuda], tensor.cuda_dtype)
    expected = mapped(found, lambda part: part.reshape(tensor.shape))
    values = np.asarray(values)
    if values.dtype != tensor.nki_dtype.numpy:
        # Of another format than the case states: its numbers are held against the reference.
        values = values.astype(tensor.nki_dtype.numpy)
    alone = _left_alone(tensor, binding, reference, actual)
    if alone is not None:
        # Nothing was asked for there, and nothing was given.
        values = np.where(alone, expected.value.astype(values.dtype), values)
    judgement = judge(values, expected, tensor.nki_dtype, own=bounds)
    return OutputResult(
        name=tensor.name,
        status=judgement.status,
        elements=total,
        mismatched=judgement.mismatched,
        first_mismatch=judgement.first_mismatch,
        max_abs=judgement.max_abs,
        max_ulp=judgement.max_ulp,
        allowed=judgement.allowed,
        ambiguous=judgement.ambiguous,
    )


def _output(execution: NkiExecution[Any], tensor: BoundTensor, binding: Binding) -> Any:
    """A logical output, `None` where the NKI kernel has no such result."""
    if tensor.nki_out is not None:
        if tensor.nki_out >= len(execution.outputs):
            return None
        found = execution.outputs[tensor.nki_out]
    elif tensor.nki is not None:
        found = execution.inputs_after[tensor.nki]
    else:
        return None
    if isinstance(found, BoundedValue):
        return mapped(found, lambda part: binding.from_nki(tensor, part))
    return binding.from_nki(tensor, np.asarray(found))


def _left_alone(
    tensor: BoundTensor, binding: Binding, reference: CudaExecution, actual: NkiExecution[Any]
) -> NDArray[np.bool_] | None:
    """The elements of a result that neither kernel writes, `None` for none."""
    if tensor.cuda is None or tensor.is_input or tensor.nki_out is None:
        return None
    given = binding.from_nki(tensor, actual.written[tensor.nki_out])
    alone = ~reference.stored[tensor.cuda].reshape(tensor.shape) & ~given
    return np.asarray(alone) if alone.any() else None


def _bounded(found: Any, dtype: DType) -> BoundedValue:
    """What the CUDA kernel left, with its bounds; integers are plain arrays, and exact."""
    return found if isinstance(found, BoundedValue) else BoundedValue(dtype, np.asarray(found))
