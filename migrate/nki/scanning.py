"""What the instruction of recurrences computes: a running state along the free axis."""

from __future__ import annotations

from typing import TypeVar

from migrate.nki.errors import Unsupported
from migrate.nki.frames import Instruction
from migrate.nki.semantics import (
    F32,
    Machine,
    arithmetic,
    column,
    flat_free,
    required_operator,
    required_view,
)

V = TypeVar("V")


def tensor_tensor_scan(m: Machine[V], i: Instruction) -> None:
    """`state = (data0[k] op0 state) op1 data1[k]` for each k; every state is kept.

    The state is fp32 throughout and only what is written takes the format of `dst`; several
    free axes count as one (NKI API reference, nki.isa.tensor_tensor_scan).
    """
    dst = required_view(i, "dst")
    flat = (dst.shape[0], flat_free(dst))
    first, second = required_operator(i, "op0"), required_operator(i, "op1")
    for operator in (first, second):
        if operator.bitvec:
            raise Unsupported(f"a scan by nl.{operator.name}")
    data0, data1 = (
        m.convert(m.read(required_view(i, name), flat), F32) for name in ("data0", "data1")
    )
    first_reversed = i.attribute("reverse0") is True
    second_reversed = i.attribute("reverse1") is True

    def step(state: V, left: V, right: V) -> V:
        state = arithmetic(m, first, (state, left) if first_reversed else (left, state))
        return arithmetic(m, second, (right, state) if second_reversed else (state, right))

    states = m.scan(step, column(m, i, "initial", dst, F32), data0, data1, flat)
    m.write(dst, m.reshape(states, dst.shape))
