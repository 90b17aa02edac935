"""The launches of a kernel in the host code of its file."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from migrate.source import Span


@dataclass(frozen=True, slots=True)
class Call:
    """A launch: what the parameters of the kernel are given, and the grid.

    `path` are the functions that were followed into, innermost last.  `grid` has `UNKNOWN` for
    what is not known of it; it is `None` where the launch has none.
    """

    arguments: Mapping[str, object]
    grid: tuple[object, ...] | None
    span: Span
    path: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Reading:
    """One function, followed with its parameters unknown; the module itself has no node.

    `axes` are the names that extents of its parameters get: by parameter and axis.
    """

    node: ast.FunctionDef | None
    wrapper: bool = False
    calls: list[Call] = field(default_factory=list)
    returned: list[object] = field(default_factory=list)
    axes: dict[tuple[str, int], str] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
