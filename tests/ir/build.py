"""Short spellings for kernels written by hand."""

from __future__ import annotations

from migrate.ir.index import Index
from migrate.ir.nodes import (
    Axis,
    AxisKind,
    Buffer,
    Fill,
    Kernel,
    Load,
    Map,
    Op,
    Output,
    Parallel,
    Space,
    Statements,
    Store,
    Value,
    Version,
)
from migrate.ir.predicate import TRUE, Predicate
from migrate.numerics.dtypes import DType
from migrate.source import Span

F32, I32, U32, U8, BOOL = DType.FLOAT32, DType.INT32, DType.UINT32, DType.UINT8, DType.BOOL
I, J, K = Index.axis("i"), Index.axis("j"), Index.axis("k")  # noqa: E741


def at(line: int = 1) -> Span:
    return Span(file="k.py", start_line=line, start_column=1, end_line=line, end_column=9)


def v(name: str, dtype: DType = F32) -> Value:
    return Value(name, dtype)


def axis(name: str, extent: int | Index, kind: AxisKind = AxisKind.PARALLEL) -> Axis:
    return Axis(name, Index.of(extent), kind, at())


def buffer(name: str, *shape: int | Index, role="in", dtype: DType = F32) -> Buffer:
    space = Space.ONCHIP if role == "scratch" else Space.HBM
    return Buffer(name, tuple(map(Index.of, shape)), dtype, space, role, at())


def ver(name: str, number: int = 0) -> Version:
    return Version(name, number)


def place(*index: int | Index) -> tuple[Index, ...]:
    return tuple(map(Index.of, index))


def load(result: Value, name: str, *index, number: int = 0, where: Predicate = TRUE) -> Load:
    return Load(result, ver(name, number), place(*index), at(), where=where)


def store(number: int, name: str, index, value: Value, *, into: int | None = None, **more) -> Store:
    """The store that makes version `number`, of the one before it if nothing else is said."""
    before = number - 1 if into is None else into
    return Store(ver(name, number), ver(name, before), place(*index), value, at(), **more)


def fill(result: Value, number: float) -> Fill:
    return Fill(result, number, at())


def apply(result: Value, operator: str, *args: Value) -> Map:
    return Map(result, operator, args, at())


def each(*axes: Axis, body: list[Op], where: Predicate = TRUE) -> Parallel:
    return Parallel(axes, tuple(body), at(), where=where)


def kernel(buffers: list[Buffer], body: list[Op], *outputs: Version, sizes=()) -> Kernel:
    return Kernel(
        name="k",
        side="cuda",
        span=at(),
        sizes=tuple(sizes),
        buffers=tuple(buffers),
        body=tuple(body),
        outputs=tuple(map(Output, outputs)),
        statements=Statements(len(body)),
    )


def pointwise(operator: str, *, dtypes=(F32,), result: DType = F32, extent: int = 4) -> Kernel:
    """`y[i] = operator(x0[i], x1[i], ...)`."""
    args = [v(f"a{n}", dtype) for n, dtype in enumerate(dtypes)]
    ins = [buffer(f"x{n}", extent, dtype=dtype) for n, dtype in enumerate(dtypes)]
    body = [load(arg, f"x{n}", I) for n, arg in enumerate(args)]
    body += [apply(v("r", result), operator, *args), store(1, "y", (I,), v("r", result))]
    return kernel(
        [*ins, buffer("y", extent, role="out", dtype=result)],
        [each(axis("i", extent), body=body)],
        ver("y", 1),
    )
