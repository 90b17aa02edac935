"""From operations to constructs: what a reviewer would point at.

One pass for both sides, which knows neither.  *Anchors* are the ops that move data
between memories or combine elements; what lies between them is *elementwise*.  Around
them stand the axes the work is spread over, the conditions that keep it inside
(`ir.surroundings`), and the conversions and constants on the way.

What one place in the text does several times (a helper called twice, an unrolled loop)
is one construct; it keeps the spans of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

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
    Kernel,
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
    State,
    Store,
    Transpose,
    Value,
    operands,
    results,
)
from migrate.ir.scene import Draft, Kind, Scene
from migrate.ir.surroundings import surroundings
from migrate.numerics.dtypes import DType
from migrate.numerics.operators import OPERATORS
from migrate.source import Span

ANCHORS: frozenset[Kind] = frozenset(
    {"contraction", "reduction", "scan", "gather", "scatter", "transpose", "random", "output-store"}
)


@dataclass(frozen=True, slots=True)
class Construct:
    """One thing that a kernel does.

    `span` is where to point, `spans` every op's place with the calls that led there.
    `tensors` are the buffers outside the kernel that it touches directly, `operators`
    the operators it applies, in program order, `dtypes` the formats of what it makes,
    `numbers` the value of a constant, `axes` those of a reduction or of the iteration;
    `attributes` are words that tables can ask for.  `after` are the constructs whose
    results it uses, `sources` places whose integers decide where it works.
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
    dtypes: tuple[DType, ...] = ()
    numbers: tuple[float, ...] = ()
    axes: tuple[Axis, ...] = ()
    parts: tuple[tuple[Span, str], ...] = ()
    """The places in the text, none inside another, with what is done there."""

    def attribute(self, name: str) -> str | None:
        return next((word for key, word in self.attributes if key == name), None)


def constructs(kernel: Kernel) -> tuple[Construct, ...]:
    """The kernel's constructs, in program order."""
    scene = Scene(kernel)
    finder = _Finder(scene)
    finder.movement()
    finder.accumulators()
    finder.regions()
    finder.conversions()
    return _finished(finder, surroundings(scene))


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


