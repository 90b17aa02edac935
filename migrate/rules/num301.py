"""# NUM301: narrower-intermediate

## What
A value goes through a narrower format than in the CUDA kernel.

## Why
The engines compute in float32 and round when they store.  A bfloat16 tile between two
instructions rounds to 8 bits where CUDA kept a float register with 24.  An int8 tile ends at
-128 and 127.

## Example
```python
t = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)   # CUDA: float t = x[i] + y[i];
nisa.tensor_tensor(dst=t, data1=x, data2=y, op=nl.add)
nisa.tensor_tensor(dst=out, data1=t, data2=z, op=nl.multiply)
```

## Use instead
A float32 tile between the instructions, and one rounding at the store.

## Sources
Neuron SDK documentation, nki.isa (results are cast to the dtype of dst at no cost).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from migrate.ir.nodes import (
    Buffer,
    Carried,
    Cast,
    Fill,
    Kernel,
    Load,
    Map,
    Op,
    Store,
    Value,
    results,
    walk,
)
from migrate.numerics.operators import operator
from migrate.rules.places import related
from migrate.rules.precision import coarsest, loses, roundings
from migrate.rules.rule import Draft, Evidence, Rule

if TYPE_CHECKING:
    from migrate.align.binding import Binding


def check(evidence: Evidence) -> Iterator[Draft]:
    for reading in evidence.readings:
        if reading.nki is not None and reading.cuda is not None:
            yield from _floats(reading.binding, reading.cuda, reading.nki)
            yield from _integers(reading.cuda, reading.nki)


def _floats(binding: Binding, cuda: Kernel, nki: Kernel) -> Iterator[Draft]:
    """What is rounded more coarsely than what the CUDA kernel goes on with, or gives back."""
    allowed = coarsest(cuda)
    given = _results(binding, cuda, nki)
    tiles = _tiles(nki)
    for rounding in roundings(nki):
        op, to = rounding.op, rounding.op.result.dtype
        limits = [max(allowed, given.get(name, 0.0)) for name in rounding.outputs]
        if to.unit_roundoff <= min(limits, default=allowed):
            continue
        result = next((nki.buffer(name) for name in rounding.outputs), None)
        yield _draft(f"{to.precision} significant bits", op, tiles.get(op.result), result)
    for fill in walk(nki.body):
        if not isinstance(fill, Fill) or not loses(fill.number, fill.result.dtype):
            continue
        to = fill.result.dtype
        if to.unit_roundoff > allowed:
            yield _draft(f"{to.precision} significant bits", fill, tiles.get(fill.result), None)


def _integers(cuda: Kernel, nki: Kernel) -> Iterator[Draft]:
    fewest = _fewest_bits(cuda)
    tiles = _tiles(nki)
    made = {value: op for op in walk(nki.body) for value in results(op)}
    for op in walk(nki.body):
        if not isinstance(op, Cast):
            continue
        to = op.result.dtype
        if to.is_integer and to.bits < min(fewest, _width(op.arg, made, nki)):
            yield _draft(f"whole numbers of {to.bits} bits", op, tiles.get(op.result), None)


def _draft(kept: str, op: Cast | Fill, tile: Buffer | None, result: Buffer | None) -> Draft:
    """At the result that is too narrow, else at the tile, else at the instruction."""
    to = op.result.dtype
    at = result if result is not None and result.dtype is to else tile
    kind = "result" if at is result else "tile"
    what = f"{kind} {at.name}" if at is not None else "the result"
    places = [tile.span if tile is not None and at is result else None, op.span]
    return Draft(
        message=(
            f"{what} is {to.value}: what is stored in it keeps {kept}, fewer than in the CUDA"
            f" kernel"
        ),
        side="nki",
        span=at.span if at is not None else op.span,
        related=related("nki", places),
    )


def _results(binding: Binding, cuda: Kernel, nki: Kernel) -> dict[str, float]:
    """How coarse each result of the NKI kernel may be: as in CUDA, or as the case states."""
    positions = {output.position: output.version.buffer for output in nki.outputs}
    formats = {buffer.name: buffer.dtype for buffer in cuda.buffers}
    found: dict[str, float] = {}
    for tensor in binding.outputs:
        name = tensor.nki if tensor.nki_out is None else positions.get(tensor.nki_out)
        dtypes = [tensor.cuda_dtype, tensor.nki_dtype, formats.get(tensor.cuda or "")]
        floats = [d.unit_roundoff for d in dtypes if d is not None and d.kind == "float"]
        if name is not None and floats:
            found[name] = max(floats)
    return found


def _tiles(kernel: Kernel) -> dict[Value, Buffer]:
    """The buffer that each stored value goes into."""
    return {
        op.value: kernel.buffer(op.into.buffer) for op in walk(kernel.body) if isinstance(op, Store)
    }


def _fewest_bits(kernel: Kernel) -> int:
    """The narrowest integer format on the CUDA side; 0 where there is none to compare with."""
    dtypes = [buffer.dtype for buffer in kernel.buffers]
    dtypes += [op.result.dtype for op in walk(kernel.body) if isinstance(op, Cast)]
    return min((d.bits for d in dtypes if d.is_integer), default=0)


def _width(value: Value, made: Mapping[Carried, Op], kernel: Kernel) -> int:
    """The widest integer format of the data that a value is made of; 0 for none.

    Truth values and numbers of the kernel's own (positions) say nothing of a width.
    """
    widest = 0
    pending, seen = [value], {value}
    while pending:
        inner: tuple[Value, ...] = ()
        match made.get(pending.pop()):
            case Load(source=source):
                dtype = kernel.buffer(source.buffer).dtype
                widest = max(widest, dtype.bits if dtype.is_integer else 0)
            case Cast(arg=arg):
                inner = (arg,)
            case Map(operator=name, args=args) if not operator(name).is_truth:
                inner = args
            case _:
                pass
        fresh = [arg for arg in inner if arg not in seen]
        seen.update(fresh)
        pending += fresh
    return widest


RULE = Rule(
    "NUM301",
    "narrower-intermediate",
    "numerics",
    "warning",
    "inaccurate",
    check,
    about=("cast",),
)
