"""# PERF609: transposes-again

## What
A tile is transposed that was transposed before at the same place and has not changed since.

## Why
A transpose takes the tensor engine, or DMA, as long as a product of the same size.  Weights that
every tile of rows needs are transposed once, before the loop.

## Example
```python
for r in range(64):
    nisa.nc_transpose(dst=p, data=weights)
    ...
```

## Use instead
The transpose before the loop, with its result kept in SBUF; or weights that are stored transposed.

## Sources
Neuron SDK 2.32 documentation, nki/guides/architecture/trainium_inferentia2_arch.rst (tensor engine,
transposes).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "PERF609")


RULE = Rule("PERF609", "transposes-again", "performance", "note", "slow", check)
