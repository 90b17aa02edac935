"""What comes of a guess at small sizes: the NKI kernel is specialised, both are related."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from migrate.align.binding import Binding, bind, given_shape, logical_tensors
from migrate.align.relation import relate
from migrate.budget import Budget, Exhausted, Meter
from migrate.case.fills import FillError
from migrate.case.layout import LayoutError
from migrate.case.types import Case
from migrate.ir.evaluate import Unevaluable
from migrate.ir.index import Index
from migrate.ir.nodes import Kernel
from migrate.ir.normal import meaning
from migrate.nki.errors import Unsupported
from migrate.nki.frames import Instruction
from migrate.nki.lift import lift
from migrate.nki.specialize import Specialization, specialize
from migrate.nki.values import View
from migrate.pipeline.infer_case import Guess, case_of
from migrate.pipeline.infer_cuda import stated_for
from migrate.pipeline.infer_host import undone
from migrate.pipeline.infer_match import Array, laid_out, plain
from migrate.pipeline.kernels import Pair
from migrate.pipeline.sides import nki_arguments, read_cuda
from migrate.rules.hw202 import OUT_OF_BOUNDS
from migrate.source import SourceError, Span
from migrate.verify.inputs import make

Status = Literal["proved", "read", "assert", "error", "gap", "open"]

SHARE = 4
"""One trial may use this part of the steps of all."""

TURNED = "transpose(1, 0)"

MAX_SITES = 4000
"""Instructions whose expressions are read for tiles."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a guess: `guess` is completed by what the NKI kernel returns.

    `read`: the NKI kernel was specialised to its end, but nothing was proved.  `open`: its
    results do not tell what they are.  `problems` counts what the NKI front end has against
    the kernel.
    """

    status: Status
    guess: Guess
    message: str = ""
    span: Span | None = None
    problems: int = 0


@dataclass(frozen=True, slots=True)
class Look:
    """What a specialisation shows: `stepped` are the sizes that loops go through one by one."""

    outcome: Outcome
    expressions: tuple[Index, ...] = ()
    stepped: frozenset[str] = frozenset()


class Trials:
    """Tries guesses; the reading of the CUDA kernel is kept between them."""

    def __init__(self, pair: Pair, budget: Budget) -> None:
        self.pair = pair
        self.budget = budget
        self._ends = time.monotonic() + budget.seconds
        self._cuda: dict[str, Kernel | None] = {}

    def meter(self) -> Meter:
        """An allowance for one trial: a share of the steps, the time that is left."""
        seconds = max(self._ends - time.monotonic(), 0.001)
        share = Budget(self.budget.steps // SHARE, self.budget.bytes // 2, seconds)
        return Meter(share, "inferring what no case states")

    def __call__(self, guess: Guess, sizes: Mapping[str, int]) -> Outcome:
        """What comes of a guess at some sizes.  Raises `Exhausted` only for time."""
        try:
            return self._tried(guess, sizes, self.meter())
        except Exhausted as stop:
            if stop.kind in ("seconds", "cancelled"):
                raise
            return Outcome("gap", guess, str(stop))
        except LayoutError as error:
            return Outcome("error", guess, str(error))

    def _tried(self, guess: Guess, sizes: Mapping[str, int], meter: Meter) -> Outcome:
        case = case_of(self.pair, guess, {name: (value,) for name, value in sizes.items()})
        binding = bind(case, case.runs()[0])
        name = self.pair.nki.name
        try:
            found = lift(
                self.pair.module, name, nki_arguments(case, binding),
                meter=meter, target=case.nki.target, grid=binding.nki_grid,
            )  # fmt: skip
        except Unsupported as gap:
            return Outcome("gap", guess, gap.reason, gap.origin.span if gap.origin else None)
        except SourceError as error:
            return Outcome("error", guess, error.message)
        stop = _stopped(found.specialization)
        if stop is not None:
            status, message, span = stop
            return Outcome(status, guess, message, span)
        written = {output.version.buffer for output in found.kernel.outputs} if found.kernel else ()
        completed = with_outputs(guess, found.specialization, sizes, self.pair.case, written)
        if isinstance(completed, str):
            return Outcome("open", guess, completed)
        if found.kernel is None:
            return Outcome("gap", completed, "the NKI kernel was not understood")
        case = case_of(self.pair, completed, {n: (v,) for n, v in sizes.items()})
        binding = bind(case, case.runs()[0])
        cuda = self._read_cuda(case, binding)
        if cuda is not None and _proved(cuda, found.kernel, binding, case, meter):
            return Outcome("proved", completed)
        problems = len(found.specialization.problems)
        return Outcome("read", _unturned(completed), problems=problems)

    def cuda_kernel(self, guess: Guess, sizes: Mapping[str, int]) -> Kernel | None:
        """The CUDA kernel under a guess; `None` where it is not read."""
        case = case_of(self.pair, guess, {name: (value,) for name, value in sizes.items()})
        return self._read_cuda(case, bind(case, case.runs()[0]))

    def _read_cuda(self, case: Case, binding: Binding) -> Kernel | None:
        scalars = tuple((scalar.cuda, scalar.value) for scalar in case.scalars)
        shapes = tuple((tensor.cuda, tensor.shape) for tensor in case.tensors)
        key = repr((case.cuda.launch, scalars, shapes))
        if key not in self._cuda:
            pair = replace(self.pair, case=case, launch=case.cuda.launch[0])
            try:
                self._cuda[key] = read_cuda(pair, binding, self.meter()).kernel
            except SourceError:
                self._cuda[key] = None
        return self._cuda[key]

    def looked(self, guess: Guess, sizes: Mapping[str, int]) -> Look:
        """Whether the NKI kernel takes the sizes, and the expressions met on the way.

        An outcome `error` may also be what the compiler refuses; an access outside a tensor
        is neither, since it is a fault that a comparison must show.
        """
        case = case_of(self.pair, guess, {name: (value,) for name, value in sizes.items()})
        binding = bind(case, case.runs()[0])
        seen: dict[Index, None] = {}
        turns: dict[Index, None] = {}
        sites = 0

        def look(instruction: Instruction) -> None:
            nonlocal sites
            sites += 1
            if sites > MAX_SITES:
                return
            for turn in instruction.loops:
                if turn.trips is not None:
                    turns.setdefault(turn.trips.index())
            for _, operand in instruction.operands:
                if isinstance(operand, View):
                    for extent in operand.shape:
                        seen.setdefault(extent.index())

        try:
            found = specialize(
                self.pair.module,
                self.pair.nki.name,
                nki_arguments(case, binding),
                meter=self.meter(),
                on_instruction=look,
                target=case.nki.target,
                grid=binding.nki_grid,
            )
        except (SourceError, LayoutError) as error:
            return Look(Outcome("error", guess, str(error)))
        names = _named(guess)
        trips = [index.substitute(names) for index in turns]
        expressions = (*trips, *(index.substitute(names) for index in seen))
        stepped = frozenset(n for n in guess.subject.sizes() if Index.size(n) in trips)
        stop = _stopped(found)
        if stop is not None:
            status, message, span = stop
            return Look(Outcome(status, guess, message, span), expressions, stepped)
        for problem in found.problems:
            if problem.code != OUT_OF_BOUNDS:
                refused = Outcome("error", guess, problem.message, problem.span)
                return Look(refused, expressions, stepped)
        return Look(Outcome("read", guess), expressions, stepped)


def _proved(cuda: Kernel, nki: Kernel, binding: Binding, case: Case, meter: Meter) -> bool:
    sizes = {**binding.sizes, **dict(nki.computed_at or ())}
    for tensor in binding.outputs:
        given = given_shape(binding, nki, tensor, sizes)
        if given is not None and given != binding.nki_shape(tensor):
            return False
    try:
        # Most guesses end here: what differs is not asked about.
        left = meaning(cuda, binding.sizes, logical_tensors(binding, cuda, "cuda"), meter=meter)
        right = meaning(nki, sizes, logical_tensors(binding, nki, "nki"), meter=meter)
        for tensor in binding.outputs:
            mine, theirs = left.terms.get(tensor.name), right.terms.get(tensor.name)
            if mine is None or theirs is None or mine.size != theirs.size:
                return False
            if not np.array_equal(mine.reshape(-1), theirs.reshape(-1)):
                return False
        relation = relate(
            cuda,
            nki,
            binding,
            partial(make, folder=case.folder),
            cuda_sizes=binding.sizes,
            nki_sizes=sizes,
            meter=meter,
        )
    except (Unevaluable, FillError):
        return False
    return relation.status == "proved"


def _unturned(guess: Guess) -> Guess:
    """Without results that are turned: those are taken for that only where it proves right."""
    returned = {array.name for array in guess.subject.arrays if array.name in guess.outputs}
    kept = {
        name: layout
        for name, layout in guess.layouts.items()
        if name not in returned or layout != TURNED or name in guess.settled
    }
    return replace(guess, layouts=kept)


def _stopped(found: Specialization) -> tuple[Status, str, Span | None] | None:
    """Why a specialisation did not come to its end."""
    kinds: dict[str, Status] = {"assert": "assert", "error": "error"}
    for event in found.events:
        if event.kind != "print":
            return kinds.get(event.kind, "gap"), event.message, event.span
    return None


def _named(guess: Guess) -> dict[str, int | Index]:
    """The extents of NKI parameters by the names that the NKI side gives them."""
    found: dict[str, int | Index] = {}
    for array in guess.subject.arrays:
        parameter = guess.match.arrays.get(array.name)
        if parameter is None or array.extents is None:
            continue
        extents = laid_out(array.extents, guess.layouts.get(array.name))
        for axis, extent in enumerate(extents or ()):
            found[f"{parameter}.shape[{axis}]"] = extent
    return found


def with_outputs(
    guess: Guess,
    found: Specialization,
    sizes: Mapping[str, int],
    case: Case,
    written: Collection[str],
) -> Guess | str:
    """The guess with the results of the NKI kernel bound to the outputs.

    `written` are the parameters that the kernel writes.

    A result of another rank, and an output whose shape the CUDA side leaves open, take their
    shape from the NKI kernel's.  The answer is a sentence where results are missing.
    """
    outputs = [array for array in guess.subject.arrays if array.is_output]
    returned = dict(enumerate(found.returned))
    taken = {t.nki_out for t in case.tensors if t.nki_out is not None}
    given = {
        array.name: parameter
        for array in outputs
        if (parameter := guess.match.arrays.get(array.name)) in written
    }
    free = [n for n, view in returned.items() if n not in taken and view.buffer.role != "parameter"]
    wanted = [array for array in outputs if not _bound(array, given, case)]
    bound: dict[str, int] = {}
    for array in wanted:
        named = [n for n in free if plain(returned[n].buffer.name) == plain(array.name)]
        if len(named) == 1 and len(wanted) > 1:
            bound[array.name] = named[0]
            free.remove(named[0])
    for array, position in zip([a for a in wanted if a.name not in bound], free, strict=False):
        bound[array.name] = position
    missing = [array.name for array in wanted if array.name not in bound]
    missing = [name for name in missing if name not in given]
    if missing:
        return (
            f"the NKI kernel returns nothing that is {', '.join(missing)} of the CUDA kernel;"
            " state in a case what is ([[tensor]] nki or nki_out)"
        )
    made = replace(guess, outputs={**guess.outputs, **bound})
    for array in wanted:
        if array.name in bound:
            alone = len(returned) == 1
            view, place = returned[bound[array.name]], None if alone else bound[array.name]
            shaped = _shaped(made, array, view, sizes, place)
            if isinstance(shaped, str):
                return shaped
            made = shaped
    return made


def _bound(array: Array, given: Collection[str], case: Case) -> bool:
    """Whether an output has its place: a parameter that is only written, or a stated one."""
    stated = stated_for(array.name, case.tensors)
    if stated is not None and (stated.nki_out is not None or (stated.role == "out" and stated.nki)):
        return True
    return array.role == "out" and array.name in given


def _shaped(
    guess: Guess, array: Array, view: View, sizes: Mapping[str, int], position: int | None
) -> Guess | str:
    names = _named(guess)
    shape = tuple(extent.index().substitute(names) for extent in view.shape)
    if array.extents is None:
        if any("." in symbol.name for extent in shape for symbol in extent.symbols()):
            return f"{array.why}; state the shape of {array.name} in a case"
        arrays = tuple(
            replace(a, extents=shape, why="") if a.name == array.name else a
            for a in guess.subject.arrays
        )
        return replace(guess, subject=replace(guess.subject, arrays=arrays))
    logical = tuple(int(extent.evaluate(sizes)) for extent in array.extents)
    if guess.match.arrays.get(array.name) is not None:
        return guess
    returned = _returned(guess, array, shape, sizes, position)
    if returned is not None:
        return returned
    if view.sizes == logical:
        return guess
    if len(shape) == len(logical):
        turned = tuple(reversed(logical))
        if view.sizes == turned and len(turned) == 2 and guess.subject.computes:
            return replace(guess, layouts={**guess.layouts, array.name: TURNED})
        return guess
    elements = 1
    for extent in logical:
        elements *= extent
    if elements != view.elements:
        return guess
    text = ", ".join(map(str, shape))
    return replace(guess, layouts={**guess.layouts, array.name: f"reshape({text})"})


def _returned(
    guess: Guess,
    array: Array,
    shape: tuple[Index, ...],
    sizes: Mapping[str, int],
    position: int | None,
) -> Guess | None:
    """The guess with the layout that a wrapper says a result has; `None` where none says one.

    Axes that it returns in another order than the CUDA kernel has them are a fault only where
    all of its arrays are known to be those of the CUDA kernel.
    """
    steps = guess.host.results.get(position)
    if steps is None or array.extents is None:
        return None
    found = undone(guess.host, steps, shape, guess.subject)
    if found is None or len(found.extents) != len(array.extents):
        return None
    try:
        same = all(
            Index.of(mine).evaluate(sizes) == theirs.evaluate(sizes)
            for mine, theirs in zip(found.extents, array.extents, strict=True)
        )
    except KeyError:
        return None
    turned = sorted(map(str, found.extents)) == sorted(map(str, array.extents))
    understood = all(a.name in guess.settled for a in guess.subject.arrays if a.is_input)
    if not same and not (turned and understood):
        return None
    layouts = {**guess.layouts, array.name: found.text or None}
    return replace(guess, layouts=layouts, settled=guess.settled | {array.name})
