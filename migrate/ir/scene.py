"""A kernel's ops laid out in program order, for passes that look around in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from migrate.ir.index import Index
from migrate.ir.nodes import (
    AsyncCopy,
    Axis,
    Block,
    Carried,
    Cast,
    Contract,
    Fold,
    Gather,
    Guard,
    Kernel,
    Load,
    Op,
    Parallel,
    Reduce,
    Scatter,
    Space,
    Store,
    Value,
    Version,
    operands,
    results,
)
from migrate.source import Span

Kind: TypeAlias = Literal[
    "contraction",
    "reduction",
    "scan",
    "gather",
    "scatter",
    "transpose",
    "random",
    "output-store",
    "elementwise",
    "tile-axis",
    "stage-in",
    "stage-out",
    "mask",
    "initial-value",
    "cast",
    "barrier",
    "constant",
    "opaque",
]


@dataclass(frozen=True, slots=True)
class Draft:
    """A construct in the making: ops that belong together.

    Without ops, `spans` say where it is and `order` where it stands in the program.
    """

    kind: Kind
    ops: tuple[Op, ...]
    order: int
    summary: str
    tensors: tuple[str, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    sources: tuple[Span, ...] = ()
    spans: tuple[Span, ...] = ()
    axes: tuple[Axis, ...] = ()
    parts: tuple[tuple[Span, str], ...] = ()
    """What to show where, if not the summary at the first of `spans`."""


class Scene:
    """The kernel's ops in program order, with what is known of each by its identity."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.spaces = {buffer.name: buffer.space for buffer in kernel.buffers}
        self.roles = {buffer.name: buffer.role for buffer in kernel.buffers}
        self.ops: list[Op] = []
        self.position: dict[int, int] = {}
        self.inside: dict[int, tuple[Op, ...]] = {}
        self.maker: dict[Carried, Op] = {}
        self.users: dict[Carried, list[Op]] = {}
        self.axes: list[Axis] = []
        self.reads_of: dict[str, list[Load]] = {}
        self.writes_of: dict[str, list[Store]] = {}
        self._collect(kernel.body, ())

    def _collect(self, block: Block, around: tuple[Op, ...]) -> None:
        # As deep as the source's loops and branches, which front ends bound.
        for op in block:
            self.position[id(op)] = len(self.ops)
            self.inside[id(op)] = around
            self.ops.append(op)
            for used in operands(op):
                self.users.setdefault(used, []).append(op)
            match op:
                case Parallel(axes=axes, body=body) | Fold(axes=axes, body=body):
                    self.axes += axes
                    if isinstance(op, Fold):
                        for carried in op.state:
                            self.maker[carried.inner] = op
                    self._collect(body, (*around, op))
                case Reduce(axes=axes, body=body) | Contract(axes=axes, body=body):
                    self.axes += axes
                    self._collect(body, (*around, op))
                case Guard(body=body, otherwise=otherwise):
                    self._collect(body, (*around, op))
                    self._collect(otherwise, (*around, op))
                case Load(source=source):
                    self.reads_of.setdefault(source.buffer, []).append(op)
                case Store(into=into):
                    self.writes_of.setdefault(into.buffer, []).append(op)
            if not isinstance(op, Parallel):
                for made in results(op):
                    self.maker[made] = op

    def axes_at(self, op: Op) -> dict[str, Axis]:
        """The axes in scope at an op, by name."""
        return {axis.name: axis for region in self.inside[id(op)] for axis in _axes(region)}

    def outside(self, version: Version) -> bool:
        """Whether a buffer is the caller's: a tensor the kernel was given or returns."""
        return self.spaces[version.buffer] is Space.HBM and self.roles[version.buffer] != "scratch"

    def through_casts(self, value: Carried) -> Op | None:
        """The op a value comes from, seen through conversions."""
        op = self.maker.get(value)
        while isinstance(op, Cast):
            op = self.maker.get(op.arg)
        return op

    def touched(self, op: Op) -> tuple[tuple[str, tuple[Index, ...]], ...]:
        """The tensors outside that an op itself accesses, with the positions it names."""
        match op:
            case Load(source=source, index=index) if self.outside(source):
                return ((source.buffer, index),)
            case Store(into=into, index=index) if self.outside(into):
                return ((into.buffer, index),)
            case Gather(source=source, index=mixed) if self.outside(source):
                return ((source.buffer, _indices(mixed)),)
            case Scatter(into=into, index=mixed) if self.outside(into):
                return ((into.buffer, _indices(mixed)),)
            case AsyncCopy(into=into, source=source):
                ends = ((into, op.index), (source, op.source_index))
                return tuple((v.buffer, index) for v, index in ends if self.outside(v))
            case _:
                return ()


def _indices(parts: tuple[Index | Value, ...]) -> tuple[Index, ...]:
    return tuple(part for part in parts if isinstance(part, Index))


def _axes(region: Op) -> tuple[Axis, ...]:
    match region:
        case Parallel(axes=axes) | Fold(axes=axes) | Reduce(axes=axes) | Contract(axes=axes):
            return axes
        case _:
            return ()


def place(span: Span) -> Span:
    """The span without the calls that led there."""
    if not span.via:
        return span
    return Span(
        file=span.file,
        start_line=span.start_line,
        start_column=span.start_column,
        end_line=span.end_line,
        end_column=span.end_column,
    )
