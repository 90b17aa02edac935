"""# API405: never-read

## What
A parameter that the kernel never reads, or a number that is computed and never used.

## Why
In a migration it is most often something that was meant to matter: an epsilon, a scale, the size
of the last tile.  Nothing warns when it is forgotten.

## Example
```python
tail = min(128, rows - start)                  # computed, but whole tiles are moved
nisa.dma_copy(dst=tile, src=x[start : start + 128, :])
```

## Use instead
Use the value where it belongs, or remove it.  A parameter that callers must pass and the kernel
does not need can begin with an underscore.

## Sources
Of 633 device functions in public NKI code, 53 have a parameter that nothing reads; several are
faults that their authors fixed later.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "API405")


RULE = Rule("API405", "never-read", "api", "warning", "style", check)
