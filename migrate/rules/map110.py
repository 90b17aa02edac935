"""# MAP110: reduction-cut-short

## What
A sum, product, maximum or contraction combines another number of elements than in the CUDA
kernel.

## Why
The loop over the tiles of the reduced axis ends too early, or a slice of its last tile is too
short: the remainder of K is dropped, the last columns of a row are not in the sum.

## Example
```python
for k in nl.affine_range(K // 128):                   # the last K % 128 products are missing
    nisa.nc_matmul(dst=acc, stationary=a[k], moving=b[k])
```

## Use instead
```python
for k in nl.affine_range((K + 127) // 128):           # with min() bounds for the last tile
```

## Sources
Neuron SDK documentation, nki.isa.nc_matmul (accumulation over calls) and nki/migration (`min()`
bounds in place of masks).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import behind, witness_in
from migrate.rules.rule import Draft, Evidence, Rule
from migrate.rules.walk import parted


def check(evidence: Evidence) -> Iterator[Draft]:
    for part in parted(evidence, "extent"):
        suspects = behind(part.reading.nki, part.span) if part.reading.nki is not None else ()
        yield Draft(
            message=(
                f"computes {part.nki_text} where the CUDA kernel computes {part.cuda_text},"
                f" for {part.where}"
            ),
            side="nki",
            span=part.span,
            related=part.related,
            witness=witness_in(part.relation, part.mismatch),
            suspects=suspects,
        )


RULE = Rule("MAP110", "reduction-cut-short", "mapping", "error", "wrong", check)
