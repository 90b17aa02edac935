"""One NKI kernel on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from migrate.budget import Exhausted
from migrate.numerics.dtypes import DType
from migrate.pipeline.kernels import nki_kernel, parse_nki
from migrate.pipeline.run_document import (
    Moved,
    Outcome,
    RunDocument,
    RunStatistics,
    RunWarning,
    TracedOperand,
    TracedStep,
    described,
)
from migrate.pipeline.run_options import Options, Outside, Ran, by_name, plain_array
from migrate.results import value as shown
from migrate.source import SourceError, read

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from migrate.nki.frames import Event, Instruction
    from migrate.nki.parse import Kernel, Module
    from migrate.nki.simulate import Execution
    from migrate.nki.values import Problem
    from migrate.nki.watching import Look, Statistics, Step, Trace, Watch
    from migrate.source import Span

SEED = 0
"""Of the numbers that kernels draw."""


def opened(file: str, kernel: str | None, options: Options) -> tuple[Module, Kernel]:
    """A kernel of a file, which must go with the version of NKI that is asked for."""
    module = parse_nki(read(file), file)
    chosen = nki_kernel(module, kernel)
    if options.nki_version is not None:
        from migrate.nki.versions import detect
        from migrate.pipeline.nki_version import version_of

        stated = version_of(options.nki_version, "--nki-version")
        for reason in detect(module, chosen.name).excluding(stated):
            if not reason.conditional:
                message = f"cannot run with NKI {stated}: {reason.message}"
                raise SourceError(message, file=file, where=reason.span)
    return module, chosen


def bound_arguments(
    chosen: Kernel, args: Sequence[Any], named: Mapping[str, Any], file: str
) -> dict[str, Any]:
    """The arguments of a call by name."""
    if len(args) > len(chosen.parameters):
        raise SourceError(
            f"{chosen.name} takes {len(chosen.parameters)} arguments, not {len(args)}",
            file=file,
            where=chosen.span,
        )
    values = dict(zip(chosen.parameters, args, strict=False))
    for name in named:
        if name in values:
            raise SourceError(f"{name} is given twice", file=file, where=chosen.span)
    return values | dict(named)


def simulated(
    module: Module,
    chosen: Kernel,
    args: Mapping[str, Any],
    options: Options,
    watch: Watch | None = None,
) -> tuple[Execution[Any], tuple[Problem, ...]]:
    """A run, to the kernel's end or to a bound, and what was wrong with the tiles that are alive.

    Raises where its numbers mean nothing.
    """
    from migrate.nki.analyses.capacity import Capacity
    from migrate.nki.analyses.overlap import Overlap
    from migrate.nki.simulate import simulate

    file = module.source.name
    plain = {name: _plain(value) for name, value in args.items()}
    capacity, overlap = Capacity(options.target), Overlap(options.target)

    executed = 0

    def told(instruction: Instruction, look: Look) -> None:
        nonlocal executed
        executed += 1
        capacity.execute(instruction)
        overlap.execute(instruction)
        if watch is not None:
            watch(instruction, look)

    try:
        execution = simulate(
            module,
            chosen.name,
            plain,
            domain=options.domain(),
            target=options.target,
            grid=options.grid,
            meter=options.meter(chosen.name, lambda _: f"{executed:,} instructions"),
            order=options.order,
            seed=SEED,
            watch=told,
        )
    except Exhausted as stop:
        raise SourceError(str(stop), file=file, where=stop.where or chosen.span) from None
    except TypeError as error:
        raise SourceError(str(error), file=file, where=chosen.span) from None
    _check(execution, file, chosen.span)
    found = execution.specialization
    # The compiler of NKI 0.1 places tensors, and moves those that do not fit.
    live = () if found.legacy else tuple(capacity.problems(found))
    return execution, (*live, *overlap.problems(found))


def _plain(value: Any) -> Any:
    """NumPy's scalars as Python's; functions of NumPy and NKI as the operators they stand for.

    Objects of data classes are made anew, by the class of that name in the kernel's file.
    """
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value) and not isinstance(value, type | DType):
        from migrate.nki.values import Made

        given = (field.name for field in fields(value) if field.init)
        held = ((name, _plain(getattr(value, name))) for name in given)
        return Made(type(value).__name__, tuple(held))
    if isinstance(value, np.ndarray) or not (callable(value) or hasattr(value, "_name")):
        return value
    from migrate.nki.library import resolve
    from migrate.nki.values import Unknown

    # What stands in for a package that is not installed has the dotted name (`_name`).
    dotted = getattr(value, "_name", None)
    if not isinstance(dotted, str):
        module = getattr(value, "__module__", None) or "numpy"
        dotted = f"{module}.{getattr(value, '__name__', '')}"
    path, _, name = dotted.removeprefix("neuronxcc.").rpartition(".")
    found = resolve(path.replace("numpy.core.fromnumeric", "numpy"), name)
    return value if isinstance(found, Unknown) else found


def _check(execution: Execution[Any], file: str, where: Span) -> None:
    """Raise for what makes the numbers of a run mean nothing."""
    for happening in execution.happenings:
        if happening.code == "out-of-bounds":
            raise Outside(
                happening.message,
                happening.span,
                happening.related,
                (happening.index, happening.size),
            )
    if execution.complete:
        return
    events = [event for event in execution.specialization.events if event.kind != "print"]
    for event in events:
        if event.kind != "stopped":
            raise SourceError(event.message, file=file, where=event.span)
    problems = {problem.span: problem for problem in execution.specialization.problems}
    for happening in execution.happenings:
        if happening.code == "unsupported":
            # What the instruction would be refused for says it better.
            told = problems.get(happening.span, happening)
            raise SourceError(told.message, file=file, where=happening.span)
    if not events:
        raise SourceError("the kernel did not run to its end", file=file, where=where)


def stopped(execution: Execution[Any]) -> Event | None:
    """The bound at which a run ended early, if it did."""
    events = execution.specialization.events
    return next((event for event in events if event.kind == "stopped"), None)


def whole(execution: Execution[Any], file: str) -> Execution[Any]:
    """The run, which must have come to the kernel's end."""
    event = stopped(execution)
    if event is not None:
        raise SourceError(event.message, file=file, where=event.span)
    return execution


