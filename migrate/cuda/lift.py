"""From a typed kernel to IR.

The threads of the grid are axes; what a thread does to its registers are values, what it
does to memory are loads and stores on versions of flat buffers.  Shared memory is a buffer
with the grid's axes in front, a thread's own array one with all the axes in front.
"""

from __future__ import annotations

from collections.abc import Mapping

from migrate.budget import Meter
from migrate.cuda import ast
from migrate.cuda.check import function
from migrate.cuda.lifting.lifter import Lifter
from migrate.cuda.lifting.scan import addressed, statements
from migrate.cuda.lifting.symbolic import Data, Known, NotLifted, Number, Parts, Symbolic, Unknown
from migrate.cuda.lifting.symbolic import Pointer as PointerValue
from migrate.cuda.parse import Program
from migrate.cuda.types import Pointer, Scalar, Struct, Type, Vector, scalar_of, scalars_in
from migrate.ir.index import Index, Range, TooComplex
from migrate.ir.nodes import (
    Axis,
    AxisKind,
    Buffer,
    Kernel,
    Load,
    Op,
    Opaque,
    Output,
    Parallel,
    Role,
    Space,
    Statements,
    Told,
    walk,
)
from migrate.ir.predicate import less
from migrate.source import SourceError, Span

Extents = tuple[Index | int, ...]


def lift(
    program: Program,
    kernel_name: str,
    sizes: Mapping[str, Index | int],
    grid: Extents,
    block: Extents,
    template: Mapping[str, object] | None = None,
    *,
    lengths: Mapping[str, Index | int] | None = None,
    shared_bytes: Index | int = 0,
    meter: Meter | None = None,
) -> Kernel:
    """The kernel's meaning for a launch.

    `sizes` gives integer parameters by name, as index expressions over sizes; an integer
    parameter that is not given is a size of its own name.  `grid` and `block` are (x, y, z),
    one to three of them.  `lengths` gives the elements of each array parameter; one that is
    not given has the size `NAME.size`.  `shared_bytes` is the launch's dynamic shared memory.

    What is not understood becomes `Opaque` operations.  Raises `SourceError` for names that
    do not fit and `Exhausted` when the meter runs out.
    """
    kernel = function(program, kernel_name, template)
    meter = meter if meter is not None else Meter(doing=f"lifting {kernel_name}")
    launch = _Launch(kernel, grid, block)
    lifter = launch.lifter(meter, shared_bytes)
    lifter.addressed, lifter.body = addressed(kernel.body), kernel.body
    # An axis is never called as a size is, whatever the kernel calls its counters.
    lifter.loop_names.update(dict.fromkeys(_size_names(kernel, launch, sizes, lengths or {}), 1))
    prologue = _parameters(kernel, lifter, sizes, lengths or {})
    try:
        lifter.sequence(kernel.body.body)
    except (NotLifted, TooComplex) as error:
        raise SourceError(str(error), file=kernel.span.file, where=kernel.span) from None
    axes = (*launch.grid_axes, *launch.block_axes)
    inner = (*prologue, *lifter.ops)
    body: tuple[Op, ...] = (Parallel(axes, inner, kernel.span),) if axes else inner
    buffers, outputs = _buffers(lifter)
    symbols = _symbols(body, buffers, launch, sizes, lengths or {})
    coverage = _coverage(kernel, lifter)
    return Kernel(
        name=kernel.name,
        side="cuda",
        span=kernel.span,
        sizes=tuple(sorted(symbols)),
        buffers=buffers,
        body=body,
        outputs=outputs,
        statements=coverage,
        told=_told(kernel, body) if coverage.opaque else Told(),
    )


def _size_names(
    kernel: ast.Function,
    launch: _Launch,
    sizes: Mapping[str, Index | int],
    lengths: Mapping[str, Index | int],
) -> set[str]:
    given = (*sizes.values(), *lengths.values(), *launch.dimensions.values())
    symbols = (symbol for index in given for symbol in Index.of(index).symbols())
    names = {symbol.name for symbol in symbols if symbol.kind == "size"}
    return names | {parameter.name for parameter in kernel.parameters}


