"""# PERF602: loads-again

## What
A loop loads in every iteration what it loaded in the iteration before.

## Why
On a GPU the second load comes from a cache.  Here SBUF is what the kernel puts there: every load
goes to HBM.

## Example
```python
for m in range(tiles):
    nisa.dma_copy(dst=weights, src=w)          # the same in every iteration
    nisa.dma_copy(dst=tile, src=x[m])
```

## Use instead
Load before the loop, or exchange two loops so that what stays the same is loaded in the outer
one.

## Sources
Neuron SDK documentation, nki/deep-dives/nki_perf_guide.rst.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "PERF602")


RULE = Rule("PERF602", "loads-again", "performance", "warning", "slow", check)
