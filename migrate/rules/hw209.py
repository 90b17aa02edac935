"""# HW209: result-not-written

## What
Elements of a result that no instruction writes, or a kernel that has no result at all.

## Why
The caller gets whatever was in that memory.  Tests that look at a part of the result, or whose
sizes are multiples of the tile's, do not see it.

## Example
```python
for k in range(rows // 128):                                   # the rest of the rows is left out
    ...
    nisa.dma_copy(dst=out[k * 128 : k * 128 + 128, :], src=t)
return out
```

## Use instead
A loop that goes up to the last, shorter tile; a transfer to HBM for every result.

## Sources
Neuron SDK documentation, nki.language (`nl.shared_hbm`: results are what the kernel stores there).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "HW209")


RULE = Rule("HW209", "result-not-written", "hardware", "error", "wrong", check)
