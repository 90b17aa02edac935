"""Text under review, and places in it.

Everything the tool says points at a `Span`: lines and columns from 1, columns in
code points, end exclusive.  `via` is the chain of macro, call, include or embedding
that led there, outermost first, so that a place inside a helper can still be shown
with the calls that reached it.

`read` is the only way a reviewed file enters the tool.  It refuses what no kernel is:
directories, empty and binary files, Python that is not UTF-8, and files over
`MAX_BYTES` (a single 20 MB line costs a parser 17 s and 2.8 GB).  C++ that is not UTF-8 is
read byte by byte, as compilers do that leave comments and strings alone: each byte is the
character of Latin-1, and a column.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Literal

import msgspec

MAX_BYTES = 4 * 1024 * 1024

MAX_NAME = 1000
"""Characters of an identifier; names are shown, and in many places."""

_ACTING = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that may do something instead of being shown."""

_UNUSUAL = re.compile(r"[^\n -~]")

_PYTHON = frozenset({".py", ".pyi"})
"""What has to be UTF-8: Python reads nothing else, unless a file says so."""

_BLOCK = 1024
_CONTINUATION = bytes(range(0x80, 0xC0))

# As Python's parser counts lines; what reads CUDA only needs offsets.
_LINE_END = re.compile(r"\r\n?|\n")
_ENCODED_LINE_END = re.compile(rb"\r\n?|\n")


class Frame(msgspec.Struct, frozen=True, kw_only=True, order=True, gc=False):
    """One step on the way to a span: where a macro was used, a helper was called."""

    kind: Literal["macro", "call", "include", "embedding", "template"]
    name: str
    file: str
    line: int
    column: int


class Span(msgspec.Struct, frozen=True, kw_only=True, order=True, gc=False):
    """A range of reviewed text.

    Lines and columns count from 1, columns in code points; the end is exclusive.
    """

    file: str
    start_line: int
    start_column: int
    end_line: int
    end_column: int
    via: tuple[Frame, ...] = ()

    def __str__(self) -> str:
        return f"{self.file}:{self.start_line}:{self.start_column}"

    def covers(self, line: int) -> bool:
        """Whether some of the span is on `line` (an end at column 1 is not)."""
        last = self.end_line if self.end_column > 1 else self.end_line - 1
        return self.start_line <= line <= max(last, self.start_line)

    def through(self, frame: Frame) -> Span:
        """The same place, reached through one more (outer) frame."""
        return msgspec.structs.replace(self, via=(frame, *self.via))


