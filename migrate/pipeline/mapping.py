"""How the constructs of a CUDA kernel would be written in NKI: advice with numbers and sources.

No code is generated.  What is said comes from `mappings/cuda_to_nki` (`[[advice]]`), the
instructions' limits and engines from `mappings/nki`, the figures from the target's table;
this module chooses what fits a construct and works out its numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from migrate import facts
from migrate.case import Case, load
from migrate.facts import Advice, Target, Whole
from migrate.facts.nki import names
from migrate.ir.census import computes, work_mapping
from migrate.ir.constructs import Construct, constructs
from migrate.ir.index import Index, TooComplex, ceil_div
from migrate.ir.nodes import Axis, AxisKind, Kernel, Space
from migrate.numerics.dtypes import DType
from migrate.pipeline.read_alone import ReadAlone, read_alone
from migrate.pipeline.single import sided
from migrate.results import SCHEMA_VERSION, ConstructKind
from migrate.source import SourceError, Span, quoted, read

_SIDE_BY_SIDE = (AxisKind.GRID, AxisKind.BLOCK, AxisKind.WARP, AxisKind.LANE, AxisKind.PARALLEL)


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A limit: of the target where it has a value, of an instruction in words else."""

    of: str
    states: str
    source: str


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of advice; `engines` and `limits` are those of what it names."""

    id: str
    how: str
    why: str = ""
    instructions: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    limits: tuple[Figure, ...] = ()
    source: str


class MappedConstruct(msgspec.Struct, frozen=True, kw_only=True):
    """A construct with what realises it, its own numbers, and what to mind."""

    id: str
    kind: ConstructKind
    summary: str
    span: Span
    realisation: Told
    numbers: tuple[str, ...] = ()
    cautions: tuple[Told, ...] = ()


class OnChip(msgspec.Struct, frozen=True, kw_only=True):
    """A shared array of a block, and the bytes of a partition that it takes, spread over all."""

    name: str
    length: str
    type: str
    bytes_per_partition: str


class MappedKernel(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel; `reason` says why nothing is told of it, `inferred` what was taken for it."""

    name: str
    span: Span
    coverage: float = 0.0
    computes: str = ""
    work_mapping: str = ""
    inferred: tuple[str, ...] = ()
    shared: tuple[OnChip, ...] = ()
    constructs: tuple[MappedConstruct, ...] = ()
    reason: str = ""


class MapDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `migrate map`: every kernel of one file, for one target."""

    schema_version: Literal["1"] = SCHEMA_VERSION
    file: str
    target: str
    kernels: tuple[MappedKernel, ...] = ()

    def to_json(self, *, indent: int = 0) -> bytes:
        """UTF-8 JSON; equal documents give equal bytes."""
        data = quoted(msgspec.json.encode(self))
        return msgspec.json.format(data, indent=indent) + b"\n" if indent else data


def mapped(
    file: str,
    kernel: str | None,
    *,
    case: str | None,
    target: str,
    defines: Mapping[str, str] | None = None,
    include: Sequence[str] = (),
) -> MapDocument:
    """See `migrate.api.mapped`."""
    if sided(file, kernel, "cuda" if file.endswith(".py") else None) != "cuda":
        raise SourceError("is not CUDA", file=file)
    stated = (load(case) if case is not None else Case()).preprocessed(defines or {}, include)
    found = read_alone(read(file), kernel, stated, launched=True)
    figures = facts.target(target)
    return MapDocument(
        file=file, target=target, kernels=tuple(_kernel(entry, figures) for entry in found)
    )


def _kernel(found: ReadAlone, target: Target) -> MappedKernel:
    kernel = found.kernel
    if kernel is None:
        return MappedKernel(name=found.name, span=found.span, reason=found.reason)
    return MappedKernel(
        name=kernel.name,
        span=kernel.span,
        coverage=kernel.statements.coverage,
        computes=computes(kernel),
        work_mapping=work_mapping(kernel),
        inferred=found.inferred,
        shared=tuple(_shared(kernel, target)),
        constructs=tuple(_construct(construct, target) for construct in constructs(kernel)),
    )


def _shared(kernel: Kernel, target: Target) -> Iterator[OnChip]:
    """The shared arrays of a block; the IR has one for every block of the grid."""
    for buffer in kernel.buffers:
        if buffer.space is Space.ONCHIP and buffer.shape:
            length = buffer.shape[-1]
            rows = ceil_div(length, target.partitions.value)
            yield OnChip(
                name=buffer.name,
                length=str(length),
                type=buffer.dtype.value,
                bytes_per_partition=str(rows * buffer.dtype.bytes),
            )


# -- what fits a construct ----------------------------------------------------------------


def traits(construct: Construct) -> Mapping[str, str]:
    """The words that advice may ask for: attributes, and what follows from operators and types.

    `double`, `integers`, `divides`, `selects`, `combines`, `sequential` and `symbolic` are
    `yes` or absent.
    """
    found = dict(construct.attributes)
    floats = [dtype for dtype in construct.dtypes if dtype.kind == "float"]
    wide = [d for d in construct.dtypes if d.kind in ("int", "uint") and d.bytes >= 4]
    if DType.FLOAT64 in construct.dtypes:
        found["double"] = "yes"
    arithmetic = set(construct.operators) & {"add", "subtract", "multiply"}
    if wide and not floats and arithmetic:
        found["integers"] = "yes"
    if "divide" in construct.operators and floats:
        found["divides"] = "yes"
    if "select" in construct.summary.split(", "):
        found["selects"] = "yes"
    if construct.kind == "scatter" and " into " in f" {construct.summary} ":
        found["combines"] = "yes"
    if any(axis.kind is AxisKind.SEQUENTIAL for axis in construct.axes):
        found["sequential"] = "yes"
    if any(axis.extent.constant is None for axis in construct.axes):
        found["symbolic"] = "yes"
    return found


def fits(advice: Advice, words: Mapping[str, str]) -> bool:
    """Whether a construct has what advice asks for; of joined words, any one will do."""
    return all(
        set(wanted.split("|")) & set(words.get(name, "").split("+"))
        for name, wanted in advice.when.items()
    )


def _construct(construct: Construct, target: Target) -> MappedConstruct:
    words = traits(construct)
    told = [piece for piece in facts.advice(construct.kind) if fits(piece, words)]
    main = next(piece for piece in told if not piece.caution)
    return MappedConstruct(
        id=construct.id,
        kind=construct.kind,
        summary=construct.summary,
        span=construct.span,
        realisation=_told(main, target),
        numbers=_numbers(construct, target),
        cautions=tuple(_told(piece, target) for piece in told if piece.caution),
    )


def _told(advice: Advice, target: Target) -> Told:
    known = names()
    instructions = [known[name] for name in advice.instructions if name in known]
    engines = dict.fromkeys(engine for entry in instructions for engine in entry.engines)
    return Told(
        id=advice.id,
        how=advice.how,
        why=advice.why,
        instructions=tuple(name.rpartition(".")[2] for name in advice.instructions),
        engines=tuple(engines),
        limits=(*_figures(advice, target), *_instruction_limits(advice, target)),
        source=advice.source,
    )


def _figures(advice: Advice, target: Target) -> Iterator[Figure]:
    for name in advice.limits:
        figure = getattr(target, name)
        if isinstance(figure, Whole):
            words = name.replace("_", " ").replace("sbuf", "SBUF").replace("psum", "PSUM")
            extra = ""
            if name == "psum_bank_bytes":
                extra = f" ({figure.value // 4} float32)"
            yield Figure(
                of=target.name,
                states=f"{words}: {figure.value:,} {figure.unit}{extra}",
                source=figure.source,
            )


def _instruction_limits(advice: Advice, target: Target) -> Iterator[Figure]:
    """The limits that are numbers, of the instruction that comes first."""
    known = names()
    for name in advice.instructions[:1]:
        entry = known.get(name)
        for limit in entry.limit if entry is not None else ():
            if limit.measure is None or (limit.targets and target.name not in limit.targets):
                continue
            yield Figure(
                of=name.rpartition(".")[2],
                states=limit.states,
                source=entry.source[0] if entry is not None else "",
            )


# -- the construct's own numbers --------------------------------------------------------------


def _numbers(construct: Construct, target: Target) -> tuple[str, ...]:
    try:
        return tuple(_own_numbers(construct, target))
    except TooComplex:
        return ()


def _own_numbers(construct: Construct, target: Target) -> Iterator[str]:
    partitions = target.partitions.value
    match construct.kind:
        case "tile-axis":
            side = [axis for axis in construct.axes if axis.kind in _SIDE_BY_SIDE]
            total = _product(side)
            if side:
                yield f"{total} positions side by side"
                yield f"{ceil_div(total, partitions)} a partition, of {partitions} partitions"
        case "reduction" if construct.axes:
            length = _product(list(construct.axes))
            size = max((dtype.bytes for dtype in construct.dtypes), default=4)
            yield f"{length} elements in each result, {length * size} bytes of a partition"
            room = target.sbuf_bytes_per_partition.value
            if (known := (length * size).constant) is not None and known > room:
                yield f"{-(-known // room)} pieces at least: a partition has {room:,} bytes"
        case "contraction" if construct.axes:
            length = _product(list(construct.axes))
            yield (
                f"CUDA sums {length} terms at a time; {partitions} go into one matrix"
                f" instruction: {ceil_div(length, partitions)} of them, on top of what PSUM holds"
            )
            rows, columns = target.matmul_stationary_free.value, target.matmul_moving_free.value
            yield (
                f"a tile of the result is at most {rows} x {columns}:"
                f" one PSUM bank of {target.psum_bank_bytes.value // 4} float32 a partition"
            )
        case "scan" if construct.axes:
            yield f"{_product(list(construct.axes))} steps"
        case _:
            return


def _product(axes: list[Axis]) -> Index:
    total = Index.of(1)
    for axis in axes:
        total = total * axis.extent
    return total
