"""# MAP111: reads-unwritten-memory

## What
A result is computed from on-chip memory that nothing was written to.

## Why
A tile holds whatever was there before.  The loop or slice that fills it leaves a part out, or
the instruction that uses it reaches further than what was filled.

## Example
```python
for p in range(127):                                   # partition 127 is never filled
    nisa.dma_copy(dst=w_tile[p : p + 1, :], src=w)
nisa.tensor_tensor(dst=out, data1=x, data2=w_tile, op=nl.multiply)
```

## Use instead
Fill all that is read: `range(128)`, or one transfer that broadcasts.

## Sources
Neuron SDK documentation, language guide (the content of a new `nl.ndarray` is undefined).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import behind, witness_in
from migrate.rules.rule import Draft, Evidence, Rule
from migrate.rules.walk import parted


def check(evidence: Evidence) -> Iterator[Draft]:
    for part in parted(evidence, "unwritten-operand"):
        if any(trouble.kind == "out-of-range" for trouble in part.relation.nki_trouble):
            continue  # what lies outside a tensor is unwritten too, and told by HW202
        suspects = behind(part.reading.nki, part.span) if part.reading.nki is not None else ()
        yield Draft(
            message=f"computes {part.where} from memory that nothing was written to",
            side="nki",
            span=part.span,
            related=part.related,
            witness=witness_in(part.relation, part.mismatch),
            suspects=suspects,
        )


RULE = Rule("MAP111", "reads-unwritten-memory", "mapping", "error", "wrong", check)
