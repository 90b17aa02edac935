"""# MAP106: wrong-constant

## What
A constant of the CUDA expression has another value on the NKI side.

## Why
An epsilon, a scale or a clamp limit that is typed again is typed wrong easily, and changes every
result a little or a few results much.

## Example
```python
nisa.tensor_scalar(dst=t, data=x, op0=nl.multiply, operand0=0.5)   # CUDA: x[i] * 0.25f
```

## Use instead
The same number (constants are compared as float32 holds them).

## Sources
CUDA C++ Programming Guide, floating-point literals; Neuron SDK documentation, nki.isa (immediate
operands are float32).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import witness_in
from migrate.rules.rule import Draft, Evidence, Rule
from migrate.rules.walk import parted


def check(evidence: Evidence) -> Iterator[Draft]:
    for part in parted(evidence, "constant"):
        yield Draft(
            message=(
                f"uses the constant {part.nki_text} where the CUDA kernel uses {part.cuda_text},"
                f" for {part.where}"
            ),
            side="nki",
            span=part.span,
            related=part.related,
            witness=witness_in(part.relation, part.mismatch),
        )


RULE = Rule(
    "MAP106",
    "wrong-constant",
    "mapping",
    "error",
    "wrong",
    check,
    about=("constant", "initial-value", "elementwise"),
)
