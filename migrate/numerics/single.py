"""Numbers as float32 holds them, for text that may be written either way."""

from __future__ import annotations

import struct


def as_float32(number: float) -> float:
    """The nearest float32, so that 0.1 and 0.1f are one; beyond its range the number itself."""
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return number
