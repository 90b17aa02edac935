"""What the relations say against single pairs: every difference is put at one door.

A difference of two expressions has a place on both sides; it is blamed on the pair that
holds the place and on the requirement that it breaks.  Elements that nobody wrote are
blamed on the edge, on the tiles or on the store, whichever the pattern points to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from migrate.align.difference import Difference
from migrate.align.mismatch import Mismatch
from migrate.align.pairing_assign import Match, SideView
from migrate.align.relation import OutputRelation, Relation
from migrate.facts import RequirementName
from migrate.ir.constructs import Construct, place
from migrate.ir.evaluate import Trouble
from migrate.ir.forms import Combine, Element, Form, Number, Table, walk
from migrate.source import Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Blame:
    """A requirement that a match breaks.

    `certain` is false where the expressions differ but no witness shows that they mean
    different things.
    """

    requirement: RequirementName
    certain: bool
    why: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """The relations, as they bear on matches.

    `blames` go by the position of the match.  `status` is the worst of each output over
    all relations; `undecided` says of outputs why they were not decided,
    `uncovered` are those with elements that one side writes and the other does not.
    """

    blames: Mapping[int, tuple[Blame, ...]]
    status: Mapping[str, str]
    undecided: Mapping[str, str]
    uncovered: frozenset[str]


def evidence(
    matches: Sequence[Match], cuda: SideView, nki: SideView, relations: Sequence[Relation]
) -> Evidence:
    """Sort the differences of all relations to the matches they are about."""
    sorter = _Sorter(matches, cuda, nki)
    for relation in relations:
        sorter.relation(relation)
    sorter.left_out()
    return Evidence(
        blames={number: tuple(dict.fromkeys(found)) for number, found in sorter.blames.items()},
        status=sorter.status,
        undecided=sorter.undecided,
        uncovered=frozenset(sorter.uncovered),
    )


_Pattern: TypeAlias = Literal["hole", "edge", "all"]
_PATTERNS: tuple[_Pattern, ...] = ("hole", "edge", "all")
_READS = ("stage-in", "gather")
_WORST = {"proved": 0, "unknown": 1, "refuted": 2}


class _Sorter:
    def __init__(self, matches: Sequence[Match], cuda: SideView, nki: SideView) -> None:
        self.matches = matches
        self.cuda = cuda
        self.nki = nki
        self.blames: dict[int, list[Blame]] = {}
        self.status: dict[str, str] = {}
        self.undecided: dict[str, str] = {}
        self.uncovered: set[str] = set()
        self.strays = False
        self.gaps: dict[str, dict[_Pattern, tuple[str, bool]]] = {}
        self.at_cuda = _Places((n, c) for n, m in enumerate(matches) for c in m.cuda)
        self.at_nki = _Places((n, c) for n, m in enumerate(matches) for c in m.nki)

    def blame(
        self, number: int | None, requirement: RequirementName, why: str, *, certain: bool = True
    ) -> None:
        if number is not None:
            self.blames.setdefault(number, []).append(Blame(requirement, certain, why))

    def relation(self, relation: Relation) -> None:
        # What lies outside a tensor is unwritten too; that it is touched says why.
        self.strays = any(trouble.kind == "out-of-range" for trouble in relation.nki_trouble)
        for output in relation.outputs:
            worst = max(
                self.status.get(output.name, "proved"), output.status, key=_WORST.__getitem__
            )
            self.status[output.name] = worst
            self.output(relation, output)
        own = {(t.kind, self.cuda.names.get(t.buffer)) for t in relation.cuda_trouble}
        for trouble in relation.nki_trouble:
            # What the CUDA kernel does wrong as well was not brought in by the migration.
            if (trouble.kind, self.nki.names.get(trouble.buffer)) not in own:
                self.trouble(trouble)

    def output(self, relation: Relation, output: OutputRelation) -> None:
        certain = output.status == "refuted"
        if output.status == "unknown" and not output.mismatches:
            self.undecided[output.name] = _open(output)
        left = _left_out(relation, output)
        for mismatch in output.mismatches:
            if mismatch.overwritten or (left.size and self.displaced(mismatch)):
                why = f"elements of {output.name} come out at other places"
                self.blame(self.store(output.name), "same-elements", why, certain=certain)
                continue
            for difference in mismatch.differences:
                self.difference(output, mismatch, difference, certain)
        if left.size:
            self.uncovered.add(output.name)
            if not any(m.overwritten or self.displaced(m) for m in output.mismatches):
                self.unwritten(relation, output, left)

    # -- one difference -------------------------------------------------------------

    def difference(
        self, output: OutputRelation, mismatch: Mismatch, difference: Difference, certain: bool
    ) -> None:
        here = self.located(difference)
        if here is None:
            here = self.store(output.name)
        shown = _shown(difference)
        match difference.what:
            case "unwritten":
                pass
            case "unknown":
                why = f"{output.name} hangs on something that was not understood"
                self.undecided[output.name] = why
            case "extra-write":
                self.uncovered.add(output.name)
                number = self.edge(output.name)
                why = f"elements of {output.name} are written that CUDA leaves alone"
                self.blame(
                    self.store(output.name) if number is None else number,
                    "same-elements" if number is None else "same-bound",
                    why,
                    certain=certain,
                )
            case "element":
                readers = [self.at_nki.find(op.span, _READS) for op in mismatch.reads]
                readers = [n for n in readers if n is not None and self.reads(n, difference.nki)]
                requirement: RequirementName = "same-elements" if readers else "same-operands"
                for number in dict.fromkeys(readers) or [here]:
                    self.blame(number, requirement, shown, certain=certain)
            case "constant":
                assert isinstance(difference.nki, Number)
                number = self.constant(difference.nki)
                if number is None:
                    self.blame(here, "same-operands", shown, certain=certain)
                else:
                    self.blame(number, "same-value", shown, certain=certain)
            case "unwritten-operand" if self.strays:
                pass
            case "unwritten-operand":
                self.blame(here, "same-operands", shown, certain=certain)
            case "tensor" | "operand":
                if not self.explained(here, difference):
                    self.blame(here, "same-operands", shown, certain=certain)
            case "extent":
                self.blame(here, "covers-extent", shown, certain=certain)
            case "sign" if here is not None and self.applies_the_same(here):
                self.blame(here, "same-operands", shown, certain=certain)
            case "operator" | "sign" | "expression":
                self.blame(here, "same-operator", shown, certain=certain)

    def located(self, difference: Difference) -> int | None:
        """The match that a difference lies in: by its NKI place, else by its CUDA place.

        What stands on one side alone is where the two part.
        """
        nki = self.at_nki.find(difference.nki_span, _kinds(difference.nki))
        cuda = self.at_cuda.find(difference.cuda_span, _kinds(difference.cuda))
        if nki is None or cuda is None:
            return cuda if nki is None else nki
        return cuda if not self.matches[cuda].nki else nki

    def constant(self, number: Number) -> int | None:
        """The match of the constant that a number was written as, if one stands there."""
        for position, match in enumerate(self.matches):
            for construct in match.nki:
                if construct.kind in {"constant", "initial-value"}:
                    if number.value in construct.numbers and (
                        number.span is None
                        or place(number.span) in {place(span) for span in construct.spans}
                    ):
                        return position
        return None

    def reads(self, number: int, form: Form) -> bool:
        """Whether a match moves in the tensor of an element."""
        tensors = {t for c in self.matches[number].nki for t in self.nki.tensors(c)}
        return isinstance(form, Element) and form.tensor in tensors

    def explained(self, here: int | None, difference: Difference) -> bool:
        """Whether an operand is wrong only because another tensor was moved into its tile."""
        wanted = {form.tensor for form in walk(difference.cuda) if isinstance(form, Element)}
        swapped = {
            name
            for match in self.matches
            if match.nki and match.cuda and match.cuda[0].kind in {"stage-in", "gather"}
            for name in {t for c in match.cuda for t in self.cuda.tensors(c)}
            - {t for c in match.nki for t in self.nki.tensors(c)}
        }
        return here is not None and bool(wanted & swapped) and self.applies_the_same(here)

    def applies_the_same(self, number: int) -> bool:
        """Whether both sides of a match apply the same operators equally often."""
        match = self.matches[number]
        left, right = (
            Counter(operator for construct in side for operator in construct.operators)
            for side in (match.cuda, match.nki)
        )
        return left == right

    # -- what is written --------------------------------------------------------------

    def displaced(self, mismatch: Mismatch) -> bool:
        """Whether elements hold what belongs elsewhere: every input is off alike."""
        off = {
            d.nki.tensor
            for d in mismatch.differences
            if d.what == "element" and isinstance(d.nki, Element)
        }
        sources = {
            name
            for construct in self.nki.constructs
            if construct.kind == "output-store" and mismatch.output in self.nki.tensors(construct)
            for name in self.nki.reads[construct.id]
        }
        whole = all(d.what == "element" for d in mismatch.differences)
        return whole and bool(off) and off == sources

    def unwritten(
        self, relation: Relation, output: OutputRelation, left: NDArray[np.int64]
    ) -> None:
        """Note the pattern of what is left out at one position of the sizes."""
        total = relation.nki_writers[output.name].size
        sizes = ", ".join(f"{name} = {size}" for name, size in sorted(relation.sizes.items()))
        how_many = "every element" if left.size == total else f"{left.size:,} of {total:,} elements"
        why = f"{how_many} of {output.name} unwritten" + (f" at {sizes}" if sizes else "")
        pattern: _Pattern = "hole"
        if left.size == total:
            pattern = "all"
        elif _ends_early(output, left, total):
            pattern = "edge"
        found = self.gaps.setdefault(output.name, {})
        found[pattern] = (why, output.status == "refuted")

    def left_out(self) -> None:
        """Blame what is left out once an output, by the pattern that says most.

        A hole is a fault of the tiles, whatever other sizes show; what ends early at every
        size is a fault at the edge; a tensor of which nothing is written says neither.
        """
        for output, found in self.gaps.items():
            store = self.store(output)
            edge = self.edge(output)
            tiles = self.kind("tile-axis")
            pattern = next(p for p in _PATTERNS if p in found)
            why, certain = found[pattern]
            if store is None or not self.matches[store].nki:
                self.blame(store, "same-elements", why, certain=certain)
            elif pattern == "edge" and edge is not None:
                self.blame(edge, "same-bound", why, certain=certain)
            elif tiles is not None:
                self.blame(tiles, "covers-extent", why, certain=certain)
            else:
                self.blame(store, "same-elements", why, certain=certain)

    def store(self, output: str) -> int | None:
        """The match of the store that makes an output."""
        for side, view in (("nki", self.nki), ("cuda", self.cuda)):
            for number, match in enumerate(self.matches):
                for construct in getattr(match, side):
                    if construct.kind == "output-store" and output in view.tensors(construct):
                        return number
        return None

    def edge(self, output: str) -> int | None:
        """The guard that keeps an output's elements inside."""
        for number, match in enumerate(self.matches):
            for construct in match.cuda:
                if construct.kind == "mask" and output in self.cuda.tensors(construct):
                    return number
        return None

    def kind(self, kind: str) -> int | None:
        for number, match in enumerate(self.matches):
            if any(c.kind == kind for c in (*match.cuda, *match.nki)):
                return number
        return None

    def trouble(self, trouble: Trouble) -> None:
        match trouble.kind:
            case "out-of-range":
                cell, size = trouble.example
                why = f"element {cell} of {trouble.buffer} is touched, which has {size}"
                self.blame(self.at_nki.find(trouble.span), "same-elements", why)
            case "conflict":
                name = self.nki.names.get(trouble.buffer)
                number = self.at_nki.find(trouble.span) if name is None else self.store(name)
                self.blame(number, "written-once", trouble.message)
            case _:
                pass


