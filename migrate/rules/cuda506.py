"""# CUDA506: reference-shuffle-without-lane

## What
A warp shuffle of the CUDA kernel is executed by a thread that its mask leaves out, or takes part in
a butterfly (`__shfl_xor_sync`) whose partner does not take part.

## Why
The value that such a thread gets is not defined, and in a butterfly it spreads to every thread.
Runs here give it its own value.

## Example
```cuda
if (threadIdx.x < 24) {
  sum += __shfl_xor_sync(0xffffffff, sum, 16);   // threads 24 to 31 do not take part
}
```

## Use instead
A full warp around the shuffle, with a neutral element in the threads that have nothing to add; or a
mask from `__ballot_sync` before the branch.

## Sources
CUDA C++ Programming Guide, warp shuffle functions (threads may only read from threads that take
part; the mask names every thread that executes the intrinsic).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import at
from migrate.rules.rule import REFERENCE, Draft, Evidence, Problem, Rule

_EXCLUDED = f"{REFERENCE}excluded-lane"
_ABSENT = f"{REFERENCE}inactive-shuffle-source"
_BUTTERFLY = "__shfl_xor"
"""A thread without a partner makes every result undefined; in other shuffles often nobody uses
what it gets."""


def check(evidence: Evidence) -> Iterator[Draft]:
    for problem in evidence.problems:
        if problem.code == _EXCLUDED or _without_partner(problem):
            yield Draft(
                message=(
                    f"threads of the CUDA kernel itself exchange what is not defined, in a run at"
                    f" {at(problem.sizes.items())}: {problem.message}"
                ),
                side="cuda",
                span=problem.span,
            )


def _without_partner(problem: Problem) -> bool:
    return problem.code == _ABSENT and problem.message.startswith(_BUTTERFLY)


RULE = Rule("CUDA506", "reference-shuffle-without-lane", "cuda", "warning", "wrong", check)
