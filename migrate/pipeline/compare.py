"""A whole comparison: read, relate, find, run, weigh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from migrate import facts
from migrate.align.binding import Binding
from migrate.align.pairing import pair as paired
from migrate.budget import Budget, Exhausted, Meter
from migrate.case.fills import FillError
from migrate.ir.constructs import constructs as constructs_of
from migrate.ir.evaluate import Trouble
from migrate.pipeline.completion import completed
from migrate.pipeline.defaults import differing_defaults
from migrate.pipeline.guard import guarded
from migrate.pipeline.kernels import Pair, open_pair, pair_of_text
from migrate.pipeline.launches import launch_at
from migrate.pipeline.linking import linked, unnamed
from migrate.pipeline.nki_text import text_problems
from migrate.pipeline.nki_version import overridden, read_versions
from migrate.pipeline.reading import Positions, Progress, read_positions, shown
from migrate.results import (
    Comparison,
    Construct,
    Finding,
    Inputs,
    Related,
    Run,
    Subject,
    Tool,
)
from migrate.rules.findings import MAX_MESSAGE, Found, findings
from migrate.rules.rule import REFERENCE, Evidence, Problem, Reading
from migrate.rules.suppression import suppressed
from migrate.score.correspondence import correspondence
from migrate.score.fidelity import score
from migrate.score.verdict import weigh
from migrate.source import SourceError
from migrate.verify.inputs import make
from migrate.verify.plan import plan

if TYPE_CHECKING:
    from migrate.verify.run import Ran


def compared(
    cuda: str | None,
    nki: str | None,
    *,
    case: str | None,
    run: str,
    budget: Budget,
    progress: Progress | None = None,
    defines: Mapping[str, str] | None = None,
    include: Sequence[str] = (),
    nki_version: str | None = None,
) -> Comparison:
    """The comparison of two kernels; see `migrate.api.compare`."""
    opened = open_pair(cuda, nki, case, defines=defines, include=include)
    opened = replace(opened, case=overridden(opened.case, nki_version))
    pair = completed(opened, budget)
    noted = differing_defaults(opened, pair)
    return judged(pair, run=run, budget=budget, progress=progress, noted=noted)


def compared_text(cuda: str, nki: str, *, case: str | None, run: str, budget: Budget) -> Comparison:
    """The comparison of two texts; see `migrate.api.compare_text`."""
    opened = pair_of_text(cuda, nki, case)
    pair = completed(opened, budget)
    noted = differing_defaults(opened, pair)
    return judged(pair, run=run, budget=budget, noted=noted)


@dataclass(frozen=True, slots=True)
class _Runs:
    made: tuple[Run, ...]
    cut_short: bool
    gaps: tuple[str, ...]
    first: Mapping[int, Ran] = field(default_factory=dict)
    """The first run at each position."""
    faults: tuple[Problem, ...] = ()
    """What the runs show to be wrong with the CUDA kernel itself."""


def judged(
    pair: Pair,
    *,
    run: str,
    budget: Budget,
    progress: Progress | None = None,
    noted: Sequence[Problem] = (),
) -> Comparison:
    """The comparison of a pair that was read; `noted` is what its texts show before that."""
    tell = progress or (lambda _: None)
    meter = Meter(budget, "reading both kernels")
    make_inputs = partial(make, folder=pair.case.folder)
    try:
        positions = read_positions(pair, make_inputs, meter, tell)
    except FillError as error:
        raise SourceError(str(error), file=pair.case.file or "the case") from None
    runs = _run(pair, positions, run, budget, tell) if run != "never" else _Runs((), False, ())
    positions = _trusted(positions, runs, Meter(budget, "checking the readings"))
    versions = read_versions(pair.module, pair.nki.name, pair.case)
    gaps = [*positions.gaps, *runs.gaps]
    texts = guarded(
        "reading the NKI kernel's text", partial(text_problems, pair.module, pair.nki), gaps
    )
    problems = (*positions.problems, *runs.faults, *versions.problems, *(texts or ()), *noted)
    evidence = Evidence(positions.readings, problems, runs.made)
    found = _located(pair, positions, findings(evidence), tell)
    found = suppressed(found, (pair.cuda_source, pair.nki_source))
    relations = positions.relations
    pairing = guarded("pairing constructs", partial(_pairing, positions), gaps)
    constructs = linked(pairing or (), found)
    coverage = positions.coverage
    weighed = weigh(
        statuses=[relation.status for relation in relations]
        if len(relations) == len(positions.readings)
        else ["unknown", *(relation.status for relation in relations)],
        findings=found,
        runs=runs.made,
        coverage=coverage,
        gaps=gaps,
        unnamed=unnamed(constructs, found),
    )
    points, found = score(
        constructs=constructs,
        findings=found,
        runs=runs.made,
        verdict=weighed.verdict,
        coverage=coverage,
    )
    return Comparison(
        tool=Tool(facts=facts.digest()),
        deterministic=not (runs.cut_short or positions.cut_short),
        cuda=Subject(
            file=pair.cuda_source.name, kernel=pair.cuda.name, digest=pair.cuda_source.digest
        ),
        nki=Subject(
            file=pair.nki_source.name,
            kernel=pair.nki.name,
            digest=pair.nki_source.digest,
            target=pair.case.nki.target,
            version=pair.case.nki.version,
            versions=versions.versions,
        ),
        verdict=weighed.verdict,
        confidence=weighed.confidence,
        correspondence=_correspondence(positions, constructs),
        score=points,
        coverage=coverage,
        reasons=weighed.reasons,
        inferred=(*pair.inferred, *positions.inferred, *versions.inferred),
        constructs=constructs,
        findings=found,
        runs=runs.made,
    )


def _located(
    pair: Pair, positions: Positions, found: Sequence[Found], tell: Progress
) -> tuple[Finding, ...]:
    """Findings at their cause, where reading the kernel with a small edit shows it.

    With the edit the kernels agree everywhere: whatever else the expressions showed follows
    from the same fault, and is told once.
    """
    import msgspec

    if any(each.finding.rule == "MAP101" and not each.suspects for each in found):
        return tuple(each.finding for each in found)  # the rule has found the cause itself
    suspected = [each for each in found if each.suspects]
    suspected += [each for each in found if not each.suspects and _follows(each.finding)]
    if not suspected:
        return tuple(each.finding for each in found)
    tell(f"looking for the cause of {suspected[0].finding.rule}")
    from migrate.pipeline.repair import repaired

    suspects = [
        span for each in suspected if each.suspects for span in (each.finding.span, *each.suspects)
    ]
    cause = repaired(pair, positions.readings, suspects)
    if cause is None:
        return tuple(each.finding for each in found)
    span, change = cause
    chosen = next((each for each in suspected if span in each.suspects), suspected[0])
    finding = chosen.finding
    message = f"{finding.message.removesuffix(chosen.guess)}; with {change} both kernels agree"
    others = [each.finding for each in found if each is not chosen and _follows(each.finding)]
    located = msgspec.structs.replace(
        finding,
        span=span,
        message=message if len(message) <= MAX_MESSAGE else finding.message,
        related=(
            *finding.related,
            *(Related(side="nki", span=other.span) for other in (finding, *others)),
        ),
    )
    return tuple(
        located if each is chosen else each.finding
        for each in found
        if each is chosen or not _follows(each.finding)
    )


def _follows(finding: Finding) -> bool:
    """Whether a finding says how the two kernels' expressions differ."""
    return finding.family == "mapping" and finding.effect == "wrong" and finding.side == "nki"


