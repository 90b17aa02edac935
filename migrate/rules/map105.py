"""# MAP105: wrong-element

## What
The right tensor, but other elements of it: an offset, a stride or an axis differs.

## Why
Flat CUDA indices become tile coordinates (partition, free) plus a tile offset.  An offset counted
in rows rather than in elements, a tile index that is not advanced, or two axes exchanged reads
the wrong neighbour for every element, and often stays inside the tensor.

## Example
```python
nisa.dma_copy(dst=y_tile, src=y[0:512])      # every tile reads the first 512 elements
```

## Use instead
```python
nisa.dma_copy(dst=y_tile, src=y[i * 512 : (i + 1) * 512])
```

## Sources
Neuron SDK documentation, language guide (slices) and nki/deep-dives (access patterns).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import behind, witness_in
from migrate.rules.rule import Draft, Evidence, Rule
from migrate.rules.walk import parted


def check(evidence: Evidence) -> Iterator[Draft]:
    for part in parted(evidence, "element"):
        kernel = part.reading.nki
        yield Draft(
            message=(
                f"reads {part.nki_text} where the CUDA kernel reads {part.cuda_text},"
                f" for {part.where}"
            ),
            side="nki",
            span=part.span,
            related=part.related,
            witness=witness_in(part.relation, part.mismatch),
            suspects=behind(kernel, part.span) if kernel is not None else (),
        )


RULE = Rule(
    "MAP105",
    "wrong-element",
    "mapping",
    "error",
    "wrong",
    check,
    about=("stage-in", "gather", "transpose", "elementwise", "reduction", "contraction"),
)
