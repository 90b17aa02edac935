"""# NUM302: results-differ

## What
Both kernels were run on the same inputs, and the NKI kernel's result is further from the
reference than any order of roundings in its formats explains.

## Why
The reference is the CUDA kernel with a running error bound; a result outside the bound is not a
matter of rounding.

## Example
A kernel whose last tile is right in float64 but stale in memory.

## Use instead
See the other findings of the comparison; the run names sizes, inputs and the first mismatch.

## Sources
Higham, Accuracy and Stability of Numerical Algorithms (running error bounds); the comparison's
own runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import at
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    kernel = next((r.nki for r in evidence.readings if r.nki is not None), None)
    if kernel is None or any(r.status == "refuted" for r in evidence.relations):
        return  # what differs is told by the mapping rules, at its place
    for run in evidence.runs:
        for output in run.outputs:
            # Without a first mismatch there was nothing to compare, which MAP112 and 113 tell.
            if output.status == "fail" and output.first_mismatch is not None:
                place = ", ".join(map(str, output.first_mismatch))
                error = ""
                if output.max_abs is not None and output.allowed is not None:
                    error = f"; largest error {output.max_abs:.3g}, allowed {output.allowed:.3g}"
                yield Draft(
                    message=(
                        f"{output.mismatched:,} of {output.elements:,} elements of {output.name}"
                        f" are wrong in a run at {at(run.sizes.items())} with"
                        f" {run.inputs.family} inputs ({output.name}[{place}] is the first{error})"
                    ),
                    side="nki",
                    span=kernel.span,
                )
                return


RULE = Rule("NUM302", "results-differ", "numerics", "error", "wrong", check)