def _run(pair: Pair, positions: Positions, mode: str, budget: Budget, tell: Progress) -> _Runs:
    from migrate.verify.run import Pair as Runnable
    from migrate.verify.run import run as run_once

    runnable = Runnable(
        program=pair.program,
        module=pair.module,
        nki_kernel=pair.nki.name,
        target=pair.case.nki.target,
        args=pair.case.nki.args,
        folder=pair.case.folder,
    )
    made: list[Run] = []
    failed: list[str] = [""]
    first: dict[int, Ran] = {}
    faults: list[Problem] = []
    cut_short = False
    for position, inputs in plan(len(positions.readings), every=mode == "always"):
        binding = positions.readings[position].binding
        tell(f"running both kernels at {shown(binding)}, {inputs.family} inputs")
        try:
            launch = launch_at(pair, binding)
            once = partial(run_once, runnable, launch, binding, inputs, budget)
            done = guarded("running both kernels", once, failed) or _not_run(
                binding, inputs, failed[-1]
            )
        except FillError as error:
            raise SourceError(str(error), file=pair.case.file or "the case") from None
        if mode == "always" and done.run.status == "not-run":
            raise SourceError(f"cannot be run: {done.run.reason}", file=pair.nki_source.name)
        made.append(done.run)
        first.setdefault(position, done)
        cut_short = cut_short or done.cut_short
        sizes = dict(binding.sizes)
        faults += [
            Problem(f"{REFERENCE}{fault.kind}", fault.message, fault.span, "cuda", sizes)
            for fault in done.faults
        ]
        if done.run.status == "not-run" and not done.faults:
            break  # what stopped this one stops the others
    gaps = tuple(dict.fromkeys(r.reason for r in made if r.reason is not None))
    return _Runs(tuple(made), cut_short, gaps, first, tuple(faults))


