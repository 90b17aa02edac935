"""A launch with its numbers: apart from what runs it, which reading alone never imports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Launch:
    """How a CUDA kernel is launched at one position of the sizes."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    template: Mapping[str, object] | None = None