class _Places:
    """Where constructs stand, to find the one that a span belongs to."""

    def __init__(self, constructs: Iterator[tuple[int, Construct]]) -> None:
        self.exact: dict[Span, list[tuple[int, str]]] = {}
        self.places: dict[Span, list[tuple[int, str]]] = {}
        for number, construct in constructs:
            if construct.kind in {"mask", "tile-axis"}:
                continue
            for span in construct.spans:
                self.exact.setdefault(span, []).append((number, construct.kind))
                self.places.setdefault(place(span), []).append((number, construct.kind))

    def find(self, span: Span | None, kinds: tuple[str, ...] = ()) -> int | None:
        """The match at a span; of several, one of the earliest of `kinds`, else the first."""
        if span is None:
            return None
        found = self.exact.get(span) or self.places.get(place(span), [])
        liked = [number for kind in kinds for number, own in found if own == kind]
        return next(iter((*liked, *(number for number, _ in found))), None)


def _open(output: OutputRelation) -> str:
    """Why an output without a difference is not decided."""
    if output.undefined:
        return f"what the CUDA kernel computes for {output.name} is not defined everywhere"
    if not output.fits:
        return f"{output.name} is missing, or has another shape"
    return f"{output.name} hangs on something that was not understood"


def _kinds(form: Form) -> tuple[str, ...]:
    """Which kinds of construct a form is likely made by: one instruction may be several."""
    if isinstance(form, Combine) and any(part.count > 1 for part in form.parts):
        return ("reduction", "contraction", "elementwise")
    return ("elementwise", "reduction", "contraction")


