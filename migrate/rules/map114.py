"""# MAP114: remainder-not-covered

## What
A loop goes over whole tiles of an axis (`rows // 128`), and nothing in the kernel covers, forbids
or asks for the remainder.

## Why
CUDA launches round the grid up and guard with `if (i < n)`: every size works.  A loop that rounds
down leaves out the last elements of every size that is no multiple of the tile, and tests at
multiples do not see it.  Where two kernels are compared at sizes that show it, the finding is about
the elements that are left out; this one is about the sizes that nobody tried.

## Example
```python
rows, cols = x.shape
for k in range(rows // 128):
    nisa.dma_copy(dst=t, src=x[k * 128 : k * 128 + 128, :])
```

## Use instead
```python
assert rows % 128 == 0
```
where only multiples are meant (a docstring may say so, too: `rows is a multiple of 128`), or a loop
that goes up to the shorter last tile:
```python
for start in range(0, rows, 128):
    count = min(128, rows - start)
```

## Sources
Of 299 kernels with loops in public NKI code, 124 have neither an assertion nor a mask nor a
minimum.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import CLAIMS, told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    # What a size that was tried shows is told by the elements that are left out.
    shown = CLAIMS["HW209"]
    if any(relation.status == "refuted" for relation in evidence.relations):
        return
    if any(problem.code in shown for problem in evidence.problems):
        return
    yield from told(evidence, "MAP114")


RULE = Rule("MAP114", "remainder-not-covered", "mapping", "warning", "style", check)
