"""# API401: kernel-stops

## What
Specialising the NKI kernel ends in an error: an assertion that fails for the sizes of the case, a
call with wrong arguments, Python that the compiler does not take.

## Why
The compiler specialises the kernel for the shapes it is called with.  What fails there fails for
every user with such shapes.

## Example
`assert n % 512 == 0` in a kernel whose CUDA original takes any n.

## Use instead
Handle the sizes that the CUDA kernel accepts.

## Sources
Neuron SDK documentation, nki/deep-dives (compiler) and the language guide.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import at, related
from migrate.rules.rule import Draft, Evidence, Rule

STOPS = "stops:"
"""Prefix of the codes of what ends the specialisation of an NKI kernel."""


def check(evidence: Evidence) -> Iterator[Draft]:
    for problem in evidence.problems:
        if problem.side == "nki" and problem.code.startswith(STOPS):
            yield Draft(
                message=f"{problem.message}, at {at(problem.sizes.items())}",
                side="nki",
                span=problem.span,
                related=related("nki", problem.related),
            )


RULE = Rule("API401", "kernel-stops", "api", "error", "rejects", check)
