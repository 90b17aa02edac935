"""# HW202: access-out-of-bounds

## What
An instruction touches elements outside the tensor.

## Why
NKI does not clip slices: `x[i * 512 : (i + 1) * 512]` past the end of x reads or writes what lies
behind it, or is refused.  In CUDA the guard `if (i < n)` prevented it.

## Example
```python
for i in nl.affine_range((n + 511) // 512):
    nisa.dma_copy(dst=t, src=x[i * 512 : (i + 1) * 512])   # the last slice passes the end
```

## Use instead
`end = min((i + 1) * 512, n)`, and a destination of the same length.

## Sources
Neuron SDK documentation, language guide (slices past the end are not masked) and nki/migration
(`min()` bounds).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import at, related
from migrate.rules.rule import Draft, Evidence, Rule

OUT_OF_BOUNDS = "out-of-bounds"
"""Code of the NKI front end's problems about indices outside a tensor."""


def check(evidence: Evidence) -> Iterator[Draft]:
    told: set[int] = set()
    for problem in evidence.problems:
        if problem.side == "nki" and problem.code == OUT_OF_BOUNDS:
            told.add(problem.span.start_line)
            yield Draft(
                message=f"{problem.message} at {at(problem.sizes.items())}",
                side="nki",
                span=problem.span,
                related=related("nki", problem.related),
            )
    for relation in evidence.relations:
        for trouble in relation.nki_trouble:
            if trouble.kind == "out-of-range" and trouble.span.start_line not in told:
                cell, size = trouble.example
                yield Draft(
                    message=(
                        f"{trouble.count:,} elements outside {trouble.buffer} are touched (the"
                        f" first is {cell:,} of {size:,}) at {at(relation.sizes.items())}"
                    ),
                    side="nki",
                    span=trouble.span,
                )


RULE = Rule(
    "HW202",
    "access-out-of-bounds",
    "hardware",
    "error",
    "wrong",
    check,
    about=("stage-in", "output-store", "gather"),
)
