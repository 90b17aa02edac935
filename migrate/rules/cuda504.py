"""# CUDA504: reference-divergent-barrier

## What
A barrier of the CUDA kernel is reached by a part of a block's threads only, while others are still
running.

## Why
What happens then is not defined: the block may hang, or the threads meet at another barrier.  Runs
here go on, so that their result is one of several.  Threads that have left the kernel are not
waited for, and do not count.

## Example
```cuda
if (threadIdx.x < 32) {
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();                     // the other threads never come
}
```

## Use instead
The barrier outside of the branch, or a condition that all threads of the block agree on.

## Sources
CUDA C++ Programming Guide, synchronization functions (`__syncthreads()` in conditional code only if
the conditional evaluates identically across the entire thread block).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import at
from migrate.rules.rule import REFERENCE, Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    for problem in evidence.problems:
        if problem.code == f"{REFERENCE}divergent-barrier":
            yield Draft(
                message=(
                    f"threads of the CUDA kernel itself part before a barrier, in a run at"
                    f" {at(problem.sizes.items())}: {problem.message}"
                ),
                side="cuda",
                span=problem.span,
            )


RULE = Rule("CUDA504", "reference-divergent-barrier", "cuda", "warning", "wrong", check)
