"""# PERF606: unfused-pair

## What
Two instructions follow each other that one does, and nothing else reads what is between them.

## Why
Each instruction reads and writes whole tiles and has a fixed cost.  CUDA writes an expression and
the compiler fuses it; here the instruction is the unit.

## Example
```python
nisa.tensor_scalar(dst=t, data=t, op0=nl.subtract, operand0=mean)
nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=rstd)
```

## Use instead
```python
nisa.tensor_scalar(dst=t, data=t, op0=nl.subtract, operand0=mean, op1=nl.multiply, operand1=rstd)
```

## Sources
Neuron SDK documentation, nki.isa (`tensor_scalar`, `activation`, `scalar_tensor_tensor`).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "PERF606")


RULE = Rule("PERF606", "unfused-pair", "performance", "note", "slow", check)
