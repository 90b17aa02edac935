"""What the wrapper of an NKI kernel says of a comparison: layouts, formats, grid and results.

An array of the wrapper is an array of the CUDA kernel only where both have the same name: then
the wrapper is what takes the place of the CUDA launch, and what it does to the array on its way
to the kernel is the layout.  Where it is not understood, or says that its arrays have another
shape, it says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from migrate.case.expression import ExpressionError
from migrate.case.expression import parse as parse_expression
from migrate.host.shapes import after, permutation, substituted
from migrate.host.values import (
    Array as Handed,
)
from migrate.host.values import (
    Cast,
    Extent,
    Flattened,
    Inserted,
    Opaque,
    Padded,
    Parameter,
    Placed,
    Reshaped,
    Shape,
    Sliced,
    Step,
    number,
)
from migrate.host.wrappers import Wrapper, wrappers
from migrate.ir.index import Index
from migrate.numerics.dtypes import DType
from migrate.pipeline.infer_cuda import Subject
from migrate.pipeline.infer_match import Array
from migrate.pipeline.kernels import Pair
from migrate.pipeline.nki_alone.docstrings import stated
from migrate.source import SourceError, Span


@dataclass(frozen=True, slots=True)
class Given:
    """What a parameter of the kernel is given: an array of the CUDA kernel, after some steps."""

    parameter: str
    value: Handed
    wrapper: Wrapper

    @property
    def reshapes(self) -> bool:
        kinds = Reshaped | Inserted | Flattened | Padded | Placed
        return any(isinstance(step, kinds) for step in self.value.steps)

    @property
    def where(self) -> str:
        return f"{self.wrapper.function}, {place(self.wrapper.span)}"


@dataclass(frozen=True, slots=True)
class Host:
    """The evidence of a wrapper.

    `inputs` are by array of the CUDA kernel, `arrays` the same by parameter of the wrapper.
    """

    inputs: Mapping[str, Given] = field(default_factory=dict)
    arrays: Mapping[str, str] = field(default_factory=dict)
    results: Mapping[int | None, tuple[Step, ...]] = field(default_factory=dict)
    grid: tuple[Extent, ...] = ()
    where: str = ""
    told: tuple[str, ...] = ()

    def dtype(self, array: str) -> DType | None:
        """The format that the wrapper casts an array to."""
        given = self.inputs.get(array)
        return given.value.dtype if given is not None else None


NOTHING = Host()


def place(span: Span) -> str:
    return f"{span.file}:{span.start_line}"


def host(pair: Pair, subject: Subject) -> Host:
    """What the wrappers in the file of the NKI kernel say, as far as they all say the same."""
    try:
        found = wrappers(pair.module, pair.nki)
    except SourceError:
        return NOTHING
    arrays = [array for array in subject.arrays if array.role is not None]
    named = [(w, _named(w, arrays)) for w in found]
    named = [(w, names) for w, names in named if names]
    if not named:
        return NOTHING
    told: list[str] = []
    inputs: dict[str, Given] = {}
    for array in arrays:
        given = [g for w, names in named for g in _given(w, names, array, subject, told)]
        if given and all(_same(g, given[0]) for g in given):
            inputs[array.name] = given[0]
        elif given:
            lines = ", ".join(dict.fromkeys(place(g.wrapper.span) for g in given))
            told.append(f"{array.name} is handed over in different ways ({lines}): not used")
    first, names = named[0]
    grid: tuple[Extent, ...] = ()
    results: dict[int | None, tuple[Step, ...]] = {}
    if any(w.grid != first.grid for w, _ in named):
        lines = ", ".join(dict.fromkeys(place(w.span) for w, _ in named))
        told.append(f"the kernel is launched on different grids ({lines}): not used")
    elif first.grid is not None:
        extents = [number(extent) for extent in first.grid]
        grid = tuple(e for e in extents if e is not None)
        if len(grid) != len(extents):
            told.append(f"the grid at {place(first.span)} is not understood: not used")
            grid = ()
    for position, value in first.returned.items():
        if all(_returns(w, position, value.steps) for w, _ in named):
            results[position] = value.steps
    where = f"{first.function}, {place(first.span)}"
    return Host(inputs, names, results, grid, where, tuple(dict.fromkeys(told)))


def _returns(wrapper: Wrapper, position: int | None, steps: tuple[Step, ...]) -> bool:
    found = wrapper.returned.get(position)
    return found is not None and found.steps == steps


def _named(wrapper: Wrapper, arrays: Sequence[Array]) -> dict[str, str]:
    """The arrays of the CUDA kernel that parameters of a wrapper are, by their names."""
    found: dict[str, str] = {}
    for name in wrapper.parameters:
        same = [array.name for array in arrays if _bare(array.name) == _bare(name)]
        if len(same) == 1:
            found[name] = same[0]
    return {n: a for n, a in found.items() if list(found.values()).count(a) == 1}


_LIVES = re.compile(r"^(?:d|dev|device|h|g|gpu|p)_(?=\w)|_(?:ptr|d|dev|g|gpu|hbm|dram|ref)$")


def _bare(name: str) -> str:
    """A name without what says where its array lives; what says that it is turned stays."""
    return _LIVES.sub("", name).lower() or name.lower()


def _given(
    wrapper: Wrapper, names: Mapping[str, str], array: Array, subject: Subject, told: list[str]
) -> Iterator[Given]:
    taking: list[Given] = []
    for parameter, value in wrapper.arguments.items():
        if not isinstance(value, Handed):
            continue
        match value.root:
            case Parameter(name) if names.get(name) == array.name:
                taking.append(Given(parameter, value, wrapper))
            case Opaque(reason, span) if _bare(parameter) == _bare(array.name):
                told.append(
                    f"what {wrapper.function} hands over for {parameter} is not understood"
                    f" ({place(span)}: {reason})"
                )
            case _:
                pass
    if len(taking) != 1:
        return
    name = next(n for n, a in names.items() if a == array.name)
    other = _other_shape(wrapper, name, array, subject)
    if other is not None:
        told.append(f"{wrapper.function} has {name} as {other}: its order of axes is not used")
        return
    yield taking[0]


def _same(left: Given, right: Given) -> bool:
    same = left.value.steps == right.value.steps and left.value.dtype == right.value.dtype
    return left.parameter == right.parameter and same


def _other_shape(wrapper: Wrapper, name: str, array: Array, subject: Subject) -> str | None:
    """What a wrapper calls the axes of a parameter, where the CUDA kernel has them elsewhere."""
    if array.extents is None:
        return None
    extents = [str(extent).casefold() for extent in array.extents]
    called = {axis: given for (n, axis), given in wrapper.axes.items() if n == name}
    doc = stated(wrapper.docstring, frozenset(wrapper.parameters)).get(name)
    if doc is not None and len(doc.extents) == len(extents):
        called = {**dict(enumerate(doc.extents)), **called}
    for axis, given in called.items():
        at = axis if axis >= 0 else axis + len(extents)
        if not 0 <= at < len(extents) or given.casefold() not in extents:
            continue
        if extents[at] != given.casefold():
            shown = ", ".join(called.get(i, "?") for i in range(len(extents)))
            return f"[{shown}]"
    del subject
    return None


# -- layouts ------------------------------------------------------------------------


def values(found: Host, subject: Subject) -> dict[str, Index]:
    """The extents and numbers of the wrapper over the sizes of the CUDA kernel."""
    made: dict[str, Index] = {}
    for name, array_name in found.arrays.items():
        extents = subject.array(array_name).extents or ()
        for axis, extent in enumerate(extents):
            made[f"{name}.shape[{axis}]"] = extent
            made[f"{name}.shape[{axis - len(extents)}]"] = extent
    for name, index in subject.integers.items():
        made.setdefault(name, index)
    for name in subject.sizes():
        made.setdefault(name, Index.size(name))
    return made


def spelled(index: Extent) -> str | None:
    """An expression as a case writes it; `None` where it cannot."""
    if isinstance(index, int) or index.constant is not None:
        return str(index)
    text = str(index)
    try:
        return text if parse_expression(text).index() == index else None
    except ExpressionError:
        return None


@dataclass(frozen=True, slots=True)
class Laid:
    """A layout as a case writes it, empty for none, and the extents it gives."""

    text: str
    extents: Shape


def laid(found: Host, array: Array, subject: Subject) -> Laid | str:
    """The layout under which the wrapper hands an array over; a sentence where it is not read."""
    given = found.inputs[array.name]
    known = values(found, subject)
    shape: Shape = array.extents or ()
    texts: list[str] = []
    for step in given.value.steps:
        one = _resolved(step, known)
        made = _one(one, shape)
        if isinstance(made, str):
            return f"{place(step.span)}: {made}"
        text, shape = made
        texts.append(text)
    open_names = _open(shape, subject)
    if open_names:
        return f"{given.where}: nothing tells what {open_names} is"
    return Laid(" ".join(filter(None, texts)), shape)


def launched(found: Host, subject: Subject) -> tuple[Index, ...]:
    """The grid of the wrapper over the sizes of the CUDA kernel; empty where it is not known."""
    known = values(found, subject) if found.grid else {}
    grid = tuple(substituted(extent, known) for extent in found.grid)
    if _open(grid, subject) or any(spelled(extent) is None for extent in grid):
        return ()
    return tuple(map(Index.of, grid))


def _open(shape: Shape, subject: Subject) -> str:
    sizes = set(subject.sizes())
    names = {s.name for e in shape if isinstance(e, Index) for s in e.symbols()}
    return ", ".join(sorted(names - sizes))


def _resolved(step: Step, known: Mapping[str, Index]) -> Step:
    """The step over the sizes of the CUDA kernel."""

    def one(extent: Extent | None) -> Extent | None:
        return None if extent is None else substituted(extent, known)

    def sure(extent: Extent) -> Extent:
        return substituted(extent, known)

    match step:
        case Reshaped(extents):
            return replace(step, extents=tuple(map(one, extents)))
        case Padded(edges):
            return replace(step, edges=tuple((a, sure(b), sure(c)) for a, b, c in edges))
        case Placed(extents, part):
            return replace(step, extents=tuple(map(sure, extents)), part=tuple(map(one, part)))
        case Sliced(bounds):
            return replace(step, bounds=tuple((one(a), one(b)) for a, b in bounds))
        case _:
            return step


def _one(step: Step, shape: Shape) -> tuple[str, Shape] | str:
    """A step as the case writes it, with the shape after it; a sentence where it cannot be."""
    made = after(step, shape)
    if made is None:
        return f"a step that does not fit {len(shape)} axes"
    order = permutation(step, len(shape))
    if order is not None:
        same = order == tuple(range(len(shape)))
        return ("" if same else f"transpose({', '.join(map(str, order))})"), made
    match step:
        case Cast():
            return "", made
        case Sliced():
            return ("", made) if made == shape else "only a part is handed over"
        case Padded(edges) if any(before != 0 for _, before, _ in edges):
            return "it is padded in front"
        case Placed(_, part):
            ends = (*part, *(None,) * (len(shape) - len(part)))
            for end, have, whole in zip(ends, shape, made, strict=True):
                if have != (whole if end is None else end):
                    return "what is filled in is not known to be all of it"
    name = "pad" if isinstance(step, Padded | Placed) else "reshape"
    if made == shape:
        return "", made
    text = _text(name, made)
    return (text, made) if text is not None else "an extent that no case can state"


def _text(name: str, shape: Shape) -> str | None:
    parts = [text for extent in shape if (text := spelled(extent)) is not None]
    return f"{name}({', '.join(parts)})" if len(parts) == len(shape) else None


def undone(found: Host, steps: tuple[Step, ...], shape: Shape, subject: Subject) -> Laid | None:
    """The layout of an output whose shape the kernel gives, from what the wrapper makes of it.

    It leads back from what the wrapper returns; `extents` are those that it returns.
    """
    known = values(found, subject)
    texts: list[str] = []
    for step in steps:
        one = _resolved(step, known)
        made = after(one, shape)
        if made is None:
            return None
        text: str | None = ""
        order = permutation(one, len(shape))
        if order is not None:
            back = sorted(range(len(order)), key=lambda axis: order[axis])
            text = f"transpose({', '.join(map(str, back))})"
        elif isinstance(one, Sliced):
            if any(start not in (None, 0) for start, _ in one.bounds):
                return None
            text = _text("pad", shape) if made != shape else ""
        elif isinstance(one, Reshaped | Inserted | Flattened):
            text = _text("reshape", shape)
        elif not isinstance(one, Cast):
            return None
        if text is None:
            return None
        texts.append(text)
        shape = made
    return Laid(" ".join(filter(None, reversed(texts))), shape)
