"""Instructions that reduce what they make, in the accumulation registers of their engine.

The Scalar and the Vector engine have a float32 register for each partition.  A reduction starts
anew in them (`reset_reduce`), from a given number (`load_reduce`), or goes on from what earlier
instructions left there (`reduce`); a tile for the result reads them out.  What `idle` leaves in
the Vector engine's registers is undefined (NKI API reference, nki.isa.activation, activate2,
exponential, select_reduce, tensor_scalar_reduce, tensor_scalar_cumulative).
"""

from __future__ import annotations

import math
from typing import TypeVar

from migrate.nki.errors import Unsupported
from migrate.nki.formulas import composed
from migrate.nki.frames import Instruction
from migrate.nki.operators import OPERATORS, NkiOperator
from migrate.nki.semantics import (
    F32,
    Machine,
    arithmetic,
    column,
    flat_free,
    meaning,
    operator_of,
    required_operator,
    required_view,
)
from migrate.nki.symbols import Number
from migrate.nki.values import Member, View

V = TypeVar("V")

START: dict[str, float] = {
    "add": 0.0,
    "subtract": 0.0,
    "multiply": 1.0,
    "maximum": -math.inf,
    "minimum": math.inf,
}
"""What the registers are reset to, by the operator."""

_REDUCING = ("reduce", "reset_reduce", "load_reduce")


def command_of(i: Instruction) -> str:
    """What an instruction does with the registers; without the parameter it starts anew."""
    if not any(name == "reduce_cmd" for name, _ in i.attributes):
        return "reset_reduce"
    command = i.attribute("reduce_cmd")
    return command.name if isinstance(command, Member) else "idle"


def continues(i: Instruction) -> bool:
    """Whether an instruction reads what earlier ones left in the registers."""
    command = command_of(i)
    return command == "reduce" or (command == "idle" and _reads_out(i))


def _reads_out(i: Instruction) -> bool:
    """Whether an idle instruction reads the registers out; the Vector engine's are undefined."""
    return i.opcode in ("activation", "activate2") and i.view("reduce_res") is not None


def activation(m: Machine[V], i: Instruction) -> None:
    """`op(data * scale + bias)`, with an optional sum over the free axes."""
    dst = required_view(i, "dst")
    reduced(m, i, _activated(m, i, dst), dst)


def activation_reduce(m: Machine[V], i: Instruction) -> None:
    """`activation` with a sum that starts anew."""
    activation(m, i)


def activate2(m: Machine[V], i: Instruction) -> None:
    """`op((data op0 imm0) op1 imm1)`, optionally reduced over the free axes."""
    dst = required_view(i, "dst")
    value = m.convert(m.read(required_view(i, "data"), dst.shape), F32)
    for stage, operand, flag in (("op0", "imm0", "reverse0"), ("op1", "imm1", "reverse1")):
        operator = required_operator(i, stage)
        if operator.name == "bypass":
            continue
        other = column(m, i, operand, dst, F32)
        args = (other, value) if i.attribute(flag) is True else (value, other)
        value = arithmetic(m, operator, args)
    slope = column(m, i, "relu_param", dst, F32)
    reduced(m, i, _function(m, i, value, slope), dst)


def exponential(m: Machine[V], i: Instruction) -> None:
    """`exp(src - max_value)` on the Vector engine, optionally with its sum."""
    dst = required_view(i, "dst")
    value = m.convert(m.read(required_view(i, "src"), dst.shape), F32)
    shifted = m.apply("subtract", (value, column(m, i, "max_value", dst, F32)), F32)
    exp = OPERATORS["exp"]
    made = m.apply(meaning(exp, 1), (shifted,), F32, exp.table_error, "nl.exp")
    reduced(m, i, made, dst)


def tensor_scalar_reduce(m: Machine[V], i: Instruction) -> None:
    """`data op0 operand0`, reduced over the free axes."""
    dst = required_view(i, "dst")
    value = m.convert(m.read(required_view(i, "data"), dst.shape), F32)
    operator = required_operator(i, "op0")
    if operator.bitvec:
        raise Unsupported(f"tensor_scalar_reduce with nl.{operator.name}")
    if i.attribute("reverse0") is True:
        raise Unsupported("tensor_scalar_reduce with reverse0, which is not supported")
    if "unary" in operator.uses and "scalar" not in operator.uses:
        made = arithmetic(m, operator, (value,))
    else:
        made = arithmetic(m, operator, (value, column(m, i, "operand0", dst, F32)))
    reduced(m, i, made, dst)


