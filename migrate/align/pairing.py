"""Every construct of both kernels with its partner and the verdict on the pairing.

`pair` assigns the constructs to each other (`pairing_assign`), puts every difference of
the relations at the door of one pair (`pairing_blame`), and asks the tables of
`mappings/cuda_to_nki` what each pairing requires (`pairing_requirements`):

* all requirements met: the verdict that the mapping gives, with its reason;
* one not met: `mismapped`; without a partner, `missing` or `extra`;
* one not known, or something not understood: `unknown`, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from migrate import facts
from migrate.align.binding import Binding, logical_tensors
from migrate.align.pairing_assign import Match, SideView, assign
from migrate.align.pairing_blame import evidence
from migrate.align.pairing_requirements import Answer, Judge
from migrate.align.relation import Relation
from migrate.facts import Realisation
from migrate.ir import constructs as ir
from migrate.ir.nodes import Kernel
from migrate.results import Construct, ConstructSide, ConstructVerdict, Side

MAX_PAIRS = 1_000_000
"""CUDA constructs times NKI constructs; more are not aligned."""

_SPECIAL = {"maximum_number": "maximum", "minimum_number": "minimum"}


def pair(
    cuda: Sequence[ir.Construct],
    nki: Sequence[ir.Construct],
    binding: Binding,
    relations: Sequence[Relation],
    cuda_kernel: Kernel,
    nki_kernel: Kernel,
) -> tuple[Construct, ...]:
    """Pair the constructs of two kernels and judge each pairing.

    `relations` are those of the two kernels, at one or more sizes; without any, what
    rests on meaning is unknown.  CUDA constructs come first, in program order, then what
    only the NKI kernel has; `findings` is empty.
    """
    left = SideView(cuda, _names(binding, cuda_kernel, "cuda"))
    right = SideView(nki, _names(binding, nki_kernel, "nki"))
    if len(cuda) * len(nki) > MAX_PAIRS:
        return _unaligned(cuda, nki)
    proved = bool(relations) and all(relation.status == "proved" for relation in relations)
    matches = assign(left, right, proved=proved)
    judge = Judge(
        matches=matches,
        cuda=left,
        nki=right,
        evidence=evidence(matches, left, right, relations),
        binding=binding,
        nki_kernel=nki_kernel,
    )
    return tuple(_judged(number, judge) for number in range(len(matches)))


def _unaligned(cuda: Sequence[ir.Construct], nki: Sequence[ir.Construct]) -> tuple[Construct, ...]:
    """Every construct by itself, where there are too many to align."""
    reason = f"{len(cuda):,} CUDA and {len(nki):,} NKI constructs are too many to align"
    alone = [Match((c,), ()) for c in cuda] + [Match((), (n,)) for n in nki]
    return tuple(
        Construct(
            id=f"c{number + 1}",
            kind=(match.cuda or match.nki)[0].kind,
            verdict="unknown",
            reason=reason,
            cuda=_sides(match.cuda),
            nki=_sides(match.nki),
        )
        for number, match in enumerate(alone)
    )


def _names(binding: Binding, kernel: Kernel, side: Side) -> Mapping[str, str]:
    found = logical_tensors(binding, kernel, side)
    return {buffer: tensor.name for buffer, tensor in found.items()}


@dataclass(frozen=True, slots=True)
class _Judgement:
    verdict: ConstructVerdict
    mapping: str | None
    reason: str


def _judged(number: int, judge: Judge) -> Construct:
    match = judge.matches[number]
    found = _judgement(number, judge)
    return Construct(
        id=f"c{number + 1}",
        kind=(match.cuda or match.nki)[0].kind,
        verdict=found.verdict,
        mapping=found.mapping,
        reason=found.reason,
        cuda=_sides(match.cuda),
        nki=_sides(match.nki),
    )


def _sides(constructs: Sequence[ir.Construct]) -> tuple[ConstructSide, ...]:
    shown = {
        (summary, ir.place(span)): ConstructSide(summary=summary, span=span)
        for construct in constructs
        for span, summary in construct.parts
    }
    return tuple(shown.values())


def _judgement(number: int, judge: Judge) -> _Judgement:
    match = judge.matches[number]
    for construct in (*match.cuda, *match.nki):
        if construct.kind == "opaque":
            return _Judgement("unknown", None, f"not understood: {construct.summary}")
    ways = _ways(match, judge)
    if not ways:
        return _unmapped(number, judge)
    # The first way whose requirements hold; if none does, what the likeliest one lacks.
    judgements = [_by(way, number, judge) for way in ways]
    return next((j for j in judgements if j.verdict not in _OPEN), judgements[0])


_OPEN = frozenset({"unknown", "mismapped", "missing", "extra"})


def _ways(match: Match, judge: Judge) -> tuple[Realisation, ...]:
    cuda_kind = match.cuda[0].kind if match.cuda else None
    nki_kind = match.nki[0].kind if match.nki else None
    return tuple(
        way
        for way in facts.realisations(cuda_kind, nki_kind)
        if _has(match.cuda, way.cuda_when)
        and _has(match.nki, way.nki_when)
        and not _unexplained(match, judge)
    )


def _has(constructs: Sequence[ir.Construct], wanted: Mapping[str, str]) -> bool:
    return all(
        any(construct.attribute(key) == word for construct in constructs)
        for key, word in wanted.items()
    )


def _unexplained(match: Match, judge: Judge) -> bool:
    """Whether NKI moves in a tensor that the CUDA kernel never reads."""
    if match.cuda or match.nki[0].kind != "stage-in":
        return False
    read = {t for c in judge.cuda.constructs for t in judge.cuda.tensors(c)}
    return not {t for c in match.nki for t in judge.nki.tensors(c)} & read


def _by(way: Realisation, number: int, judge: Judge) -> _Judgement:
    """The judgement by one way of realising the construct."""
    match = judge.matches[number]
    entry = facts.mapping(way.id)
    asked = entry.requirements(way)
    known = {requirement.id for requirement in asked}
    undecided: Answer | None = None
    for requirement in asked:
        answer = judge.answer(number, requirement.id)
        if answer.holds is False:
            why = f": {answer.why}" if answer.why else ""
            effect = f" ({requirement.effect})" if requirement.effect != "wrong" else ""
            reason = f"{requirement.otherwise}{effect}{why}"
            return _Judgement(_failing(match), way.id, reason)
        if answer.holds is None and undecided is None:
            undecided = answer
    for blame in judge.evidence.blames.get(number, ()):
        if blame.requirement not in known:
            if blame.certain:
                return _Judgement(_failing(match), way.id, blame.why)
            undecided = undecided or Answer(None, blame.why)
    if undecided is not None:
        return _Judgement("unknown", way.id, _open(undecided))
    return _Judgement(way.verdict, way.id, way.reason + _note(match))


def _unmapped(number: int, judge: Judge) -> _Judgement:
    """No table knows the pairing: only what is proved, or shown wrong, can be said."""
    match = judge.matches[number]
    blames = judge.evidence.blames.get(number, ())
    for blame in blames:
        if blame.certain:
            return _Judgement(_failing(match), None, blame.why)
    if match.cuda and not match.nki and match.cuda[0].kind == "output-store":
        if not any(construct.kind == "opaque" for construct in judge.nki.constructs):
            names = ", ".join(sorted(judge.cuda.tensors(match.cuda[0])))
            return _Judgement("missing", None, f"the NKI kernel never writes {names}")
    if judge.proved(match):
        if not match.nki:
            return _Judgement("not-needed", None, "the outputs are proved equal without it")
        if not match.cuda:
            return _Judgement("transformed", None, "the outputs are proved equal with it")
        return _Judgement("matched", None, "the outputs are proved equal")
    answer = judge.meaning(match)
    if blames:
        answer = Answer(None, blames[0].why)
    elif match.cuda and match.nki:
        kinds = f"a {match.cuda[0].kind} as a {match.nki[0].kind}"
        answer = Answer(None, f"no mapping says what {kinds} requires")
    return _Judgement("unknown", None, _open(answer))


def _failing(match: Match) -> ConstructVerdict:
    if match.cuda and match.nki:
        return "mismapped"
    return "missing" if match.cuda else "extra"


def _open(answer: Answer) -> str:
    return f"could not be decided: {answer.why}" if answer.why else "could not be decided"


def _note(match: Match) -> str:
    """What a reader should know of special values, where the operators differ in them."""
    left = {operator for c in match.cuda for operator in c.operators}
    right = {operator for c in match.nki for operator in c.operators}
    for number, plain in _SPECIAL.items():
        for one, other, side in ((left, right, "CUDA"), (right, left, "NKI")):
            if number in one and plain in other and number not in other:
                return f"; a NaN operand is ignored in {side} only ({plain})"
    return ""