class _Finder:
    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.drafts: list[Draft] = []
        self.draft_of: dict[int, int] = {}

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
        self.add(
            kind,
            [op],
            f"{what} over {' × '.join(str(axis.extent) for axis in axes)}",
            attributes=(("operator", operator), ("scope", _scope(axes))),
            axes=axes,
        )

    def staging(self, op: Store, value: Value) -> None:
        """A store on chip: part of the staging that its value comes straight from."""
        source = self.scene.through_casts(value)
        if not isinstance(source, Load):
            return
        number = self.draft_of.get(id(source))
        if number is not None and self.drafts[number].kind == "stage-in":
            self.join(op, number)
            draft = self.drafts[number]
            self.drafts[number] = replace(draft, attributes=(("into", "onchip"),))
        elif self.scene.spaces[source.source.buffer] is Space.ACCUMULATOR:
            self.add("stage-out", [source, op], f"move out of {source.source.buffer}")

    # -- recurrences ----------------------------------------------------------------

    def accumulators(self) -> None:
        """Loops that carry a running sum (product, maximum, ...) are reductions."""
        for op in self.scene.ops:
            match op:
                case Fold(state=state):
                    for carried in state:
                        self.carried(op, carried)
                case Store(into=into, value=value) if not self.scene.outside(into):
                    self.updated(op, value)
                case _:
                    pass

    def carried(self, fold: Fold, state: State) -> None:
        made = self.scene.through_casts(state.next)
        if isinstance(made, Map):
            others = [arg for arg in made.args if not self.comes_from(arg, state.inner)]
            self.accumulate(made, others, (fold,))

    def comes_from(self, value: Carried, wanted: Carried) -> bool:
        while value != wanted:
            op = self.scene.maker.get(value)
            if not isinstance(op, Cast):
                return False
            value = op.arg
        return True

    def updated(self, store: Store, value: Value) -> None:
        """`buffer[i] = buffer[i] + something` in a loop."""
        loops = [op for op in self.scene.inside[id(store)] if isinstance(op, Fold)]
        made = self.scene.through_casts(value)
        if not loops or not isinstance(made, Map):
            return
        others: list[Value] = []
        for arg in made.args:
            source = self.scene.through_casts(arg)
            same = isinstance(source, Load) and source.source.buffer == store.into.buffer
            if not (same and isinstance(source, Load) and source.index == store.index):
                others.append(arg)
        # A loop whose axis names the cell gives each cell once: no recurrence.
        named = {name for part in store.index for name in part.axes()}
        turning = tuple(loop for loop in loops if not named & {a.name for a in loop.axes})
        if turning:
            self.accumulate(made, others, turning)

    def accumulate(self, made: Map, others: list[Value], loops: tuple[Fold, ...]) -> None:
        """`made` combines what the loops carry with `others`."""
        if id(made) in self.draft_of:
            return
        axes = tuple(axis for loop in loops for axis in loop.axes)
        if made.operator == "fma" and made.args[:2] == tuple(others):
            kind: Kind = "contraction" if self.apart(others) else "reduction"
            self.reduction(kind, made, "add", axes)
            return
        if not OPERATORS[made.operator].associative or len(others) != 1:
            return
        inner = self.scene.through_casts(others[0])
        number = self.draft_of.get(id(inner)) if inner is not None else None
        if number is not None and ("operator", made.operator) in self.drafts[number].attributes:
            self.join(made, number)
            return
        product = isinstance(inner, Map) and inner.operator == "multiply"
        if made.operator == "add" and product and isinstance(inner, Map) and self.apart(inner.args):
            self.reduction("contraction", made, "add", axes)
            self.join(inner, len(self.drafts) - 1)
        else:
            self.reduction("reduction", made, made.operator, axes)

    def apart(self, factors: Sequence[Value]) -> bool:
        """Whether two factors are elements that vary over different axes."""
        sources = [self.scene.through_casts(arg) for arg in factors]
        axes = [
            frozenset(name for part in source.index for name in part.axes())
            for source in sources
            if isinstance(source, Load)
        ]
        return len(axes) == 2 and axes[0] != axes[1]

    # -- elementwise regions --------------------------------------------------------

    def regions(self) -> None:
        """Join elementwise ops that feed one another, also through buffers on chip."""
        members = [
            op
            for op in self.scene.ops
            if isinstance(op, Map | Select) and id(op) not in self.draft_of
        ]
        group = {id(op): id(op) for op in members}

        def root(key: int) -> int:
            while group[key] != key:
                group[key] = group[group[key]]
                key = group[key]
            return key

        for op in members:
            for used in operands(op):
                for feeder in self.feeders(used):
                    if id(feeder) in group:
                        group[root(id(op))] = root(id(feeder))
        by_root: dict[int, list[Op]] = {}
        for op in members:
            by_root.setdefault(root(id(op)), []).append(op)
        for ops in by_root.values():
            names = [op.operator if isinstance(op, Map) else "select" for op in ops]
            functions = any(isinstance(op, Map) and special(op.operator) for op in ops)
            words = (("functions", "yes" if functions else "no"),)
            self.add("elementwise", ops, ", ".join(names), attributes=words)

    def feeders(self, used: Carried) -> list[Op]:
        """Elementwise ops whose result reaches a value through casts and scratch buffers."""
        found: list[Op] = []
        pending: list[Carried] = [used]
        seen: set[Carried] = set()
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            op = self.scene.maker.get(current)
            match op:
                case Map() | Select():
                    found.append(op)
                case Cast(arg=arg):
                    pending.append(arg)
                case Load(source=source) if not self.scene.outside(source):
                    stores = self.scene.writes_of.get(source.buffer, ())
                    pending.extend(store.value for store in stores)
                case _:
                    pass
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
            match user:
                case Fold():
                    pass
                case Reduce() | Contract() if user.initial == value:
                    pass
                case Store(into=into) if not self.scene.outside(into):
                    pass
                case _:
                    return False
        return True


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


