"""What the text of an NKI kernel shows before it is read at any size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from migrate.rules.rule import Problem

if TYPE_CHECKING:
    from migrate.nki import values
    from migrate.nki.parse import Kernel, Module


def text_problems(module: Module, kernel: Kernel) -> tuple[Problem, ...]:
    """What the scans of `migrate.nki.scans` find."""
    from migrate.nki.scans import scanned

    return tuple(told(problem, {}) for problem in scanned(module, kernel))


def told(problem: values.Problem, sizes: Mapping[str, int], prefix: str = "") -> Problem:
    """A problem of the front end as rules see it, met at `sizes`."""
    return Problem(
        f"{prefix}{problem.code}", problem.message, problem.span, "nki", sizes, problem.sources
    )
