"""# PERF603: few-partitions

## What
Instructions that take a large part of an engine's time use a quarter of the 128 partitions or
fewer, with thousands of elements on each.

## Why
An engine works on all partitions at once and on one element of each at a time: 32 partitions take
as long as 128.

## Example
```python
row = nl.ndarray((1, 16384), dtype=nl.float32, buffer=nl.sbuf)
nisa.activation(dst=row, op=nl.exp, data=row)              # 16,384 steps on one partition
```

## Use instead
Spread the elements: (128, 128) in place of (1, 16384), by the slice or `reshape` of the tensor in
HBM that is loaded.

## Sources
Neuron SDK documentation, nki/guides/architecture/trainium_inferentia2_arch.rst.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "PERF603")


RULE = Rule("PERF603", "few-partitions", "performance", "warning", "slow", check)
