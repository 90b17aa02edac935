"""# HW212: meets-some-cores

## What
A barrier, an exchange between cores or a loop that the device counts stands under a condition on
`nl.program_id`, so that only some of the cores come to it.

## Why
The two cores of a logical core must come to the same barriers, exchanges and dynamic loops.  One
that waits for another that never comes hangs; nothing checks it.

## Example
```python
if nl.program_id(0) == 0:
    nisa.core_barrier(data=out, cores=(0, 1))
```

## Use instead
The barrier after the branch, for both cores.

## Sources
Neuron SDK 2.32 documentation, nki/get-started/about/lnc.rst and release-notes/components/nki.rst
(known issues: divergent control flow).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "HW212")


RULE = Rule("HW212", "meets-some-cores", "hardware", "warning", "wrong", check)
