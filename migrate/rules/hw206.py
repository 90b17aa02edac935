"""# HW206: illegal-start-partition

## What
A tile that an instruction works on begins at a partition where the hardware cannot begin.

## Why
An engine reads up to 32 partitions from 0, 32, 64 or 96, up to 64 from 0 or 64, and more only from
0.  Offsets into CUDA's shared memory are free, so that a port of index arithmetic lands on
partitions that do not work here.

## Example
```python
nisa.tensor_copy(dst=t[0:16, :], src=u[48:64, :])      # begins at partition 48
```

## Use instead
Lay tiles out so that what is used together begins at a multiple of 32, or move the data along the
free axis instead.

## Sources
Neuron SDK documentation, nki/guides/architecture/trainium_inferentia2_arch.rst (start partitions).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "HW206")


RULE = Rule("HW206", "illegal-start-partition", "hardware", "error", "rejects", check)
