"""# HW205: more-live-than-fits

## What
The tensors that are in use at one moment need more bytes a partition than SBUF or PSUM has.

## Why
A partition of SBUF has 192 KiB on Trainium 1, 224 KiB on Trainium 2 and 256 KiB on Trainium 3;
PSUM has 16 KiB in 8 banks.  A kernel that places its tensors itself cannot be placed; one that
leaves it to the compiler gets spills: the compiler moves tensors to HBM and back, which costs
more than most kernels take.  CUDA code keeps what it needs in registers and caches, so that its
tile sizes say nothing about what fits here.

## Example
```python
rows = [nl.ndarray((128, 16384), dtype=nl.float32, buffer=nl.sbuf) for _ in range(4)]
```

## Use instead
Smaller tiles along the free axis, a narrower dtype, or tensors allocated inside the loop that
uses them, so that fewer are in use at once.

## Sources
Neuron SDK documentation, architecture guides of Trainium 1, 2 and 3 (sizes), and
nki/get-started/about/memory-hierarchy-overview.rst (spills).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.codes import told
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    yield from told(evidence, "HW205")


RULE = Rule("HW205", "more-live-than-fits", "hardware", "warning", "slow", check)