class _Launch:
    """The axes of a launch."""

    def __init__(self, kernel: ast.Function, grid: Extents, block: Extents) -> None:
        self.axes: dict[tuple[str, int], Index] = {}
        self.dimensions: dict[tuple[str, int], Index] = {}
        self.ranges: dict[str, Range] = {}
        self.grid_axes = self._side("blockIdx", "gridDim", grid, AxisKind.GRID, kernel.span)
        self.block_axes = self._side("threadIdx", "blockDim", block, AxisKind.BLOCK, kernel.span)
        self.block_size = Index.of(1)
        for axis in range(3):
            self.block_size = self.block_size * self.dimensions[("blockDim", axis)]

    def _side(
        self, number: str, dimension: str, given: Extents, kind: AxisKind, span: Span
    ) -> tuple[Axis, ...]:
        made: list[Axis] = []
        for axis in range(3):
            extent = Index.of(given[axis]) if axis < len(given) else Index.of(1)
            self.dimensions[(dimension, axis)] = extent
            constant = extent.constant
            if constant == 1:
                self.axes[(number, axis)] = Index.of(0)
                continue
            name = f"{number}.{'xyz'[axis]}"
            self.axes[(number, axis)] = Index.axis(name)
            self.ranges[name] = (0, None if constant is None else constant - 1)
            made.append(Axis(name, extent, kind, span))
        return tuple(reversed(made))

    def lifter(self, meter: Meter, shared_bytes: Index | int) -> Lifter:
        ranges = dict(self.ranges)
        for extent in self.dimensions.values():
            for symbol in extent.symbols():
                ranges.setdefault(symbol.name, (0, None))
        facts = [
            less(Index.axis(axis.name), axis.extent)
            for axis in (*self.grid_axes, *self.block_axes)
            if axis.extent.constant is None
        ]
        lifter = Lifter(
            self.axes,
            self.dimensions,
            Known(ranges, tuple(facts)),
            meter,
            self.grid_axes,
            self.block_axes,
            self.block_size,
            Index.of(shared_bytes),
        )
        lifter.guarded = len(facts)
        return lifter


def _parameters(
    kernel: ast.Function,
    lifter: Lifter,
    sizes: Mapping[str, Index | int],
    lengths: Mapping[str, Index | int],
) -> tuple[Op, ...]:
    """Bind the parameters; loads of the floating-point ones come before everything."""
    names = {name for parameter in kernel.parameters for name in _integers_in(parameter)}
    names |= {parameter.name for parameter in kernel.parameters}
    for name in sizes:
        if name not in names:
            raise SourceError(
                f"{kernel.name} has no parameter {name}", file=kernel.span.file, where=kernel.span
            )
    for variable in (*kernel.parameters, *kernel.globals_used):
        key = lifter.key(variable)
        kind = variable.type
        if variable.storage == "parameter":
            made = _given(lifter, variable, variable.name, kind, sizes, lengths)
            if made is not None:
                lifter.state.variables[key] = made
            continue
        inner = scalar_of(kind)
        if inner is not None and not isinstance(kind, Pointer):
            length = Index.of(scalars_in(kind))
            constant = variable.storage == "constant"
            _array(lifter, variable, variable.name, kind, inner, length, constant=constant)
            lifter.places[key] = variable.name
    loads = tuple(lifter.ops)
    lifter.ops.clear()
    return loads


def _integers_in(parameter: ast.Variable) -> tuple[str, ...]:
    """The names of the integers that a parameter passes: its own, or those of its members."""
    found: list[str] = []
    pending: list[tuple[str, Type]] = [(parameter.name, parameter.type)]
    while pending:
        name, kind = pending.pop()
        match kind:
            case Struct():
                pending += [(f"{name}.{member.name}", member.type) for member in kind.members]
            case Scalar(is_integer=True):
                found.append(name)
    return tuple(found)


