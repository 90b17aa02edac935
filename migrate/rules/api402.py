"""# API402: no-version-fits

## What
The parts of the NKI kernel belong to different versions of NKI: no version has all of them.  Under
an `if` that the kernel may never enter, this is a warning.

## Why
NKI changed its calls with every release.  In 0.1 an instruction returns a tile and takes `mask=`;
since 0.2 it writes to a destination.  A kernel that mixes the two compiles with neither compiler.

## Example
`import neuronxcc.nki.isa as nisa`, the namespace of 0.1, and `nisa.tensor_copy(dst=a, src=b)`, the
call of 0.2.

## Use instead
The names and calls of one version: `migrate explain nisa.tensor_copy` shows both styles, `migrate
explain 0.3.0` what a version has.

## Sources
Neuron SDK 2.32 documentation, nki/migration/index.rst, release-notes/components/nki.rst and the API
reference of each release.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.rule import Draft, Evidence, Rule
from migrate.rules.version_problems import drafts

NO_VERSION = "version:none"
"""Code of what no version of NKI has all of."""


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from drafts(evidence, NO_VERSION)


RULE = Rule("API402", "no-version-fits", "api", "error", "rejects", check)
