"""From operations to constructs: what a reviewer would point at.

One pass for both sides, which knows neither.  *Anchors* are the ops that move data
between memories or combine elements; what lies between them is *elementwise*.  Around
them stand the axes the work is spread over, the conditions that keep it inside, and the
conversions and constants on the way.

Each construct knows its ops (by span), its attributes in words, the tensors it touches,
and the constructs whose results it uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from migrate.ir.index import Extremum, Index
from migrate.ir.nodes import (
    AsyncCopy,
    Axis,
    AxisKind,
    Barrier,
    Block,
    Carried,
    Cast,
    Contract,
    Fill,
    Fold,
    Gather,
    Guard,
    Kernel,
    Load,
    Map,
    Op,
    Opaque,
    Parallel,
    Random,
    Reduce,
    Scan,
    Scatter,
    Select,
    Space,
    Store,
    Transpose,
    Value,
    Version,
    operands,
    results,
)
from migrate.ir.predicate import TRUE, Predicate
from migrate.numerics.operators import OPERATORS
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
    "special-function",
    "barrier",
    "constant",
    "opaque",
]

ANCHORS: frozenset[Kind] = frozenset(
    {"contraction", "reduction", "scan", "gather", "scatter", "transpose", "random", "output-store"}
)


@dataclass(frozen=True, slots=True)
class Construct:
    """One thing that a kernel does.

    `tensors` are the buffers outside the kernel that it touches directly, `operators`
    the operators it applies, in program order; `attributes` are words for a reader.
    `sources` are places whose integers decide where it works.
    """

    id: str
    kind: Kind
    summary: str
    span: Span
    spans: tuple[Span, ...]
    tensors: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    after: tuple[str, ...] = ()
    sources: tuple[Span, ...] = ()


def constructs(kernel: Kernel) -> tuple[Construct, ...]:
    """The kernel's constructs, in program order."""
    return _Pass(kernel).run()


@dataclass(slots=True)
class _Draft:
    """A construct in the making: ops that belong together."""

    kind: Kind
    ops: list[Op]
    order: int
    tensors: tuple[str, ...] = ()
    detail: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    sources: tuple[Span, ...] = ()


