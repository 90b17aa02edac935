"""How a statement ends, and what a compiled one is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from migrate.nki.frames import Frame


@dataclass(frozen=True, slots=True)
class Returned:
    """A `return` on its way out of the statements around it."""

    value: object


class Signal:
    __slots__ = ()


BREAK = Signal()
CONTINUE = Signal()

Flow: TypeAlias = Returned | Signal | None
Execute: TypeAlias = Callable[[Frame], Flow]
