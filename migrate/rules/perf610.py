"""# PERF610: transposes-wide-elements

## What
`dma_transpose` of elements of four bytes.

## Why
The transpose of the DMA hardware takes elements of two bytes.  Wider ones are moved in small
pieces, far below the bandwidth, and some releases refuse them.

## Example
```python
nisa.dma_transpose(dst=t, src=x)        # float32
```

## Use instead
`nisa.nc_transpose` on the tensor engine after a plain load, or a 16-bit format where it is enough.

## Sources
Neuron SDK 2.32 documentation, nki/api/nki/isa/__init__.py (`dma_transpose`: "2-byte dtype"); the
trn2 architecture guide lists 4-byte elements as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "PERF610")


RULE = Rule("PERF610", "transposes-wide-elements", "performance", "note", "slow", check)
