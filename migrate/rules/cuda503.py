"""# CUDA503: reference-reads-unwritten

## What
What the CUDA kernel stores depends on memory that nobody wrote: a variable or shared array without
a value, or the initial content of an output.

## Why
Such memory holds anything.  Elements that hang on it are left out of the comparison.

## Example
```cuda
float sum;                           // no initial value
for (int i = 0; i < n; ++i) sum += x[i];
```

## Use instead
An initial value.  Where an output is updated in place, the role `inout` in the case says that it
has content.

## Sources
CUDA C++ Programming Guide, device memory (variables without initialiser); the language rule of C++
on indeterminate values.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import at
from migrate.rules.rule import REFERENCE, Draft, Evidence, Reading, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    told = False
    for reading in evidence.readings:
        relation = reading.relation
        if relation is None or any(t.kind == "out-of-range" for t in relation.cuda_trouble):
            continue  # what lies outside a tensor is unwritten too, and told by CUDA501
        hint = _hint(reading)
        for trouble in relation.cuda_trouble:
            if trouble.kind == "unwritten-read":
                told = True
                noun = "element" if trouble.count == 1 else "elements"
                yield Draft(
                    message=(
                        f"the CUDA kernel itself computes {trouble.count:,} {noun} of"
                        f" {trouble.buffer} from memory that nobody wrote"
                        f" (element {trouble.example[0]:,} is one) at"
                        f" {at(relation.sizes.items())}{hint}"
                    ),
                    side="cuda",
                    span=trouble.span,
                )

    if not told:
        yield from _run(evidence)


def _run(evidence: Evidence) -> Iterator[Draft]:
    """What a run shows where reading does not."""
    for problem in evidence.problems:
        if problem.code == f"{REFERENCE}uninitialised":
            yield Draft(
                message=(
                    f"the CUDA kernel itself reads memory that nobody wrote, in a run at"
                    f" {at(problem.sizes.items())}: {problem.message}"
                ),
                side="cuda",
                span=problem.span,
            )


def _hint(reading: Reading) -> str:
    """What to state if an output that is read has content."""
    buffers = reading.cuda.buffers if reading.cuda is not None else ()
    read = {buffer.name for buffer in buffers if buffer.role == "inout"}
    empty = [t.name for t in reading.binding.tensors if t.role == "out" and t.cuda in read]
    return f"; if {empty[0]} has content before, its role is inout" if empty else ""


RULE = Rule("CUDA503", "reference-reads-unwritten", "cuda", "warning", "wrong", check)
