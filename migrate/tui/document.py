"""A source as it stands on the screen: harmless, tabs widened, coloured line by line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from rich.cells import cell_len

from migrate.results import Side
from migrate.source import Source, Span, neutral
from migrate.tui.colouring import Colouring, Token
from migrate.tui.ink import Ink

TAB: Final = 4
MAX_COLUMNS: Final = 4000
"""Of a longer line the rest is not shown (no kernel's line is; a minified one is)."""
_KEPT_LINES: Final = 2048
_MEASURED_LINES: Final = 5000
_UNUSUAL: Final = re.compile(r"^.*[^\t\n -~].*$", re.MULTILINE)


class Fragment(NamedTuple):
    """Some of a line in one ink; `marked` where it belongs to what is selected."""

    text: str
    ink: Ink
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """A line on the screen.

    `offsets[i]` is where source column `i` (from 0) stands in `text`; `tokens` are in
    columns of `text`.
    """

    text: str
    offsets: Sequence[int]
    tokens: tuple[Token, ...]
    left_out: int = 0

    def fragments(self, marked: Iterable[tuple[int, int]] = ()) -> tuple[Fragment, ...]:
        """The line cut where ink or marking changes; `marked` are ranges of source columns."""
        spans = [
            (self._offset(start), max(self._offset(end), self._offset(start)))
            for start, end in marked
        ]
        cuts = {0, len(self.text)}
        for token in self.tokens:
            cuts.update((token.start, token.end))
        for start, end in spans:
            cuts.update((start, end))
        edges = sorted(cuts)
        fragments: list[Fragment] = []
        at = 0
        for start, end in pairwise(edges):
            while at < len(self.tokens) and self.tokens[at].end <= start:
                at += 1
            under = at < len(self.tokens) and self.tokens[at].start <= start
            ink: Ink = self.tokens[at].ink if under else "text"
            inside = any(first <= start < last for first, last in spans)
            fragments.append(Fragment(self.text[start:end], ink, inside))
        if self.left_out:
            fragments.append(Fragment(f" … {self.left_out:,} more characters", "muted"))
        return tuple(fragments)

    def _offset(self, column: int) -> int:
        return self.offsets[max(0, min(column, len(self.offsets) - 1))]


class Document:
    """One reviewed text, line by line."""

    def __init__(self, source: Source, side: Side) -> None:
        self.source = source
        self._colouring = Colouring(source.text, side)
        self._lines: dict[int, Shown] = {}
        self._start = 0
        self._number = 1
        self.width = _width(source.text)
        """The widest line, in cells."""

    @property
    def line_count(self) -> int:
        # A final newline ends the last line; it does not begin another.
        last = self.source.line_count
        return last - 1 if last > 1 and not self.source.line(last) else last

    def line(self, number: int) -> Shown:
        """A line by its number (from 1)."""
        found = self._lines.get(number)
        if found is None:
            if len(self._lines) >= _KEPT_LINES:
                self._lines.clear()
            found = self._lines[number] = self._shown(number)
        return found

    def _shown(self, number: int) -> Shown:
        whole = self.source.line(number)
        line = whole[:MAX_COLUMNS]
        text, offsets = displayed(line)
        tokens = tuple(
            Token(offsets[token.start], offsets[token.end], token.ink)
            for token in self._colouring.line(self.source.offset(number), line)
        )
        return Shown(text, offsets, tokens, len(whole) - len(line))


def displayed(line: str) -> tuple[str, Sequence[int]]:
    """A line made harmless with tabs widened, and where each of its columns went."""
    if line.isascii() and line.isprintable():
        return line, range(len(line) + 1)
    out: list[str] = []
    offsets = [0]
    width = 0
    for character in line:
        text = " " * (TAB - width % TAB) if character == "\t" else neutral(character)
        out.append(text)
        width += len(text)
        offsets.append(width)
    return "".join(out), offsets


def columns(span: Span, line: int) -> tuple[int, int] | None:
    """The columns (from 0, end exclusive) of a span on a line it covers."""
    if not span.covers(line):
        return None
    start = span.start_column - 1 if line == span.start_line else 0
    end = span.end_column - 1 if line == span.end_line else MAX_COLUMNS
    return start, max(end, start + 1)


def _width(text: str) -> int:
    widest = max(map(len, text.expandtabs(TAB).split("\n")))
    # Escapes and wide characters take more than one cell.  A text full of them is measured
    # only so far: the rest of a line is then reached when the line is, not lost.
    for number, match in enumerate(_UNUSUAL.finditer(text)):
        if number >= _MEASURED_LINES or widest >= MAX_COLUMNS:
            break
        widest = max(widest, cell_len(displayed(match.group()[:MAX_COLUMNS])[0]))
    return min(widest, MAX_COLUMNS + 40)
