"""# MAP109: output-overwritten

## What
Tiles of the output overlap: what one iteration wrote, a later one overwrites with the result of
other elements.

## Why
The step from one tile to the next is shorter than the tile, or the destination does not move at
all.  The last tile is right, what it covers of the earlier ones is not.

## Example
```python
for i in nl.affine_range(n // 512):
    nisa.dma_copy(dst=out[0:512], src=t)         # every tile goes to the beginning
```

## Use instead
```python
for i in nl.affine_range(n // 512):
    nisa.dma_copy(dst=out[i * 512 : (i + 1) * 512], src=t)
```

## Sources
Neuron SDK documentation, language guide (slices); CUDA C++ Programming Guide, thread hierarchy
(each thread has an element of its own).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.coverage import overwriting
from migrate.rules.places import at, described, related, witness_in
from migrate.rules.rule import Draft, Evidence, Rule
from migrate.rules.walk import refuted


def check(evidence: Evidence) -> Iterator[Draft]:
    for reading, relation, mismatch in refuted(evidence):
        if not mismatch.overwritten or mismatch.nki_op is None:
            continue
        total = next(t.size for t in reading.binding.outputs if t.name == mismatch.output)
        blame = overwriting(reading, mismatch)
        yield Draft(
            message=(
                f"{described(mismatch, total)} of {mismatch.output} were right and are"
                f" overwritten with other results at {at(relation.sizes.items())}{blame.reason}"
            ),
            side="nki",
            span=blame.span,
            related=related("nki", (s for s in blame.others if s != blame.span)),
            witness=witness_in(relation, mismatch),
        )


RULE = Rule(
    "MAP109",
    "output-overwritten",
    "mapping",
    "error",
    "wrong",
    check,
    about=("output-store", "tile-axis"),
)
