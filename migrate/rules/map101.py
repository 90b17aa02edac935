"""# MAP101: elements-left-out

## What
Elements that the CUDA kernel writes are not written by the NKI kernel.

## Why
A CUDA grid is rounded up and guarded, so every element has a thread.  A tiled NKI kernel
covers what its loops and slices cover: a trip count rounded down, a remainder that is
never handled, a stride larger than the tile or a slice cut too short leave elements that
keep whatever was in memory.

## Example
```python
for i in nl.affine_range(n // 512):          # the last n % 512 elements have no tile
    nisa.dma_copy(dst=out[i * 512 : (i + 1) * 512], src=...)
```

## Use instead
```python
for i in nl.affine_range((n + 511) // 512):
    end = min((i + 1) * 512, n)
    nisa.dma_copy(dst=out[i * 512 : end], src=...)
```

## Sources
CUDA C++ Programming Guide, thread hierarchy; Neuron SDK documentation, nki/migration (slices
and `min()` in place of masks) and the language guide (memory that was not written is
undefined).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.rules.coverage import blamed
from migrate.rules.places import at, described, related, witness_in
from migrate.rules.rule import Draft, Evidence, Rule
from migrate.rules.walk import mismatches


def check(evidence: Evidence) -> Iterator[Draft]:
    drafts: dict[str, list[tuple[Draft, bool]]] = {}
    for reading, relation, mismatch in mismatches(evidence, "unwritten"):
        if reading.nki is None:
            continue
        total = next(t.size for t in reading.binding.outputs if t.name == mismatch.output)
        blame = blamed(reading, relation, mismatch)
        draft = Draft(
            message=(
                f"{described(mismatch, total)} of {mismatch.output} are never written"
                f" at {at(relation.sizes.items())}{blame.reason if blame.sure else ''}"
            ),
            side="nki",
            span=blame.span,
            related=(
                *related("nki", (s for s in blame.others if s != blame.span)),
                *related("cuda", [mismatch.cuda_op.span if mismatch.cuda_op else None]),
            ),
            witness=witness_in(relation, mismatch),
            suspects=() if blame.sure else blame.others,
            guess="" if blame.sure else blame.reason,
        )
        drafts.setdefault(mismatch.output, []).append((draft, blame.span != reading.nki.span))
    for told in drafts.values():
        # Where other sizes show the place, "nothing stores to it" adds nothing.
        placed = [draft for draft, has_place in told if has_place]
        yield from placed or [draft for draft, _ in told]


RULE = Rule(
    "MAP101",
    "elements-left-out",
    "mapping",
    "error",
    "wrong",
    check,
    about=("tile-axis", "mask", "output-store"),
)