def _left_out(relation: Relation, output: OutputRelation) -> NDArray[np.int64]:
    """The elements that differ and that no NKI op writes, flat and ascending."""
    import numpy as np

    writers = relation.nki_writers.get(output.name)
    if writers is None or not output.mismatches:
        return np.zeros(0, np.int64)
    differing = np.concatenate([mismatch.elements for mismatch in output.mismatches])
    return np.unique(differing[writers.reshape(-1)[differing] < 0])


def _shown(difference: Difference) -> str:
    """A difference in a few words; expressions that are long are cut."""
    match difference.cuda, difference.nki:
        case Element(tensor=tensor, index=places), Element(tensor=other, index=given):
            if tensor == other and any(isinstance(p, Table) for p in (*places, *given)):
                return f"{tensor} is read at other places than in CUDA"
    left, right = _cut(str(difference.cuda)), _cut(str(difference.nki))
    return f"{left} in CUDA, {right} in NKI"


def _cut(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _ends_early(output: OutputRelation, left: NDArray[np.int64], total: int) -> bool:
    """Whether what is written is the beginning of the tensor in every dimension."""
    import numpy as np

    written = np.ones(total, bool)
    written[left] = False
    if not written.any():
        return False
    box = np.argwhere(written.reshape(output.shape)).max(axis=0) + 1
    return int(written.sum()) == int(np.prod(box, dtype=object))
