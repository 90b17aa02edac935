"""The stages of a comparison, each kept from taking the others down.

What is under review was written by anybody, and no interpreter of ours is without faults.  An
error that no stage foresaw becomes a gap, named as internal, and what the other stages found
stays; the verdict cannot be better for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, MutableSequence
from typing import TypeVar

from migrate.budget import Exhausted
from migrate.case.fills import FillError
from migrate.source import SourceError

T = TypeVar("T")


def guarded(doing: str, stage: Callable[[], T], gaps: MutableSequence[str]) -> T | None:
    """The stage's result; `None`, and a sentence more in `gaps`, where it fails unforeseen.

    What is foreseen (`SourceError`, `FillError`, `Exhausted`) passes through, and everything
    does with `MIGRATE_DEBUG` set.
    """
    try:
        return stage()
    except (SourceError, FillError, Exhausted):
        raise
    except Exception as error:
        if os.environ.get("MIGRATE_DEBUG"):
            raise
        gaps.append(f"internal error while {doing}: {type(error).__name__}: {error}")
        return None
