"""# MAP108: conflicting-writes

## What
One instruction, or all threads of one statement, write different numbers to one element.

## Why
Which of them stays is not defined: the result depends on the order in which the hardware happens
to write.

## Example
A destination slice that does not use the axis the source varies over.

## Use instead
A destination that is as large as the source, or a reduction before the store.

## Sources
CUDA C++ Programming Guide, memory consistency (concurrent writes without atomics); Neuron SDK
documentation, nki.isa.dma_copy.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import at
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    for relation in evidence.relations:
        for trouble in relation.nki_trouble:
            if trouble.kind == "conflict":
                yield Draft(
                    message=(
                        f"{trouble.count:,} writes to {trouble.buffer} differ from another to the"
                        f" same element at {at(relation.sizes.items())}"
                    ),
                    side="nki",
                    span=trouble.span,
                )


RULE = Rule(
    "MAP108",
    "conflicting-writes",
    "mapping",
    "error",
    "wrong",
    check,
    about=("output-store", "scatter"),
)
