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

from migrate.rules.rule import Draft, Evidence, Rule
from migrate.rules.version_problems import drafts

UNKNOWN_NAME = "version:unknown"
"""Code of a name that no version of NKI has."""


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from drafts(evidence, UNKNOWN_NAME)


RULE = Rule("API403", "unknown-name", "api", "error", "rejects", check)
