"""Proposing arguments, trying them, and changing them until a kernel takes them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from migrate.budget import Budget, Exhausted, Meter
from migrate.host.values import Listed
from migrate.nki.parse import Kernel, Module
from migrate.nki.preconditions import multiples
from migrate.nki.symbols import Number, binary, constant, size
from migrate.nki.values import TensorSpec
from migrate.pipeline.infer_sizes import tiles_of
from migrate.pipeline.nki_alone.clauses import Clause, repaired
from migrate.pipeline.nki_alone.examples import Array, Example, examples
from migrate.pipeline.nki_alone.guesses import CALLED, Guess, Left, TensorGuess, ValueGuess, guesses
from migrate.pipeline.nki_alone.trial import Try, tried
from migrate.source import Span

MAX_TRIES = 48
"""Specialisations for one kernel."""

MAX_ROUNDS = 14
"""Of those, changes of sizes for one choice of what the parameters are."""

AFTER_GAP = 6
"""Of those, after one that took the arguments and met something that is not understood."""

SHARE = 6
"""One try may use this part of the steps of all, ..."""

QUICK = 120
"""... and this part while smaller sizes could do."""

MAX_EXAMPLES = 3
"""Calls in the file that are tried."""

MAX_UNIT = 4096
"""What sizes are rounded up to multiples of, where a docstring says that they are."""

MAX_ELEMENTS = 1 << 31
"""Of one tensor."""


@dataclass(frozen=True, slots=True)
class InferredArguments:
    """Arguments for `nki.specialize.specialize` and `nki.lift.lift`.

    `inferred` says for every parameter what was taken and from where; `sizes` are the values
    of the sizes by name.  `failures` is empty where the kernel takes the arguments without a
    fault; else it says what stands against the best that were found.  `usable`: what is found
    at these arguments is of the kernel, since it takes them as far as it is understood, or since
    its file calls it with them.  `guessed` are the sizes that nothing in the text fixes, the
    tensors of which nothing tells how many axes they have, and the formats that were taken where
    nothing tells one.
    """

    args: Mapping[str, object]
    grid: tuple[int, ...]
    sizes: Mapping[str, int]
    inferred: tuple[tuple[str, Span], ...]
    failures: tuple[str, ...]
    complete: bool
    usable: bool
    tries: int
    guessed: frozenset[str]

    @property
    def told(self) -> list[str]:
        """What was inferred, as sentences with their lines."""
        return [f"{words} (line {span.start_line})" for words, span in self.inferred]


@dataclass(frozen=True, slots=True)
class _Proposal:
    """What every parameter is taken to be, at some sizes."""

    chosen: Mapping[str, Guess]
    sizes: Mapping[str, int]
    stiff: Mapping[str, int]
    grid: tuple[int, ...] = ()

    def arguments(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for name, guess in self.chosen.items():
            match guess:
                case TensorGuess(extents=extents, dtype=dtype):
                    shape = tuple(_extent(extent, self.sizes) for extent in extents)
                    found[name] = TensorSpec(shape, dtype)
                case ValueGuess(size=named) if named:
                    found[name] = size(named, self.sizes[named])
                case ValueGuess(value=value):
                    found[name] = _argument(value)
                case Left():
                    pass
        return found

    @property
    def called(self) -> bool:
        """Whether a call in the file gives every argument just so."""
        return all(
            isinstance(guess, Left)
            or (guess.why == CALLED and all(
                self.sizes[each.name] == each.value
                for each in (guess.sizes if isinstance(guess, TensorGuess) else ())
            ))
            for guess in self.chosen.values()
        )  # fmt: skip

    def excessive(self) -> bool:
        """Whether a tensor is larger than any device holds."""
        for argument in self.arguments().values():
            if isinstance(argument, TensorSpec):
                total = 1
                for extent in argument.shape:
                    total *= int(extent.value)
                if total > MAX_ELEMENTS or any(extent.value < 1 for extent in argument.shape):
                    return True
        return False


def infer(
    module: Module,
    kernel: Kernel,
    meter: Meter | None = None,
    *,
    target: str = "trn2",
) -> InferredArguments | str:
    """Arguments that the kernel takes, or the best that were found; a sentence for none.

    Needs no case.  Bounded by `meter` and by `MAX_TRIES`; raises `Exhausted` only where the
    time is over or the caller cancelled.
    """
    search = _Search(module, kernel, meter or Meter(doing=f"reading {kernel.name}"), target)
    return search.result()


@dataclass(slots=True, eq=False)
class _Search:
    module: Module
    kernel: Kernel
    meter: Meter
    target: str
    tries: int = 0
    clauses: dict[str, Clause] = field(default_factory=dict)
    best: tuple[_Proposal, Try] | None = None
    fixed: set[str] = field(default_factory=set)
    """Sizes that the kernel demands to be what they are."""
    multiples: Mapping[str, int] = field(default_factory=dict)
    """What sizes are multiples of, as the docstring says; of 0 where it does not say the number."""

    def result(self) -> InferredArguments | str:
        reason = "nothing tells what the kernel takes"
        self.multiples = multiples(ast.get_docstring(self.kernel.node) or "")
        for example in (*_distinct(examples(self.module, self.kernel)), None):
            options = guesses(self.module, self.kernel, example)
            if isinstance(options, str):
                reason = options
                continue
            try:
                self._among(options, example.grid if example is not None else ())
            except Exhausted as stop:
                if stop.kind in ("seconds", "cancelled") and self.best is None:
                    raise
                break
            if self.best is not None and self.best[1].status in ("read", "gap"):
                break
        if self.best is None:
            return reason
        return self._beyond(*self.best)

    def _among(self, options: Mapping[str, Sequence[Guess]], grid: tuple[int, ...]) -> None:
        """Try choices of what the parameters are, changing one at a time."""
        chosen = dict.fromkeys(options, 0)
        tried_choices: set[tuple[int, ...]] = set()
        base: tuple[dict[str, int], Try] | None = None
        pending = [chosen]
        limit = MAX_TRIES
        while pending and self.tries < limit:
            choice = pending.pop(0)
            if tuple(choice.values()) in tried_choices:
                continue
            tried_choices.add(tuple(choice.values()))
            guess = {name: options[name][position] for name, position in choice.items()}
            outcome = self._settled(_proposed(guess, grid, self.multiples))
            if outcome is None:
                continue
            if outcome.accepted:
                return
            doubtful = _NO_TENSOR.search(outcome.message) is not None
            if outcome.status == "gap" and not outcome.problems and not doubtful:
                # Another choice may lead past what is not understood; seldom.
                limit = min(limit, self.tries + AFTER_GAP)
            if base is None or outcome.rank > base[1].rank:
                base = (choice, outcome)
                pending = list(_neighbours(choice, options, outcome, self.kernel))

    def _settled(self, proposal: _Proposal) -> Try | None:
        """Change the sizes of a proposal until the kernel takes them, or nothing helps."""
        best: Try | None = None
        demands: dict[str, Clause] = {}
        dropped: set[str] = set()
        seen: set[tuple[int, tuple[int, ...]]] = set()
        share = QUICK
        for _ in range(MAX_ROUNDS):
            state = tuple(proposal.sizes.values())
            if (share, state) in seen or self.tries >= MAX_TRIES or proposal.excessive():
                break
            seen.add((share, state))
            outcome = self._try(proposal, share)
            if best is None or outcome.rank > best.rank:
                best = outcome
            if self.best is None or outcome.rank > self.best[1].rank:
                self.best = (proposal, outcome)
            idle = [clause for clause in outcome.idle if clause.key not in dropped]
            if outcome.accepted and not idle:
                break
            changed = self._changed(proposal, outcome, demands, dropped)
            if changed is None and outcome.status == "stopped":
                changed = _smaller(proposal, demands)
                if changed is None:
                    share, changed = SHARE, proposal
            if changed is None:
                break
            proposal = changed
        return best

    def _changed(
        self, proposal: _Proposal, outcome: Try, demands: dict[str, Clause], dropped: set[str]
    ) -> _Proposal | None:
        """The proposal at sizes that meet what the kernel demanded, if any were found."""
        sizes: dict[str, int] | None = None
        wanted = [clause for clause in outcome.clauses if clause.key not in dropped]
        for clause in wanted:
            known = {**demands, clause.key: clause}
            self.meter.step(len(known))
            found = repaired(sizes or proposal.sizes, list(known.values()), proposal.stiff)
            if found is None:
                dropped.add(clause.key)
                continue
            demands[clause.key] = clause
            sizes = found
            if clause.sign == "==" and len(clause.names) == 1:
                self.fixed |= clause.names
        if sizes is None or sizes == proposal.sizes:
            for clause in (*outcome.suspects, *outcome.idle):
                if clause.key in dropped:
                    continue
                known = {**demands, clause.key: clause}
                self.meter.step(len(known))
                found = repaired(proposal.sizes, list(known.values()), proposal.stiff)
                dropped.add(clause.key)
                if found is not None and found != proposal.sizes:
                    demands[clause.key] = clause
                    sizes = found
                    break
        if sizes is None or sizes == proposal.sizes:
            return None
        return replace(proposal, sizes=sizes)

    def _try(self, proposal: _Proposal, part: int = SHARE) -> Try:
        self.tries += 1
        budget = self.meter.budget
        left = budget.steps - self.meter.steps
        share = Budget(max(min(budget.steps // part, left), 1), budget.bytes, budget.seconds)
        meter = Meter(share, self.meter.doing, self.meter.cancelled)
        outcome = tried(
            self.module,
            self.kernel,
            proposal.arguments(),
            meter,
            target=self.target,
            grid=proposal.grid,
        )
        self.meter.step(meter.steps)
        return outcome

    # -- what is said ------------------------------------------------------------------

    def _beyond(self, proposal: _Proposal, outcome: Try) -> InferredArguments:
        """The result; sizes that nothing fixed are no whole tiles, if the kernel takes that."""
        if outcome.accepted:
            proposal, outcome = self._trimmed(proposal, outcome)
            proposal, outcome = self._uneven(proposal, outcome)
        inferred = tuple(_told(proposal))
        failures: tuple[str, ...] = ()
        if not outcome.accepted:
            where = f"{outcome.span}: " if outcome.span is not None else ""
            message = outcome.message or f"{outcome.problems} faults"
            failures = (f"{where}{message}",)
        return InferredArguments(
            proposal.arguments(),
            proposal.grid,
            proposal.sizes,
            inferred,
            failures,
            outcome.status == "read",
            outcome.untroubled or proposal.called,
            self.tries,
            frozenset(_guessed(proposal)) - self.fixed,
        )

    def _trimmed(self, proposal: _Proposal, outcome: Try) -> tuple[_Proposal, Try]:
        """Axes of which the kernel accesses less than there is, made as long as that."""
        sizes = dict(proposal.sizes)
        for name, guess in proposal.chosen.items():
            if not isinstance(guess, TensorGuess):
                continue
            for axis, extent in enumerate(guess.extents):
                reach = outcome.reach.get((name, axis))
                alone = sum(e == extent for g in proposal.chosen.values()
                            if isinstance(g, TensorGuess) for e in g.extents) == 1  # fmt: skip
                if reach and alone and extent in sizes and not proposal.stiff.get(extent):
                    sizes[extent] = min(sizes[extent], reach)
        return self._if_taken(proposal, outcome, sizes)

    def _uneven(self, proposal: _Proposal, outcome: Try) -> tuple[_Proposal, Try]:
        if self.multiples.keys() - proposal.sizes.keys() - {*self.kernel.parameters}:
            # The docstring speaks of a size by a name that the text does not have.
            return proposal, outcome
        tiles = tiles_of(outcome.expressions)
        sizes = dict(proposal.sizes)
        for name, cuts in tiles.items():
            if name in sizes and not proposal.stiff.get(name):
                largest = max(cut for cut in cuts if cut <= 4096) if min(cuts) <= 4096 else 0
                if largest and self.multiples.get(name) != 0:
                    beyond = max(sizes[name], largest) + largest // 8 + 1
                    sizes[name] = _rounded_up(beyond, self.multiples.get(name, 1))
        return self._if_taken(proposal, outcome, sizes)

    def _if_taken(
        self, proposal: _Proposal, outcome: Try, sizes: dict[str, int]
    ) -> tuple[_Proposal, Try]:
        if sizes == proposal.sizes:
            return proposal, outcome
        other = replace(proposal, sizes=sizes)
        if other.excessive():
            return proposal, outcome
        try:
            found = self._try(other)
        except Exhausted:
            return proposal, outcome
        return (other, found) if found.accepted else (proposal, outcome)


def _distinct(found: Sequence[Example]) -> Iterator[Example]:
    """Calls that give other shapes, the first of them."""
    seen: list[Mapping[str, object]] = []
    for example in found:
        if example.arguments not in seen and len(seen) < MAX_EXAMPLES:
            seen.append(example.arguments)
            yield example


def _rounded_up(value: int, unit: int) -> int:
    return value if not 0 < unit <= MAX_UNIT else -(-value // unit) * unit


def _proposed(
    chosen: Mapping[str, Guess], grid: tuple[int, ...], multiples: Mapping[str, int]
) -> _Proposal:
    sizes: dict[str, int] = {}
    stiff: dict[str, int] = {}
    for guess in chosen.values():
        match guess:
            case TensorGuess(sizes=given):
                for each in given:
                    if each.name not in sizes or each.stiff > stiff[each.name]:
                        sizes[each.name], stiff[each.name] = each.value, each.stiff
            case ValueGuess(value=int(value), size=named) if named and named not in sizes:
                sizes[named], stiff[named] = value, 0
            case _:
                pass
    for name, unit in multiples.items():
        if name in sizes and not stiff[name]:
            sizes[name] = _rounded_up(sizes[name], unit)
    return _Proposal(chosen, sizes, stiff, grid)


def _smaller(proposal: _Proposal, demands: Mapping[str, Clause]) -> _Proposal | None:
    """The proposal with one size made much smaller that nothing fixes, the largest first."""
    free = [name for name, value in proposal.sizes.items()
            if value > 1 and not proposal.stiff.get(name)]  # fmt: skip
    for name in sorted(free, key=lambda name: (-proposal.sizes[name], name)):
        now = proposal.sizes[name]
        less = Clause(size(name, now), "<=", constant(max(now // 4, 1)))
        found = repaired(proposal.sizes, [*demands.values(), less], proposal.stiff)
        if found is not None and sum(found.values()) < sum(proposal.sizes.values()):
            return replace(proposal, sizes=found)
    return None


def _neighbours(
    choice: Mapping[str, int], options: Mapping[str, Sequence[Guess]], outcome: Try, kernel: Kernel
) -> Iterator[dict[str, int]]:
    """Choices with one parameter taken for something else: first those that the fault names."""
    concerned = _mentioned(outcome, kernel)
    ordered = sorted(choice, key=lambda name: name not in concerned)
    for name in ordered:
        for position in _meant(name, choice, options, outcome, name in concerned):
            yield {**choice, name: position}
    longest = max((len(found) for found in options.values()), default=0)
    for ahead in range(1, longest):
        for name in ordered:
            position = (choice[name] + ahead) % len(options[name])
            if position != choice[name] and ahead < len(options[name]):
                yield {**choice, name: position}


_NO_TENSOR = re.compile(r"\b(?:of|on|over a|of a|assigning to a) tensors?\b|a number is needed")
_UNPACKED = re.compile(r"(\d+) values for (\d+) names")


def _meant(
    name: str,
    choice: Mapping[str, int],
    options: Mapping[str, Sequence[Guess]],
    outcome: Try,
    concerned: bool,
) -> Iterator[int]:
    """What a parameter would be if the end of a run was that it is taken for something else."""
    now = options[name][choice[name]]
    if not isinstance(now, TensorGuess):
        return
    unpacked = _UNPACKED.search(outcome.message)
    for position, guess in enumerate(options[name]):
        match guess:
            case ValueGuess() if concerned and _NO_TENSOR.search(outcome.message):
                yield position
            case TensorGuess() if unpacked and len(now.extents) == int(unpacked[1]):
                if len(guess.extents) == int(unpacked[2]):
                    yield position
            case _:
                pass


def _mentioned(outcome: Try, kernel: Kernel) -> frozenset[str]:
    """Parameters in the statement that a run ended at, or in its message."""
    found = {name for name in kernel.parameters
             if re.search(rf"\b{re.escape(name)}\b", outcome.message)}  # fmt: skip
    if outcome.span is not None:
        line = outcome.span.start_line
        for node in ast.walk(kernel.node):
            if isinstance(node, ast.Name) and node.lineno == line and node.id in kernel.parameters:
                found.add(node.id)
    return frozenset(found)


def _sized(extent: str, sizes: Mapping[str, int]) -> str:
    return extent if extent.isdigit() else f"{extent} = {int(_extent(extent, sizes).value)}"


def _extent(text: str, sizes: Mapping[str, int]) -> Number:
    """An extent as docstrings write it (`docstrings.extent_like`), at some sizes."""
    return _number(ast.parse(text, mode="eval").body, sizes)


_SIGNS: Mapping[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//",
}  # fmt: skip


def _number(node: ast.expr, sizes: Mapping[str, int]) -> Number:
    match node:
        case ast.Name(id=name):
            return size(name, sizes[name])
        case ast.Constant(value=int(value)):
            return constant(value)
        case ast.BinOp(left=left, op=op, right=right):
            return binary(_SIGNS[type(op)], _number(left, sizes), _number(right, sizes))
        case _:
            raise TypeError(f"no extent: {ast.dump(node)[:80]}")


def _argument(value: object) -> object:
    """A value of host code as a kernel takes it."""
    if isinstance(value, Array):
        shape = tuple(constant(extent) for extent in value.shape)
        return TensorSpec(shape, value.dtype)
    if isinstance(value, Listed):
        return list(map(_argument, value))
    if isinstance(value, tuple):
        return tuple(map(_argument, value))
    return value


def _guessed(proposal: _Proposal) -> Iterator[str]:
    yield from (name for name, stiff in proposal.stiff.items() if not stiff)
    for name, guess in proposal.chosen.items():
        if isinstance(guess, TensorGuess):
            if guess.unsaid:
                yield name
            if guess.plain:
                yield guess.dtype.value


def _told(proposal: _Proposal) -> Iterator[tuple[str, Span]]:
    for name, guess in proposal.chosen.items():
        match guess:
            case TensorGuess(extents=extents, dtype=dtype, why=why, span=span):
                shown = ", ".join(_sized(extent, proposal.sizes) for extent in extents)
                yield f"{name} is a tensor ({shown}) of {dtype.value}, from {why}", span
            case ValueGuess(value=value, why=why, span=span, size=named):
                given = proposal.sizes[named] if named else value
                yield f"{name} is {_shown(given)}, from {why}", span
            case Left():
                pass


def _shown(value: object) -> str:
    from migrate.nki.values import OperatorName
    from migrate.numerics.dtypes import DType

    if isinstance(value, DType):
        return value.value
    if isinstance(value, OperatorName):
        return f"nl.{value.name}"
    return repr(value)[:60]
