"""# API407: operator-on-tensor

## What
An operator of Python is applied to a tensor in a kernel of NKI 0.2 or later: `a + b`, `-x`,
`x * 2.0`, `while x > 0`.

## Why
Tensors had operators in NKI 0.1 only.  The tensor class since then has no arithmetic and
no order, and the compiler stops at the operator: what a tensor holds is not known when the kernel
is traced.

## Example
```python
total = a_tile + b_tile
```

## Use instead
```python
nisa.tensor_tensor(dst=total, data1=a_tile, data2=b_tile, op=nl.add)
```

## Sources
Neuron SDK 2.26 documentation, general/nki/api/nki/isa/__init__.py; Neuron SDK 2.32 documentation,
nki/api/nki/language/__init__.py (the tensor class).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "API407")


RULE = Rule("API407", "operator-on-tensor", "api", "error", "rejects", check)
