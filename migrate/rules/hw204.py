"""# HW204: wrong-memory

## What
An operand is in a memory that the instruction does not reach.

## Why
The tensor engine reads SBUF and writes PSUM, DMA moves between HBM and SBUF, the other engines
work on SBUF and PSUM, GpSimd on SBUF alone.  CUDA threads reach all their memories from everywhere,
so a migration has copies that the original does not show.

## Example
```python
nisa.dma_copy(dst=out[0:128, :], src=product)    # product is in PSUM
```

## Use instead
```python
nisa.tensor_copy(dst=tile, src=product)          # PSUM to SBUF
nisa.dma_copy(dst=out[0:128, :], src=tile)       # SBUF to HBM
```

## Sources
Neuron SDK documentation, nki.isa (memories of each operand) and the architecture guides of
Trainium 1, 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import CLAIMS, REFUSING
from migrate.rules.places import related
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    for problem in evidence.problems:
        code = problem.code.removeprefix(REFUSING)
        if problem.side != "nki" or code not in CLAIMS["HW204"]:
            continue
        places = (problem.span, *problem.related)
        if code == "tile-memory" and problem.related:
            # What needs PSUM can be in no other memory: the tile was made in the wrong one.
            places = (problem.related[-1], *places)
        yield Draft(
            message=problem.message,
            side="nki",
            span=places[0],
            related=related("nki", (p for p in places[1:] if p != places[0])),
        )


RULE = Rule("HW204", "wrong-memory", "hardware", "error", "rejects", check)
