"""# PERF608: written-out-loop

## What
A loop of Python is written out as tens of thousands of instructions.

## Why
`range` and `nl.static_range` are unrolled: compile time and the size of the program grow with every
iteration.  The longest public kernel that is known to compile has some 266,000 instructions.

## Example
```python
for row in range(100_000):
    ...
```

## Use instead
Larger tiles; a loop that the hardware runs (`nl.dynamic_range`, `nl.fori_loop`), where the version
has it.

## Sources
Counts of instructions of public kernels; Neuron SDK documentation, nki.language (loop
iterators).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "PERF608")


RULE = Rule("PERF608", "written-out-loop", "performance", "note", "slow", check)
