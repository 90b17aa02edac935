"""Lifting both kernels at every position of the sizes, and relating them there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from numpy.typing import NDArray

from migrate.align.binding import Binding, bind
from migrate.align.relation import Relation, relate
from migrate.budget import Exhausted, Meter
from migrate.ir.evaluate import Unevaluable
from migrate.ir.nodes import Kernel
from migrate.pipeline.guard import guarded
from migrate.pipeline.kernels import Pair
from migrate.pipeline.sides import CudaReading, NkiReading, read_cuda, read_nki
from migrate.results import Coverage, Inputs
from migrate.rules.rule import Problem, Reading

Progress = Callable[[str], None]
Make = Callable[[Binding, Inputs], Mapping[str, NDArray[Any]]]


@dataclass(frozen=True, slots=True)
class Positions:
    """Both kernels at each position of the sizes, with everything met on the way.

    `gaps` say in sentences what could not be read or related.
    """

    readings: tuple[Reading, ...]
    problems: tuple[Problem, ...]
    gaps: tuple[str, ...]
    coverage: Coverage
    inferred: tuple[str, ...] = ()
    cut_short: bool = False

    @property
    def relations(self) -> tuple[Relation, ...]:
        return tuple(r.relation for r in self.readings if r.relation is not None)


def read_positions(pair: Pair, make: Make, meter: Meter, tell: Progress) -> Positions:
    """Read both kernels at each position; raises `SourceError` where a choice is open."""
    readings: list[Reading] = []
    problems: list[Problem] = []
    gaps: list[str] = []
    cut_short = False
    bindings = [bind(pair.case, sizes) for sizes in pair.case.runs()]
    stopped = False
    try:
        cuda = read_cuda(pair, bindings[0], meter)
    except Exhausted as stop:
        cuda = CudaReading(None, (), (f"{pair.cuda.span}: {stop}",))
        cut_short = stop.kind == "seconds"
        stopped = True
    gaps += cuda.gaps
    problems += cuda.problems
    shares: list[float] = []
    for binding in bindings:
        if stopped:
            # What came to no end once would not at another position either.
            shares.append(0.0)
            readings.append(Reading(binding, cuda.kernel, None, None))
            continue
        tell(f"reading both kernels at {shown(binding)}")
        relation: Relation | None = None
        try:
            at = shown(binding)
            read = partial(read_nki, pair, binding, meter)
            nki = guarded(f"reading the NKI kernel at {at}", read, gaps)
            if nki is not None:
                related = partial(_related, cuda, nki, binding, make, meter, gaps)
                relation = guarded(f"relating the kernels at {at}", related, gaps)
        except Exhausted as stop:
            gaps.append(str(stop))
            cut_short = cut_short or stop.kind == "seconds"
            readings.append(Reading(binding, cuda.kernel, None, None))
            continue
        if nki is None:
            shares.append(0.0)
            readings.append(Reading(binding, cuda.kernel, None, None))
            continue
        gaps += nki.gaps
        problems += nki.problems
        stopped = nki.stopped
        shares.append(nki.coverage)
        readings.append(Reading(binding, cuda.kernel, nki.kernel, relation))
    return Positions(
        readings=tuple(readings),
        problems=tuple(problems),
        gaps=tuple(dict.fromkeys(gaps)),
        coverage=Coverage(cuda=cuda.coverage, nki=min(shares, default=0.0)),
        cut_short=cut_short,
    )


def shown(binding: Binding) -> str:
    """The sizes of a binding in words."""
    return ", ".join(f"{name} = {value}" for name, value in binding.sizes.items()) or "fixed sizes"


def _related(
    cuda: CudaReading,
    nki: NkiReading,
    binding: Binding,
    make: Make,
    meter: Meter,
    gaps: list[str],
) -> Relation | None:
    left, right = cuda.kernel, nki.kernel
    if left is None or right is None:
        return None
    try:
        return relate(
            left,
            right,
            binding,
            make,
            cuda_sizes=binding.sizes,
            nki_sizes=_sizes(right, binding),
            meter=meter,
        )
    except Unevaluable as reason:
        gaps.append(f"the kernels cannot be related: {reason}")
        return None


def _sizes(kernel: Kernel, binding: Binding) -> Mapping[str, int]:
    return {**binding.sizes, **dict(kernel.computed_at or ())}
