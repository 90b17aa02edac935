"""# NUM301: narrower-intermediate

## What
A value goes through a narrower float format than in the CUDA kernel.

## Why
The engines compute in float32 and round when they store.  A bfloat16 tile between two
instructions rounds to 8 bits where CUDA kept a float register with 24.

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

from collections.abc import Iterator

from migrate.ir.nodes import Buffer, Cast, Kernel, Store, Value, walk
from migrate.rules.places import related
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    for reading in evidence.readings:
        if reading.nki is None or reading.cuda is None:
            continue
        allowed = _narrowest(reading.cuda)
        tiles = _tiles(reading.nki)
        for op in walk(reading.nki.body):
            if not isinstance(op, Cast) or op.result.dtype.kind != "float":
                continue
            roundoff = op.result.dtype.unit_roundoff
            if op.arg.dtype.kind != "float" or roundoff <= max(allowed, op.arg.dtype.unit_roundoff):
                continue
            tile = tiles.get(op.result)
            what = f"tile {tile.name}" if tile is not None else "the result"
            yield Draft(
                message=(
                    f"{what} is {op.result.dtype.value}: what is stored in it keeps"
                    f" {op.result.dtype.precision} significant bits, fewer than any value of the"
                    f" CUDA kernel"
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


RULE = Rule(
    "NUM301",
    "narrower-intermediate",
    "numerics",
    "warning",
    "inaccurate",
    check,
    about=("cast",),
)
