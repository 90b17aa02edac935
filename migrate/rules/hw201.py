"""# HW201: refused-operands

## What
An instruction that the compiler or the hardware does not take: more than 128 partitions, tiles
of different size, an operand in the wrong memory, an operator or format that the engine lacks.

## Why
The kernel does not run.  Simulators check less than the compiler, so that such a kernel can pass
numeric tests there.

## Example
```python
t = nl.ndarray((256, 512), dtype=nl.float32, buffer=nl.sbuf)   # SBUF has 128 partitions
```

## Use instead
Tiles of at most `nl.tile_size.pmax` partitions, operands where the API reference allows them;
`migrate explain nisa.<instruction>` lists the limits.

## Sources
Neuron SDK documentation, nki.isa (each instruction's constraints) and the architecture guides of
Trainium 1, 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import related
from migrate.rules.rule import Draft, Evidence, Rule

REFUSING = "refused:"
"""Prefix of the codes of problems that the NKI front end records on instructions."""


def check(evidence: Evidence) -> Iterator[Draft]:
    for problem in evidence.problems:
        if problem.side == "nki" and problem.code.startswith(REFUSING):
            # Of the places that decided the numbers, the last is where they come from.
            causes = (*problem.related[::-1], problem.span)
            yield Draft(
                message=problem.message,
                side="nki",
                span=causes[0],
                related=related("nki", causes[1:]),
            )


RULE = Rule("HW201", "refused-operands", "hardware", "error", "rejects", check)
