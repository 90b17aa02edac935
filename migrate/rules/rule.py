"""What a rule is, and what it looks at.

A rule is one file: the module's docstring is its page (What / Why / Example / Use
instead / Sources), `RULE` is its entry in `rules.registry`, `check` a function from
`Evidence` to drafts of findings.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.results import (
    ConstructKind,
    Effect,
    Family,
    Related,
    Run,
    Severity,
    Side,
    Witness,
)
from migrate.source import Span

if TYPE_CHECKING:
    from migrate.align.binding import Binding
    from migrate.align.relation import Relation
    from migrate.ir.nodes import Kernel

REFERENCE = "reference:"
"""Prefix of the codes of what a run of the CUDA kernel shows to be wrong with that kernel."""

MAYBE = ":maybe"
"""End of the codes of problems at a place that the kernel may never come to."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What a front end or an execution met in a kernel, by a code of its own.

    `sizes` are those it was met at.
    """

    code: str
    message: str
    span: Span
    side: Side
    sizes: Mapping[str, int]
    related: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """Both kernels as read at one position of the sizes."""

    binding: Binding
    cuda: Kernel | None
    nki: Kernel | None
    relation: Relation | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that rules may look at."""

    readings: Sequence[Reading]
    problems: Sequence[Problem]
    runs: Sequence[Run]

    @property
    def relations(self) -> Sequence[Relation]:
        return [r.relation for r in self.readings if r.relation is not None]


@dataclass(frozen=True, slots=True)
class Draft:
    """A finding before it has an identity and points.

    `severity` and `effect` are the rule's own unless given.  `suspects` are the places among
    which the cause is, where the rule cannot tell which it is; `guess` ends the message unless
    the cause is found.
    """

    message: str
    side: Side
    span: Span
    related: tuple[Related, ...] = ()
    witness: Witness | None = None
    severity: Severity | None = None
    effect: Effect | None = None
    suspects: tuple[Span, ...] = ()
    guess: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """An entry of the registry.  Ids are never reused; a name reads as the defect.

    `about` are the kinds of construct that the defect makes wrong.
    """

    id: str
    name: str
    family: Family
    severity: Severity
    effect: Effect
    check: Callable[[Evidence], Iterable[Draft]]
    about: tuple[ConstructKind, ...] = ()

    @property
    def page(self) -> str:
        """The rule's page: the docstring of the file that defines it."""
        return (sys.modules[self.check.__module__].__doc__ or "").strip()
