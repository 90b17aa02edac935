"""Consoles that print reviewed text as it stands: no markup, no emoji, no highlighting."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Final, TextIO

from rich.console import Console

PIPE_WIDTH: Final = 120


def to(stream: TextIO) -> Console:
    """A console on a stream: in colour on a terminal, unless `NO_COLOR` is set."""
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


def plain(show: Callable[[Console], None], width: int = PIPE_WIDTH) -> str:
    """What `show` prints, as plain text without spaces at the ends of lines."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        markup=False,
        highlight=False,
        emoji=False,
        color_system=None,
        force_terminal=False,
    )
    show(console)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"
