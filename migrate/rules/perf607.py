"""# PERF607: round-trip-to-hbm

## What
The kernel writes a tensor of its own to HBM and reads it back in the same pieces.

## Why
Between two CUDA launches data go through global memory, and a migration that keeps the launches
keeps the way.  Within one NKI kernel a tile can stay in SBUF.

## Example
```python
nisa.dma_copy(dst=scratch[0:128, :], src=t)
nisa.dma_copy(dst=u, src=scratch[0:128, :])
```

## Use instead
Use the tile itself, or go over the tensor once, doing both steps for each tile.

## Sources
Neuron SDK documentation, nki/get-started/about/memory-hierarchy-overview.rst.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "PERF607")


RULE = Rule("PERF607", "round-trip-to-hbm", "performance", "warning", "slow", check)
