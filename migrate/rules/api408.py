"""# API408: traced-once

## What
In a loop over `nl.affine_range` or `nl.sequential_range` of an NKI 0.1 kernel, an `if` on the
index.

## Why
NKI 0.1 traces the body of such a loop once, and what the test gives is undefined.  Kernels are read
here with every iteration in order, as later versions do.

## Example
```python
for i in nl.affine_range(8):
    if i == 0:
        ...
```

## Use instead
`nl.static_range`, a mask, or arithmetic on the index.

## Sources
Neuron SDK 2.32 documentation, nki/migration/index.rst.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "API408")


RULE = Rule("API408", "traced-once", "api", "warning", "style", check)
