"""Kernels built by hand, in the two shapes that lifters give.

An expression is a tensor's name, a number, or (operator, expression, ...).  `cuda` maps it
over threads behind a guard; `nki` moves tiles in, computes on chip and moves tiles out,
with whole tiles in a loop and a region of its own for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from migrate.align.binding import Binding, BoundTensor
from migrate.align.relation import Relation, relate
from migrate.budget import Budget, Meter
from migrate.ir.index import Index, ceil_div, minimum
from migrate.ir.nodes import (
    Axis,
    AxisKind,
    Buffer,
    Cast,
    Fill,
    Fold,
    Guard,
    Kernel,
    Load,
    Map,
    Merge,
    Op,
    Opaque,
    Output,
    Parallel,
    Reduce,
    Space,
    State,
    Statements,
    Store,
    Value,
    Version,
)
from migrate.ir.predicate import less
from migrate.ir.validate import problems
from migrate.numerics.dtypes import DType
from migrate.source import Frame, Span

Expression: TypeAlias = "str | float | tuple[Any, ...]"

F32, BF16 = DType.FLOAT32, DType.BFLOAT16
ROWS, COLS = 4, 8
"""A tile: as many partitions and free elements."""


def at(file: str, line: int, column: int = 1, via: tuple[Frame, ...] = ()) -> Span:
    return Span(
        file=file,
        start_line=line,
        start_column=column,
        end_line=line,
        end_column=column + 4,
        via=via,
    )


def tensors(expression: Expression) -> list[str]:
    """The tensors of an expression, in order."""
    match expression:
        case str():
            return [expression]
        case tuple():
            return list(dict.fromkeys(t for part in expression[1:] for t in tensors(part)))
        case _:
            return []


@dataclass
class Names:
    """Fresh names, and the span of each op by what it stands for."""

    file: str
    count: int = 0
    via: tuple[Frame, ...] = ()
    made: dict[str, int] = field(default_factory=dict)

    def value(self, dtype: DType = F32) -> Value:
        self.count += 1
        return Value(f"v{self.count}", dtype)

    def span(self, line: int, column: int = 1) -> Span:
        return at(self.file, line, column, self.via)


def compute(
    names: Names, line: int, expression: Expression, given: dict[str, Value], ops: list[Op]
) -> Value:
    """Ops for an expression, each at a column of its own."""
    if isinstance(expression, str):
        return given[expression]
    result = names.value()
    column = 10 * (len(ops) + 1)
    if not isinstance(expression, tuple):
        ops.append(Fill(result, expression, names.span(line, column)))
        return result
    operator, *parts = expression
    args = tuple(compute(names, line, part, given, ops) for part in parts)
    column = 10 * (len(ops) + 1)
    ops.append(Map(result, operator, args, names.span(line, column)))
    return result


def buffer(name: str, size: int | Index, role: str, file: str, dtype: DType = F32) -> Buffer:
    return Buffer(name, (Index.of(size),), dtype, Space.HBM, role, at(file, 1))  # type: ignore[arg-type]


def cuda(outputs: dict[str, Expression], *, guarded: bool = True, opaque: bool = False) -> Kernel:
    """A thread an element.  Lines: 10 guard, 20 loads, 30 arithmetic, 40 stores."""
    file = "kernel.cu"
    names = Names(file)
    n = Index.size("n")
    block = 4
    axes = (
        Axis("b", ceil_div(n, block), AxisKind.GRID, at(file, 5, 1)),
        Axis("t", Index.of(block), AxisKind.BLOCK, at(file, 5, 9)),
    )
    i = Index.axis("b") * block + Index.axis("t")
    body: list[Op] = []
    given: dict[str, Value] = {}
    used = list(dict.fromkeys(t for e in outputs.values() for t in tensors(e)))
    for number, tensor in enumerate(used):
        given[tensor] = names.value()
        body.append(Load(given[tensor], Version(tensor, 0), (i,), names.span(20 + number)))
    merges: list[Merge] = []
    for number, (name, expression) in enumerate(outputs.items()):
        ops: list[Op] = []
        value = compute(names, 30 + number, expression, given, ops)
        if opaque:
            other = names.value()
            ops.append(Opaque((other,), (value,), "asm", "inline assembly", names.span(35)))
            value = other
        body += ops
        body.append(Store(Version(name, 1), Version(name, 0), (i,), value, names.span(40 + number)))
        merges.append(Merge(Version(name, 2), Version(name, 1), Version(name, 0)))
    inner: tuple[Op, ...] = tuple(body)
    last = 1
    if guarded:
        inner = (Guard(less(i, n), inner, at(file, 10), (), tuple(merges)),)
        last = 2
    kernel = Kernel(
        name="kernel",
        side="cuda",
        span=at(file, 1),
        sizes=("n",),
        buffers=(
            *(buffer(t, n, "in", file) for t in used),
            *(buffer(t, n, "out", file) for t in outputs),
        ),
        body=(Parallel(axes, inner, at(file, 5)),),
        outputs=tuple(Output(Version(name, last)) for name in outputs),
        statements=Statements(4, 1 if opaque else 0),
    )
    assert problems(kernel) == ()
    return kernel


@dataclass(frozen=True)
class Faults:
    """Mistakes to plant in the NKI side."""

    loads: dict[str, str] = field(default_factory=dict)
    """What is loaded into the tile of a tensor instead."""
    no_store: frozenset[str] = frozenset()
    no_rest: bool = False
    shift: dict[str, int] = field(default_factory=dict)
    """Added to the position at which a tensor's tiles are read."""
    step: int = 1
    """Tiles taken at a step of the loop."""
    tile: DType = F32
    """The format of the tiles that inputs are moved into."""


