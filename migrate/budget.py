"""Bounds on work: steps and bytes decide what runs, seconds are only a backstop.

Steps and bytes are the same on every machine, so a verdict that stopped at one of them
is reproducible; one that stopped at the clock is not, and says so (`Exhausted.kind`).
A `Budget` is the allowance; a `Meter` is one run's use of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from migrate.source import Span

Kind = Literal["steps", "bytes", "seconds", "cancelled"]


class Exhausted(Exception):
    """A bound was reached.  What had been computed by then stays valid."""

    def __init__(self, kind: Kind, limit: float, doing: str) -> None:
        self.kind: Kind = kind
        self.limit = limit
        self.doing = doing
        self.where: Span | None = None
        """The place that was being worked on, where one is known."""
        if kind == "cancelled":
            super().__init__(f"cancelled while {doing}")
        else:
            shown = f"{limit:,.0f}" if limit >= 10 else f"{limit:g}"
            super().__init__(f"stopped after {shown} {kind} while {doing}")


@dataclass(frozen=True, slots=True)
class Budget:
    """How much one stage may use.

    `steps` are the stage's own unit: interpreted statements, instructions, nodes.
    `bytes` counts live array storage.  `seconds` is wall time.
    """

    steps: int = 20_000_000
    bytes: int = 2 * 1024**3
    seconds: float = 120.0


@dataclass(slots=True)
class Meter:
    """One run's use of a budget.  Not shared between threads."""

    budget: Budget = field(default_factory=Budget)
    doing: str = "working"
    cancelled: Callable[[], bool] | None = None
    progress: Callable[[int], None] | None = None
    steps: int = 0
    bytes: int = 0
    _deadline: float = field(init=False)
    _next_look: int = field(init=False, default=0)

    _LOOK_EVERY = 1024

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.budget.seconds

    def step(self, count: int = 1) -> None:
        """Use `count` steps; now and then look at the clock and the cancel flag."""
        self.steps += count
        if self.steps > self.budget.steps:
            raise Exhausted("steps", self.budget.steps, self.doing)
        if self.steps >= self._next_look:
            self._next_look = self.steps + self._LOOK_EVERY
            self.look()

    @contextmanager
    def scratch(self) -> Iterator[None]:
        """Bytes taken inside are given back at the end: nothing made there stays alive."""
        before = self.bytes
        try:
            yield
        finally:
            self.bytes = before

    def look(self) -> None:
        """Check what is not counted: the clock and the cancel flag."""
        if self.cancelled is not None and self.cancelled():
            raise Exhausted("cancelled", 0, self.doing)
        if time.monotonic() > self._deadline:
            raise Exhausted("seconds", self.budget.seconds, self.doing)
        if self.progress is not None:
            self.progress(self.steps)

    @property
    def late(self) -> bool:
        """Whether the seconds are used up, so that the clock may have ended something."""
        return time.monotonic() > self._deadline

    def take(self, size: int) -> None:
        """Account for `size` bytes before they are allocated."""
        if self.bytes + size > self.budget.bytes:
            raise Exhausted("bytes", self.budget.bytes, self.doing)
        self.bytes += size

    def give(self, size: int) -> None:
        """Return bytes that are no longer live."""
        self.bytes -= size