def tensor_scalar_cumulative(m: Machine[V], i: Instruction) -> None:
    """`reg = (src[k] op0 imm0) op1 reg` for each k; every state is kept."""
    dst = required_view(i, "dst")
    flat = (dst.shape[0], flat_free(dst))
    first, second = required_operator(i, "op0"), required_operator(i, "op1")
    if second.name not in START:
        raise Unsupported(f"tensor_scalar_cumulative with nl.{second.name} as op1")
    value = m.convert(m.read(required_view(i, "src"), flat), F32)
    if "unary" in first.uses and "scalar" not in first.uses:
        made = arithmetic(m, first, (value,))
    else:
        made = arithmetic(m, first, (value, column(m, i, "imm0", dst, F32)))
    registers = i.view("registers")
    match command_of(i):
        case "reset_reduce":
            initial = m.number(START[second.name], F32)
        case "load_reduce":
            initial = column(m, i, "imm1", dst, F32)
        case "reduce":
            initial = _registers(m, registers)
        case other:
            raise Unsupported(f"tensor_scalar_cumulative with reduce_cmd.{other}")

    def step(state: V, here: V, _: V) -> V:
        return arithmetic(m, second, (here, state))

    states = m.keep(m.scan(step, initial, made, made, flat), flat)
    if registers is not None:
        last = m.rearrange(
            states, (flat[0], Number(1)), lambda place, sizes: (place[0], sizes[1] - 1)
        )
        m.write(registers, last)
    m.write(dst, m.reshape(states, dst.shape))


def reduced(m: Machine[V], i: Instruction, value: V, dst: View) -> None:
    """Write what an instruction made, and its reduction as `reduce_cmd` has it."""
    command, result = command_of(i), i.view("reduce_res")
    registers = i.view("registers")
    state: V | None = None
    if command in _REDUCING and (result is not None or registers is not None):
        operator = _reduction(i)
        value = m.keep(value, dst.shape)
        axes = tuple(range(1, len(dst.shape)))
        one = (dst.shape[0], Number(1))
        state = m.reshape(_total(m, operator, value, axes), one)
        if command == "reduce":
            state = _combined(m, operator, (_registers(m, registers), state))
        elif command == "load_reduce":
            start = column(m, i, "reduce_init", registers or dst, F32)
            if i.view("reduce_init") is not None:
                start = m.reshape(start, one)
            state = _combined(m, operator, (start, state))
        if result is not None and registers is not None:
            state = m.keep(state, one)
    elif command == "reduce":
        raise Unsupported("chaining the accumulation registers")
    elif command == "reset":
        state = m.number(START.get(_reduction(i).name, 0.0), F32)
    elif command == "idle" and _reads_out(i):
        state = _registers(m, registers)
    if state is not None and registers is not None and command != "idle":
        m.write(registers, state)
    if state is not None and result is not None:
        if i.attribute("reduce_res_negate") is True:
            state = m.apply("negate", (state,), F32)
        m.write(result, m.reshape(state, result.shape) if command != "reset" else state)
    m.write(dst, value)


def _reduction(i: Instruction) -> NkiOperator:
    """The reducing operator; `exponential` has none and adds."""
    operator = operator_of(i, "reduce_op")
    if operator is None:
        if i.opcode != "exponential":
            raise Unsupported(f"{i.opcode} that reduces without reduce_op")
        return OPERATORS["add"]
    if operator.name not in _ALLOWED.get(i.opcode, ("add",)):
        raise Unsupported(f"{i.opcode} reducing by nl.{operator.name}")
    return operator


_ALLOWED = {
    "activate2": ("add", "maximum", "minimum"),
    "tensor_scalar_reduce": ("add", "multiply", "maximum", "minimum"),
    "range_select": ("maximum",),
    "select_reduce": ("maximum",),
}
"""Reducing operators, other than nl.add alone.  What nl.abs_max keeps of the sign when it
reduces is not documented."""


def _total(m: Machine[V], operator: NkiOperator, value: V, axes: tuple[int, ...]) -> V:
    return m.reduce(meaning(operator), value, axes, F32)


def _combined(m: Machine[V], operator: NkiOperator, args: tuple[V, V]) -> V:
    return m.apply(meaning(operator, 2), args, F32)


def _registers(m: Machine[V], registers: View | None) -> V:
    if registers is None:
        raise Unsupported("chaining the accumulation registers")
    return m.read(registers)


def _activated(m: Machine[V], i: Instruction, dst: View) -> V:
    value = m.convert(m.read(required_view(i, "data"), dst.shape), F32)
    scale, bias = i.operand("scale"), i.operand("bias")
    if isinstance(scale, View) or (isinstance(scale, Number) and scale.value != 1.0):
        value = m.apply("multiply", (value, column(m, i, "scale", dst, F32)), F32)
    if bias is not None:
        value = m.apply("add", (value, column(m, i, "bias", dst, F32)), F32)
    return _function(m, i, value, None)


def _function(m: Machine[V], i: Instruction, value: V, slope: V | None) -> V:
    """The activation function; `slope` is that of `prelu`."""
    operator = required_operator(i, "op")
    if "activation" not in operator.uses:
        raise Unsupported(f"activation with nl.{operator.name}")
    if operator.name == "copy":
        return value
    error = operator.table_error
    if operator.name == "prelu":
        if slope is None:
            raise Unsupported("nl.prelu without its slope")
        return composed(m, operator, (value, slope), error)
    if operator.operator is None:
        return composed(m, operator, (m.keep(value, required_view(i, "dst").shape),), error)
    return m.apply(meaning(operator, 1), (value,), F32, error, f"nl.{operator.name}")
