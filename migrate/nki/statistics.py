"""What the instructions of mean and variance, and of reductions over partitions, compute."""

from __future__ import annotations

from typing import TypeVar

from migrate.nki.errors import Unsupported
from migrate.nki.frames import Instruction
from migrate.nki.operators import PARTITION_REDUCTIONS
from migrate.nki.parts import cell
from migrate.nki.semantics import (
    F32,
    Machine,
    flat_free,
    meaning,
    required_operator,
    required_view,
)
from migrate.nki.symbols import Number, binary
from migrate.nki.values import View

V = TypeVar("V")

ONE = Number(1)


def bn_stats(m: Machine[V], i: Instruction) -> None:
    """Count, mean and variance times count of the even, then of the odd elements."""
    dst, data = required_view(i, "dst"), required_view(i, "data")
    _check_results(dst, 6)
    rows, length = data.shape[0], flat_free(data)
    value = m.convert(m.read(data, (rows, length)), F32)
    for group in (0, 1):
        count = binary("//", binary("+", length, Number(1 - group)), Number(2))
        results: tuple[V, ...]
        if count.value == 0:
            results = tuple(m.number(0.0, F32) for _ in range(3))
        else:
            results = _moments(m, value, (rows, count), group)
        for position, result in enumerate(results):
            m.write(m.part(dst, cell(dst, 3 * group + position)), _spread(m, result, dst))


def _moments(m: Machine[V], value: V, shape: tuple[Number, Number], group: int) -> tuple[V, V, V]:
    chosen = m.rearrange(value, shape, lambda place, _: (place[0], place[1] * 2 + group))
    count = m.number(shape[1], F32)
    total = m.reduce("add", chosen, (1,), F32)
    mean = m.keep(m.apply("divide", (total, count), F32), (shape[0], ONE))
    apart = m.apply("subtract", (chosen, mean), F32)
    return count, mean, m.reduce("add", m.apply("square", (apart,), F32), (1,), F32)


def bn_aggr(m: Machine[V], i: Instruction) -> None:
    """Mean and variance of all elements, from (count, mean, variance times count) of groups."""
    dst, data = required_view(i, "dst"), required_view(i, "data")
    _check_results(dst, 2)
    rows, length = data.shape[0], flat_free(data)
    if int(length.value) % 3:
        raise Unsupported(f"bn_aggr of {length.value} elements, which are not triples")
    value = m.convert(m.read(data, (rows, length)), F32)
    shape = (rows, binary("//", length, Number(3)))

    def every(position: int) -> V:
        return m.rearrange(value, shape, lambda place, _: (place[0], place[1] * 3 + position))

    counts, means, squares = every(0), every(1), every(2)
    one = (rows, ONE)
    total = m.keep(m.reduce("add", counts, (1,), F32), one)
    weighted = m.apply("multiply", (counts, means), F32)
    mean = m.keep(m.apply("divide", (m.reduce("add", weighted, (1,), F32), total), F32), one)
    apart = m.apply("square", (m.apply("subtract", (means, mean), F32),), F32)
    between = m.apply("multiply", (counts, apart), F32)
    squared = m.reduce("add", m.apply("add", (squares, between), F32), (1,), F32)
    variance = m.apply("divide", (squared, total), F32)
    for position, result in enumerate((mean, variance)):
        m.write(m.part(dst, cell(dst, position)), _spread(m, result, dst))


def _check_results(dst: View, count: int) -> None:
    if dst.free_elements != count:
        raise Unsupported(f"{count} results into {dst.free_elements} elements a partition")


def _spread(m: Machine[V], result: V, dst: View) -> V:
    """A column under as many axes as the destination has."""
    if len(dst.shape) == 2:
        return result
    return m.reshape(result, (dst.shape[0], *(ONE for _ in dst.shape[1:])))


def tensor_partition_reduce(m: Machine[V], i: Instruction) -> None:
    """Combine over the partitions, into one."""
    dst, data = required_view(i, "dst"), required_view(i, "data")
    operator = required_operator(i, "op")
    if operator.name not in PARTITION_REDUCTIONS:
        raise Unsupported(f"tensor_partition_reduce by nl.{operator.name}")
    if dst.sizes[0] != 1:
        raise Unsupported("tensor_partition_reduce into more than one partition")
    value = m.read(data, (data.shape[0], flat_free(data)))
    if operator.bitvec:
        total = m.reduce(meaning(operator), value, (0,), data.dtype)
    else:
        added = "add" if operator.name == "average" else meaning(operator)
        total = m.reduce(added, m.convert(value, F32), (0,), F32)
        if operator.name == "average":
            total = m.apply("divide", (total, m.number(data.shape[0], F32)), F32)
    m.write(dst, m.reshape(total, dst.shape))
