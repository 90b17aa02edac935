"""# MAP102: elements-written-beyond

## What
The NKI kernel writes elements that the CUDA kernel leaves as they are.

## Why
A guard that the CUDA kernel has and the NKI kernel lacks turns "leave it" into "overwrite
it": the caller loses what was there.

## Example
CUDA writes `out[i]` only where `i % 2 == 0`; the NKI kernel stores whole tiles.

## Use instead
A strided slice of the destination, or a select against the old content that is loaded first.

## Sources
CUDA C++ Programming Guide, thread hierarchy (guards); Neuron SDK documentation, language
guide (slices with a step).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import at, described, related, witness_in
from migrate.rules.rule import Draft, Evidence, Rule
from migrate.rules.walk import mismatches


def check(evidence: Evidence) -> Iterator[Draft]:
    for reading, relation, mismatch in mismatches(evidence, "extra-write"):
        if mismatch.nki_op is None:
            continue
        total = next(t.size for t in reading.binding.outputs if t.name == mismatch.output)
        yield Draft(
            message=(
                f"{described(mismatch, total)} of {mismatch.output} are written here,"
                f" which the CUDA kernel leaves as they are, at {at(relation.sizes.items())}"
            ),
            side="nki",
            span=mismatch.nki_op.span,
            related=related("nki", getattr(mismatch.nki_op, "sources", ())),
            witness=witness_in(relation, mismatch),
        )


RULE = Rule(
    "MAP102",
    "elements-written-beyond",
    "mapping",
    "error",
    "wrong",
    check,
    about=("mask", "output-store", "tile-axis"),
)
