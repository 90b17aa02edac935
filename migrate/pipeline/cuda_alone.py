"""A CUDA kernel that nothing is compared with, its reading held to a run.

What launch, sizes and template parameters leave open is tried (`alone_launch`, `alone_run`): the
first choice under which the kernel runs to its end and writes something is kept.  The kernel's
IR counts as read where it has nothing opaque and gives what that run gave.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from migrate.budget import Budget, Exhausted, Meter
from migrate.cuda.launches import Launch
from migrate.cuda.parse import Definition, Program
from migrate.ir.index import Index, TooComplex
from migrate.ir.nodes import Kernel, Opaque, Store, walk
from migrate.pipeline.alone_launch import RUN_BUDGET, Setting, settings_of, triple
from migrate.pipeline.alone_run import Run, run
from migrate.source import SourceError

EVALUATION = Budget(steps=100_000_000, seconds=60.0)
"""What evaluating an IR may use: it takes more operations than running the kernel."""

Status = Literal["agrees", "differs", "opaque", "not-run", "not-read"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading a kernel by itself came to.

    `kernel` is the IR where there is one, `sizes` those of the run that it was held to.
    `reason` says why it does not count as read.
    """

    status: Status
    reason: str
    kernel: Kernel | None
    sizes: Mapping[str, int]
    told: tuple[str, ...]
    general: Kernel | None = None
    """The IR for any grid where the launch's is a number, so that it shows what the grid is."""


def reading(
    program: Program,
    definition: Definition,
    host_launches: Sequence[Launch],
    *,
    seed: int = 0,
) -> Reading:
    """Read one kernel and hold its IR to a run."""
    settings = settings_of(program, definition, host_launches)
    try:
        first = next(settings, None)
        if first is None:
            return Reading("not-read", "no template arguments fit", None, {}, ())
        return replace(_read(first, settings, seed), general=_general(first))
    except (SourceError, Exhausted, TooComplex) as error:
        return Reading("not-read", str(error), None, {}, ())


def _general(setting: Setting) -> Kernel | None:
    grid = triple(*(Index.size(f"gridDim.{axis}") for axis in "xyz"))
    meter = Meter(RUN_BUDGET, f"lifting {setting.function.name}")
    try:
        return replace(setting, grid=grid).lifted({}, meter)
    except (SourceError, Exhausted, TooComplex):
        return None


def _read(first: Setting, others: Iterator[Setting], seed: int) -> Reading:
    reasons: list[str] = []
    runs: list[Run] = []
    for setting in chain((first,), others):
        ran = run(setting, seed)
        if isinstance(ran, str):
            reasons.append(ran)
            if ran.startswith("stopped after"):
                break
            continue
        runs.append(ran)
        if not ran.spoiled:
            return _held(ran)
    if runs:
        return _held(runs[0])
    setting = first
    try:
        kernel = setting.lifted({}, Meter(RUN_BUDGET, f"lifting {setting.function.name}"))
    except (SourceError, Exhausted) as error:
        return Reading("not-read", str(error), None, {}, setting.told)
    gaps = _gaps(kernel)
    if gaps:
        return Reading("opaque", gaps[0], kernel, {}, setting.told)
    if not kernel.outputs and not any(isinstance(op, Store) for op in walk(kernel.body)):
        # A kernel that leaves nothing behind is read when there is nothing more in it.
        return Reading("agrees", "", kernel, {}, setting.told)
    return Reading("not-run", reasons[0], kernel, {}, setting.told)


def _held(ran: Run) -> Reading:
    """The reading at any size, else the one at the sizes of the run."""
    first: Reading | None = None
    for setting in (ran.setting, ran.setting.at(ran.sizes)):
        found = _compared(replace(ran, setting=setting))
        if found.status == "agrees":
            if setting is not ran.setting and found.kernel is not None:
                at = tuple(sorted(ran.sizes.items()))
                return replace(found, kernel=replace(found.kernel, computed_at=at))
            return found
        first = first if first is not None and first.kernel is not None else found
    assert first is not None
    return first


def _compared(ran: Run) -> Reading:
    import numpy as np

    from migrate.numerics.errors import BoundedValue
    from migrate.verify.agreement import disagreement

    setting = ran.setting
    lengths = {name: len(v) for name, v in ran.args.items() if isinstance(v, np.ndarray)}
    try:
        kernel = setting.lifted(lengths, Meter(RUN_BUDGET, f"lifting {setting.function.name}"))
    except (SourceError, Exhausted) as error:
        return Reading("not-read", str(error), None, ran.sizes, setting.told)
    gaps = _gaps(kernel)
    if gaps:
        return Reading("opaque", gaps[0], kernel, ran.sizes, setting.told)
    executed = {}
    for name in ran.execution.written:
        content = ran.execution.outputs[name]
        dtype = kernel.buffer(name).dtype
        executed[name] = (
            content if isinstance(content, BoundedValue) else BoundedValue(dtype, content)
        )
    given = {**dict(setting.function.initials), **ran.args}
    inputs = {
        buffer.name: np.asarray(given[buffer.name], np.float64).reshape(
            (-1,) if buffer.shape else ()
        )
        for buffer in kernel.buffers
        if buffer.name in given
    }
    try:
        meter = Meter(EVALUATION, f"evaluating {kernel.name}")
        reason = disagreement(kernel, ran.sizes, inputs, executed, meter)
    except Exhausted as stop:
        reason = f"its reading is not evaluated: {stop}"
    status: Status = "agrees" if reason is None else "differs"
    return Reading(status, reason or "", kernel, ran.sizes, setting.told)


def _gaps(kernel: Kernel) -> list[str]:
    return [f"{op.span}: {op.reason}" for op in walk(kernel.body) if isinstance(op, Opaque)]
