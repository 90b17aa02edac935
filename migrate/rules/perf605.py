"""# PERF605: wide-matmul

## What
A large matrix product has float32 operands.

## Why
The tensor engine takes float32 in several passes: its peak for bfloat16 is four times as high on
Trainium 2.  This is no fault where the CUDA kernel computes in float32 too and its digits are
needed; it is one where the operands came from 16 bits.

## Example
```python
nisa.nc_matmul(dst=p, stationary=a_float32, moving=b_float32)
```

## Use instead
bfloat16 operands with float32 accumulation, where the numbers allow it.

## Sources
Neuron SDK documentation, nki/guides/architecture/trainium2_arch.rst (peaks by dtype).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "PERF605")


RULE = Rule("PERF605", "wide-matmul", "performance", "note", "slow", check)
