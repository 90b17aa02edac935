"""One side alone: what was read of its kernels, and running one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from migrate.budget import Budget, Exhausted, Meter
from migrate.case import Case, load
from migrate.ir.census import computes, work_mapping
from migrate.ir.constructs import constructs
from migrate.ir.index import Index
from migrate.ir.nodes import Block, Contract, Fold, Guard, Kernel, Parallel, Reduce, walk
from migrate.ir.text import render_op
from migrate.pipeline.kernels import (
    nki_kernel,
    no_nki_kernel,
    parse_nki,
)
from migrate.pipeline.nki_version import overridden, read_versions
from migrate.pipeline.read_alone import read_alone
from migrate.pipeline.texts import chosen_side
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
    from migrate.nki.parse import Kernel as NkiKernel
    from migrate.nki.parse import Module


def side_of(file: str) -> Side:
    """Which side a file is of, by its ending; raises `SourceError`."""
    match Path(file).suffix:
        case ".cu" | ".cuh" | ".cuda" | ".h" | ".hpp":
            return "cuda"
        case ".py":
            return "nki"
        case _:
            raise SourceError("is neither CUDA (.cu, .cuh) nor NKI (.py)", file=file)


def sided(file: str, kernel: str | None, side: Side | None = None) -> Side:
    """Which side a kernel of a file is of; `side` is what was asked for.

    Raises `SourceError` for a file of neither, and for CUDA asked for as NKI.
    """
    by_name = side_of(file)
    if by_name == "cuda" and side == "nki":
        raise SourceError("is CUDA by its name, and no Python file", file=file)
    if side is not None or by_name == "cuda":
        return side or by_name
    return chosen_side(read(file), kernel)


def inspected(
    file: str,
    kernel: str | None,
    *,
    case: str | None,
    side: Side | None = None,
    defines: Mapping[str, str] | None = None,
    include: Sequence[str] = (),
    nki_version: str | None = None,
) -> IrDocument:
    """Every kernel of a file (or the one named) as read; see `migrate.api.lifted`."""
    stated = load(case) if case is not None else Case()
    stated = overridden(stated.preprocessed(defines or {}, include), nki_version)
    side = sided(file, kernel, side)
    source = read(file)
    if side == "cuda":
        return IrDocument(side=side, kernels=_cuda_documents(source, kernel, stated))
    return IrDocument(side=side, kernels=_nki_documents(source, file, kernel, stated))


# -- CUDA -----------------------------------------------------------------------------


def _cuda_documents(source: Source, name: str | None, case: Case) -> tuple[LiftedKernel, ...]:
    return tuple(
        _document(found.kernel)
        if found.kernel is not None
        else _unread(found.name, found.span, found.reason)
        for found in read_alone(source, name, case)
    )


# -- NKI ------------------------------------------------------------------------------


def _nki_documents(
    source: Source, file: str, name: str | None, case: Case
) -> tuple[LiftedKernel, ...]:
    module = parse_nki(source, file)
    chosen = (nki_kernel(module, name),) if name is not None else module.kernels
    if not chosen:
        raise no_nki_kernel(module)
    return tuple(
        msgspec.structs.replace(
            _nki_document(module, kernel, case),
            versions=read_versions(module, kernel.name, case).versions,
        )
        for kernel in chosen
    )


def _nki_document(module: Module, kernel: NkiKernel, case: Case) -> LiftedKernel:
    from migrate.align.binding import bind
    from migrate.pipeline.sides import nki_kernel_at

    meter = Meter(Budget(), f"reading {kernel.name}")
    try:
        if not case.tensors:
            return _nki_alone(module, kernel, case, meter)
        binding = bind(case, case.runs()[0])
        found = nki_kernel_at(module, kernel.name, case, binding, meter)
    except (SourceError, Exhausted) as reason_:
        return _unread(kernel.name, kernel.span, str(reason_))
    if found.kernel is None:
        return _unread(kernel.name, kernel.span, "; ".join(found.reasons))
    return _document(found.kernel)


def _nki_alone(module: Module, kernel: NkiKernel, case: Case, meter: Meter) -> LiftedKernel:
    """A kernel read with arguments that its own text tells."""
    from migrate.pipeline.nki_alone import infer
    from migrate.pipeline.nki_alone.bounds import searching
    from migrate.pipeline.sides import nki_kernel_with

    target = case.nki.target
    given = infer(module, kernel, searching(meter.budget, kernel.name), target=target)
    if isinstance(given, str) or not given.usable:
        against = given if isinstance(given, str) else "; ".join(given.failures)
        reason = (
            "an NKI kernel is read at concrete sizes, and none that it takes were found;"
            f" state them in a case (--case): {against}"
        )
        return _unread(kernel.name, kernel.span, reason)
    sizes = dict(given.sizes)
    found = nki_kernel_with(module, kernel.name, given.args, given.grid, sizes, target, meter)
    if found.kernel is None:
        document = _unread(kernel.name, kernel.span, "; ".join(found.reasons))
    else:
        document = _document(found.kernel, sizes)
    return msgspec.structs.replace(document, inferred=tuple(given.told))


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
