"""Fixing kernel scalars: what a case states as a value becomes a constant of the IR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from migrate.ir.nodes import (
    Block,
    Contract,
    Fill,
    Fold,
    Guard,
    Kernel,
    Load,
    Op,
    Parallel,
    Reduce,
)


def fixed(kernel: Kernel, values: Mapping[str, float | int | bool]) -> Kernel:
    """The kernel with rank-0 input buffers replaced by numbers, where `values` has them."""
    wanted = {
        buffer.name: values[buffer.name]
        for buffer in kernel.buffers
        if buffer.name in values and not buffer.shape and buffer.role == "in"
    }
    if not wanted:
        return kernel
    return replace(
        kernel,
        body=_block(kernel.body, wanted),
        buffers=tuple(b for b in kernel.buffers if b.name not in wanted),
    )


def _block(block: Block, values: Mapping[str, float | int | bool]) -> Block:
    # Regions nest as deep as the source's loops and branches, which front ends bound.
    return tuple(_op(op, values) for op in block)


def _op(op: Op, values: Mapping[str, float | int | bool]) -> Op:
    match op:
        case Load(result=result, source=source, span=span) if source.buffer in values:
            return Fill(result, values[source.buffer], span)
        case Parallel(body=body) | Fold(body=body) | Reduce(body=body) | Contract(body=body):
            return replace(op, body=_block(body, values))
        case Guard(body=body, otherwise=otherwise):
            return replace(op, body=_block(body, values), otherwise=_block(otherwise, values))
        case _:
            return op
