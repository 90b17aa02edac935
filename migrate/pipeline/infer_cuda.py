"""What the CUDA side alone tells of a comparison: launch, sizes, arrays and scalars.

A `Subject` has everything over sizes.  What a case states is put in its place first, so that
its names are the names of the sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from migrate.budget import Meter
from migrate.case.expression import parse as parse_expression
from migrate.case.types import Integer, Tensor
from migrate.cuda.lift import lift
from migrate.cuda.types import Pointer, Scalar, scalar_of
from migrate.ir.index import ONE, Index
from migrate.ir.nodes import Kernel, Map, walk
from migrate.pipeline.infer_extents import Extents, Open, factors, shapes
from migrate.pipeline.infer_geometry import Triple, geometry
from migrate.pipeline.infer_launch import Started, TemplateValue, started, substituted
from migrate.pipeline.infer_match import Array
from migrate.pipeline.kernels import Pair
from migrate.source import SourceError


@dataclass(frozen=True, slots=True)
class Subject:
    """A CUDA kernel over sizes.

    `integers` has the value of each integer parameter, `dtypes` the format of every scalar
    parameter, `floats` the values the host code gives.  `values` are sizes that it gives as
    numbers, `firm` those that must keep them.  `computes`: it does more than move data.
    """

    grid: Triple
    block: Triple
    shared: Index
    template: Mapping[str, TemplateValue]
    integers: Mapping[str, Index]
    dtypes: Mapping[str, str]
    floats: Mapping[str, float]
    values: Mapping[str, int]
    firm: frozenset[str]
    arrays: tuple[Array, ...]
    multiples: tuple[tuple[Index, int], ...]
    told: tuple[str, ...]
    computes: bool = True

    def sizes(self) -> tuple[str, ...]:
        """The sizes that decide a shape or the launch, in the order of the parameters."""
        needed = [*self.grid, *self.block, self.shared]
        needed += [extent for array in self.arrays for extent in array.extents or ()]
        names = {symbol.name for index in needed for symbol in index.symbols()}
        ordered = dict.fromkeys(
            symbol.name
            for index in (*self.integers.values(), *needed)
            for symbol in sorted(index.symbols(), key=str)
            if symbol.name in names
        )
        return tuple(ordered)

    def substituted(self, values: Mapping[str, int | Index]) -> Subject:
        """The subject with sizes replaced."""

        def one(index: Index) -> Index:
            return index.substitute(values)

        return replace(
            self,
            grid=substituted(self.grid, values),
            block=substituted(self.block, values),
            shared=one(self.shared),
            integers={name: one(index) for name, index in self.integers.items()},
            values={name: value for name, value in self.values.items() if name not in values},
            firm=self.firm - values.keys(),
            arrays=tuple(
                replace(array, extents=tuple(map(one, array.extents)))
                if array.extents is not None
                else array
                for array in self.arrays
            ),
            multiples=tuple((one(index), number) for index, number in self.multiples),
        )

    def array(self, name: str) -> Array:
        """The array of a name."""
        return next(array for array in self.arrays if array.name == name)


def subject(pair: Pair, meter: Meter) -> Subject:
    """Read the CUDA side; raises `SourceError` where it leaves a choice open."""
    stated = {
        scalar.cuda: _index(scalar.value)
        for scalar in pair.case.scalars
        if scalar.cuda is not None and isinstance(scalar.value, int | str)
    }
    launch = started(pair, stated)
    kernel = launch.function
    initial = dict(kernel.initials)
    unset = [v for v in kernel.globals_used if v.name not in initial]
    if unset and not any(tensor.symbol for tensor in pair.case.tensors):
        names = ", ".join(v.name for v in unset)
        raise SourceError(
            f"{kernel.name} reads {names}, which the file does not set; state it in a case"
            " ([[tensor]] with symbol = true)",
            file=pair.cuda_source.name,
            where=unset[0].span,
        )
    told = list(launch.told)
    grid, block = launch.grid, launch.block
    if grid is None or block is None:
        made = geometry(_anyhow(pair, launch, meter), grid, block, kernel.launch_bounds)
        integers = dict(launch.integers)
        grid, block = (substituted(made.grid, integers), substituted(made.block, integers))
        told += made.told
    shared = launch.shared if launch.shared is not None else Index.of(0)
    if launch.shared is None and _takes_dynamic(pair):
        raise SourceError(
            f"{kernel.name} has shared memory that the launch sizes, and no launch is known;"
            " state dynamic_shared in a case",
            file=pair.cuda_source.name,
            where=pair.cuda.span,
        )
    lifted = lift(
        pair.program, pair.cuda.name, launch.integers, grid, block, launch.template or None,
        shared_bytes=shared, meter=meter,
    )  # fmt: skip
    arrays, multiples = _arrays(launch, lifted)
    found = Subject(
        grid=grid,
        block=block,
        shared=shared,
        template=launch.template,
        integers=launch.integers,
        dtypes={
            parameter.name: parameter.type.dtype.value
            for parameter in kernel.parameters
            if isinstance(parameter.type, Scalar)
        },
        floats=launch.floats,
        values=launch.values,
        firm=launch.firm,
        arrays=arrays,
        multiples=multiples,
        told=tuple(told),
        computes=any(isinstance(op, Map) for op in walk(lifted.body)),
    )
    return _unified(found, pair)


def _anyhow(pair: Pair, launch: Started, meter: Meter) -> Kernel:
    """The kernel for any launch, its integer parameters as sizes of their own names."""
    grid = launch.grid or tuple(Index.size(f"gridDim.{axis}") for axis in "xyz")
    block = launch.block or tuple(Index.size(f"blockDim.{axis}") for axis in "xyz")
    return lift(pair.program, pair.cuda.name, {}, grid, block, launch.template or None, meter=meter)


def _takes_dynamic(pair: Pair) -> bool:
    text = pair.program.text(pair.cuda.node)
    return "extern" in text and "__shared__" in text


def _arrays(
    launch: Started, kernel: Kernel
) -> tuple[tuple[Array, ...], tuple[tuple[Index, int], ...]]:
    known = shapes(kernel)
    roles = {buffer.name: buffer.role for buffer in kernel.buffers}
    arrays: list[Array] = []
    multiples: dict[tuple[Index, int], None] = {}
    for parameter in launch.function.parameters:
        if not isinstance(parameter.type, Pointer):
            continue
        scalar = scalar_of(parameter.type.element)
        if scalar is None:
            raise SourceError(
                f"the parameter {parameter.name} ({parameter.type}) is not understood",
                file=parameter.span.file,
                where=parameter.span,
            )
        shape = known.get(parameter.name)
        extents: Extents | None = None
        why = ""
        match shape:
            case None:
                extents = (ONE,)
            case Open(reason=reason):
                why = reason
            case _:
                extents = shape.extents
                multiples.update(dict.fromkeys(shape.multiples))
        role = roles.get(parameter.name) if shape is not None else None
        arrays.append(Array(parameter.name, extents, role, scalar.dtype, parameter.span, why))
    return tuple(arrays), tuple(multiples)


# -- what a case states ---------------------------------------------------------------


def _index(value: Integer) -> Index:
    return Index.of(value) if isinstance(value, int) else parse_expression(value).index()


def stated_for(array: str, tensors: Iterable[Tensor]) -> Tensor | None:
    """The tensor of a case that an array is."""
    listed = list(tensors)
    for tensor in listed:
        if tensor.cuda == array:
            return tensor
    return next((t for t in listed if t.cuda is None and t.name == array), None)


def _unified(found: Subject, pair: Pair) -> Subject:
    """The subject with the shapes and size names that the case states."""
    known: dict[str, Index] = {}
    for array in found.arrays:
        tensor = stated_for(array.name, pair.case.tensors)
        if tensor is None or array.extents is None:
            continue
        given = tuple(_index(extent) for extent in tensor.shape)
        if len(given) == len(array.extents):
            pairs = list(zip(array.extents, given, strict=True))
        elif len(array.extents) == 1:
            whole = ONE
            for extent in given:
                whole = whole * extent
            pairs = [(array.extents[0], whole)]
        else:
            continue
        for mine, theirs in pairs:
            name = str(mine)
            if factors(mine) == (mine,) and len(mine.symbols()) == 1 and mine == Index.size(name):
                known.setdefault(name, theirs)
    found = found.substituted({n: i for n, i in known.items() if Index.size(n) != i})
    arrays = []
    for array in found.arrays:
        tensor = stated_for(array.name, pair.case.tensors)
        if tensor is not None:
            given = tuple(_index(extent) for extent in tensor.shape)
            array = replace(array, extents=given, role=tensor.role or array.role, why="")
        arrays.append(array)
    return _renamed(replace(found, arrays=tuple(arrays)), pair)


def _renamed(found: Subject, pair: Pair) -> Subject:
    """Sizes under the names of the case, where only their case differs."""
    sizes = pair.case.sizes
    if not sizes:
        return found
    moved: dict[str, int | Index] = {}
    unknown = [name for name in found.sizes() if name not in sizes]
    for name in unknown:
        near = [stated for stated in sizes if stated.casefold() == name.casefold()]
        if len(near) == 1:
            moved[name] = Index.size(near[0])
    found = found.substituted(moved)
    used = set(found.sizes()) | {s.name for i in found.integers.values() for s in i.symbols()}
    unused = [name for name in sizes if name not in used]
    if unused and any(name not in moved for name in unknown):
        left = ", ".join(name for name in unknown if name not in moved)
        raise SourceError(
            f"the sizes {', '.join(unused)} are those of nothing that was found"
            f" (open: {left}); state the tensors, or the sizes under these names",
            file=pair.case.file or "the case",
        )
    return found
