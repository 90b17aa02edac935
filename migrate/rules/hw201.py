"""# HW201: refused-operands

## What
An instruction that the compiler or the hardware does not take: tiles of different size, an axis
it cannot reduce, an operator or format that the engine lacks.  (HW203 is about tiles that are too
large, HW204 about memories.)

## Why
The kernel does not run.  Simulators check less than the compiler, so that such a kernel can pass
numeric tests there.

## Example
```python
nisa.tensor_reduce(dst=m, op=nl.maximum, data=x, axis=0)       # axis 0 is the partitions
```

## Use instead
What the API reference allows; `migrate explain nisa.<instruction>` lists the limits.

## Sources
Neuron SDK documentation, nki.isa (each instruction's constraints) and the architecture guides of
Trainium 1, 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import CLAIMED, REFUSING
from migrate.rules.places import related
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    for problem in evidence.problems:
        if problem.side != "nki" or not problem.code.startswith(REFUSING):
            continue
        if problem.code.removeprefix(REFUSING) not in CLAIMED:
            yield Draft(
                message=problem.message,
                side="nki",
                span=problem.span,
                related=related("nki", problem.related),
            )


RULE = Rule("HW201", "refused-operands", "hardware", "error", "rejects", check)
