"""# HW203: tile-too-large

## What
A tile is larger than what the hardware takes at once: more than 128 partitions, more columns than
a matrix instruction moves or a PSUM bank holds, more bytes than a partition has.

## Why
SBUF and PSUM have 128 partitions, a PSUM bank holds 512 float32 a partition, and the stationary
operand of the tensor engine is at most 128 by 128.  A CUDA block or shared-memory tile knows no
such numbers, and sizes that happen to be small hide the mistake.

## Example
```python
rows = min(256, n - start)                       # two rows for every partition
t = nl.ndarray((rows, 512), dtype=nl.float32, buffer=nl.sbuf)
```

## Use instead
The constants of `nl.tile_size` as bounds: `pmax`, `psum_fmax`, `gemm_stationary_fmax`,
`gemm_moving_fmax`.

## Sources
Neuron SDK documentation, nki/get-started/about/tiling-overview, nki.isa.nc_matmul (operand sizes)
and the architecture guides of Trainium 1, 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import CLAIMS, REFUSING
from migrate.rules.places import related
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    for problem in evidence.problems:
        if problem.side == "nki" and problem.code.removeprefix(REFUSING) in CLAIMS["HW203"]:
            # The first of the places that decided the size is its cause, if there is any.
            places = (*problem.related, problem.span)
            yield Draft(
                message=problem.message,
                side="nki",
                span=places[0],
                related=related("nki", (p for p in (problem.span, *places) if p != places[0])),
            )


RULE = Rule("HW203", "tile-too-large", "hardware", "error", "rejects", check)
