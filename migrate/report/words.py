"""Sentences that every report says alike: sizes, witnesses, outputs, shares.

What they give is harmless text (`migrate.source.neutral`).
"""

from __future__ import annotations

from collections.abc import Mapping

from migrate.results import OutputResult, Witness
from migrate.source import neutral


def sizes(values: Mapping[str, int]) -> str:
    """`C=700, R=200`, by name."""
    return neutral(", ".join(f"{name}={size}" for name, size in sorted(values.items())))


def witness(found: Witness) -> str:
    """The element that shows the difference, with the inputs that lead to it."""
    index = ", ".join(map(str, found.index))
    how = {"evaluation": "evaluating both meanings", "run": "running both"}[found.found_by]
    return (
        f"for example {sizes(found.sizes)} ({neutral(found.inputs.family)} inputs, seed"
        f" {found.inputs.seed}): {neutral(found.output)}[{index}] is {found.cuda} in CUDA,"
        f" {found.nki} in NKI (by {how})"
    )


def output(result: OutputResult) -> str:
    """How one output of a run compared."""
    parts = []
    if result.mismatched:
        at = list(result.first_mismatch or ())
        parts.append(f"{result.mismatched:,} of {result.elements:,} differ, first at {at}")
    else:
        parts.append(f"all {result.elements:,} agree")
    if result.max_abs is not None:
        parts.append(f"largest difference {result.max_abs:.3g}")
    if result.allowed is not None:
        parts.append(f"allowed {result.allowed:.3g}")
    if result.ambiguous:
        parts.append(f"{result.ambiguous:,} ambiguous")
    return f"{neutral(result.name)}: {', '.join(parts)}"


def counted(count: int, thing: str) -> str:
    """`1 error`, `2 errors`, `1,234 instructions`."""
    return f"{count:,} {thing}{'s' * (count != 1)}"


def share(part: float) -> str:
    """A share in per cent; 99.6 % understood must not read as everything."""
    return "100 %" if part == 1.0 else f"{min(99.0, part * 100):.0f} %"
