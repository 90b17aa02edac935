"""# HW207: refused-format

## What
Operands or a result in a format that the instruction does not take: integers in a matrix product,
float32 beside 16 bits, a sum in PSUM that is not float32, a transpose into another format, a scale
or an operand of arithmetic with a scalar that is not float32.

## Why
The kernel does not compile.  CUDA converts operands to a common type and accumulates in the type of
a variable; here each instruction states what it takes.

## Example
```python
p = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.psum)
nisa.nc_matmul(dst=p, stationary=a, moving=b)          # sums are float32 on Trainium 2
```

## Use instead
The formats that `migrate explain nisa.<instruction>` lists; cast in a copy before or after.

## Sources
Neuron SDK documentation, nki.isa (formats of each instruction's operands).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "HW207")


RULE = Rule("HW207", "refused-format", "hardware", "error", "rejects", check)