def _given(
    lifter: Lifter,
    variable: ast.Variable,
    name: str,
    kind: Type,
    sizes: Mapping[str, Index | int],
    lengths: Mapping[str, Index | int],
) -> Symbolic | None:
    """What a parameter, or a member of one that is a struct (`NAME.MEMBER`), is given as."""
    match kind:
        case Pointer(element=element):
            scalar = scalar_of(element)
            if scalar is None:
                return None
            length = Index.of(lengths.get(name, Index.size(f"{name}.size")))
            _array(lifter, variable, name, kind, scalar, length, constant=False)
            return PointerValue(name, Number(Index.of(0), (variable.span,)))
        case Scalar(is_integer=True):
            index = Index.of(sizes.get(name, Index.size(name)))
            for symbol in index.symbols():
                lifter.known.ranges.setdefault(symbol.name, (0, None))
            return Number(index, (variable.span,))
        case Scalar():
            buffer = Buffer(name, (), kind.dtype, Space.CONSTANT, "in", variable.span)
            lifter.add_buffer(buffer, kind)
            value = lifter.fresh(kind.dtype)
            lifter.loaded.add(name)
            lifter.emit(Load(value, lifter.state.versions[name], (), variable.span))
            return Data(value)
        case Vector(element=element, lanes=lanes):
            parts = [
                _given(lifter, variable, f"{name}.{letter}", element, sizes, lengths)
                for letter in "xyzw"[:lanes]
            ]
        case Struct():
            parts = [
                _given(lifter, variable, f"{name}.{member.name}", member.type, sizes, lengths)
                for member in kind.members
            ]
        case _:
            return None
    unknown = Unknown(f"{name} holds what is not understood")
    return Parts(tuple(unknown if part is None else part for part in parts))


def _array(
    lifter: Lifter,
    variable: ast.Variable,
    name: str,
    kind: Type,
    scalar: Scalar,
    length: Index,
    *,
    constant: bool,
) -> None:
    for symbol in length.symbols():
        lifter.known.ranges.setdefault(symbol.name, (0, None))
    read_only = constant or (isinstance(kind, Pointer) and kind.const)
    role: Role = "in" if read_only else "inout"
    space = Space.CONSTANT if constant else Space.HBM
    buffer = Buffer(name, (length,), scalar.dtype, space, role, variable.span)
    lifter.add_buffer(buffer, scalar)


def _buffers(lifter: Lifter) -> tuple[tuple[Buffer, ...], tuple[Output, ...]]:
    """Buffers with the role they turned out to have, and the outputs."""
    made: list[Buffer] = []
    outputs: list[Output] = []
    for name, buffer in lifter.buffers.items():
        role = buffer.role
        if role == "inout":
            stored, loaded = name in lifter.stored, name in lifter.loaded
            role = "inout" if stored and loaded else "out" if stored else "in"
        if role in ("out", "inout"):
            outputs.append(Output(lifter.state.versions[name]))
        made.append(Buffer(name, buffer.shape, buffer.dtype, buffer.space, role, buffer.span))
    return tuple(made), tuple(outputs)


def _symbols(
    body: tuple[Op, ...],
    buffers: tuple[Buffer, ...],
    launch: _Launch,
    sizes: Mapping[str, Index | int],
    lengths: Mapping[str, Index | int],
) -> set[str]:
    given: list[Index] = [Index.of(value) for value in (*sizes.values(), *lengths.values())]
    given += launch.dimensions.values()
    given += [extent for buffer in buffers for extent in buffer.shape]
    given += _indices(body)
    return {symbol.name for index in given for symbol in index.symbols() if symbol.kind == "size"}


def _indices(body: tuple[Op, ...]) -> list[Index]:
    from migrate.ir.nodes import Fold, Gather, Guard, Position, Reduce, Scatter, Select, Store, walk
    from migrate.ir.predicate import All, AnyOf, AtLeast, Never, Zero, indices

    predicates = All | AnyOf | AtLeast | Never | Zero
    found: list[Index] = []
    for op in walk(body):
        match op:
            case Parallel(axes=axes) | Fold(axes=axes) | Reduce(axes=axes):
                found += [axis.extent for axis in axes]
            case Guard(condition=condition) | Select(condition=condition):
                if isinstance(condition, predicates):
                    found += indices(condition)
            case Load() | Store() | Gather() | Scatter():
                found += [part for part in op.index if isinstance(part, Index)]
                found += indices(op.where)
            case Position(index=index):
                found.append(index)
    return found


def _told(kernel: ast.Function, body: tuple[Op, ...]) -> Told:
    from migrate.cuda.lifting.evidence import evidence

    return evidence(kernel, (op.reason for op in walk(body) if isinstance(op, Opaque)))


def _coverage(kernel: ast.Function, lifter: Lifter) -> Statements:
    """Statements of the kernel and of what it calls, each once."""
    total = {statement.span for statement in statements(kernel.body)} | lifter.seen
    return Statements(len(total), len(lifter.opaque & total))
