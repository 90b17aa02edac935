"""Where the keys of a TOML text stand; `tomllib` does not say.

Only for texts that `tomllib` has accepted.  Keys inside inline tables and arrays are
found at the key that holds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from migrate.source import Source, Span

Step: TypeAlias = str | int
Path: TypeAlias = tuple[Step, ...]

MAX_DEPTH: Final = 8
"""Names of a dotted key that are told apart; what a case has lies less deep."""

_KEY = re.compile(
    r'\s*(?:"(?P<basic>(?:[^"\\]|\\.)*)"|\'(?P<literal>[^\']*)\'|(?P<bare>[\w-]+))\s*'
)
_SKIP = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Positions:
    """The spans of a text's keys and table headers."""

    whole: Span
    spans: dict[Path, Span]

    def find(self, path: Sequence[Step]) -> Span:
        """The span of a key, of the nearest key around it where it has none of its own."""
        for length in range(len(path), 0, -1):
            span = self.spans.get(tuple(path[:length]))
            if span is not None:
                return span
        return self.whole


def positions(source: Source) -> Positions:
    """Find the keys of a valid TOML text."""
    spans: dict[Path, Span] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    for number, column, line in _statements(source):
        if line.startswith("["):
            array = line.startswith("[[")
            names, end = _dotted(line, 2 if array else 1)
            table = _enter(names, counts)
            if array:
                index = counts.get(table, 0)
                counts[table] = index + 1
                table = (*table, index)
            width = end + (2 if array else 1)
            for length in range(1, len(table)):
                spans.setdefault(table[:length], _span(source, number, column, width))
        else:
            names, width = _dotted(line, 0)
            names_path = (*table, *names)
            spans.setdefault(names_path, _span(source, number, column, width))
            for length in range(len(table) + 1, len(names_path)):
                spans.setdefault(names_path[:length], _span(source, number, column, width))
            continue
        spans.setdefault(table, _span(source, number, column, width))
    return Positions(whole=_span(source, 1, 1, len(source.line(1))), spans=spans)


def _statements(source: Source) -> Iterator[tuple[int, int, str]]:
    """Line number, column and text of each line that begins a key or a header."""
    depth = 0
    skip_to = 0
    offset = 0
    for number in range(1, source.line_count + 1):
        line = source.line(number)
        begins = depth == 0 and offset >= skip_to
        stripped = line.lstrip()
        if begins and stripped and not stripped.startswith("#"):
            yield number, len(line) - len(stripped) + 1, stripped
        header = begins and stripped.startswith("[")
        position = max(offset, skip_to)
        end = offset + len(line)
        while not header and position < end:
            character = source.text[position]
            if character in "\"'#":
                found = _SKIP.match(source.text, position)
                position = found.end() if found else position + 1
                skip_to = position
                continue
            if character in "[{":
                depth += 1
            elif character in "]}":
                depth = max(0, depth - 1)
            position += 1
        offset = _next_line(source.text, offset)
    return


def _next_line(text: str, offset: int) -> int:
    found = text.find("\n", offset)
    return len(text) if found == -1 else found + 1


def _dotted(line: str, start: int) -> tuple[tuple[str, ...], int]:
    """The first names of a dotted key from `start`, and where the key ends."""
    names: list[str] = []
    end = start
    while found := _KEY.match(line, start):
        kind = str(found.lastgroup)
        if len(names) < MAX_DEPTH:
            names.append(found[kind])
        end = found.end(kind) + (0 if kind == "bare" else 1)
        start = found.end()
        if line[start : start + 1] != ".":
            break
        start += 1
    return tuple(names), end


def _enter(names: Sequence[str], counts: dict[Path, int]) -> Path:
    """The path of a header's names: an array of tables stands for its last element."""
    path: Path = ()
    for position, name in enumerate(names):
        path = (*path, name)
        if position < len(names) - 1 and path in counts:
            path = (*path, counts[path] - 1)
    return path


def _span(source: Source, line: int, column: int, width: int) -> Span:
    return Span(
        file=source.name,
        start_line=line,
        start_column=column,
        end_line=line,
        end_column=column + max(width, 1),
    )
