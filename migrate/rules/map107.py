"""# MAP107: other-expression

## What
The two kernels compute expressions of different form for the same elements, and give different
numbers.

## Why
A term is missing, added, or built otherwise; no smaller difference explains it.  The witness of
the finding shows inputs and both results.

## Example
CUDA computes `a * x[i] + y[i]`, the NKI kernel `a * x[i]`.

## Use instead
The expression of the CUDA kernel, in any form that is equal over the reals.

## Sources
The comparison itself: both kernels are evaluated in float64 on the same inputs.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import witness_in
from migrate.rules.rule import Draft, Evidence, Rule
from migrate.rules.walk import parted


def check(evidence: Evidence) -> Iterator[Draft]:
    for part in parted(evidence, "expression"):
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
    "MAP107",
    "other-expression",
    "mapping",
    "error",
    "wrong",
    check,
    about=("elementwise", "reduction", "contraction", "special-function", "constant"),
)
