"""Constructs in the making: which ops of a kernel belong together, and what they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from migrate.ir.nodes import (
    AsyncCopy,
    Axis,
    Barrier,
    Carried,
    Cast,
    Contract,
    Fill,
    Fold,
    Gather,
    Load,
    Map,
    Op,
    Opaque,
    Random,
    Reduce,
    Scan,
    Scatter,
    Select,
    Space,
    Store,
    Transpose,
    Value,
    operands,
)
from migrate.ir.scene import Draft, Kind, Scene
from migrate.numerics.dtypes import DType
from migrate.numerics.operators import OPERATORS
from migrate.source import Span

_FAR = 64
"""Values followed to see where a conversion leads; one that goes farther is not followed."""


class Finder:
    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.drafts: list[Draft] = []
        self.draft_of: dict[int, int] = {}
        self.scattered = {op.into.buffer for op in scene.ops if isinstance(op, Scatter | AsyncCopy)}

    def add(
        self,
        kind: Kind,
        ops: Iterable[Op],
        summary: str,
        tensors: tuple[str, ...] = (),
        attributes: tuple[tuple[str, str], ...] = (),
        sources: tuple[Span, ...] = (),
        axes: tuple[Axis, ...] = (),
    ) -> None:
        kept = tuple(ops)
        for op in kept:
            self.draft_of[id(op)] = len(self.drafts)
        order = self.scene.position[id(kept[0])]
        self.drafts.append(
            Draft(kind, kept, order, summary, tensors, attributes, sources, (), axes)
        )

    def join(self, op: Op, number: int) -> None:
        draft = self.drafts[number]
        self.drafts[number] = replace(draft, ops=(*draft.ops, op))
        self.draft_of[id(op)] = number

    # -- anchors and movement -------------------------------------------------------

    def movement(self) -> None:
        scene = self.scene
        named: tuple[str, ...]
        for op in scene.ops:
            match op:
                case Store(into=into) if scene.outside(into):
                    named = (into.buffer,)
                    self.add("output-store", [op], f"store {into.buffer}", named, (), op.sources)
                case Store(value=value):
                    self.staging(op, value)
                case Scatter(into=into, combine=combine):
                    named = (into.buffer,) if scene.outside(into) else ()
                    kind: Kind = "output-store" if named and combine is None else "scatter"
                    how = f"{combine} into" if combine else "store"
                    self.add(kind, [op], f"{how} {into.buffer}", named)
                case AsyncCopy(into=into, source=source):
                    if scene.outside(into):
                        self.add("output-store", [op], f"store {into.buffer}", (into.buffer,))
                    elif scene.outside(source):
                        named = (source.buffer,)
                        words = (("into", "onchip"),)
                        self.add("stage-in", [op], f"load {source.buffer}", named, words)
                case Load(source=source) if scene.outside(source):
                    named = (source.buffer,)
                    words = (("into", "register"),)
                    self.add("stage-in", [op], f"load {source.buffer}", named, words, op.sources)
                case Gather(source=source):
                    named = (source.buffer,) if scene.outside(source) else ()
                    self.add("gather", [op], f"gather {source.buffer}", named, (), op.sources)
                case Reduce(operator=operator, axes=axes):
                    self.reduction("reduction", op, operator, axes)
                case Contract(axes=axes):
                    self.reduction("contraction", op, "add", axes)
                case Scan(operator=operator, axis=axis):
                    words = (("operator", operator),)
                    self.add("scan", [op], f"{operator} along {axis}", (), words)
                case Transpose(renames=renames):
                    moved = ", ".join(f"{old} to {new}" for old, new in renames)
                    self.add("transpose", [op], moved)
                case Random(distribution=distribution):
                    self.add("random", [op], distribution)
                case Barrier(scope=scope):
                    self.add("barrier", [op], scope, (), (("scope", scope),))
                case Opaque(reason=reason):
                    self.add("opaque", [op], reason)
                case _:
                    pass

    def reduction(self, kind: Kind, op: Op, operator: str, axes: tuple[Axis, ...]) -> None:
        what = "sum of products" if kind == "contraction" else operator
        extents = " × ".join(str(axis.extent) for axis in axes)
        self.add(
            kind,
            [op],
            f"{what} over {extents or 'threads'}",
            attributes=(("operator", operator), ("scope", _scope(axes))),
            axes=axes,
        )

    def staging(self, op: Store, value: Value) -> None:
        """A store on chip: part of the staging that its value comes straight from.

        A choice between the element and a number, as at an edge, is part of it too.
        """
        source = self.scene.through_casts(value)
        chosen: tuple[Op, ...] = ()
        if isinstance(source, Select) and not isinstance(source.condition, Value):
            branches = [self.scene.through_casts(x) for x in (source.then, source.otherwise)]
            loads = [branch for branch in branches if isinstance(branch, Load)]
            if len(loads) == 1 and any(isinstance(branch, Fill) for branch in branches):
                chosen, source = (source,), loads[0]
        if not isinstance(source, Load):
            return
        number = self.draft_of.get(id(source))
        if number is not None and self.drafts[number].kind == "stage-in":
            for part in (*chosen, op):
                self.join(part, number)
            draft = self.drafts[number]
            self.drafts[number] = replace(draft, attributes=(("into", "onchip"),))
        elif self.scene.spaces[source.source.buffer] is Space.ACCUMULATOR:
            self.add("stage-out", [source, op], f"move out of {source.source.buffer}")

    # -- elementwise regions --------------------------------------------------------

    def regions(self) -> None:
        """Join elementwise ops that feed one another, also through buffers on chip."""
        members = [
            op
            for op in self.scene.ops
            if isinstance(op, Map | Select) and id(op) not in self.draft_of
        ]
        sets = _Sets()
        inside = {id(op) for op in members}
        fed = self.fed(inside, sets)
        for op in members:
            for used in operands(op):
                source = self.scene.through_casts(used)
                match source:
                    case Map() | Select() if id(source) in inside:
                        sets.join(id(op), id(source))
                    case Load(source=version) if version.buffer in fed:
                        sets.join(id(op), version.buffer)
                    case _:
                        pass
        by_root: dict[int | str, list[Op]] = {}
        for op in members:
            by_root.setdefault(sets.root(id(op)), []).append(op)
        for ops in by_root.values():
            names = [op.operator if isinstance(op, Map) else "select" for op in ops]
            functions = any(isinstance(op, Map) and special(op.operator) for op in ops)
            words = (("functions", "yes" if functions else "no"),)
            self.add("elementwise", ops, ", ".join(names), attributes=words)

    def fed(self, inside: set[int], sets: _Sets) -> set[str]:
        """The buffers on chip that hold what elementwise ops made, also as copies."""
        copies: dict[str, set[str]] = {}
        pending: list[str] = []
        for buffer, stores in self.scene.writes_of.items():
            for store in stores:
                source = self.scene.through_casts(store.value)
                if self.scene.outside(store.into):
                    continue
                if id(source) in inside:
                    sets.join(id(source), buffer)
                    pending.append(buffer)
                elif isinstance(source, Load) and not self.scene.outside(source.source):
                    copies.setdefault(source.source.buffer, set()).add(buffer)
        found: set[str] = set()
        while pending:
            buffer = pending.pop()
            if buffer not in found:
                found.add(buffer)
                for copy in sorted(copies.get(buffer, ())):
                    sets.join(buffer, copy)
                    pending.append(copy)
        return found

    # -- conversions and numbers ----------------------------------------------------

    def conversions(self) -> None:
        for op in self.scene.ops:
            match op:
                case Cast(arg=arg, result=result) if _notable(arg.dtype, result.dtype):
                    words = (
                        ("from", arg.dtype.value),
                        ("to", result.dtype.value),
                        ("rounding", op.rounding.value),
                    )
                    stored = self.stored(result)
                    summary = f"{arg.dtype.value} to {result.dtype.value}, {op.rounding.value}"
                    self.add("cast", [op], summary, stored, words)
                case Fill(number=number, result=result) if result in self.scene.users:
                    kind: Kind = "initial-value" if self.initial(result) else "constant"
                    self.add(kind, [op], f"{number:g}")
                case _:
                    pass

    def stored(self, value: Value) -> tuple[str, ...]:
        """The tensor outside that a value goes straight into, through a tile at most.

        Empty unless every use of the value leads there.
        """
        found: set[str] = set()
        pending: list[Carried] = [value]
        seen: set[Carried] = set()
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            if len(seen) > _FAR:
                return ()
            for user in self.scene.users.get(current, ()):
                match user:
                    case Store(into=into) if self.scene.outside(into):
                        found.add(into.buffer)
                    case Store(into=into, value=stored) if stored == current:
                        reads = self.scene.reads_of.get(into.buffer, ())
                        if not reads:
                            return ()
                        pending.extend(read.result for read in reads)
                    case _:
                        return ()
        return tuple(found) if len(found) == 1 else ()

    def initial(self, value: Value) -> bool:
        """Whether a number only starts something: a recurrence, a reduction, a tile."""
        for user in self.scene.users[value]:
            number = self.draft_of.get(id(user))
            match user:
                case Fold():
                    pass
                case Reduce() | Contract() if user.initial == value:
                    pass
                case Store(into=into) if not self.scene.outside(into) and self.started(into.buffer):
                    pass
                case Select() if number is not None and self.drafts[number].kind == "reduction":
                    pass
                case _:
                    return False
        return True

    def started(self, buffer: str) -> bool:
        """Whether a buffer on chip comes to hold more than the numbers it is filled with."""
        stores = self.scene.writes_of.get(buffer, ())
        made = [self.scene.through_casts(store.value) for store in stores]
        return buffer in self.scattered or not all(isinstance(op, Fill) for op in made)


class _Sets:
    """Disjoint sets of ops (by identity) and buffers (by name)."""

    def __init__(self) -> None:
        self.above: dict[int | str, int | str] = {}

    def root(self, key: int | str) -> int | str:
        above = self.above
        while (up := above.get(key, key)) != key:
            above[key] = above.get(up, up)
            key = above[key]
        return key

    def join(self, one: int | str, other: int | str) -> None:
        left, right = self.root(one), self.root(other)
        if left != right:
            self.above[left] = right


def special(operator: str) -> bool:
    """Whether an operator is a function the engines evaluate from tables."""
    return OPERATORS[operator].kind == "special"


def _notable(source: DType, to: DType) -> bool:
    """Whether a conversion is more than widening a float."""
    if source is to:
        return False
    floats = source.kind == "float" and to.kind == "float"
    return not floats or to.unit_roundoff > source.unit_roundoff


def _scope(axes: tuple[Axis, ...]) -> str:
    return "+".join(dict.fromkeys(axis.kind.value for axis in axes))
