"""# API406: drops-result

## What
A function of `nki.language` that only gives a result, called as a statement: `nl.add(a, b)`.

## Why
Functions of `nki.language` change none of their arguments.  What the statement was to do is not
done.

## Example
```python
nl.multiply(t, 2.0)
nl.store(out, t)
```

## Use instead
```python
t = nl.multiply(t, 2.0)
nl.store(out, t)
```

## Sources
Neuron SDK documentation, nki.language (what each function returns);
github.com/aws-neuron/aws-neuron-sdk, issue 1060.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "API406")


RULE = Rule("API406", "drops-result", "api", "warning", "wrong", check)
