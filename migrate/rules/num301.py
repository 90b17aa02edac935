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

from migrate.ir.nodes import (
    Buffer,
    Carried,
    Cast,
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
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    for reading in evidence.readings:
        if reading.nki is None or reading.cuda is None:
            continue
        allowed = _narrowest(reading.cuda)
        fewest = _fewest_bits(reading.cuda)
        tiles = _tiles(reading.nki)
        made = {value: op for op in walk(reading.nki.body) for value in results(op)}
        for op in walk(reading.nki.body):
            if not isinstance(op, Cast):
                continue
            to, given = op.result.dtype, op.arg.dtype
            if to.kind == "float" and given.kind == "float":
                if to.unit_roundoff <= max(allowed, given.unit_roundoff):
                    continue
                kept = f"{to.precision} significant bits"
            elif to.is_integer and to.bits < min(fewest, _width(op.arg, made, reading.nki)):
                kept = f"whole numbers of {to.bits} bits"
            else:
                continue
            tile = tiles.get(op.result)
            what = f"tile {tile.name}" if tile is not None else "the result"
            yield Draft(
                message=(
                    f"{what} is {to.value}: what is stored in it keeps {kept}, fewer than any"
                    f" value of the CUDA kernel"
                ),
                side="nki",
                span=tile.span if tile is not None else op.span,
                related=related("nki", [op.span]),
            )


def _tiles(kernel: Kernel) -> dict[Value, Buffer]:
    """The buffer that each stored value goes into."""
    return {
        op.value: kernel.buffer(op.into.buffer) for op in walk(kernel.body) if isinstance(op, Store)
    }


def _narrowest(kernel: Kernel) -> float:
    """The coarsest rounding that a float goes through on the CUDA side, in or out included."""
    dtypes = [buffer.dtype for buffer in kernel.buffers]
    dtypes += [op.result.dtype for op in walk(kernel.body) if isinstance(op, Cast)]
    return max((d.unit_roundoff for d in dtypes if d.kind == "float"), default=0.0)


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