class _Pass:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.spaces = {buffer.name: buffer.space for buffer in kernel.buffers}
        self.roles = {buffer.name: buffer.role for buffer in kernel.buffers}
        self.drafts: list[_Draft] = []
        self.maker: dict[Carried, Op] = {}
        self.draft_of: dict[int, int] = {}
        self.ops: list[Op] = []
        self.axes: list[Axis] = []
        self.conditions: list[tuple[Predicate, Op]] = []
        self.used_axes: set[str] = set()

    def run(self) -> tuple[Construct, ...]:
        self.collect(self.kernel.body)
        self.classify()
        self.regions()
        self.surroundings()
        return self.finish()

    def collect(self, block: Block) -> None:
        for op in block:
            self.ops.append(op)
            for made in results(op):
                self.maker.setdefault(made, op)
            match op:
                case Parallel(axes=axes, body=body, where=where):
                    self.axes += axes
                    self.condition(where, op)
                    self.collect(body)
                case Fold(axes=axes, body=body, where=where, state=state):
                    self.axes += axes
                    self.condition(where, op)
                    for carried in state:
                        self.maker.setdefault(carried.inner, op)
                    self.collect(body)
                case Reduce(body=body, where=where) | Contract(body=body, where=where):
                    self.condition(where, op)
                    self.collect(body)
                case Guard(condition=condition, body=body, otherwise=otherwise):
                    if not isinstance(condition, Value):
                        self.condition(condition, op)
                    self.collect(body)
                    self.collect(otherwise)
                case (
                    Load(where=where)
                    | Store(where=where)
                    | Gather(where=where)
                    | Scatter(where=where)
                ):
                    self.condition(where, op)

    def condition(self, where: Predicate, op: Op) -> None:
        if where != TRUE:
            self.conditions.append((where, op))

    # -- anchors and movement -------------------------------------------------------

    def classify(self) -> None:
        for op in self.ops:
            match op:
                case Store(into=into, value=value) if self.outside(into):
                    self.add("output-store", [op], (into.buffer,))
                    self.touch(op.index)
                case Scatter(into=into) if self.outside(into):
                    kind: Kind = "output-store" if op.combine is None else "scatter"
                    self.add(kind, [op], (into.buffer,), op.combine or "")
                    self.touch(part for part in op.index if isinstance(part, Index))
                case Scatter():
                    self.add("scatter", [op], (), op.combine or "")
                case AsyncCopy(into=into, source=source):
                    if self.outside(into):
                        self.add("output-store", [op], (into.buffer,))
                        self.touch(op.index)
                    elif self.outside(source):
                        self.add("stage-in", [op], (source.buffer,))
                        self.touch(op.source_index)
                case Load(source=source) if self.outside(source):
                    self.add("stage-in", [op], (source.buffer,), sources=op.sources)
                    self.touch(op.index)
                case Gather(source=source):
                    self.add("gather", [op], (source.buffer,) if self.outside(source) else ())
                    self.touch(part for part in op.index if isinstance(part, Index))
                case Store(into=into, value=value):
                    self.copy(op, into, value)
                case Reduce(operator=operator, axes=axes):
                    self.add("reduction", [op], (), f"{operator} over {_extents(axes)}")
                case Contract(axes=axes):
                    self.add("contraction", [op], (), f"over {_extents(axes)}")
                case Scan(operator=operator, axis=axis):
                    self.add("scan", [op], (), f"{operator} along {axis}")
                case Transpose():
                    self.add("transpose", [op])
                case Random(distribution=distribution):
                    self.add("random", [op], (), distribution)
                case Barrier(scope=scope):
                    self.add("barrier", [op], (), scope)
                case Opaque(reason=reason):
                    self.add("opaque", [op], (), reason)
                case Cast(arg=arg, result=result) if self.notable(arg, result):
                    detail = f"{arg.dtype.value} to {result.dtype.value}, {op.rounding.value}"
                    self.add("cast", [op], (), detail)
                case Fill(number=number):
                    self.add("constant", [op], (), f"{number:g}")
                case _:
                    pass

    def notable(self, arg: Value, result: Value) -> bool:
        """Whether a conversion is more than widening a float."""
        if arg.dtype is result.dtype:
            return False
        floats = arg.dtype.kind == "float" and result.dtype.kind == "float"
        return not floats or result.dtype.unit_roundoff > arg.dtype.unit_roundoff

    def copy(self, op: Store, into: Version, value: Value) -> None:
        """A store on chip: part of the staging that its value comes straight from."""
        source = self.straight(value)
        if isinstance(source, Load) and id(source) in self.draft_of:
            draft = self.drafts[self.draft_of[id(source)]]
            if draft.kind == "stage-in":
                draft.ops.append(op)
                self.draft_of[id(op)] = self.draft_of[id(source)]
        elif isinstance(source, Load) and self.spaces[source.source.buffer] is Space.ACCUMULATOR:
            self.add("stage-out", [source, op], ())

    def straight(self, value: Value) -> Op | None:
        """The op a value comes from, seen through casts."""
        op = self.maker.get(value)
        while isinstance(op, Cast):
            op = self.maker.get(op.arg)
        return op

    def outside(self, version: Version) -> bool:
        return self.spaces[version.buffer] is Space.HBM and self.roles[version.buffer] != "scratch"

    def touch(self, index: Iterable[Index]) -> None:
        for part in index:
            self.used_axes |= part.axes()

    # -- elementwise regions --------------------------------------------------------

    def regions(self) -> None:
        """Join elementwise ops that feed one another, also through private buffers."""
        members = [op for op in self.ops if isinstance(op, Map | Select)]
        group = {id(op): id(op) for op in members}

        def root(key: int) -> int:
            while group[key] != key:
                group[key] = group[group[key]]
                key = group[key]
            return key

        stored: dict[str, list[Value]] = {}
        for op in self.ops:
            if isinstance(op, Store) and not self.outside(op.into):
                stored.setdefault(op.into.buffer, []).append(op.value)
        for op in members:
            for used in operands(op):
                for feeder in self.feeders(used, stored):
                    if id(feeder) in group:
                        group[root(id(op))] = root(id(feeder))
        by_root: dict[int, list[Op]] = {}
        for op in members:
            by_root.setdefault(root(id(op)), []).append(op)
        for ops in by_root.values():
            self.add("elementwise", ops)

    def feeders(self, used: Carried, stored: dict[str, list[Value]]) -> list[Op]:
        """Elementwise ops whose result reaches a value through casts and scratch buffers."""
        found: list[Op] = []
        pending: list[Carried] = [used]
        seen: set[Carried] = set()
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            op = self.maker.get(current)
            match op:
                case Map() | Select():
                    found.append(op)
                case Cast(arg=arg):
                    pending.append(arg)
                case Load(source=source) if not self.outside(source):
                    pending.extend(stored.get(source.buffer, ()))
                case _:
                    pass
        return found

    # -- around ---------------------------------------------------------------------

    def surroundings(self) -> None:
        axes = [axis for axis in self.axes if axis.name in self.used_axes]
        if axes:
            shown = " × ".join(f"{a.kind.value} {a.extent}" for a in axes)
            spans = [axis.span for axis in axes]
            sources = tuple(s for axis in axes for s in axis.sources)
            attributes = tuple((axis.name, f"{axis.kind.value} {axis.extent}") for axis in axes)
            self.drafts.append(
                _Draft("tile-axis", [], -1, (), shown, attributes, (*spans, *sources))
            )
        for where, op in self.conditions:
            self.drafts.append(_Draft("mask", [op], self.ops.index(op), (), str(where)))
        for axis in self.axes:
            if _limited(axis.extent) and axis.kind in {AxisKind.PARTITION, AxisKind.FREE}:
                self.drafts.append(
                    _Draft("mask", [], -1, (), f"{axis.name} < {axis.extent}", (), (axis.span,))
                )

    # -- result ---------------------------------------------------------------------

    def add(
        self,
        kind: Kind,
        ops: list[Op],
        tensors: tuple[str, ...] = (),
        detail: str = "",
        attributes: tuple[tuple[str, str], ...] = (),
        sources: tuple[Span, ...] = (),
    ) -> None:
        for op in ops:
            self.draft_of[id(op)] = len(self.drafts)
        order = self.ops.index(ops[0])
        self.drafts.append(_Draft(kind, ops, order, tensors, detail, attributes, sources))

    def finish(self) -> tuple[Construct, ...]:
        order = sorted(range(len(self.drafts)), key=lambda n: (self.drafts[n].order, n))
        names = {number: f"{position + 1}" for position, number in enumerate(order)}
        made: list[Construct] = []
        for number in order:
            draft = self.drafts[number]
            spans = _spans(draft)
            operators = tuple(op.operator for op in draft.ops if isinstance(op, Map))
            made.append(
                Construct(
                    id=names[number],
                    kind=draft.kind,
                    summary=_summary(draft, operators),
                    span=spans[0],
                    spans=spans,
                    tensors=draft.tensors,
                    operators=operators,
                    attributes=draft.attributes,
                    after=self.predecessors(number, names),
                    sources=draft.sources,
                )
            )
        return tuple(made)

    def predecessors(self, number: int, names: dict[int, str]) -> tuple[str, ...]:
        """The constructs whose results this one uses, through whatever lies between."""
        found: set[int] = set()
        pending: list[Carried] = [used for op in self.drafts[number].ops for used in operands(op)]
        seen: set[Carried] = set()
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            op = self.maker.get(current)
            if op is None:
                continue
            owner = self.draft_of.get(id(op))
            if owner is not None and owner != number:
                found.add(owner)
            elif not isinstance(op, Parallel):
                pending.extend(operands(op))
        return tuple(sorted((names[owner] for owner in found), key=int))


def _spans(draft: _Draft) -> tuple[Span, ...]:
    spans = [op.span for op in draft.ops] or list(draft.sources)
    return tuple(dict.fromkeys(spans))


def _summary(draft: _Draft, operators: Sequence[str]) -> str:
    match draft.kind:
        case "elementwise":
            selects = sum(isinstance(op, Select) for op in draft.ops)
            names = [*operators, *(["select"] * selects)]
            return ", ".join(names)
        case "stage-in":
            return f"load {draft.tensors[0]}"
        case "output-store":
            return f"store {draft.tensors[0]}"
        case _:
            return draft.detail or draft.kind


def _extents(axes: Sequence[Axis]) -> str:
    return " × ".join(str(axis.extent) for axis in axes)


def _limited(extent: Index) -> bool:
    """Whether an extent has a bound in it, as a shortened last tile has."""
    return any(
        isinstance(atom, Extremum) and atom.which == "min"
        for monomial, _ in extent.terms
        for atom in monomial
    )


def special(operator: str) -> bool:
    """Whether an operator is a function the engines evaluate from tables."""
    return OPERATORS[operator].kind == "special"


__all__ = ["ANCHORS", "Construct", "Kind", "constructs", "special"]
