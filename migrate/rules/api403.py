"""# API403: unknown-name

## What
The NKI kernel uses a name of `nki.isa`, `nki.language` or `nki.collectives` that no version of NKI
has.  Under an `if` that the kernel may never enter, this is a warning.

## Why
The compiler looks names up in its own modules and stops at one that is not there.  Models make up
names that other libraries have.

## Example
`nl.softplus6(x)`, or `nl.flaot32` for `nl.float32`.

## Use instead
A name that exists: the message has those that look like it, `migrate explain` lists all.

## Sources
Neuron SDK documentation, the API reference of every release from 2.20 to 2.32, and search excerpts
of 2.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.places import related
from migrate.rules.rule import MAYBE, Draft, Evidence, Rule

UNKNOWN_NAME = "version:unknown"
"""Code of a name that no version of NKI has."""


def check(evidence: Evidence) -> Iterator[Draft]:
    for problem in evidence.problems:
        if problem.side != "nki" or not problem.code.startswith(UNKNOWN_NAME):
            continue
        maybe = problem.code.endswith(MAYBE)
        yield Draft(
            message=problem.message,
            side="nki",
            span=problem.span,
            related=related("nki", problem.related),
            severity="warning" if maybe else None,
            effect="style" if maybe else None,
        )


RULE = Rule("API403", "unknown-name", "api", "error", "rejects", check)