def ran(file: str, kernel: str | None, args: Mapping[str, Any], options: Options) -> Ran:
    """See `migrate.api.ran_nki`."""
    from migrate.nki.watching import Statistics, Trace

    module, chosen = opened(file, kernel, options)
    statistics = Statistics() if options.statistics else None
    trace = Trace(options.trace, options.on_step) if options.trace else None
    try:
        execution, live = simulated(module, chosen, args, options, _watch(statistics, trace))
    except Outside as error:
        raise error.refusal(file) from None
    event = stopped(execution)
    outcome: Outcome = "complete"
    if event is not None:
        cancelled = options.cancelled is not None and options.cancelled()
        outcome = "interrupted" if cancelled else "stopped"
    results = _results(execution, args)
    document = RunDocument(
        file=file,
        kernel=chosen.name,
        side="nki",
        target=options.target,
        precision=options.precision,
        order=options.order,
        outcome=outcome,
        reason=event.message if event is not None else "",
        where=event.span if event is not None else None,
        results=described(results),
        warnings=tuple(_warnings(execution, live)),
        instructions=execution.executed,
        statistics=_statistics(statistics) if statistics is not None else None,
        trace=tuple(map(traced, trace.steps)) if trace is not None else None,
    )
    return Ran(results, document)


def _warnings(execution: Execution[Any], live: Sequence[Problem]) -> Iterator[RunWarning]:
    """What happened, then what the compiler or the hardware would not take."""
    for h in execution.happenings:
        yield RunWarning(code=h.code, message=h.message, span=h.span, related=h.related)
    for problem in (*execution.specialization.problems, *live):
        related = next(iter(problem.sources), None)
        yield RunWarning(
            code=problem.code,
            message=problem.message,
            span=problem.span,
            related=related if related != problem.span else None,
        )


def _results(execution: Execution[Any], args: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """What the kernel returns, and the arguments it wrote to; else what is in HBM."""
    found: dict[str, Any] = {f"out{n}": value for n, value in enumerate(execution.outputs)}
    for name, content in execution.inputs_after.items():
        before = args.get(name)
        if before is not None and not same_bytes(np.asarray(before), plain_array(content)):
            found[name] = content
    for name, content in execution.partial.items():
        found.setdefault(name, content)
    return by_name(found)


def same_bytes(before: NDArray[Any], after: NDArray[Any]) -> bool:
    """Whether two arrays hold the same, NaN and zeros of either sign by their bits."""
    if np.may_share_memory(before, after):
        return True
    if before.shape != after.shape:
        return False
    if before.dtype != after.dtype:
        # What is held in a wider format: the same numbers.
        return np.array_equal(before.astype(after.dtype), after, equal_nan=after.dtype.kind == "f")
    left, right = (np.ascontiguousarray(a).view(np.uint8) for a in (before, after))
    return bool(np.array_equal(left, right))


def _watch(statistics: Statistics | None, trace: Trace | None) -> Watch | None:
    if statistics is None and trace is None:
        return None

    def watch(instruction: Instruction, look: Look) -> None:
        if statistics is not None:
            statistics.count(instruction)
        if trace is not None:
            trace.take(instruction, look)

    return watch


def _statistics(found: Statistics) -> RunStatistics:
    return RunStatistics(
        engines=dict(found.engines.most_common()),
        opcodes=dict(found.opcodes.most_common()),
        moved=tuple(
            Moved(source=source, destination=destination, bytes=size)
            for (source, destination), size in found.moved.most_common()
        ),
    )


def traced(step: Step) -> TracedStep:
    """An instruction of a trace as it is told."""
    return TracedStep(
        number=step.number,
        span=step.span,
        opcode=step.opcode,
        engine=step.engine,
        operands=tuple(
            TracedOperand(
                name=operand.name,
                tensor=operand.tensor,
                memory=operand.memory,
                dtype=operand.dtype,
                shape=operand.shape,
                values=None if operand.values is None else tuple(map(shown, operand.values)),
            )
            for operand in step.operands
        ),
        attributes=dict(step.attributes),
    )
