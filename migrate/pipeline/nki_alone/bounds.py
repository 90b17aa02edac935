"""What a search for arguments may use of what reading a kernel may."""

from __future__ import annotations

from migrate.budget import Budget, Meter

PART = 4
"""The search may use one part in this many of the steps and seconds."""


def searching(budget: Budget, name: str) -> Meter:
    """The bound of a search, so that it leaves the reading itself its own."""
    part = Budget(budget.steps // PART, budget.bytes, budget.seconds / PART)
    return Meter(part, f"looking for arguments that {name} takes")
