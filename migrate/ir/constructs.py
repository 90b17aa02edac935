"""From operations to constructs: what a reviewer would point at.

One pass for both sides, which knows neither.  *Anchors* are the ops that move data
between memories or combine elements; what lies between them is *elementwise*.  Around
them stand the axes the work is spread over, the conditions that keep it inside
(`ir.surroundings`), and the conversions and constants on the way.

What one place in the text does several times (a helper called twice, an unrolled loop)
is one construct; it keeps the spans of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from migrate.ir.finder import Finder, special
from migrate.ir.nodes import (
    Axis,
    Carried,
    Fill,
    Fold,
    Guard,
    Kernel,
    Map,
    Op,
    Parallel,
    Scatter,
    Store,
    Value,
    operands,
    results,
)
from migrate.ir.recurrences import recurrences
from migrate.ir.scene import Draft, Kind, Scene, place
from migrate.ir.surroundings import surroundings
from migrate.numerics.dtypes import DType
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
    finder = Finder(scene)
    finder.movement()
    recurrences(finder)
    finder.regions()
    finder.conversions()
    return _finished(finder, surroundings(scene))


# -- result ---------------------------------------------------------------------------------


def _finished(finder: Finder, around: tuple[Draft, ...]) -> tuple[Construct, ...]:
    """Number the drafts in program order, those of one place in the text as one."""
    drafts = [*finder.drafts, *around]
    alike: dict[object, list[int]] = {}
    for number, draft in enumerate(drafts):
        places = tuple(place(span) for span in _spans(draft))
        key = (draft.kind, places, draft.tensors, draft.summary)
        alike.setdefault(key if draft.ops else number, []).append(number)
    groups = sorted(alike.values(), key=lambda members: (drafts[members[0]].order, members[0]))
    number_of = {member: n for n, members in enumerate(groups) for member in members}
    owner = {id_: number_of[draft] for id_, draft in finder.draft_of.items()}
    flow = _dataflow(finder.scene, owner)
    made: list[Construct] = []
    for number, members in enumerate(groups):
        first = drafts[members[0]]
        every = [drafts[member] for member in members]
        spans = tuple(dict.fromkeys(span for draft in every for span in _spans(draft)))
        taken = flow.get(number, 0)
        after = (n for n in _members(taken) if n != number)
        made.append(
            Construct(
                id=str(number + 1),
                kind=first.kind,
                summary=first.summary,
                span=spans[0],
                spans=spans,
                tensors=first.tensors,
                operators=tuple(op.operator for op in first.ops if isinstance(op, Map)),
                attributes=first.attributes,
                after=tuple(str(n + 1) for n in after),
                sources=tuple(dict.fromkeys(s for draft in every for s in draft.sources)),
                dtypes=_dtypes(every),
                numbers=tuple(float(op.number) for op in first.ops if isinstance(op, Fill)),
                axes=tuple(dict.fromkeys(axis for draft in every for axis in draft.axes)),
                parts=_parts(every),
            )
        )
    return tuple(made)


def _members(numbers: int) -> Iterator[int]:
    """The bits that are set, from the lowest."""
    while numbers:
        lowest = numbers & -numbers
        yield lowest.bit_length() - 1
        numbers ^= lowest


def _dtypes(drafts: list[Draft]) -> tuple[DType, ...]:
    made = (r for draft in drafts for op in draft.ops for r in results(op) if isinstance(r, Value))
    return tuple(dict.fromkeys(value.dtype for value in made))


def _spans(draft: Draft) -> tuple[Span, ...]:
    return tuple(dict.fromkeys(op.span for op in draft.ops)) or draft.spans


def _parts(drafts: list[Draft]) -> tuple[tuple[Span, str], ...]:
    """The outermost places of some drafts of one construct, in the order of the text."""
    words: dict[Span, dict[str, None]] = {}
    for draft in drafts:
        for number, op in enumerate(draft.ops):
            here = place(op.span)
            word = op.operator if isinstance(op, Map) else "select"
            if draft.kind == "elementwise":
                words.setdefault(here, {})[word] = None
            elif number == 0 or draft.kind not in {"reduction", "contraction"}:
                words[here] = {draft.summary: None}
            elif here not in words:
                words[here] = {word: None}
        shown_at = draft.parts or ((_spans(draft)[0], draft.summary),)
        for span, shown in () if draft.ops else shown_at:
            words.setdefault(place(span), {})[shown] = None
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


_PASSES = 12
"""Rounds in which dataflow goes once more round every loop; nests are not deeper."""


def _dataflow(scene: Scene, owner: dict[int, int]) -> dict[int, int]:
    """By group: the groups whose results it uses, through what lies between, as bits.

    `owner` gives the group of an op by the op's identity.
    """
    reach: dict[Carried, int] = {}
    used: dict[int, int] = {}
    for _ in range(_PASSES):
        changed = False
        for op in scene.ops:
            group = owner.get(id(op))
            for result, sources in _flows(scene, op):
                taken = 0
                for source in sources:
                    taken |= reach.get(source, 0)
                if group is not None:
                    used[group] = used.get(group, 0) | taken
                    taken = 1 << group
                if result is not None and reach.get(result, 0) | taken != reach.get(result):
                    reach[result] = reach.get(result, 0) | taken
                    changed = True
        if not changed:
            break
    return used


def _flows(scene: Scene, op: Op) -> Iterator[tuple[Carried | None, tuple[Carried, ...]]]:
    """What an op makes, each with what it is made from.

    What stood before in a tensor that is written is not part of what is stored.
    """
    match op:
        case Parallel():
            pass
        case Fold(state=state):
            for carried in state:
                yield carried.inner, (carried.initial, carried.next)
                yield carried.result, (carried.initial, carried.next)
        case Guard(merges=merges):
            for merge in merges:
                yield merge.result, (merge.then, merge.otherwise)
        case Store(into=into) | Scatter(into=into, combine=None) if scene.outside(into):
            yield op.result, tuple(used for used in operands(op) if used != into)
        case _:
            made = results(op)
            for result in made:
                yield result, operands(op)
            if not made:
                yield None, operands(op)


__all__ = ["ANCHORS", "Construct", "Kind", "constructs", "place", "special"]
