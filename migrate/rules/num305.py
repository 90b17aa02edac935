"""# NUM305: default-differs

## What
A parameter of the NKI kernel has a default that is not what the CUDA kernel's launch passes.

## Why
Both kernels were compared with the value of the launch.  A caller that leaves the argument out,
as the CUDA launcher's callers do, gets other numbers: an epsilon of 1e-3 in place of 1e-5 passes
most tolerances and changes what a model learns.

## Example
```python
def layer_norm(x, gamma, beta, eps=1e-3):     # layer_norm<<<rows, 256>>>(..., 1e-5f)
```

## Use instead
The value of the launch as the default, or no default.

## Sources
The two files: the literal in the launch and the literal in the signature.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.results import Related
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    for problem in evidence.problems:
        if problem.code == "default-differs":
            yield Draft(
                message=problem.message,
                side=problem.side,
                span=problem.span,
                related=tuple(Related(side="cuda", span=span) for span in problem.related),
            )


RULE = Rule("NUM305", "default-differs", "numerics", "warning", "inaccurate", check)
