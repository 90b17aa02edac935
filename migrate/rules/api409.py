"""# API409: tile-out-of-scope

## What
A tile that a loop or a branch of an NKI 0.1 kernel makes is used after it.

## Why
NKI 0.1 refused a local outside of the `for` or `if` that it was assigned in.  Later versions take
it.

## Example
```python
for i in nl.affine_range(4):
    t = nl.load(x[i])
nl.store(out, t)
```

## Use instead
A tile that is made before the loop and written in it.

## Sources
Neuron SDK 2.26 documentation, general/nki/api/nki.errors.rst.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "API409")


RULE = Rule("API409", "tile-out-of-scope", "api", "warning", "style", check)
