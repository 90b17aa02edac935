"""One side alone: what was read of its kernels, and running one of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrate.budget import Budget, Exhausted, Meter
from migrate.case import Case, load
from migrate.ir.census import computes, work_mapping
from migrate.ir.constructs import constructs
from migrate.ir.index import Index
from migrate.ir.nodes import Block, Contract, Fold, Guard, Kernel, Parallel, Reduce, walk
from migrate.ir.text import render_op
from migrate.pipeline.kernels import (
    cuda_kernel,
    nki_kernel,
    no_cuda_kernel,
    no_nki_kernel,
    parse_cuda,
    parse_nki,
)
from migrate.results import (
    AxisInfo,
    IrDocument,
    IrOp,
    LiftedConstruct,
    LiftedKernel,
    Parameter,
    Side,
)
from migrate.source import Source, SourceError, Span, read

if TYPE_CHECKING:
    from numpy.typing import NDArray


def side_of(file: str) -> Side:
    """Which side a file is of, by its ending; raises `SourceError`."""
    match Path(file).suffix:
        case ".cu" | ".cuh" | ".cuda" | ".h" | ".hpp":
            return "cuda"
        case ".py":
            return "nki"
        case _:
            raise SourceError("is neither CUDA (.cu, .cuh) nor NKI (.py)", file=file)


def inspected(file: str, kernel: str | None, *, case: str | None) -> IrDocument:
    """Every kernel of a file (or the one named) as read; see `migrate.api.lifted`."""
    side = side_of(file)
    stated = load(case) if case is not None else Case()
    source = read(file)
    if side == "cuda":
        return IrDocument(side=side, kernels=_cuda_documents(source, kernel, stated))
    return IrDocument(side=side, kernels=_nki_documents(source, kernel, stated))


# -- CUDA -----------------------------------------------------------------------------


def _cuda_documents(source: Source, name: str | None, case: Case) -> tuple[LiftedKernel, ...]:
    program = parse_cuda(source, case.cuda.define)
    chosen = program.kernels if name is None else (cuda_kernel(program, name),)
    if not chosen:
        raise no_cuda_kernel(program)
    documents = []
    for definition in chosen:
        try:
            kernel = _lift_cuda(program, definition.name, case)
        except (SourceError, Exhausted) as reason:
            documents.append(_unread(definition.name, definition.span, str(reason)))
            continue
        documents.append(_document(kernel))
    return tuple(documents)


def _lift_cuda(program: Any, name: str, case: Case) -> Kernel:
    """Lift with the case's launch where it is of this kernel, else for any launch."""
    from migrate.align.binding import bind
    from migrate.cuda.lift import lift
    from migrate.pipeline.kernels import Pair
    from migrate.pipeline.sides import read_cuda

    launch = next((la for la in case.cuda.launch if la.kernel in (None, name)), None)
    meter = Meter(Budget(), f"reading {name}")
    if launch is None or launch.grid is None or launch.block is None or not case.tensors:
        grid = tuple(Index.size(f"gridDim.{axis}") for axis in "xyz")
        block = tuple(Index.size(f"blockDim.{axis}") for axis in "xyz")
        template = dict(launch.template) if launch is not None and launch.template else None
        return lift(program, name, {}, grid, block, template, meter=meter)
    definition = cuda_kernel(program, name)
    pair = Pair(
        case=case,
        cuda_source=program.source,
        nki_source=program.source,
        program=program,
        module=None,  # type: ignore[arg-type]  # the CUDA side alone is read
        cuda=definition,
        nki=None,  # type: ignore[arg-type]
        launch=launch,
    )
    kernel = read_cuda(pair, bind(case, case.runs()[0]), meter).kernel
    assert kernel is not None
    return kernel


# -- NKI ------------------------------------------------------------------------------


def _nki_documents(source: Source, name: str | None, case: Case) -> tuple[LiftedKernel, ...]:
    from migrate.align.binding import bind
    from migrate.pipeline.infer_alone import alone
    from migrate.pipeline.sides import nki_kernel_at

    module = parse_nki(source)
    chosen = (nki_kernel(module, name),) if name is not None else module.kernels
    if not chosen:
        raise no_nki_kernel(module)
    documents = []
    for kernel in chosen:
        meter = Meter(Budget(), f"reading {kernel.name}")
        try:
            stated = case if case.tensors else alone(module, kernel, meter)
            if stated is None:
                reason = "an NKI kernel is read at concrete sizes; state them in a case (--case)"
                documents.append(_unread(kernel.name, kernel.span, reason))
                continue
            binding = bind(stated, stated.runs()[0])
            found = nki_kernel_at(module, kernel.name, stated, binding, meter)
        except (SourceError, Exhausted) as reason_:
            documents.append(_unread(kernel.name, kernel.span, str(reason_)))
            continue
        if found.kernel is None:
            documents.append(_unread(kernel.name, kernel.span, "; ".join(found.reasons)))
        else:
            chosen_sizes = binding.sizes if stated is not case else {}
            documents.append(_document(found.kernel, chosen_sizes))
    return tuple(documents)


# -- documents ------------------------------------------------------------------------


