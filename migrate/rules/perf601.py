"""# PERF601: moves-small-pieces

## What
A transfer between HBM and SBUF is cut into many short pieces, although the rows of the tensor in
HBM are long.

## Why
DMA works in descriptors, each a piece that lies in one row on both sides, and a descriptor costs
about the same whether it moves 4 bytes or 2 KiB.  Below 512 bytes the time goes into descriptors.
CUDA's counterpart is an uncoalesced access; what is coalesced there, neighbouring threads on
neighbouring elements, may be a column of single elements here.

## Example
```python
for k in range(cols):
    nisa.dma_copy(dst=column, src=x[0:128, k : k + 1])     # 128 pieces of 4 bytes, cols times
```

## Use instead
```python
nisa.dma_copy(dst=tile, src=x[0:128, 0:cols])              # 128 pieces of a whole row
```
and slices of the tile in SBUF.

## Sources
Neuron SDK documentation, nki/deep-dives/nki-dma-bandwidth-guide.rst (2 KiB a piece, 256 bytes badly
bound) and nki/guides/architecture/trainium_inferentia2_arch.rst (a piece in each partition at
least).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "PERF601")


RULE = Rule("PERF601", "moves-small-pieces", "performance", "warning", "slow", check)