def _not_run(binding: Binding, inputs: Inputs, reason: str) -> Ran:
    from migrate.verify.run import Ran

    return Ran(Run(sizes=dict(binding.sizes), inputs=inputs, status="not-run", reason=reason))


def _trusted(positions: Positions, runs: _Runs, meter: Meter) -> Positions:
    """The readings without those whose IR does not give what the kernel's run gave."""
    if not runs.first:
        return positions  # and nothing of what runs kernels is imported
    from migrate.verify.agreement import cuda_disagreement, nki_disagreement

    gaps = list(positions.gaps)
    readings: list[Reading] = []
    for number, reading in enumerate(positions.readings):
        ran = runs.first.get(number)
        if ran is None or reading.relation is None:
            readings.append(reading)
            continue
        assert reading.cuda is not None
        assert reading.nki is not None
        try:
            wrong = {
                "CUDA": cuda_disagreement(
                    reading.cuda,
                    reading.binding,
                    ran,
                    meter,
                    undefined=_undefined(reading.relation.cuda_trouble),
                ),
                "NKI": nki_disagreement(
                    reading.nki,
                    reading.binding,
                    ran,
                    meter,
                    undefined=_undefined(reading.relation.nki_trouble),
                ),
            }
        except Exhausted as stop:
            gaps.append(str(stop))
            wrong = {}
        told = [
            f"the reading of the {side} kernel is not used: {why}"
            for side, why in wrong.items()
            if why
        ]
        gaps += told
        readings.append(replace(reading, relation=None) if told else reading)
    return replace(positions, readings=tuple(readings), gaps=tuple(dict.fromkeys(gaps)))


def _undefined(troubles: Sequence[Trouble]) -> bool:
    """Whether a kernel reads what nobody wrote."""
    return any(trouble.kind in {"unwritten-read", "out-of-range"} for trouble in troubles)


def _pairing(positions: Positions) -> tuple[Construct, ...]:
    """Constructs at the position that says most.

    That is where the kernels differ, if they do anywhere, and of several positions the one
    where the NKI kernel does most: at small sizes a loop may have no trip at all.
    """
    usable = [r for r in positions.readings if r.cuda is not None and r.nki is not None]
    if not usable:
        return ()
    refuted = [r for r in usable if r.relation is not None and r.relation.status == "refuted"]
    candidates = [(constructs_of(r.nki), r) for r in refuted or usable[-1:] if r.nki is not None]
    nki, chosen = max(reversed(candidates), key=lambda candidate: len(candidate[0]))
    assert chosen.cuda is not None
    assert chosen.nki is not None
    return paired(
        constructs_of(chosen.cuda),
        nki,
        chosen.binding,
        positions.relations,
        chosen.cuda,
        chosen.nki,
    )


def _correspondence(positions: Positions, constructs: Sequence[Construct]) -> float:
    alike = [output.alike for relation in positions.relations for output in relation.outputs]
    return correspondence(alike=alike, constructs=constructs)
