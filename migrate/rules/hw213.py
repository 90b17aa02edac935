"""# HW213: steps-off-partitions

## What
An access pattern on a tile whose first step is not the number of elements of a partition, nor a
multiple of it.

## Why
The first axis of a tile is the partitions.  They are addressed by number, not by bytes: the only
way from one to the next is the size of a partition.

## Example
```python
t = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_copy(dst=u, src=t.ap([[1, 128], [1, 512]]))
```

## Use instead
`t.ap([[512, 128], [1, 512]])`.

## Sources
Neuron SDK 2.32 documentation, nki/deep-dives/nki-aps.rst; KevGomes1403/nki-moe-megakernel,
common-pitfalls.md (NCC_IBIR158).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "HW213")


RULE = Rule("HW213", "steps-off-partitions", "hardware", "error", "rejects", check)