# -- result ---------------------------------------------------------------------------------


def _finished(finder: _Finder, around: tuple[Draft, ...]) -> tuple[Construct, ...]:
    """Number the drafts in program order, those of one place in the text as one."""
    drafts = [*finder.drafts, *around]
    alike: dict[object, list[int]] = {}
    for number, draft in enumerate(drafts):
        places = tuple(place(span) for span in _spans(draft))
        key = (draft.kind, places, draft.tensors, draft.summary)
        alike.setdefault(key if draft.ops else number, []).append(number)
    groups = sorted(alike.values(), key=lambda members: (drafts[members[0]].order, members[0]))
    owner = {member: str(n + 1) for n, members in enumerate(groups) for member in members}
    made: list[Construct] = []
    for members in groups:
        own = owner[members[0]]
        first = drafts[members[0]]
        every = [drafts[member] for member in members]
        spans = tuple(dict.fromkeys(span for draft in every for span in _spans(draft)))
        after = {
            owner[used]
            for member in members
            for used in _predecessors(finder, drafts[member], member)
        }
        made.append(
            Construct(
                id=own,
                kind=first.kind,
                summary=first.summary,
                span=spans[0],
                spans=spans,
                tensors=first.tensors,
                operators=tuple(op.operator for op in first.ops if isinstance(op, Map)),
                attributes=first.attributes,
                after=tuple(sorted(after - {own}, key=int)),
                sources=tuple(dict.fromkeys(s for draft in every for s in draft.sources)),
                dtypes=_dtypes(every),
                numbers=tuple(float(op.number) for op in first.ops if isinstance(op, Fill)),
                axes=tuple(dict.fromkeys(axis for draft in every for axis in draft.axes)),
                parts=_parts(every),
            )
        )
    return tuple(made)


def _dtypes(drafts: list[Draft]) -> tuple[DType, ...]:
    made = (r for draft in drafts for op in draft.ops for r in results(op) if isinstance(r, Value))
    return tuple(dict.fromkeys(value.dtype for value in made))


def _spans(draft: Draft) -> tuple[Span, ...]:
    return tuple(dict.fromkeys(op.span for op in draft.ops)) or draft.spans


def _parts(drafts: list[Draft]) -> tuple[tuple[Span, str], ...]:
    """The outermost places of some drafts of one construct, in the order of the text."""
    words: dict[Span, dict[str, None]] = {}
    for draft in drafts:
        for op in draft.ops:
            word = op.operator if isinstance(op, Map) else "select"
            # Only an elementwise region does different things in different places.
            shown = word if draft.kind == "elementwise" else draft.summary
            words.setdefault(place(op.span), {})[shown] = None
        if not draft.ops:
            words.setdefault(place(_spans(draft)[0]), {})[draft.summary] = None
    outer: dict[Span, dict[str, None]] = {}
    for span in sorted(
        words, key=lambda s: (s.file, s.start_line, s.start_column, -s.end_line, -s.end_column)
    ):
        around = next((known for known in outer if _contains(known, span)), span)
        outer.setdefault(around, {}).update(words[span])
    return tuple((span, ", ".join(found)) for span, found in outer.items())


def _contains(outer: Span, inner: Span) -> bool:
    return (
        outer.file == inner.file
        and (outer.start_line, outer.start_column) <= (inner.start_line, inner.start_column)
        and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)
    )


def _predecessors(finder: _Finder, draft: Draft, number: int) -> set[int]:
    """The drafts whose results one uses, through whatever lies between."""
    found: set[int] = set()
    if not draft.ops or draft.kind == "mask":
        return found
    pending: list[Carried] = [used for op in draft.ops for used in operands(op)]
    seen: set[Carried] = set()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        op = finder.scene.maker.get(current)
        if op is None:
            continue
        owner = finder.draft_of.get(id(op))
        if owner is not None and owner != number:
            found.add(owner)
        else:
            pending.extend(operands(op))
    return found


__all__ = ["ANCHORS", "Construct", "Kind", "constructs", "place", "special"]
