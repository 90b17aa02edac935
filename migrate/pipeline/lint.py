"""What is wrong with the NKI kernels of a file, without anything to compare them with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec

from migrate import facts
from migrate.budget import Budget, Exhausted, Meter
from migrate.case import Case, load
from migrate.case.load import parse
from migrate.pipeline.guard import guarded
from migrate.pipeline.kernels import nki_kernel, no_nki_kernel, parse_nki
from migrate.pipeline.nki_alone.bounds import searching
from migrate.pipeline.nki_text import text_problems, told
from migrate.pipeline.nki_version import overridden, read_versions
from migrate.results import LintDocument, LintedKernel, Tool
from migrate.rules.codes import REFUSING
from migrate.rules.findings import findings
from migrate.rules.hw202 import OUT_OF_BOUNDS
from migrate.rules.rule import Evidence, Problem
from migrate.rules.suppression import suppressed
from migrate.source import Source, SourceError, read

if TYPE_CHECKING:
    from migrate.nki.parse import Kernel, Module
    from migrate.nki.specialize import Specialization

Target = Literal["trn1", "trn2", "trn3"]
NKI_NAME = "kernel.py"
CASE_NAME = "case.toml"
"""What a kernel and a case given as text are called."""


@dataclass(slots=True)
class _Looked:
    """What was found of a kernel so far; `searching` bounds the search for arguments."""

    searching: Meter
    problems: list[Problem] = field(default_factory=list)
    inferred: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    guessed: frozenset[str] = frozenset()
    complete: bool = False
    instructions: int = 0


def linted(
    file: str,
    kernel: str | None,
    *,
    case: str | None = None,
    target: Target | None = None,
    nki_version: str | None = None,
    budget: Budget | None = None,
    progress: Callable[[str], None] | None = None,
) -> LintDocument:
    """Every NKI kernel of a file, or the one named; see `migrate.api.lint`."""
    stated = load(case) if case is not None else Case()
    module = parse_nki(read(file), file)
    return _document(module, kernel, stated, target, nki_version, budget, progress)


def linted_text(
    text: str,
    kernel: str | None,
    *,
    case: str | None = None,
    target: Target | None = None,
    nki_version: str | None = None,
    budget: Budget | None = None,
) -> LintDocument:
    """Every NKI kernel of a text, or the one named; see `migrate.api.lint_text`."""
    stated = parse(Source.of(case, CASE_NAME)) if case is not None else Case()
    module = parse_nki(Source.of(text, NKI_NAME))
    return _document(module, kernel, stated, target, nki_version, budget, None)


def _document(
    module: Module,
    name: str | None,
    case: Case,
    target: Target | None,
    nki_version: str | None,
    budget: Budget | None,
    progress: Callable[[str], None] | None,
) -> LintDocument:
    case = overridden(case, nki_version)
    if target is not None:
        case = msgspec.structs.replace(case, nki=msgspec.structs.replace(case.nki, target=target))
    chosen = (nki_kernel(module, name),) if name is not None else module.kernels
    if not chosen:
        raise no_nki_kernel(module)
    kernels: list[LintedKernel] = []
    deterministic = True
    for kernel in chosen:
        if progress is not None:
            progress(f"reading {kernel.name}")
        allowed = budget or Budget()
        meter = Meter(allowed, f"reading {kernel.name}")
        looked = _Looked(searching=searching(allowed, kernel.name))
        kernels.append(_kernel(looked, module, kernel, case, meter))
        deterministic = deterministic and not (meter.late or looked.searching.late)
    return LintDocument(
        tool=Tool(facts=facts.digest()),
        deterministic=deterministic,
        file=module.source.name,
        digest=module.source.digest,
        kernels=tuple(kernels),
    )


def _kernel(
    looked: _Looked, module: Module, kernel: Kernel, case: Case, meter: Meter
) -> LintedKernel:
    versions = read_versions(module, kernel.name, case)
    looked.problems += versions.problems
    texts = guarded("reading the text", partial(text_problems, module, kernel), looked.reasons)
    looked.problems += texts or ()
    guarded(
        "reading the instructions",
        partial(_look, looked, module, kernel, case, meter),
        looked.reasons,
    )
    found = findings(Evidence((), looked.problems, ()))
    return LintedKernel(
        name=kernel.name,
        span=kernel.span,
        target=case.nki.target,
        versions=versions.versions,
        complete=looked.complete,
        instructions=looked.instructions,
        sizes=dict(sorted(looked.sizes.items())),
        inferred=(*versions.inferred, *looked.inferred),
        reasons=tuple(dict.fromkeys(looked.reasons)),
        findings=suppressed([f.finding for f in found], [module.source]),
    )


def _look(looked: _Looked, module: Module, kernel: Kernel, case: Case, meter: Meter) -> None:
    """Specialise the kernel at every position of the sizes; findings are united."""
    try:
        runs = list(_arguments(looked, module, kernel, case))
    except (SourceError, Exhausted) as reason:
        looked.reasons.append(str(reason))
        return
    complete = bool(runs)
    for sizes, args, grid in runs:
        try:
            found = _specialized(looked, module, kernel, case, args, grid, sizes, meter)
        except (SourceError, Exhausted) as reason:
            looked.reasons.append(str(reason))
            complete = False
            continue
        complete = complete and found.complete
        if found.instructions >= looked.instructions:
            looked.instructions, looked.sizes = found.instructions, dict(sizes)
    looked.complete = complete


_Arguments = tuple[Mapping[str, int], Mapping[str, object], tuple[int, ...]]


def _arguments(looked: _Looked, module: Module, kernel: Kernel, case: Case) -> Iterator[_Arguments]:
    """Sizes, arguments and grid of every time the kernel is looked at."""
    from migrate.align.binding import bind
    from migrate.pipeline.nki_alone import infer
    from migrate.pipeline.sides import nki_arguments

    if case.tensors:
        for run in case.runs():
            binding = bind(case, run)
            yield dict(binding.sizes), nki_arguments(case, binding), binding.nki_grid
        return
    found = infer(module, kernel, looked.searching, target=case.nki.target)
    if isinstance(found, str):
        looked.reasons.append(f"{found}; state shapes in a case")
    elif not found.usable:
        against = "; ".join(found.failures)
        looked.reasons.append(
            f"no arguments that the kernel takes were found; state them in a case ({against})"
        )
    else:
        looked.inferred += found.told
        looked.guessed = found.guessed
        yield dict(found.sizes), found.args, found.grid


def _specialized(
    looked: _Looked,
    module: Module,
    kernel: Kernel,
    case: Case,
    args: Mapping[str, object],
    grid: tuple[int, ...],
    sizes: Mapping[str, int],
    meter: Meter,
) -> Specialization:
    from migrate.nki.analyses import Analyses
    from migrate.nki.specialize import specialize

    analyses = Analyses(case.nki.target, looked.guessed)
    idle: list[object] = []
    found = specialize(
        module,
        kernel.name,
        args,
        meter=meter,
        on_instruction=analyses.execute,
        on_allocation=analyses.allocated,
        target=case.nki.target,
        grid=grid,
        on_idle_loop=idle.append,
    )
    for problem in found.problems:
        refused = problem.code != OUT_OF_BOUNDS
        looked.problems.append(told(problem, sizes, REFUSING if refused else ""))
    # A loop that does not run once at sizes that were tried may be one that fills the result.
    doubted = {"unwritten-output"} if idle and not case.tensors else set()
    looked.problems += (
        told(problem, sizes) for problem in analyses.problems(found) if problem.code not in doubted
    )
    for event in found.events:
        where = event.span or kernel.span
        match event.kind:
            case "assert" | "error":
                looked.problems.append(
                    Problem(f"stops:{event.kind}", event.message, where, "nki", sizes)
                )
            case "unsupported" | "stopped":
                looked.reasons.append(f"{where}: {event.message}")
            case "ambiguous" | "print":
                pass
    return found
