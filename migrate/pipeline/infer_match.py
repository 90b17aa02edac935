"""Which array of a CUDA kernel an NKI parameter is: by name, then by order.

Names are compared without what says where an array lives (`d_x`, `x_ptr`, `x_hbm`).  What
names leave open goes by the order of the inputs, and of the outputs where the NKI kernel takes
those too.  `layouts` lists how an array can lie for a parameter of another rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, permutations, product

from migrate.ir.index import ONE, Index
from migrate.numerics.dtypes import DType
from migrate.pipeline.infer_extents import Extents
from migrate.pipeline.infer_signature import Parameter
from migrate.source import Span

MAX_ORDERS = 24
"""Orders of inputs that are tried: those of four."""

_PREFIX = re.compile(r"^(?:d|dev|device|g|gpu|p|in|input)_(?=\w)")
_SUFFIX = re.compile(r"_(?:ptr|d|dev|g|gpu|hbm|dram|tensor|ref|in|input|ap|t|T|transposed)$")


@dataclass(frozen=True, slots=True)
class Array:
    """A pointer parameter; `extents` are `None` where nothing tells them, `why` then says so.

    `role` is what the kernel does with it, `None` for one that it does not access.
    """

    name: str
    extents: Extents | None
    role: str | None
    dtype: DType
    span: Span
    why: str = ""

    @property
    def is_input(self) -> bool:
        return self.role in {"in", "inout"}

    @property
    def is_output(self) -> bool:
        return self.role in {"out", "inout"}


@dataclass(frozen=True, slots=True)
class Match:
    """NKI parameters by array, and by scalar; `ordered` are the arrays that order decided."""

    arrays: Mapping[str, str]
    scalars: Mapping[str, str]
    ordered: tuple[str, ...] = ()


def plain(name: str) -> str:
    """A name without what says where its array lives."""
    short = _SUFFIX.sub("", _PREFIX.sub("", name)).lower()
    return short or name.lower()


def match(
    arrays: Sequence[Array],
    scalars: Sequence[str],
    parameters: Sequence[Parameter],
    stated: Mapping[str, str],
) -> Match | str:
    """Match arrays (and scalars) to parameters; `stated` pairs are given.

    The answer is a sentence where there is no way to.
    """
    tensors, others = _tensors(arrays, scalars, parameters, stated)
    found = dict(stated)
    free = [p.name for p in tensors if p.name not in found.values()]
    for same in (str, plain):
        for array in arrays:
            named = [name for name in free if same(name) == same(array.name)]
            if array.name not in found and len(named) == 1:
                found[array.name] = named[0]
                free.remove(named[0])
    inputs = [a.name for a in arrays if a.is_input and a.name not in found]
    outputs = [a.name for a in arrays if a.role == "out" and a.name not in found]
    if len(inputs) > len(free):
        return (
            f"the CUDA kernel reads {_counted(inputs)}, for which the NKI kernel takes"
            f" {_counted(free)}; state in a case which is which ([[tensor]] cuda, nki)"
        )
    if len(free) > len(inputs) + len(outputs):
        return (
            f"the NKI kernel takes {_counted(free)} that no array of the CUDA kernel is known"
            " to be; state in a case which is which ([[tensor]] cuda, nki)"
        )
    by_order = list(zip([*inputs, *outputs], free, strict=False))
    found.update(by_order)
    paired = _scalars(scalars, others)
    if isinstance(paired, str):
        return paired
    return Match(found, paired, tuple(name for name, _ in by_order if name in inputs))


def _tensors(
    arrays: Sequence[Array],
    scalars: Sequence[str],
    parameters: Sequence[Parameter],
    stated: Mapping[str, str],
) -> tuple[list[Parameter], list[Parameter]]:
    names = {plain(name) for name in scalars}
    known = {plain(array.name) for array in arrays}
    tensors: list[Parameter] = []
    others: list[Parameter] = []
    for parameter in parameters:
        kind = parameter.kind
        if parameter.name in stated.values():
            kind = "tensor"
        elif kind == "open":
            name = plain(parameter.name)
            kind = "scalar" if name in names and name not in known else "tensor"
        (tensors if kind == "tensor" else others).append(parameter)
    return tensors, others


def _scalars(scalars: Sequence[str], others: Sequence[Parameter]) -> dict[str, str] | str:
    found: dict[str, str] = {}
    free = list(others)
    for scalar in scalars:
        named = [p for p in free if plain(p.name) == plain(scalar)]
        if len(named) == 1:
            found[scalar] = named[0].name
            free.remove(named[0])
    needed = [p.name for p in free if not p.optional]
    left = [scalar for scalar in scalars if scalar not in found]
    if len(needed) == len(left) == 1:
        found[left[0]] = needed[0]
    elif needed:
        return (
            f"nothing tells what the NKI kernel is given for {', '.join(needed)}; state it in a"
            " case ([[scalar]] nki, or [nki] args)"
        )
    return found


def _counted(names: Sequence[str]) -> str:
    if not names:
        return "no tensor"
    return f"{len(names)} tensor{'s' * (len(names) > 1)} ({', '.join(names)})"


def orders(matched: Match, arrays: Sequence[Array]) -> Iterator[Match]:
    """Other orders of the inputs that order decided, among those of one shape."""
    shapes = {array.name: (array.extents, array.dtype) for array in arrays}
    names = [name for name in matched.ordered if shapes[name][0] is not None]
    given = [matched.arrays[name] for name in names]
    for order in islice(permutations(range(len(names))), 1, MAX_ORDERS):
        if all(shapes[names[i]] == shapes[names[j]] for i, j in enumerate(order)):
            moved = {name: given[j] for name, j in zip(names, order, strict=True)}
            yield replace(matched, arrays={**matched.arrays, **moved})


def layouts(array: Array, parameter: Parameter, rank: int | None) -> tuple[str | None, ...]:
    """Layouts under which an array has the rank of a parameter, the likeliest first.

    Empty where none has.
    """
    if array.extents is None:
        return (None,)
    have = len(array.extents)
    wanted = parameter.rank if parameter.rank is not None else rank
    if wanted is None:
        wanted = max(have, parameter.least)
    if wanted == have:
        return (None,)
    shapes = list(_regrouped(array.extents, wanted))
    return tuple(f"reshape({', '.join(map(str, shape))})" for shape in shapes)


def _regrouped(extents: Extents, rank: int) -> Iterator[Extents]:
    """The shapes of a rank with the same elements in the same order."""
    have = len(extents)
    if rank > have:
        # Axes of one element, outside first: a vector as a row, then as a column.
        yield (*(ONE,) * (rank - have), *extents)
        yield (*extents, *(ONE,) * (rank - have))
        return
    for first in range(rank):
        joined = ONE
        for extent in extents[first : first + have - rank + 1]:
            joined = joined * extent
        yield (*extents[:first], joined, *extents[first + have - rank + 1 :])


def transposed(
    arrays: Sequence[Array], matched: Match, chosen: Mapping[str, str | None], limit: int
) -> Iterator[dict[str, str | None]]:
    """The layouts with matrices turned: one of them, then several."""
    turnable = [
        a.name
        for a in arrays
        if a.name in matched.arrays and a.extents is not None and len(a.extents) in (2, 3)
        and chosen.get(a.name) is None and ONE not in a.extents
    ]  # fmt: skip
    ranks = {a.name: len(a.extents) for a in arrays if a.extents is not None}
    turns = {2: "transpose(1, 0)", 3: "transpose(0, 2, 1)"}
    combinations = sorted(product((False, True), repeat=min(len(turnable), 4)), key=sum)
    for flags in islice(combinations, 1, limit + 1):
        turned = {n: turns[ranks[n]] for n, on in zip(turnable, flags, strict=False) if on}
        yield {**chosen, **turned}


def laid_out(extents: Extents, layout: str | None) -> Extents | None:
    """The extents of an array as the NKI kernel takes it; `None` where a step does not fit."""
    from migrate.case.layout import Pad, Reshape, Transpose, parse

    for step in parse(layout) if layout else ():
        match step:
            case Transpose(axes) if len(axes) == len(extents):
                extents = tuple(extents[axis] for axis in axes)
            case Reshape(expressions) | Pad(expressions):
                extents = tuple(expression.index() for expression in expressions)
            case _:
                return None
    return tuple(Index.of(extent) for extent in extents)
