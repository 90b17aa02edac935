"""# MAP104: wrong-operand

## What
An operand is another tensor than in the CUDA expression, or one operand more or less.

## Why
Tiles look alike: `data2=x_tile` for `data2=y_tile` is taken by the compiler and fails no shape
check.

## Example
```python
nisa.tensor_tensor(dst=t, data1=x_tile, data2=x_tile, op=nl.add)   # CUDA: x[i] + y[i]
```

## Use instead
The tile that holds the operand of the CUDA expression.

## Sources
Neuron SDK documentation, nki.isa (operands of tensor_tensor and tensor_scalar).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import witness_in
from migrate.rules.rule import Draft, Evidence, Rule
from migrate.rules.walk import parted


def check(evidence: Evidence) -> Iterator[Draft]:
    for part in parted(evidence, "tensor", "operand"):
        yield Draft(
            message=(
                f"uses {part.nki_text} where the CUDA kernel uses {part.cuda_text},"
                f" for {part.where}"
            ),
            side="nki",
            span=part.span,
            related=part.related,
            witness=witness_in(part.relation, part.mismatch),
        )


RULE = Rule(
    "MAP104",
    "wrong-operand",
    "mapping",
    "error",
    "wrong",
    check,
    about=("elementwise", "reduction", "contraction", "stage-in", "gather"),
)