class SourceError(Exception):
    """Input that cannot be read as what it should be.

    `where` is the place to show, `None` where there is only a file; the message is
    one sentence without the place.
    """

    def __init__(self, message: str, *, file: str, where: Span | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.where = where

    def __str__(self) -> str:
        place = str(self.where) if self.where is not None else self.file
        return f"{neutral(shortened(place))}: {neutral(shortened(self.message))}"


@dataclass(frozen=True, slots=True)
class Source:
    """One file's text with its line table.

    `name` is what the user called the file, and what spans carry.
    """

    name: str
    text: str
    digest: str
    _starts: tuple[int, ...] = field(repr=False)
    _encoded_starts: tuple[int, ...] = field(repr=False)
    _encoded: bytes = field(repr=False)
    _counted: tuple[int, ...] = field(repr=False)
    """Code points before each block of bytes; empty for ASCII, where bytes are code points."""

    @staticmethod
    def of(text: str, name: str) -> Source:
        """Wrap text that did not come from a file, after the checks of `read`."""
        return _source(text.encode("utf-8", "surrogatepass"), name)

    @property
    def encoded(self) -> bytes:
        """The text as UTF-8: what byte-based parsers read."""
        return self._encoded

    @property
    def line_count(self) -> int:
        return len(self._starts)

    def line(self, number: int) -> str:
        """The text of a line, without its end; empty past the last one."""
        if not 1 <= number <= len(self._starts):
            return ""
        start = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def offset(self, number: int) -> int:
        """Where a line begins in `text`; its length past the last one."""
        return self._starts[number - 1] if number <= len(self._starts) else len(self.text)

    def span(self, start_byte: int, end_byte: int, via: tuple[Frame, ...] = ()) -> Span:
        """The span of a UTF-8 byte range, reached through `via`."""
        starts = self._encoded_starts
        first_line = last_line = bisect_right(starts, start_byte)
        # Most spans are of one line.
        if first_line < len(starts) and end_byte >= starts[first_line]:
            last_line = bisect_right(starts, end_byte, first_line)
        first_column = start_byte - starts[first_line - 1]
        last_column = end_byte - starts[last_line - 1]
        if self._counted:
            first_column = self._code_points(first_line, first_column)
            last_column = self._code_points(last_line, last_column)
        return Span(
            file=self.name,
            start_line=first_line,
            start_column=first_column + 1,
            end_line=last_line,
            end_column=last_column + 1,
            via=via,
        )

    def plain_line(self, byte: int) -> tuple[int, int, int] | None:
        """The line of a byte and the bytes that it reaches over, its end included.

        `None` where columns may not be counted in bytes.
        """
        if self._counted:
            return None
        starts = self._encoded_starts
        line = bisect_right(starts, byte)
        end = starts[line] if line < len(starts) else len(self._encoded) + 1
        return line, starts[line - 1], end

    def span_of_lines(
        self, line: int, byte_column: int, end_line: int, end_byte_column: int
    ) -> Span:
        """The span of the positions that Python's `ast` gives.

        `ast` counts lines from 1 and columns in UTF-8 bytes from 0.
        """
        return Span(
            file=self.name,
            start_line=line,
            start_column=self._code_points(line, byte_column) + 1,
            end_line=end_line,
            end_column=self._code_points(end_line, end_byte_column) + 1,
        )

    def whole(self) -> Span:
        """The span of the whole text."""
        return self.span(0, len(self._encoded))

    def excerpt(self, span: Span) -> str:
        """The text a span covers."""
        start = self._starts[span.start_line - 1] + span.start_column - 1
        end = self._starts[span.end_line - 1] + span.end_column - 1
        return self.text[start:end]

    def replaced(self, span: Span, text: str) -> str:
        """The whole text with other text in place of a span."""
        start = self._starts[span.start_line - 1] + span.start_column - 1
        end = self._starts[span.end_line - 1] + span.end_column - 1
        return self.text[:start] + text + self.text[end:]

    def _code_points(self, line: int, byte_column: int) -> int:
        if not self._counted:
            return byte_column
        start = self._encoded_starts[line - 1]
        if byte_column <= _BLOCK:
            part = self._encoded[start : start + byte_column]
            return byte_column if part.isascii() else _code_points(part)
        return self._before(start + byte_column) - self._before(start)

    def _before(self, byte: int) -> int:
        """Code points that end before a byte position."""
        block = byte // _BLOCK
        return self._counted[block] + _code_points(self._encoded[block * _BLOCK : byte])


def read(path: str | Path, *, name: str | None = None) -> Source:
    """Read a reviewed file.

    Raises `SourceError` for a missing file, a directory, an empty or binary file, Python
    that is not UTF-8, or a file over `MAX_BYTES`.
    """
    shown = name if name is not None else str(path)
    try:
        with Path(path).open("rb") as handle:
            data = handle.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise SourceError("no such file", file=shown) from None
    except IsADirectoryError:
        raise SourceError("is a directory, not a file", file=shown) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SourceError(f"cannot be read: {reason}", file=shown) from None
    return _source(data, shown, any_bytes=Path(path).suffix not in _PYTHON)


def _source(data: bytes, name: str, *, any_bytes: bool = False) -> Source:
    if len(data) > MAX_BYTES:
        limit = MAX_BYTES // (1024 * 1024)
        raise SourceError(f"is larger than {limit} MiB, the most that is read", file=name)
    if not data.strip():
        raise SourceError("is empty", file=name)
    if b"\0" in data:
        raise SourceError("is binary (it has a NUL byte), not source text", file=name)
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    digest = hashlib.sha256(data).hexdigest()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if not any_bytes:
            where = _place(data, error.start, name)
            raise SourceError("is not UTF-8 text", file=name, where=where) from None
        text = data.decode("latin-1")
        data = text.encode("utf-8")
    starts = _line_starts(data)
    ascii_only = data.isascii()
    return Source(
        name=name,
        text=text,
        digest=digest,
        _starts=starts if ascii_only else (0, *(m.end() for m in _LINE_END.finditer(text))),
        _encoded_starts=starts,
        _encoded=data,
        _counted=() if ascii_only else tuple(_counts(data)),
    )


def _place(data: bytes, byte: int, name: str) -> Span:
    """The position of a byte before which all is UTF-8."""
    start = max((found.end() for found in _ENCODED_LINE_END.finditer(data[:byte])), default=0)
    line = len(_ENCODED_LINE_END.findall(data[:byte])) + 1
    column = _code_points(data[start:byte]) + 1
    return Span(
        file=name, start_line=line, start_column=column, end_line=line, end_column=column + 1
    )


def _line_starts(data: bytes) -> tuple[int, ...]:
    # `splitlines` ends lines of bytes at \r, \n and \r\n, but those of text at more.
    lines = data.splitlines(keepends=True)
    starts = (0, *accumulate(map(len, lines)))
    return starts if data.endswith((b"\n", b"\r")) else starts[:-1] or (0,)


def _counts(data: bytes) -> Iterator[int]:
    total = 0
    for start in range(0, len(data) + 1, _BLOCK):
        yield total
        total += _code_points(data[start : start + _BLOCK])


def _code_points(part: bytes) -> int:
    # All but the continuation bytes of UTF-8.
    return len(part.translate(None, _CONTINUATION))


def shortened(text: str, most: int = 400) -> str:
    """A text for a message: the middle of a long one left out."""
    if len(text) <= most:
        return text
    half = most // 2 - 2
    return f"{text[:half]} … {text[-half:]}"


def quoted(data: bytes) -> bytes:
    """JSON of the same meaning in which what could act on a terminal is an escape."""
    if data.isascii() and b"\x7f" not in data:
        return data
    return _UNUSUAL.sub(_json_escape, data.decode()).encode()


def _json_escape(found: re.Match[str]) -> str:
    character = found.group()
    if unicodedata.category(character) not in _ACTING:
        return character
    # One escape for each unit of UTF-16.
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def neutral(text: str, *, keep_newlines: bool = False) -> str:
    """Reviewed text made harmless for a terminal: what could act is shown as an escape.

    Control characters (escape sequences among them), format characters (bidi marks,
    zero-width joiners), surrogates and private-use characters become `\\xNN` / `\\uNNNN`.
    """
    if text.isascii() and text.isprintable():
        return text
    out: list[str] = []
    for character in text:
        if character == "\t" or (keep_newlines and character == "\n"):
            out.append(character)
        elif unicodedata.category(character) in _ACTING:
            code = ord(character)
            out.append(f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
        else:
            out.append(character)
    return "".join(out)
