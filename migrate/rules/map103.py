"""# MAP103: wrong-operator

## What
The NKI instruction applies another operator than the CUDA expression.

## Why
`op=nl.subtract` for `+`, a `maximum` for a `minimum`, operands in the other order of an operator
that does not commute: the kernel computes another function.

## Example
```python
nisa.tensor_tensor(dst=t, data1=x, data2=y, op=nl.subtract)   # CUDA: x[i] + y[i]
```

## Use instead
The operator of the CUDA expression, or one that is equal over the reals (`multiply` with the
reciprocal for a division, `activation` with scale and bias for a product and a sum).

## Sources
Neuron SDK documentation, nki.isa (tensor_tensor, tensor_scalar, activation) and nki.api.shared
(operators).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import witness_in
from migrate.rules.rule import Draft, Evidence, Rule
from migrate.rules.walk import parted


def check(evidence: Evidence) -> Iterator[Draft]:
    for part in parted(evidence, "operator", "sign"):
        yield Draft(
            message=(
                f"computes {part.nki_text} where the CUDA kernel computes {part.cuda_text},"
                f" for {part.where}"
            ),
            side="nki",
            span=part.span,
            related=part.related,
            witness=witness_in(part.relation, part.mismatch),
        )


RULE = Rule(
    "MAP103",
    "wrong-operator",
    "mapping",
    "error",
    "wrong",
    check,
    about=("elementwise", "reduction", "contraction", "special-function"),
)
