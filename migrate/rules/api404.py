"""# API404: not-in-version

## What
The case (`version`) or `--nki-version` says which version of NKI the kernel is for, and that
version does not have a name, a parameter or a construct that the kernel uses.  Under an `if` that
the kernel may never enter, this is a warning.

## Why
The kernel is compiled with that version, and its compiler refuses what it does not have.

## Example
`nl.load` for 0.2.0, which left it out; `accumulate=` of `nisa.nc_matmul` for 0.2.0; an output in
`nl.hbm` for 0.3.0.

## Use instead
What the version has: `migrate explain 0.3.0`, `migrate explain nl.load`.  Or state the version
that is meant.

## Sources
Neuron SDK 2.32 documentation, nki/migration/index.rst, release-notes/components/nki.rst and the API
reference of each release.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.rule import Draft, Evidence, Rule
from migrate.rules.version_problems import drafts

NOT_IN_VERSION = "version:absent"
"""Code of what the version that a kernel is for does not have."""


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from drafts(evidence, NOT_IN_VERSION)


RULE = Rule("API404", "not-in-version", "api", "error", "rejects", check)
