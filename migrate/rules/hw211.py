"""# HW211: operands-start-apart

## What
An instruction combines two tiles in SBUF that begin at different partitions, such as the two halves
of one tile.

## Why
A lane of the elementwise engines reads both operands from its own partition.  The documentation
does not say so in one sentence; the vendor's own library copies the second half of a tile to the
partitions of the first for this reason, so that this is a warning.

## Example
```python
nisa.tensor_tensor(dst=o, data1=t[0:64, :], data2=t[64:128, :], op=nl.add)
```

## Use instead
```python
nisa.tensor_copy(dst=half, src=t[64:128, :])
nisa.tensor_tensor(dst=o, data1=t[0:64, :], data2=half, op=nl.add)
```

## Sources
github.com/aws-neuron/nki-library, `core/embeddings/rope.py`; Neuron SDK 2.32 documentation,
nki/guides/architecture/trainium_inferentia2_arch.rst (start partitions).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "HW211")


RULE = Rule("HW211", "operands-start-apart", "hardware", "warning", "style", check)
