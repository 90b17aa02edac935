"""# MAP115: written-out-to-a-size

## What
A parameter of the kernel, such as the size of a window, is used in nothing but comparisons with two
or more small numbers.

## Why
`if k > 1`, `if k > 2` write out the first steps of a loop that CUDA makes of any length.  A larger
window gives the result of the largest that was written out, without an error.

## Example
```python
def maximum_in_window(x, k):
    ...
    if k > 1:
        nisa.tensor_tensor(dst=t, data1=t, data2=x1, op=nl.maximum)
    if k > 2:
        nisa.tensor_tensor(dst=t, data1=t, data2=x2, op=nl.maximum)
```

## Use instead
A loop over `range(k)`, or an assertion that says what the kernel is for.

## Sources
Kernels that were published with reference tests of one window size (ucb-bar/autocomp, max pooling).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "MAP115")


RULE = Rule("MAP115", "written-out-to-a-size", "mapping", "warning", "wrong", check)
