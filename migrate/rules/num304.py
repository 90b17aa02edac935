"""# NUM304: integers-through-float

## What
An instruction computes 32-bit integers of the input in float32 and gives integers back, where the
CUDA kernel computes with integers.

## Why
Most instructions of the Vector, Scalar and Tensor engines compute in float32, which holds whole
numbers up to 2^24 = 16,777,216 exactly.  Larger ones lose their last bits, and what CUDA wraps
around is saturated.  Indices and counts are small enough; hashes, packed fields and products often
are not, and small test data does not show it.

## Example
```python
nisa.tensor_scalar(dst=t, data=x, op0=nl.multiply, operand0=1664525)    # x is int32
```

## Use instead
`nisa.tensor_tensor` on int32 tiles in SBUF, which GpSimd computes with integers, bitwise operators,
or an assertion that the values stay below 2^24.

## Sources
Neuron SDK documentation, nki.isa.tensor_tensor (integer operands and engines),
nki.isa.tensor_scalar and nki.isa.tensor_reduce (computed in float32).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from migrate.ir.nodes import (
    Cast,
    Gather,
    Kernel,
    Load,
    Op,
    Scatter,
    Store,
    Value,
    operands,
    results,
    walk,
)
from migrate.numerics.dtypes import DType
from migrate.rules.rule import Draft, Evidence, Rule

MAX_STEPS = 10_000
"""Ops that are followed back from one operand."""


def check(evidence: Evidence) -> Iterator[Draft]:
    for reading in evidence.readings:
        if reading.nki is None or reading.cuda is None:
            continue
        if any(_loses(op) for op in walk(reading.cuda.body)):
            continue  # the CUDA kernel goes through floats itself
        back = {
            op.span
            for op in walk(reading.nki.body)
            if isinstance(op, Cast) and op.arg.dtype.kind == "float" and _wide(op.result.dtype)
        }
        makers, stores = _makers(reading.nki)
        for op in walk(reading.nki.body):
            if not isinstance(op, Cast) or not _loses(op) or op.span not in back:
                continue
            source = _input(reading.nki, op.arg, makers, stores)
            if source is not None:
                yield Draft(
                    message=(
                        f"computes the {op.arg.dtype.value} values of {source} in"
                        f" {op.result.dtype.value}, which holds whole numbers up to"
                        f" 2^{op.result.dtype.precision} alone; the CUDA kernel computes with"
                        f" integers"
                    ),
                    side="nki",
                    span=op.span,
                )


def _wide(dtype: DType) -> bool:
    return dtype.kind in {"int", "uint"} and dtype.bits >= 32


def _loses(op: Op) -> bool:
    """Whether an op makes floats of integers that they do not all hold."""
    if not isinstance(op, Cast) or not _wide(op.arg.dtype) or op.result.dtype.kind != "float":
        return False
    return op.result.dtype.precision < op.arg.dtype.bits


def _makers(kernel: Kernel) -> tuple[Mapping[Value, Op], Mapping[str, list[Value]]]:
    """The op that makes each value, and the values stored into each buffer."""
    makers: dict[Value, Op] = {}
    stores: dict[str, list[Value]] = {}
    for op in walk(kernel.body):
        for made in results(op):
            if isinstance(made, Value):
                makers[made] = op
        if isinstance(op, Store | Scatter):
            stores.setdefault(op.into.buffer, []).append(op.value)
    return makers, stores


def _input(
    kernel: Kernel, value: Value, makers: Mapping[Value, Op], stores: Mapping[str, list[Value]]
) -> str | None:
    """An input of wide integers that a value is computed from, if there is one."""
    given = {b.name: b for b in kernel.buffers if b.role in {"in", "inout"}}
    pending, seen = [value], {value}
    while pending and len(seen) < MAX_STEPS:
        op = makers.get(pending.pop())
        if op is None:
            continue
        found = [used for used in operands(op) if isinstance(used, Value)]
        if isinstance(op, Load | Gather):
            buffer = given.get(op.source.buffer)
            if buffer is not None and _wide(buffer.dtype):
                return buffer.name
            found += stores.get(op.source.buffer, [])
        for used in found:
            if used not in seen:
                seen.add(used)
                pending.append(used)
    return None


RULE = Rule(
    "NUM304",
    "integers-through-float",
    "numerics",
    "warning",
    "inaccurate",
    check,
    about=("cast", "elementwise", "reduction"),
)
