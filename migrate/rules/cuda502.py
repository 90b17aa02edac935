"""# CUDA502: reference-conflicting-writes

## What
Threads of the CUDA kernel write different numbers to one element in one statement, without an
atomic.

## Why
Which of them stays is not defined, so that there is nothing a migration could be held against.
Elements written so are left out of the comparison, and runs are not judged.

## Example
```cuda
out[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];    // every block writes out[0..255]
```

## Use instead
An element for each thread, an atomic, or a case with the launch that the kernel is made for.

## Sources
CUDA C++ Programming Guide, SIMT architecture (non-atomic writes to one location: which thread's is
final is undefined).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import at
from migrate.rules.rule import REFERENCE, Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    told: set[tuple[int, int]] = set()
    for relation in evidence.relations:
        for trouble in relation.cuda_trouble:
            if trouble.kind == "conflict":
                told.add((trouble.span.start_line, trouble.span.start_column))
                noun = "write" if trouble.count == 1 else "writes"
                yield Draft(
                    message=(
                        f"threads of the CUDA kernel itself race: {trouble.count:,} {noun} to"
                        f" {trouble.buffer} differ from another to the same element"
                        f" (element {trouble.example[0]:,} is one) at {at(relation.sizes.items())}"
                    ),
                    side="cuda",
                    span=trouble.span,
                )
    for problem in evidence.problems:
        place = (problem.span.start_line, problem.span.start_column)
        if problem.code == f"{REFERENCE}conflicting-stores" and place not in told:
            yield Draft(
                message=(
                    f"threads of the CUDA kernel itself race in a run at"
                    f" {at(problem.sizes.items())}: {problem.message}"
                ),
                side="cuda",
                span=problem.span,
            )


RULE = Rule("CUDA502", "reference-conflicting-writes", "cuda", "warning", "wrong", check)
