"""What a comparison needs and no case states, read from the two kernels themselves.

1. The launch, sizes and shapes of the CUDA side (`infer_cuda`).
2. Which NKI parameter is which array: by name, then by order (`infer_match`).
3. The guess is tried at small sizes.  If the kernels are not proved equal under it, others are:
   inputs of one shape in another order, matrices turned.  Such a guess counts only if it is
   proved; else names and order decide.
4. Sizes below, at and beyond the tiles of both kernels (`infer_sizes`).

The result is a case like a stated one, with a sentence for everything in it that was inferred.
What stays open ends in a `SourceError` that says what to state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from migrate.budget import Budget
from migrate.ir.index import ONE, Index
from migrate.pipeline.infer_case import Guess, case_of
from migrate.pipeline.infer_cuda import Subject, stated_for, subject
from migrate.pipeline.infer_extents import Extents, factors
from migrate.pipeline.infer_host import host, laid, launched
from migrate.pipeline.infer_launch import usable
from migrate.pipeline.infer_match import Array, layouts, match, orders, plain, transposed
from migrate.pipeline.infer_positions import Sizing
from migrate.pipeline.infer_signature import Parameter, float_literals, parameters
from migrate.pipeline.infer_sizes import (
    Sizes,
)
from migrate.pipeline.infer_trial import Outcome, Trials
from migrate.pipeline.kernels import Pair
from migrate.source import SourceError

ODD_FLOATS = (0.75, 1.25, 0.625, 1.375)
"""Values of float arguments that nothing states: exact in every format, and not neutral."""

ODD_INTEGER = 3
"""Value of an integer that nothing states and that decides no shape."""

MAX_TRIALS = 48
"""Guesses that are tried besides the first."""

MAX_TURNS = 8

ENOUGH = 2
"""Sizes at which a guess can be read but not proved before no more are tried."""


class Inference:
    """One pair being completed."""

    def __init__(self, pair: Pair, budget: Budget) -> None:
        self.pair = pair
        self.trials = Trials(pair, budget)
        self.sizing = Sizing(pair, self.trials)
        self.parameters = parameters(pair.module, pair.nki)
        self.found = subject(pair, self.trials.meter())
        self.host = host(pair, self.found)
        self.told: list[str] = [*self.found.told, *self.host.told]
        # What a wrapper does to arrays that no layout can be read from.
        self.unread: dict[str, str] = {}
        # Float parameters whose value is a number in the NKI kernel, if it proves right.
        self.unproved: dict[str, tuple[float, ...]] = {}

    def error(self, message: str, *, side: str = "cuda") -> SourceError:
        source = self.pair.cuda_source if side == "cuda" else self.pair.nki_source
        where = self.pair.cuda.span if side == "cuda" else self.pair.nki.span
        return SourceError(message, file=source.name, where=where)

    def pair_with_case(self) -> Pair:
        self._check_inputs()
        guess = self._first()
        outcome, base = self._settled(guess)
        guess = outcome.guess
        for name in self.unproved:
            if outcome.status != "proved":
                raise self._open_float(name)
            self.told.append(
                f"{name} = {guess.floats[name]:g}, the number in the NKI kernel under which both"
                " compute the same"
            )
        if outcome.status != "proved" and guess.unordered:
            self._refuse_order(guess)
        self._tell(guess, outcome)
        sizes = self.sizing.chosen(guess, base, self.told)
        case = case_of(self.pair, guess, sizes)
        inferred = (*self.pair.inferred, *self.told)
        return replace(self.pair, case=case, launch=case.cuda.launch[0], inferred=inferred)

    def _refuse_order(self, guess: Guess) -> None:
        """Kernels are not compared under an order of axes that is a guess: it may be at fault."""
        array = next(a for a in guess.subject.arrays if a.name in guess.unordered)
        shown = ", ".join(map(str, array.extents or ()))
        raise SourceError(
            f"{array.name} has the axes {shown}, in an order that no access shows; state its shape"
            " in a case ([[tensor]] shape)",
            file=self.pair.cuda_source.name,
            where=array.span,
        )

    def _check_inputs(self) -> None:
        for array in self.found.arrays:
            if array.is_input and array.extents is None:
                raise SourceError(
                    f"the shape of {array.name} is not known ({array.why}); state it in a case"
                    " ([[tensor]] shape)",
                    file=self.pair.cuda_source.name,
                    where=array.span,
                )

    # -- the first guess ------------------------------------------------------------

    def _first(self) -> Guess:
        case = self.pair.case
        stated = {
            array.name: tensor.nki
            for array in self.found.arrays
            if (tensor := stated_for(array.name, case.tensors)) is not None
            and tensor.nki is not None
        }
        for name, given in self.host.inputs.items():
            if given.parameter not in stated.values():
                stated.setdefault(name, given.parameter)
        scalars = {s.cuda or s.name: s.nki for s in case.scalars if s.nki is not None}
        free = [
            parameter
            for parameter in self.parameters
            if parameter.name not in scalars.values() and parameter.name not in case.nki.args
        ]
        names = [name for name in self.found.dtypes if name not in scalars]
        names += [name for name in self.found.sizes() if name not in names]
        arrays = [array for array in self.found.arrays if array.role is not None]
        matched = match(arrays, names, free, stated)
        if isinstance(matched, str):
            raise self.error(matched, side="nki")
        matched = replace(matched, scalars={**matched.scalars, **scalars})
        guess = Guess(self.found, matched, host=self.host)
        guess = replace(guess, floats=self._floats(guess))
        guess = self._constants(guess)
        return self._ranked(guess)

    def _parameter(self, name: str | None) -> Parameter | None:
        return next((p for p in self.parameters if p.name == name), None)

    def _floats(self, guess: Guess) -> dict[str, float]:
        """A value for every float parameter: the host's, the NKI default, or an odd one."""
        stated = {scalar.cuda for scalar in self.pair.case.scalars}
        found: dict[str, float] = {}
        odd = iter(ODD_FLOATS * 4)
        for name, dtype in self.found.dtypes.items():
            if name in stated or name in self.found.integers:
                continue
            parameter = self._parameter(guess.match.scalars.get(name))
            if name in self.found.floats:
                found[name] = self.found.floats[name]
                self.told.append(f"{name} = {found[name]:g} from the launch")
            elif parameter is not None and parameter.default is not None:
                found[name] = float(parameter.default)
                self.told.append(f"{name} = {found[name]:g}, the default of the NKI kernel")
            elif parameter is not None:
                found[name] = next(odd, ODD_FLOATS[0])
                self.told.append(f"{name} = {found[name]:g} ({dtype}): nothing states a value")
            else:
                literals = float_literals(self.pair.module, self.pair.nki)
                if not literals:
                    raise self._open_float(name)
                found[name] = literals[0]
                self.unproved[name] = literals
        return found

    def _open_float(self, name: str) -> SourceError:
        return self.error(
            f"the value of {name} is not known, and the NKI kernel takes no argument for it;"
            " state it in a case ([[scalar]])"
        )

    def _constants(self, guess: Guess) -> Guess:
        """Values of integers that decide no shape."""
        sizes = set(guess.subject.sizes()) | set(self.pair.case.sizes)
        constants: dict[str, int] = {}
        for name, index in guess.subject.integers.items():
            loose = [s.name for s in index.symbols() if s.name not in sizes]
            for symbol in loose:
                parameter = self._parameter(guess.match.scalars.get(name))
                value = 1 if guess.subject.dtypes[name] == "bool" else ODD_INTEGER
                why = "nothing states a value, and no shape depends on it"
                if symbol in guess.subject.values:
                    value, why = guess.subject.values[symbol], "from the launch"
                elif parameter is not None and parameter.default is not None:
                    value, why = int(parameter.default), "the default of the NKI kernel"
                constants[symbol] = value
                self.told.append(f"{symbol} = {value}: {why}")
        return replace(guess, constants=constants, subject=guess.subject.substituted({**constants}))

    # -- ranks ----------------------------------------------------------------------

    def _ranked(self, guess: Guess, assumed: int | None = None, choice: int = 0) -> Guess:
        """The guess with shapes and layouts of the rank that the NKI parameters have.

        `assumed` is the rank of parameters that do not show theirs, `choice` which of several
        layouts is taken.
        """
        subject = guess.subject
        unordered = set(guess.unordered)
        for array in subject.arrays:
            parameter = self._parameter(guess.match.arrays.get(array.name))
            if parameter is None or array.extents is None or len(array.extents) != 1:
                continue
            rank = parameter.rank or assumed
            if rank is None or rank < 2 or self._stated_shape(array):
                continue
            if array.name in self.host.inputs and self.host.inputs[array.name].reshapes:
                continue
            (extent,) = array.extents
            known = _like(subject, extent, rank)
            parts = known or self._ordered(factors(extent))
            if len(parts) == rank:
                if known is None and rank > 2:
                    unordered.add(array.name)
                subject = _reshaped(subject, array.extents, parts)
            elif rank == 2 and parts == (extent,) and self._may_split(subject, extent):
                subject = self._split(subject, extent)
        guess = replace(guess, subject=subject, unordered=frozenset(unordered))
        chosen: dict[str, str | None] = {}
        settled: set[str] = set()
        for array in subject.arrays:
            parameter = self._parameter(guess.match.arrays.get(array.name))
            if parameter is not None and not self._stated_shape(array):
                found = layouts(array, parameter, assumed)
                chosen[array.name] = found[min(choice, len(found) - 1)] if found else None
                text = self._handed(array, parameter, subject)
                if text is not None:
                    settled.add(array.name)
                    chosen[array.name] = text or chosen[array.name]
        return replace(guess, layouts=chosen, settled=frozenset(settled))

    def _handed(self, array: Array, parameter: Parameter, subject: Subject) -> str | None:
        """The layout under which a wrapper hands an array over; `None` where none says one."""
        given = self.host.inputs.get(array.name)
        if given is None or given.parameter != parameter.name or array.extents is None:
            return None
        made = laid(self.host, array, subject)
        if isinstance(made, str):
            self.unread.setdefault(array.name, made)
            return None
        if made.text and parameter.rank not in (None, len(made.extents)):
            return None
        self.unread.pop(array.name, None)
        return made.text

    def _stated_shape(self, array: Array) -> bool:
        return stated_for(array.name, self.pair.case.tensors) is not None

    def _ordered(self, parts: Extents) -> Extents:
        order = list(self.found.integers.values())
        return tuple(sorted(parts, key=lambda p: order.index(p) if p in order else len(order)))

    def _may_split(self, subject: Subject, extent: Index) -> bool:
        """Whether a length is free to become rows and columns: a size of vectors only."""
        if len(extent.symbols()) != 1 or extent != Index.size(str(extent)):
            return False
        if str(extent) in self.pair.case.sizes or str(extent) in subject.firm:
            return False
        return all(
            array.extents == (extent,)
            for array in subject.arrays
            if array.extents is not None
            and any(extent.symbols() & part.symbols() for part in array.extents)
        )

    def _split(self, subject: Subject, extent: Index) -> Subject:
        name = str(extent)
        taken = {s.name for i in subject.integers.values() for s in i.symbols()}
        pair = ("rows", "cols") if not {"rows", "cols"} & taken else (f"{name}_0", f"{name}_1")
        parts = tuple(Index.size(usable(part)) for part in pair)
        return _reshaped(subject, (extent,), parts).substituted({name: parts[0] * parts[1]})

    # -- trying guesses ---------------------------------------------------------------

    def _settled(self, first: Guess) -> tuple[Outcome, Sizes]:
        """The guess that is proved, else the best of those that can be read, and its sizes."""
        read: list[tuple[Outcome, Sizes]] = []
        failed: list[tuple[Outcome, Sizes]] = []
        for outcome, base in self._tried(first):
            match outcome.status:
                case "proved" | "gap":
                    return outcome, base
                case "read":
                    read.append((outcome, base))
                case _:
                    failed.append((outcome, base))
        if read:
            # Of equals the first: names and order decide.
            return min(read, key=lambda tried: tried[0].problems)
        if not failed:
            raise self.error("no sizes fit the launch and the shapes; state [sizes] in a case")
        outcome, base = failed[0]
        if outcome.status == "open":
            raise self.error(outcome.message, side="nki")
        if outcome.status == "error" and all(
            tried.status == "error" and tried.span == outcome.span for tried, _ in failed
        ):
            # Whatever is tried, it stops at the same place: that is the kernel's own doing.
            return outcome, base
        raise SourceError(
            f"{outcome.message}; at no sizes that were tried the NKI kernel is read to its"
            " end: state sizes and tensors in a case",
            file=self.pair.nki_source.name,
            where=outcome.span or self.pair.nki.span,
        )

    def _tried(self, first: Guess) -> Iterator[tuple[Outcome, Sizes]]:
        """Guesses with what comes of them, the likeliest first."""
        tried = 0
        for structure in self._structures(first):
            looked = 0
            for base in self.sizing.bases(structure):
                outcome = self.trials(structure, base)
                yield outcome, base
                if outcome.status == "assert":
                    continue  # other sizes may be what it wants
                for other in self._alternatives(outcome):
                    tried += 1
                    if tried > MAX_TRIALS:
                        break
                    yield self.trials(other, base), base
                looked += outcome.status == "read"
                if looked == ENOUGH:
                    return

    def _structures(self, first: Guess) -> Iterator[Guess]:
        """The guess, then with other layouts, and ranks where parameters do not show theirs."""
        seen = [first]
        yield first
        for rank, choice in ((None, 1), (2, 0), (2, 1), (1, 0)):
            made = self._ranked(first, assumed=rank, choice=choice)
            if made not in seen:
                seen.append(made)
                yield made

    def _alternatives(self, outcome: Outcome) -> Iterator[Guess]:
        guess = outcome.guess
        stated = {tensor.cuda or tensor.name for tensor in self.pair.case.tensors}
        free = [
            array
            for array in guess.subject.arrays
            if array.name not in stated and array.is_input and array.name not in guess.settled
        ]
        fresh = replace(guess, outputs={}) if outcome.status == "read" else guess
        for name, literals in self.unproved.items():
            for literal in literals[1:]:
                yield replace(fresh, floats={**fresh.floats, name: literal})
        for other in orders(guess.match, guess.subject.arrays):
            yield self._ranked(replace(fresh, match=other))
        # Where a kernel only moves data, its layout is all it says.
        if self.found.computes:
            for turned in transposed(free, guess.match, guess.layouts, MAX_TURNS):
                yield replace(fresh, layouts=turned)

    # -- what is said -------------------------------------------------------------------

    def _tell(self, guess: Guess, outcome: Outcome) -> None:
        arrays = [array for array in guess.subject.arrays if array.role is not None]
        stated = {tensor.cuda or tensor.name for tensor in self.pair.case.tensors}
        for name, index in guess.subject.integers.items():
            if len(index.symbols()) > len(self.found.integers[name].symbols()):
                self.told.append(
                    f"{name} = {index}: the NKI kernel takes matrices where the CUDA kernel has"
                    " vectors"
                )
        shapes = [
            f"{a.name} [{', '.join(map(str, a.extents or ()))}]"
            for a in arrays
            if a.name not in stated
        ]
        if shapes:
            self.told.append(f"shapes {', '.join(shapes)} from the accesses of the CUDA kernel")
        pairs = [
            f"{name} is {parameter}"
            for name, parameter in guess.match.arrays.items()
            if name not in stated and plain(name) != plain(parameter)
        ]
        proved = outcome.status == "proved"
        if pairs:
            why = "under which both compute the same" if proved else "by their order"
            self.told.append(f"parameters {', '.join(pairs)}, {why}")
        for name, layout in guess.layouts.items():
            if layout is not None and name not in stated:
                self.told.append(f"{name} as {layout} on the NKI side")
        self._tell_host(guess)
        for array in guess.subject.arrays:
            if array.name in guess.outputs and len(guess.outputs) > 1:
                position = guess.outputs[array.name]
                self.told.append(f"{array.name} is result {position} of the NKI kernel")

    def _tell_host(self, guess: Guess) -> None:
        """What a wrapper decided, and what of it was not understood."""
        used = self.host.inputs
        wheres = dict.fromkeys(used[name].where for name in used if name in guess.settled)
        wheres |= dict.fromkeys([self.host.where] if guess.settled - used.keys() else [])
        if wheres:
            names = ", ".join(sorted(guess.settled))
            self.told.append(f"{names} laid out as the wrapper has it ({'; '.join(wheres)})")
        for name, given in used.items():
            dtype = self.host.dtype(name)
            if dtype is not None and dtype != guess.subject.array(name).dtype:
                self.told.append(f"{name} in {dtype} on the NKI side ({given.where})")
        grid = launched(self.host, guess.subject)
        if grid and not self.pair.case.nki.grid:
            self.told.append(f"NKI grid {', '.join(map(str, grid))} ({self.host.where})")
        self.told += [
            f"{name} in the wrapper is not understood ({why}): not used"
            for name, why in self.unread.items()
            if name not in guess.settled
        ]


def _like(subject: Subject, extent: Index, rank: int) -> Extents | None:
    """The shape of another array of as many elements, whose accesses show more."""
    for array in subject.arrays:
        if array.extents is not None and len(array.extents) == rank > 1:
            total = ONE
            for part in array.extents:
                total = total * part
            if total == extent:
                return array.extents
    return None


def _reshaped(subject: Subject, before: Extents, after: Extents) -> Subject:
    """The subject with all arrays of a shape given another of as many elements."""
    arrays = tuple(
        replace(array, extents=after) if array.extents == before else array
        for array in subject.arrays
    )
    return replace(subject, arrays=arrays)
