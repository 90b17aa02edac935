"""How a CUDA kernel that nothing is compared with is launched.

The launch is that of the host code, else the one that `infer_geometry` takes from the kernel;
template parameters that no launch tells are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from migrate.budget import Budget, Exhausted, Meter
from migrate.case.types import Launch as Given
from migrate.cuda import ast
from migrate.cuda.launches import Launch
from migrate.cuda.lift import lift
from migrate.cuda.parse import Definition, Program
from migrate.ir.index import Index, TooComplex
from migrate.ir.nodes import Kernel
from migrate.pipeline.infer_geometry import Triple, geometry
from migrate.pipeline.infer_launch import Started, TemplateValue, begun, substituted
from migrate.source import SourceError

ASSUMED = (32, 128, 4, 8, 256, 16, 64, 2, 1)
"""Values for template parameters that nothing tells: tiles, block sizes, vector widths."""

MAX_LAUNCHES = 8
"""Launches of the host code that are tried."""

BLOCKS = (128, 64, 32, 512)
"""Threads of a block that are tried where nothing says how many there are."""

RUN_BUDGET = Budget(steps=20_000_000, seconds=30.0)


@dataclass(frozen=True, slots=True)
class Setting:
    """A launch over sizes: what lifting needs."""

    program: Program
    function: ast.Function
    template: Mapping[str, TemplateValue]
    grid: Triple
    block: Triple
    shared: Index
    integers: Mapping[str, Index]
    floats: Mapping[str, float]
    values: Mapping[str, int]
    told: tuple[str, ...]

    def sizes(self) -> tuple[str, ...]:
        """The names of everything that is open, parameters first."""
        needed = (*self.integers.values(), *self.grid, *self.block, self.shared)
        found = (s.name for index in needed for s in sorted(index.symbols(), key=str))
        return tuple(dict.fromkeys(found))

    def lifted(self, lengths: Mapping[str, int], meter: Meter) -> Kernel:
        """The kernel's IR; raises `SourceError` and `Exhausted`."""
        return lift(
            self.program,
            self.function.name,
            self.integers,
            self.grid,
            self.block,
            dict(self.template) or None,
            lengths=dict(lengths),
            shared_bytes=self.shared,
            meter=meter,
        )

    def at(self, sizes: Mapping[str, int]) -> Setting:
        """The setting at numbers."""

        def one(index: Index) -> Index:
            return index.substitute(sizes)

        return replace(
            self,
            grid=substituted(self.grid, sizes),
            block=substituted(self.block, sizes),
            shared=one(self.shared),
            integers={name: one(index) for name, index in self.integers.items()},
        )


def settings_of(
    program: Program, definition: Definition, host_launches: Sequence[Launch]
) -> Iterator[Setting]:
    """The launch with what it leaves open filled in, the likeliest first."""
    own = [launch for launch in host_launches if launch.kernel == definition.name]
    seen: list[object] = []
    refused: SourceError | None = None
    for launch in own[:MAX_LAUNCHES] or (None,):
        for assumed in (None, *ASSUMED):
            given = () if launch is None else (launch,)
            try:
                started = begun(program, definition, Given(), given, {}, assumed, open_members=True)
            except SourceError as error:
                refused = refused or error
                continue
            shown = (started.template, started.grid, started.block, started.shared)
            if shown not in seen:
                seen.append(shown)
                yield from _blocks(_setting(program, started), started)
            if assumed is None:
                break
    if not seen and refused is not None:
        raise refused


def _blocks(setting: Setting, launch: Started) -> Iterator[Setting]:
    """The setting, then with other block sizes where those are a guess."""
    yield setting
    if launch.block is not None or any(e.constant != 1 for e in setting.block[1:]):
        return
    if not any("leaves open" in word or word.startswith("nothing tells") for word in setting.told):
        return
    for threads in BLOCKS:
        told = (*setting.told, f"block [{threads}], a guess")
        yield replace(setting, block=triple(threads, 1, 1), told=told)


def _setting(program: Program, launch: Started) -> Setting:
    grid, block, told = launch.grid, launch.block, list(launch.told)
    kernel = launch.function
    if grid is None or block is None:
        grid, block, why = _geometry(program, launch)
        told += why
    return Setting(
        program=program,
        function=kernel,
        template=launch.template,
        grid=grid,
        block=block,
        shared=launch.shared if launch.shared is not None else Index.of(0),
        integers=launch.integers,
        floats=launch.floats,
        values=launch.values,
        told=tuple(told),
    )


def _geometry(program: Program, launch: Started) -> tuple[Triple, Triple, tuple[str, ...]]:
    """Grid and block from the kernel itself, else those of many kernels."""
    used = {node.which + "xyz"[node.axis] for node in _builtins(launch.function)}
    dimensions = 3 if any(u.endswith("Idxz") for u in used) else 1
    if dimensions == 1 and any(u.endswith("Idxy") for u in used):
        dimensions = 2
    block = {1: (256, 1, 1), 2: (16, 16, 1), 3: (8, 8, 4)}[dimensions]
    usual = launch.block or triple(*block), launch.grid or triple(4, 4, 1)
    any_grid = launch.grid or triple(*(Index.size(f"gridDim.{axis}") for axis in "xyz"))
    any_block = launch.block or triple(*(Index.size(f"blockDim.{axis}") for axis in "xyz"))
    name = launch.function.name
    meter = Meter(RUN_BUDGET, f"lifting {name}")
    try:
        kernel = lift(
            program, name, {}, any_grid, any_block, dict(launch.template) or None, meter=meter
        )
        made = geometry(kernel, launch.grid, launch.block, launch.function.launch_bounds)
    except (SourceError, Exhausted, TooComplex):
        return usual[1], usual[0], (f"nothing tells how {name} is launched",)
    integers = dict(launch.integers)
    grid = triple(*(extent.substitute(integers) for extent in made.grid))
    return grid, triple(*(extent.substitute(integers) for extent in made.block)), made.told


def _builtins(function: ast.Function) -> Iterator[ast.Builtin]:
    from migrate.cuda.lifting.scan import nodes

    return (node for node in nodes(function.body) if isinstance(node, ast.Builtin))


def triple(x: Index | int, y: Index | int, z: Index | int) -> Triple:
    return Index.of(x), Index.of(y), Index.of(z)
