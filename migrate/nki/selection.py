"""What the instructions of positions and choices compute: iota and the selects."""

from __future__ import annotations

from typing import TypeVar

from migrate.nki.accumulators import reduced
from migrate.nki.errors import Unsupported
from migrate.nki.frames import Instruction
from migrate.nki.operators import COMPARISONS, NkiOperator
from migrate.nki.semantics import (
    F32,
    Machine,
    arithmetic,
    column,
    flat_free,
    meaning,
    required_operator,
    required_view,
)
from migrate.nki.symbols import Number
from migrate.nki.values import View

V = TypeVar("V")

FP32_MIN = -3.4028234663852886e38
"""What range_select puts in place of elements outside its bounds."""


def iota(m: Machine[V], i: Instruction) -> None:
    """offset + partition * channel_multiplier + sum of step * index, in int32."""
    dst = required_view(i, "dst")
    shape, offset, steps = _affine(i, dst)
    m.write(dst, m.reshape(m.position(shape, offset, steps), dst.shape))


def _affine(i: Instruction, dst: View) -> tuple[list[Number], Number, list[Number]]:
    """Shape, offset and steps of an index pattern; the partition is its first axis."""
    pattern = i.attribute("pattern")
    offset, multiplier = i.attribute("offset"), i.attribute("channel_multiplier")
    if not isinstance(pattern, tuple | list) or not isinstance(offset, Number):
        raise Unsupported(f"{i.opcode} without a constant pattern")
    if not isinstance(multiplier, Number):
        raise Unsupported(f"{i.opcode} without a constant channel_multiplier")
    shape, steps = [dst.shape[0]], [multiplier]
    for pair in pattern:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise Unsupported(f"{i.opcode} with a pattern that is not pairs")
        step, count = pair
        if not isinstance(step, Number) or not isinstance(count, Number):
            raise Unsupported(f"{i.opcode} with a pattern that is not numbers")
        steps.append(step)
        shape.append(count)
    return shape, offset, steps


def _comparison(i: Instruction, name: str) -> NkiOperator:
    """An operator that compares, given as an attribute."""
    operator = required_operator(i, name)
    if operator.name not in COMPARISONS:
        raise Unsupported(f"{i.opcode} comparing by nl.{operator.name}")
    return operator


def affine_select(m: Machine[V], i: Instruction) -> None:
    """`on_true_tile` where the index pattern compares so with 0, else a number."""
    dst, source = required_view(i, "dst"), required_view(i, "on_true_tile")
    comparison = _comparison(i, "cmp_op")
    shape, offset, steps = _affine(i, dst)
    other = i.operand("on_false_value")
    if not isinstance(other, Number):
        raise Unsupported("affine_select without a number for what is not selected")
    # Bit for bit where dtypes agree, through fp32 otherwise.
    dtype = source.dtype if source.dtype is dst.dtype else F32
    value = m.convert(m.read(source, shape), dtype)
    chosen = m.where_index(meaning(comparison), shape, offset, steps, value, m.number(other, dtype))
    m.write(dst, m.reshape(chosen, dst.shape))


def range_select(m: Machine[V], i: Instruction) -> None:
    """Elements whose position lies within bounds given a partition, else FP32_MIN."""
    dst = required_view(i, "dst")
    start = i.attribute("range_start")
    if not isinstance(start, Number) or not start.integral:
        raise Unsupported("range_select without a constant range_start")
    value = m.convert(m.read(required_view(i, "on_true_tile"), dst.shape), F32)
    one, zero = Number(1), Number(0)
    flat = (dst.shape[0], flat_free(dst))
    position = m.convert(m.reshape(m.position(flat, start, (zero, one)), dst.shape), F32)
    inside: V | None = None
    for comparison, bound in (("comp_op0", "bound0"), ("comp_op1", "bound1")):
        test = arithmetic(m, _comparison(i, comparison), (position, column(m, i, bound, dst, F32)))
        inside = test if inside is None else m.apply("logical_and", (inside, test), F32)
    assert inside is not None
    other = i.attribute("on_false_value")
    filler = other if isinstance(other, Number) else FP32_MIN
    chosen = m.select(inside, value, m.number(filler, F32))
    reduced(m, i, chosen, dst)


def select_reduce(m: Machine[V], i: Instruction) -> None:
    """`on_true` where the predicate is not zero, else `on_false`; optionally its maximum."""
    dst = required_view(i, "dst")
    predicate = m.read(required_view(i, "predicate"), dst.shape)
    value = m.convert(m.read(required_view(i, "on_true"), dst.shape), F32)
    other = column(m, i, "on_false", dst, F32)
    pair = (other, value) if i.attribute("reverse_pred") is True else (value, other)
    reduced(m, i, m.select(predicate, *pair), dst)


def tensor_copy_predicated(m: Machine[V], i: Instruction) -> None:
    """Copies where the predicate is not zero; elsewhere the destination keeps its content."""
    dst = required_view(i, "dst")
    predicate = m.read(required_view(i, "predicate"), dst.shape)
    source = i.operand("src")
    if isinstance(source, View):
        value = m.convert(m.read(source, dst.shape), dst.dtype)
    elif isinstance(source, Number):
        value = m.number(source, dst.dtype)
    else:
        raise Unsupported("tensor_copy_predicated without src")
    old = m.read(dst)
    pair = (old, value) if i.attribute("reverse_pred") is True else (value, old)
    m.write(dst, m.select(predicate, *pair))
