"""# HW208: reads-unwritten-tile

## What
An instruction reads elements of a tile, or of a tensor of the kernel's own in HBM, that nothing
wrote before.  So does a product that is to be added (`accumulate=True`) to a sum that was never
begun.  Where no result is made of such elements (the spare rows of a last tile, which are computed
with and not stored) it is a note.

## Why
Memory holds what was there before.  A last tile that is shorter than the others, moved into a full
tile and read in full, is the usual way to it; with CUDA the guard of the load kept such elements
out.

## Example
```python
nisa.dma_copy(dst=t[0:rest, :], src=x[start : start + rest, :])
nisa.tensor_reduce(dst=m, op=nl.maximum, data=t, axis=1)        # all 128 rows of t
nisa.dma_copy(dst=out[start : start + 128], src=m)
```

## Use instead
Read what was written (`t[0:rest, :]`), or fill the tile first with the operator's neutral
element.

## Sources
Neuron SDK documentation, nki/guides/nki_simulator.rst (uninitialised memory reads as NaN there).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "HW208")


RULE = Rule("HW208", "reads-unwritten-tile", "hardware", "error", "wrong", check)
