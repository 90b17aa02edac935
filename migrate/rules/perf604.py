"""# PERF604: short-moving-operand

## What
Many products in a row move few columns through a stationary operand that stays the same, while the
tensor has more columns.

## Why
Loading the stationary operand costs about as much as moving 128 columns through it.  512 columns
pay for it once.

## Example
```python
for n in range(cols // 64):
    nisa.nc_matmul(dst=p[:, n * 64 : n * 64 + 64], stationary=a, moving=b[:, n * 64 : n * 64 + 64])
```

## Use instead
Move up to 512 columns in one `nc_matmul` (`nl.tile_size.gemm_moving_fmax`).

## Sources
Neuron SDK documentation, nki/api/nki.language.tile_size.rst and
nki/deep-dives/nki_perf_guide.rst.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "PERF604")


RULE = Rule("PERF604", "short-moving-operand", "performance", "warning", "slow", check)
