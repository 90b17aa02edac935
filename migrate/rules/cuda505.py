"""# CUDA505: reference-shared-race

## What
A thread of the CUDA kernel reads an element of shared memory that a thread of another warp writes,
and no barrier orders the two.

## Why
Which of them comes first is not defined.  Runs here keep the threads in step, so that the values
look right; on the device they are right by luck.  Only what is certain is told: threads of one
warp, elements that several warps write alike, and kernels that wait by fences or atomics are left
out.

## Example
```cuda
tile[threadIdx.x] = x[i];
y[i] = tile[blockDim.x - 1 - threadIdx.x];      // `__syncthreads()` is missing before
```

## Use instead
`__syncthreads()` between the write and the read; in a loop also between the last read and the next
write.

## Sources
CUDA C++ Programming Guide, shared memory and synchronization functions; compute-sanitizer racecheck
(hazards between accesses without a barrier between).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import at
from migrate.rules.rule import REFERENCE, Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    for problem in evidence.problems:
        if problem.code == f"{REFERENCE}shared-race":
            yield Draft(
                message=(
                    f"threads of the CUDA kernel itself race on shared memory, in a run at"
                    f" {at(problem.sizes.items())}: {problem.message}"
                ),
                side="cuda",
                span=problem.span,
            )


RULE = Rule("CUDA505", "reference-shared-race", "cuda", "warning", "wrong", check)
