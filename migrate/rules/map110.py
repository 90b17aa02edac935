"""# MAP110: reduction-cut-short

## What
A sum, product, maximum or contraction combines another number of elements than in the CUDA
kernel.

## Why
The loop over the tiles of the reduced axis ends too early, or a slice of its last tile is too
short: the remainder of K is dropped, the last columns of a row are not in the sum.  Or the tile
that holds the running sum is made outside the loop over output tiles, so that the second one goes
on where the first ended.

## Example
```python
for k in nl.affine_range(K // 128):                   # the last K % 128 products are missing
    nisa.nc_matmul(dst=acc, stationary=a[k], moving=b[k])
```

## Use instead
```python
for k in nl.affine_range((K + 127) // 128):           # with min() bounds for the last tile
```

## Sources
Neuron SDK documentation, nki.isa.nc_matmul (accumulation over calls) and nki/migration (`min()`
bounds in place of masks).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.ir.forms import Combine, Form
from migrate.rules.places import accumulator, behind, related, witness_in
from migrate.rules.rule import Draft, Evidence, Rule
from migrate.rules.walk import parted


def check(evidence: Evidence) -> Iterator[Draft]:
    for part in parted(evidence, "extent"):
        kernel = part.reading.nki
        suspects = behind(kernel, part.span) if kernel is not None else ()
        span, others = part.span, part.related
        if kernel is not None and _combined(part.difference.nki) > _combined(part.difference.cuda):
            # The same instruction goes on where it should have started anew: what holds the
            # running result was not made, or not reset, in time.
            held = accumulator(kernel, part.span)
            if held is not None:
                span, others = held, (*related("nki", [part.span]), *others)
        yield Draft(
            message=(
                f"computes {part.nki_text} where the CUDA kernel computes {part.cuda_text},"
                f" for {part.where}"
            ),
            side="nki",
            span=span,
            related=others,
            witness=witness_in(part.relation, part.mismatch),
            suspects=suspects,
        )


def _combined(form: Form) -> int:
    """How many operands a combination has."""
    return sum(part.count for part in form.parts) if isinstance(form, Combine) else 1


RULE = Rule(
    "MAP110",
    "reduction-cut-short",
    "mapping",
    "error",
    "wrong",
    check,
    about=("reduction", "contraction", "scan"),
)
