"""# NUM306: outside-valid-range

## What
An activation function is applied to numbers that are all outside the range that its table is for,
as constants and the functions before it show.

## Why
The Scalar engine evaluates functions by polynomials in pieces.  Outside the valid range it goes on
with the last piece: `sin(9)` is 27.65.  CUDA's functions take every number.

## Example
```python
nisa.activation(dst=t, op=nl.relu, data=x)
nisa.activation(dst=t, op=nl.sin, data=t, scale=1.0, bias=shift)    # shift holds 4.0
```

## Use instead
The argument brought into the range first; `nl.sin` does so.

## Sources
Neuron SDK 2.32 documentation, nki/api/nki.api.shared.rst ("Valid Input Range").
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "NUM306")


RULE = Rule("NUM306", "outside-valid-range", "numerics", "warning", "inaccurate", check)
