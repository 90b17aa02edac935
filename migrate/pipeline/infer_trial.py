"""What comes of a guess at small sizes: the NKI kernel is specialised, both are related."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from migrate.align.binding import Binding, bind
from migrate.align.relation import relate
from migrate.budget import Meter
from migrate.case.fills import FillError
from migrate.case.layout import LayoutError
from migrate.case.types import Case
from migrate.ir.evaluate import Unevaluable
from migrate.ir.index import Index
from migrate.ir.nodes import Kernel
from migrate.nki.errors import Unsupported
from migrate.nki.frames import Instruction
from migrate.nki.lift import lift
from migrate.nki.specialize import Specialization, specialize
from migrate.nki.values import View
from migrate.pipeline.infer_case import Guess, case_of
from migrate.pipeline.infer_cuda import stated_for
from migrate.pipeline.infer_match import Array, laid_out, plain
from migrate.pipeline.kernels import Pair
from migrate.pipeline.sides import nki_arguments, read_cuda
from migrate.rules.hw202 import OUT_OF_BOUNDS
from migrate.source import SourceError, Span
from migrate.verify.inputs import make

Status = Literal["proved", "read", "assert", "error", "gap"]

MAX_SITES = 4000
"""Instructions whose expressions are read for tiles."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a guess: `guess` is completed by what the NKI kernel returns.

    `read`: the NKI kernel was specialised to its end, but nothing was proved.
    """

    status: Status
    guess: Guess
    message: str = ""
    span: Span | None = None


class Trials:
    """Tries guesses; the reading of the CUDA kernel is kept between them."""

    def __init__(self, pair: Pair, meter: Meter) -> None:
        self.pair = pair
        self.meter = meter
        self._cuda: dict[tuple[object, ...], Kernel | None] = {}

    def __call__(self, guess: Guess, sizes: Mapping[str, int]) -> Outcome:
        """What comes of a guess at some sizes.  Raises `Exhausted`."""
        case = case_of(self.pair, guess, {name: (value,) for name, value in sizes.items()})
        binding = bind(case, case.runs()[0])
        name = self.pair.nki.name
        try:
            found = lift(
                self.pair.module, name, nki_arguments(case, binding),
                meter=self.meter, target=case.nki.target,
            )  # fmt: skip
        except Unsupported as gap:
            return Outcome("gap", guess, gap.reason, gap.origin.span if gap.origin else None)
        except SourceError as error:
            return Outcome("error", guess, error.message)
        except LayoutError as error:
            return Outcome("error", guess, str(error))
        stop = _stopped(found.specialization)
        if stop is not None:
            status, message, span = stop
            return Outcome(status, guess, message, span)
        completed = with_outputs(guess, found.specialization, sizes, self.pair.case)
        if isinstance(completed, str):
            return Outcome("error", guess, completed)
        if found.kernel is None:
            return Outcome("gap", completed, "the NKI kernel was not understood")
        case = case_of(self.pair, completed, {n: (v,) for n, v in sizes.items()})
        return self._related(case, completed, found.kernel, bind(case, case.runs()[0]))

    def _related(self, case: Case, guess: Guess, nki: Kernel, binding: Binding) -> Outcome:
        cuda = self._read_cuda(case, binding)
        if cuda is None:
            return Outcome("read", guess)
        try:
            relation = relate(
                cuda,
                nki,
                binding,
                partial(make, folder=case.folder),
                cuda_sizes=binding.sizes,
                nki_sizes={**binding.sizes, **dict(nki.computed_at or ())},
                meter=self.meter,
            )
        except (Unevaluable, FillError):
            return Outcome("read", guess)
        return Outcome("proved" if relation.status == "proved" else "read", guess)

    def cuda_kernel(self, guess: Guess, sizes: Mapping[str, int]) -> Kernel | None:
        """The CUDA kernel under a guess; `None` where it is not read."""
        case = case_of(self.pair, guess, {name: (value,) for name, value in sizes.items()})
        return self._read_cuda(case, bind(case, case.runs()[0]))

    def _read_cuda(self, case: Case, binding: Binding) -> Kernel | None:
        key = (
            case.cuda.launch,
            tuple((s.cuda, s.value) for s in case.scalars),
            tuple((t.cuda, t.shape) for t in case.tensors),
        )
        shown = repr(key)
        if (shown,) not in self._cuda:
            pair = replace(self.pair, case=case, launch=case.cuda.launch[0])
            try:
                kernel = read_cuda(pair, binding, self.meter).kernel
            except SourceError:
                kernel = None
            self._cuda[(shown,)] = kernel
        return self._cuda[(shown,)]

    def looked(self, guess: Guess, sizes: Mapping[str, int]) -> tuple[Outcome, tuple[Index, ...]]:
        """Whether the NKI kernel takes the sizes, and the expressions met on the way.

        An outcome `error` may also be what the compiler refuses; an access outside a tensor
        is neither, since it is a fault that a comparison must show.
        """
        case = case_of(self.pair, guess, {name: (value,) for name, value in sizes.items()})
        binding = bind(case, case.runs()[0])
        seen: dict[Index, None] = {}
        sites = 0

        def look(instruction: Instruction) -> None:
            nonlocal sites
            sites += 1
            if sites > MAX_SITES:
                return
            for turn in instruction.loops:
                if turn.trips is not None:
                    seen.setdefault(turn.trips.index())
            for _, operand in instruction.operands:
                if isinstance(operand, View):
                    for extent in operand.shape:
                        seen.setdefault(extent.index())

        try:
            found = specialize(
                self.pair.module,
                self.pair.nki.name,
                nki_arguments(case, binding),
                meter=self.meter,
                on_instruction=look,
                target=case.nki.target,
            )
        except (SourceError, LayoutError) as error:
            return Outcome("error", guess, str(error)), ()
        names = _named(guess)
        expressions = tuple(index.substitute(names) for index in seen)
        stop = _stopped(found)
        if stop is not None:
            status, message, span = stop
            return Outcome(status, guess, message, span), expressions
        for problem in found.problems:
            if problem.code != OUT_OF_BOUNDS:
                return Outcome("error", guess, problem.message, problem.span), expressions
        return Outcome("read", guess), expressions


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
    guess: Guess, found: Specialization, sizes: Mapping[str, int], case: Case
) -> Guess | str:
    """The guess with the results of the NKI kernel bound to the outputs.

    A result of another rank, and an output whose shape the CUDA side leaves open, take their
    shape from the NKI kernel's.  The answer is a sentence where results are missing.
    """
    outputs = [array for array in guess.subject.arrays if array.is_output]
    returned = dict(enumerate(found.returned))
    taken = {t.nki_out for t in case.tensors if t.nki_out is not None}
    given = {array.name: guess.match.arrays.get(array.name) for array in outputs}
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
    missing = [name for name in missing if given[name] is None]
    if missing:
        return (
            f"the NKI kernel returns nothing that is {', '.join(missing)} of the CUDA kernel;"
            " state in a case what is ([[tensor]] nki or nki_out)"
        )
    made = replace(guess, outputs={**guess.outputs, **bound})
    for array in wanted:
        if array.name in bound:
            shaped = _shaped(made, array, returned[bound[array.name]], sizes)
            if isinstance(shaped, str):
                return shaped
            made = shaped
    return made


def _bound(array: Array, given: Mapping[str, str | None], case: Case) -> bool:
    """Whether an output has its place: a parameter that is only written, or a stated one."""
    stated = stated_for(array.name, case.tensors)
    if stated is not None and (stated.nki_out is not None or (stated.role == "out" and stated.nki)):
        return True
    return array.role == "out" and given[array.name] is not None


def _shaped(guess: Guess, array: Array, view: View, sizes: Mapping[str, int]) -> Guess | str:
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
    if view.sizes == logical or guess.match.arrays.get(array.name) is not None:
        return guess
    if len(shape) == len(logical):
        turned = tuple(reversed(logical))
        if view.sizes == turned and len(turned) == 2:
            return replace(guess, layouts={**guess.layouts, array.name: "transpose(1, 0)"})
        return guess
    elements = 1
    for extent in logical:
        elements *= extent
    if elements != view.elements:
        return guess
    text = ", ".join(map(str, shape))
    return replace(guess, layouts={**guess.layouts, array.name: f"reshape({text})"})
