"""Does a pair meet a requirement of its mapping?  Yes, no, or not known.

What the constructs say themselves (formats, rounding, numbers, sizes of tiles) is
decided here; everything about meaning rests on the relations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from migrate import facts
from migrate.align.binding import Binding
from migrate.align.pairing_assign import Match, SideView
from migrate.align.pairing_blame import Evidence
from migrate.facts import RequirementName
from migrate.ir.constructs import Construct
from migrate.ir.index import Range
from migrate.ir.nodes import AxisKind, Kernel, Space
from migrate.numerics.dtypes import DType
from migrate.numerics.operators import OPERATORS
from migrate.numerics.single import as_float32


@dataclass(frozen=True, slots=True)
class Answer:
    """`holds` is `None` where it is not known; `why` says what was found."""

    holds: bool | None
    why: str = ""


_YES: Final = Answer(True)
_NO_RELATION: Final = Answer(None, "the two kernels could not be related at any sizes")


@dataclass(frozen=True, slots=True)
class Judge:
    """Everything that a requirement may depend on."""

    matches: tuple[Match, ...]
    cuda: SideView
    nki: SideView
    evidence: Evidence
    binding: Binding
    nki_kernel: Kernel

    def answer(self, number: int, requirement: RequirementName) -> Answer:
        """Whether the match at a position meets a requirement."""
        for blame in self.evidence.blames.get(number, ()):
            if blame.requirement == requirement:
                return Answer(False if blame.certain else None, blame.why)
        match = self.matches[number]
        match requirement:
            case "same-dtype":
                return self.formats(match)
            case "same-rounding":
                return self.rounding(match)
            case "partition-limit":
                return self.partitions(match)
            case "fits-on-chip":
                return self.room()
            case "same-special-values":
                # Told as a note: it never decides a pairing by itself.
                return _YES
            case "covers-extent" | "same-bound" | "written-once":
                return self.coverage(match)
            case "same-value" if _numbers(match.cuda) and _numbers(match.nki):
                return self.numbers(match)
            case "same-elements" if match.cuda:
                return self.elements(match)
            case _:
                return self.meaning(match)

    # -- meaning ----------------------------------------------------------------------

    def outputs(self, match: Match) -> frozenset[str]:
        """The outputs that a match has a part in; all of them where that is not known."""
        found = {
            name
            for view, constructs in ((self.cuda, match.cuda), (self.nki, match.nki))
            for construct in constructs
            for name in view.writes[construct.id]
        }
        known = found & self.evidence.status.keys()
        return frozenset(known or self.evidence.status.keys())

    def proved(self, match: Match) -> bool:
        """Whether every output that a match has a part in is proved equal."""
        outputs = self.outputs(match)
        return bool(outputs) and all(self.evidence.status[name] == "proved" for name in outputs)

    def refuted(self, match: Match) -> bool:
        """Whether some output that a match has a part in is refuted."""
        return any(self.evidence.status[name] == "refuted" for name in self.outputs(match))

    def meaning(self, match: Match) -> Answer:
        """What the outputs downstream say, where no difference lies in the match itself."""
        outputs = self.outputs(match)
        if not outputs:
            return _NO_RELATION
        if self.proved(match):
            return _YES
        hidden = sorted(outputs & self.evidence.undecided.keys())
        if hidden:
            return Answer(None, "; ".join(self.evidence.undecided[name] for name in hidden))
        if not (match.cuda and match.nki):
            broken = self.broken_neighbour(match)
            if broken is not None:
                return Answer(False, broken)
        # Every difference was put at some door; none of them at this one.
        return _YES

    def broken_neighbour(self, match: Match) -> str | None:
        """What is shown wrong of the arithmetic that an unpaired number or cast is part of."""
        if (match.cuda or match.nki)[0].kind not in {"constant", "initial-value", "cast"}:
            return None
        if self.neutral(match):
            return None
        near = {id_ for c in match.cuda for id_ in self.cuda.neighbours(c)}
        beside = {id_ for n in match.nki for id_ in self.nki.neighbours(n)}
        for number, other in enumerate(self.matches):
            if (other.cuda or other.nki)[0].kind in {"stage-in", "gather"}:
                continue  # a number there only stands in for what is outside the tensor
            touching = any(c.id in near for c in other.cuda) or any(
                n.id in beside for n in other.nki
            )
            for blame in self.evidence.blames.get(number, ()) if touching else ():
                if blame.certain:
                    return blame.why
        return None

    def neutral(self, match: Match) -> bool:
        """Whether initial values change nothing in the reductions that they start."""
        for view, constructs in ((self.cuda, match.cuda), (self.nki, match.nki)):
            by_id = {construct.id: construct for construct in view.constructs}
            for construct in constructs:
                users = [by_id[id_] for id_ in view.behind[construct.id]]
                operators = [u.attribute("operator") for u in users if u.attribute("operator")]
                identities = {OPERATORS[name].identity for name in operators if name}
                if construct.kind != "initial-value" or not identities:
                    return False
                if any(number not in identities for number in construct.numbers):
                    return False
        return True

    def elements(self, match: Match) -> Answer:
        cuda = {t for c in match.cuda for t in self.cuda.tensors(c)}
        nki = {t for c in match.nki for t in self.nki.tensors(c)}
        if cuda and nki and not cuda & nki:
            named = f"{', '.join(sorted(nki))} is moved where CUDA reads {', '.join(sorted(cuda))}"
            return _YES if self.proved(match) else Answer(False, named)
        if not match.nki and self.refuted(match):
            touched = {t for n in self.nki.constructs for t in self.nki.tensors(n)}
            opaque = any(n.kind == "opaque" for n in self.nki.constructs)
            if not cuda & touched and not opaque:
                return Answer(False, f"NKI never touches {', '.join(sorted(cuda))}")
        return self.meaning(match)

    def coverage(self, match: Match) -> Answer:
        """The blames name what is left out; without one, everything is written once."""
        if not self.evidence.status:
            return _NO_RELATION
        if match.cuda and match.nki:
            return _YES
        gone = sorted(self.outputs(match) & self.evidence.uncovered)
        if gone:
            return Answer(False, f"not every element of {', '.join(gone)} is written")
        return _YES

    def numbers(self, match: Match) -> Answer:
        left, right = _numbers(match.cuda), _numbers(match.nki)
        if {as_float32(x) for x in left} == {as_float32(x) for x in right} or self.proved(match):
            return _YES
        both = [", ".join(f"{number:g}" for number in side) for side in (left, right)]
        shown = f"{both[0]} in CUDA, {both[1]} in NKI"
        return Answer(False if self.refuted(match) else None, shown)

    # -- formats ----------------------------------------------------------------------

    def formats(self, match: Match) -> Answer:
        if not match.nki:
            return self.meaning(match)
        if match.nki[0].kind == "cast":
            return self.narrowing(match)
        wanted = self.capped(_narrowest(match.cuda))
        given = _narrowest(match.nki)
        if wanted is None or given is None or _holds(given, wanted):
            return _YES
        return Answer(False, f"{given.value} in NKI where CUDA has {wanted.value}")

    def narrowing(self, match: Match) -> Answer:
        """A conversion on the NKI side may lose only what the CUDA side loses too."""
        for cast in match.nki:
            to = DType(cast.attribute("to") or "float32")
            source = DType(cast.attribute("from") or "float32")
            if not to.is_float or not source.is_float:
                continue
            allowed = [c.attribute("to") for c in match.cuda]
            if to.value in allowed or self.declared(cast, to):
                continue
            floor = self.capped(_narrowest(self.around(cast)))
            if floor is not None and not _holds(to, floor):
                return Answer(False, f"{source.value} to {to.value} where CUDA keeps {floor.value}")
        return _YES

    def declared(self, cast: Construct, to: DType) -> bool:
        """Whether a cast only makes the format that the NKI side's output is said to have."""
        stored = self.nki.tensors(cast)
        return any(t.name in stored and t.nki_dtype is to for t in self.binding.tensors)

    def around(self, cast: Construct) -> tuple[Construct, ...]:
        """The CUDA partners of what feeds a cast, or takes its result."""
        near = self.nki.neighbours(cast)
        found = (
            c for match in self.matches for c in match.cuda if any(n.id in near for n in match.nki)
        )
        return tuple(c for c in found if c.kind != "output-store")

    def capped(self, dtype: DType | None) -> DType | None:
        """Computing in float64 what comes from and goes to float32 asks for float32 only."""
        if dtype is None:
            return None
        floats = [t.cuda_dtype for t in self.binding.tensors if t.cuda_dtype.is_float]
        if not floats:
            return dtype
        widest = min(floats, key=lambda d: d.unit_roundoff)
        return max(dtype, widest, key=lambda d: d.unit_roundoff)

    def rounding(self, match: Match) -> Answer:
        if self.proved(match):
            return _YES
        left = {c.attribute("rounding") for c in match.cuda}
        right = {c.attribute("rounding") for c in match.nki}
        if match.cuda and match.nki and left != right:
            shown = " and ".join(sorted(x or "?" for x in right))
            return Answer(
                False, f"{shown} in NKI, {' and '.join(sorted(x or '?' for x in left))} in CUDA"
            )
        integers = any(not DType(c.attribute("to") or "float32").is_float for c in match.nki)
        return self.meaning(match) if integers and not match.cuda else _YES

    # -- the hardware's room --------------------------------------------------------------

    def partitions(self, match: Match) -> Answer:
        most = min(target.partitions.value for target in facts.targets().values())
        ranges = _ranges(match.nki)
        for construct in match.nki:
            for axis in construct.axes:
                if axis.kind is AxisKind.PARTITION:
                    extent = axis.extent.simplify(ranges)
                    low, _ = extent.bounds(ranges)
                    if low is not None and low > most:
                        return Answer(False, f"a tile of {extent} partitions, {most} at most")
        return _YES

    def room(self) -> Answer:
        """Only what cannot fit in any case is refused: a single tile over the whole memory."""
        targets = facts.targets().values()
        most = max(target.sbuf_bytes_per_partition.value for target in targets)
        for buffer in self.nki_kernel.buffers:
            if buffer.space is not Space.ONCHIP:
                continue
            size = buffer.dtype.bytes
            for extent in buffer.shape[buffer.instances + 1 :]:
                size *= extent.constant or 1
            if size > most:
                return Answer(False, f"{buffer.name} takes {size:,} bytes a partition of {most:,}")
        return _YES


def _ranges(constructs: tuple[Construct, ...]) -> Mapping[str, Range]:
    ranges: dict[str, Range] = {}
    for construct in constructs:
        for axis in construct.axes:
            _, high = axis.extent.bounds(ranges)
            ranges[axis.name] = (0, None if high is None else max(high - 1, 0))
    return ranges


def _numbers(constructs: tuple[Construct, ...]) -> tuple[float, ...]:
    return tuple(dict.fromkeys(number for c in constructs for number in c.numbers))


def _narrowest(constructs: tuple[Construct, ...]) -> DType | None:
    floats = [dtype for c in constructs for dtype in c.dtypes if dtype.is_float]
    return max(floats, key=lambda d: d.unit_roundoff) if floats else None


def _holds(given: DType, wanted: DType) -> bool:
    return given.unit_roundoff <= wanted.unit_roundoff