def nki(outputs: dict[str, Expression], n: int, faults: Faults = Faults()) -> Kernel:
    """Tiles of ROWS x COLS.

    Lines: 60 loop, 61 the rest's size, 62 its call, 70 loads, 80 arithmetic, 90 stores.
    """
    file = "kernel.py"
    rows, rest = n // COLS, n % COLS
    state = {name: Version(name, 0) for name in outputs}
    numbers = dict.fromkeys(outputs, 0)
    body: list[Op] = []
    scratch: list[Buffer] = []
    used = list(dict.fromkeys(t for e in outputs.values() for t in tensors(e)))
    names = Names(file)

    def tile(name: str, dtype: DType = F32) -> Version:
        shape = (Index.of(ROWS), Index.of(COLS))
        scratch.append(Buffer(name, shape, dtype, Space.ONCHIP, "scratch", at(file, 65)))
        return Version(name, 0)

    def region(
        tag: str, start: Index, high: Index, wide: Index, sources: tuple[Span, ...]
    ) -> list[Op]:
        ops: list[Op] = []

        def axes(what: str) -> tuple[tuple[Axis, ...], tuple[Index, Index]]:
            p, f = f"p_{what}_{tag}", f"f_{what}_{tag}"
            both = (
                Axis(p, high, AxisKind.PARTITION, names.span(66, 1), sources),
                Axis(f, wide, AxisKind.FREE, names.span(66, 9), sources),
            )
            return both, (Index.axis(p), Index.axis(f))

        held: dict[str, Version] = {}
        for number, tensor in enumerate(used):
            span = names.span(70 + number)
            over, (p, f) = axes(f"load{number}")
            source = faults.loads.get(tensor, tensor)
            place = start + p * COLS + f + faults.shift.get(tensor, 0)
            loaded = names.value()
            inner: list[Op] = [Load(loaded, Version(source, 0), (place,), span)]
            into = tile(f"{tensor}_tile_{tag}", faults.tile)
            if faults.tile is not F32:
                short = names.value(faults.tile)
                inner.append(Cast(short, loaded, span))
                loaded = short
            held[tensor] = Version(into.buffer, 1)
            inner.append(Store(held[tensor], into, (p, f), loaded, span))
            ops.append(Parallel(over, tuple(inner), span))
        for number, (name, expression) in enumerate(outputs.items()):
            over, (p, f) = axes(f"compute{number}")
            inner = []
            given: dict[str, Value] = {}
            for tensor in tensors(expression):
                given[tensor] = names.value()
                span = names.span(80 + number)
                read = Load(names.value(faults.tile), held[tensor], (p, f), span)
                inner += [read, Cast(given[tensor], read.result, span)]
            made = compute(names, 80 + number, expression, given, inner)
            into = tile(f"{name}_tile_{tag}")
            result = Version(into.buffer, 1)
            inner.append(Store(result, into, (p, f), made, names.span(80 + number)))
            ops.append(Parallel(over, tuple(inner), names.span(80 + number)))
            if name in faults.no_store:
                continue
            over, (p, f) = axes(f"store{number}")
            moved = names.value()
            span = names.span(90 + number)
            numbers[name] += 1
            written = Version(name, numbers[name])
            inner = [
                Load(moved, result, (p, f), span),
                Store(written, state[name], (start + p * COLS + f,), moved, span),
            ]
            state[name] = written
            ops.append(Parallel(over, tuple(inner), span))
        return ops

    if rows:
        row = Index.axis("row")
        entry = dict(state)
        for name in outputs:
            numbers[name] += 1
            state[name] = Version(name, numbers[name])
        inside = dict(state)
        start = row * (ROWS * COLS * faults.step)
        high = minimum(ROWS, rows - row * (ROWS * faults.step))
        whole = high if rows % ROWS else Index.of(ROWS)
        ops = region("main", start, whole, Index.of(COLS), (at(file, 60, 9),))
        carried = []
        for name in outputs:
            numbers[name] += 1
            after = Version(name, numbers[name])
            carried.append(State(after, entry[name], inside[name], state[name]))
            state[name] = after
        loop = Axis(
            "row",
            Index.of(-(-rows // (ROWS * faults.step))),
            AxisKind.SEQUENTIAL,
            at(file, 60),
        )
        body.append(Fold((loop,), tuple(carried), tuple(ops), at(file, 60)))
    if rest and not faults.no_rest:
        names.via = (Frame(kind="call", name="block", file=file, line=62, column=5),)
        body += region("rest", Index.of(n - rest), Index.of(1), Index.of(rest), (at(file, 61),))
    kernel = Kernel(
        name="kernel",
        side="nki",
        span=at(file, 50),
        sizes=(),
        buffers=(
            *(buffer(t, n, "in", file) for t in used),
            *(buffer(t, n, "out", file) for t in outputs),
            *scratch,
        ),
        body=tuple(body),
        outputs=tuple(Output(state[name], number) for number, name in enumerate(outputs)),
        statements=Statements(8),
        computed_at=(("n", n),),
    )
    assert problems(kernel) == ()
    return kernel


def bound(cuda_kernel: Kernel, nki_kernel: Kernel, n: int) -> Binding:
    """Every tensor of the two kernels, by name."""
    outs = [output.version.buffer for output in cuda_kernel.outputs]
    names = [
        b.name
        for b in dict.fromkeys((*cuda_kernel.buffers, *nki_kernel.buffers))
        if b.space is Space.HBM
    ]
    return Binding(
        {"n": n},
        tuple(
            BoundTensor(
                name=f"logical_{name}",
                shape=(n,),
                role="out" if name in outs else "in",
                cuda_dtype=F32,
                nki_dtype=F32,
                cuda=name,
                nki=None if name in outs else name,
                nki_out=outs.index(name) if name in outs else None,
            )
            for name in dict.fromkeys(names)
        ),
        (),
    )


def inputs(binding: Binding, given: object) -> dict[str, np.ndarray[Any, Any]]:
    """Different numbers for each tensor, the same every time."""
    random = np.random.default_rng(7)
    return {t.name: random.standard_normal(t.shape) for t in binding.tensors if t.is_input}


def related(cuda_kernel: Kernel, nki_kernel: Kernel, n: int) -> tuple[Binding, Relation]:
    binding = bound(cuda_kernel, nki_kernel, n)
    relation = relate(
        cuda_kernel,
        nki_kernel,
        binding,
        inputs,
        cuda_sizes={"n": n},
        nki_sizes={},
        meter=Meter(Budget(), "relating"),
    )
    return binding, relation


def shaped(name: str, shape: tuple[int, ...], space: Space, role: str, file: str) -> Buffer:
    extents = tuple(map(Index.of, shape))
    return Buffer(name, extents, F32, space, role, at(file, 1))  # type: ignore[arg-type]


def reduction_cuda(
    rows: int, cols: int, operator: str = "add", start: float = 0.0, scale: float | None = None
) -> Kernel:
    """A thread a row, a loop over it.

    Lines: 11 initial, 12 loop, 13 load, 14 combine, 15 store, 16 scale.
    """
    file = "kernel.cu"
    names = Names(file)
    t = Axis("t", Index.of(rows), AxisKind.BLOCK, at(file, 5))
    k = Axis("k", Index.of(cols), AxisKind.SEQUENTIAL, at(file, 12))
    first, inner, loaded, next_, total = (names.value() for _ in range(5))
    factor, scaled = names.value(), names.value()
    scaling: tuple[Op, ...] = ()
    if scale is not None:
        scaling = (
            Fill(factor, scale, names.span(16)),
            Map(scaled, "multiply", (total, factor), names.span(16)),
        )
    stored = total if scale is None else scaled
    place = Index.axis("t") * cols + Index.axis("k")
    body: tuple[Op, ...] = (
        Fill(first, start, names.span(11)),
        Fold(
            (k,),
            (State(total, first, inner, next_),),
            (
                Load(loaded, Version("x", 0), (place,), names.span(13)),
                Map(next_, operator, (inner, loaded), names.span(14)),
            ),
            names.span(12),
        ),
        *scaling,
        Store(Version("out", 1), Version("out", 0), (Index.axis("t"),), stored, names.span(15)),
    )
    kernel = Kernel(
        name="kernel",
        side="cuda",
        span=at(file, 1),
        sizes=(),
        buffers=(
            shaped("x", (rows * cols,), Space.HBM, "in", file),
            shaped("out", (rows,), Space.HBM, "out", file),
        ),
        body=(Parallel((t,), body, at(file, 5)),),
        outputs=(Output(Version("out", 1)),),
        statements=Statements(5),
    )
    assert problems(kernel) == ()
    return kernel


def reduction_nki(
    rows: int, cols: int, operator: str = "add", covered: int | None = None
) -> Kernel:
    """A row a partition, reduced along the free axis.  Lines: 70 load, 80 reduce, 90 store."""
    file = "kernel.py"
    names = Names(file)
    width = cols if covered is None else covered

    def partitions(name: str) -> Axis:
        return Axis(name, Index.of(rows), AxisKind.PARTITION, at(file, 66))

    def free(name: str) -> Axis:
        return Axis(name, Index.of(width), AxisKind.FREE, at(file, 66))

    loaded, again, total, moved = (names.value() for _ in range(4))
    p0, f0, p1, f1, p2 = (Index.axis(name) for name in ("p0", "f0", "p1", "f1", "p2"))
    body: tuple[Op, ...] = (
        Parallel(
            (partitions("p0"), free("f0")),
            (
                Load(loaded, Version("x", 0), (p0 * cols + f0,), names.span(70)),
                Store(Version("tile", 1), Version("tile", 0), (p0, f0), loaded, names.span(70)),
            ),
            names.span(70),
        ),
        Parallel(
            (partitions("p1"),),
            (
                Reduce(
                    total,
                    operator,
                    (free("f1"),),
                    (Load(again, Version("tile", 1), (p1, f1), names.span(80)),),
                    again,
                    names.span(80),
                ),
                Store(Version("sums", 1), Version("sums", 0), (p1,), total, names.span(80)),
            ),
            names.span(80),
        ),
        Parallel(
            (partitions("p2"),),
            (
                Load(moved, Version("sums", 1), (p2,), names.span(90)),
                Store(Version("out", 1), Version("out", 0), (p2,), moved, names.span(90)),
            ),
            names.span(90),
        ),
    )
    kernel = Kernel(
        name="kernel",
        side="nki",
        span=at(file, 50),
        sizes=(),
        buffers=(
            shaped("x", (rows * cols,), Space.HBM, "in", file),
            shaped("out", (rows,), Space.HBM, "out", file),
            shaped("tile", (rows, cols), Space.ONCHIP, "scratch", file),
            shaped("sums", (rows,), Space.ONCHIP, "scratch", file),
        ),
        body=body,
        outputs=(Output(Version("out", 1), 0),),
        statements=Statements(4),
    )
    assert problems(kernel) == ()
    return kernel


def related_rows(cuda_kernel: Kernel, nki_kernel: Kernel, rows: int, cols: int):
    """As `related`, for the two reductions."""
    tensors_ = (
        BoundTensor("x", (rows * cols,), "in", F32, F32, "x", "x", None),
        BoundTensor("out", (rows,), "out", F32, F32, "out", None, 0),
    )
    binding = Binding({}, tensors_, ())
    relation = relate(
        cuda_kernel,
        nki_kernel,
        binding,
        inputs,
        cuda_sizes={},
        nki_sizes={},
        meter=Meter(Budget(), "relating"),
    )
    return binding, relation
