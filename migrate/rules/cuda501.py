"""# CUDA501: reference-out-of-bounds

## What
The CUDA kernel itself touches elements outside a tensor, at the sizes of the case.

## Why
What it reads there, or overwrites, is not defined: no migration can be right or wrong about it.
Elements that hang on such a read are left out of the comparison, and a run ends at the access.

## Example
```cuda
int i = blockIdx.x * blockDim.x + threadIdx.x;
out[i] = x[i];                      // the last block passes n: `if (i < n)` is missing
```

## Use instead
A guard, or a case with the sizes and shapes that the kernel is made for.

## Sources
CUDA C++ Programming Guide, thread hierarchy (grids are rounded up) and compute-sanitizer memcheck
(what counts as out of bounds).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.ir.evaluate import Trouble
from migrate.rules.places import at, related
from migrate.rules.rule import REFERENCE, Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    told: set[int] = set()
    for relation in evidence.relations:
        lines: dict[int, list[Trouble]] = {}
        for trouble in relation.cuda_trouble:
            if trouble.kind == "out-of-range":
                lines.setdefault(trouble.span.start_line, []).append(trouble)
        for line, found in lines.items():
            # Accesses of one line, with the same index, are one mistake.
            told.add(line)
            first = found[0]
            cell, size = first.example
            names = ", ".join(dict.fromkeys(trouble.buffer for trouble in found))
            noun = "access" if first.count == 1 else "accesses"
            yield Draft(
                message=(
                    f"the CUDA kernel itself makes {first.count:,} {noun} outside {names}"
                    f" (element {cell:,} of {size:,} is one) at {at(relation.sizes.items())}"
                ),
                side="cuda",
                span=first.span,
                related=related("cuda", (trouble.span for trouble in found[1:])),
            )
    for problem in evidence.problems:
        if problem.code == f"{REFERENCE}out-of-bounds" and problem.span.start_line not in told:
            yield Draft(
                message=(
                    f"the CUDA kernel itself stops in a run at {at(problem.sizes.items())}:"
                    f" {problem.message}"
                ),
                side="cuda",
                span=problem.span,
            )


RULE = Rule("CUDA501", "reference-out-of-bounds", "cuda", "warning", "wrong", check)