def _unread(name: str, span: Span, reason: str) -> LiftedKernel:
    return LiftedKernel(
        name=name,
        span=span,
        coverage=0.0,
        computes="other",
        work_mapping="other",
        constructs=(LiftedConstruct(id="1", kind="opaque", summary=reason, span=span),),
    )


def _document(kernel: Kernel, chosen: Mapping[str, int] | None = None) -> LiftedKernel:
    """What was read of a kernel; sizes that nobody stated (`chosen`) are shown with it."""
    values = chosen or {}

    return LiftedKernel(
        name=kernel.name,
        span=kernel.span,
        coverage=kernel.statements.coverage,
        computes=computes(kernel),
        work_mapping=work_mapping(kernel),
        parameters=tuple(
            Parameter(
                name=buffer.name,
                type=buffer.dtype.value,
                role="scalar" if not buffer.shape else _role(buffer.role),
                shape=tuple(_extent(extent, values) for extent in buffer.shape),
            )
            for buffer in kernel.buffers
            if buffer.role != "scratch"
        ),
        axes=tuple(_axes(kernel)),
        constructs=tuple(
            LiftedConstruct(
                id=construct.id,
                kind=construct.kind,
                summary=construct.summary,
                span=construct.span,
                attributes=dict(construct.attributes),
                after=construct.after,
            )
            for construct in constructs(kernel)
        ),
        ir=tuple(_ops(kernel.body, 0)),
    )


def _extent(extent: Index, chosen: Mapping[str, int]) -> str:
    text = str(extent)
    return f"{text} = {chosen[text]}" if text in chosen else text


def _role(role: str) -> Any:
    return role


def _axes(kernel: Kernel) -> list[AxisInfo]:
    found: dict[str, AxisInfo] = {}
    for op in walk(kernel.body):
        if isinstance(op, Parallel | Fold | Reduce | Contract):
            for axis in op.axes:
                info = AxisInfo(name=axis.name, kind=axis.kind.value, extent=str(axis.extent))
                found.setdefault(axis.name, info)
    return list(found.values())


def _ops(block: Block, depth: int) -> list[IrOp]:
    found: list[IrOp] = []
    for op in block:
        found.append(IrOp(text=render_op(op), depth=depth, span=op.span))
        match op:
            case Guard(body=body, otherwise=otherwise):
                found += _ops(body, depth + 1)
                found += _ops(otherwise, depth + 1)
            case Parallel(body=body) | Fold(body=body) | Reduce(body=body) | Contract(body=body):
                found += _ops(body, depth + 1)
    return found


# -- running --------------------------------------------------------------------------


def cuda_run(
    file: str,
    kernel: str | None,
    args: Mapping[str, Any],
    *,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    template: Mapping[str, object] | None,
    shared: int,
) -> dict[str, NDArray[Any]]:
    """See `migrate.api.run_cuda`."""
    import numpy as np

    from migrate.cuda.execute import execute
    from migrate.cuda.runtime import Fault, Unsupported
    from migrate.numerics.rounded import Rounded

    program = parse_cuda(read(file))
    definition = cuda_kernel(program, kernel)
    meter = Meter(Budget(), f"running {definition.name}")
    try:
        execution = execute(
            program,
            definition.name,
            args,
            grid,
            block,
            domain=Rounded(),
            template=template,
            shared_bytes=shared,
            meter=meter,
        )
    except Unsupported as gap:
        raise SourceError(gap.reason, file=file, where=gap.span) from None
    except Fault as fault:
        raise SourceError(fault.event.message, file=file, where=fault.event.span) from None
    except Exhausted as stop:
        raise SourceError(str(stop), file=file, where=stop.where or definition.span) from None
    results: dict[str, NDArray[Any]] = {}
    for name, content in execution.outputs.items():
        given = np.asarray(args[name])
        results[name] = np.asarray(content).reshape(given.shape)
    return results


def nki_run(
    file: str, kernel: str | None, args: Mapping[str, Any], *, target: str
) -> dict[str, NDArray[Any]]:
    """See `migrate.api.run_nki`."""
    import numpy as np

    from migrate.nki.simulate import simulate
    from migrate.numerics.rounded import Rounded

    module = parse_nki(read(file))
    chosen = nki_kernel(module, kernel)
    meter = Meter(Budget(), f"running {chosen.name}")
    try:
        execution = simulate(
            module, chosen.name, args, domain=Rounded(), target=target, meter=meter
        )
    except Exhausted as stop:
        raise SourceError(str(stop), file=file, where=chosen.span) from None
    if not execution.complete:
        for event in execution.specialization.events:
            if event.kind != "print":
                raise SourceError(event.message, file=file, where=event.span)
        for happening in execution.happenings:
            raise SourceError(happening.message, file=file, where=happening.span)
        raise SourceError("the kernel did not run to its end", file=file, where=chosen.span)
    results = {f"out{n}": np.asarray(v) for n, v in enumerate(execution.outputs)}
    for name, content in execution.inputs_after.items():
        before = args.get(name)
        after = np.asarray(content)
        if before is not None and not np.array_equal(
            np.asarray(before).view(np.uint8), after.view(np.uint8)
        ):
            results[name] = after
    return results
