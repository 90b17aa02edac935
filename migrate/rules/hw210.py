"""# HW210: sum-on-other-values

## What
A matrix product with `accumulate=True` adds to a PSUM tile that `memset`, `tensor_copy` or another
engine filled.

## Why
On trn1 and trn2 the tensor engine adds only to sums that it began itself: the result of adding to
anything else is undefined, although the simulator adds.  On trn3 it is defined, and the rule is
silent.

## Example
```python
nisa.memset(dst=p, value=0.0)
for k in range(4):
    nisa.nc_matmul(dst=p, stationary=a[k], moving=b[k], accumulate=True)
```

## Use instead
```python
for k in range(4):
    nisa.nc_matmul(dst=p, stationary=a[k], moving=b[k], accumulate=k > 0)
```
A bias is added when the sum leaves PSUM.

## Sources
Neuron SDK 2.32 documentation, nki/api/nki/isa/__init__.py (`nc_matmul`, `accumulate`).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "HW210")


RULE = Rule("HW210", "sum-on-other-values", "hardware", "warning", "inaccurate", check)
