"""The text of Python string literals, piece by piece with its place (Python reference, 2.4.1)."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

_OPENING = re.compile(r"([A-Za-z]{0,2})(\"\"\"|'''|\"|')")
_BETWEEN = re.compile(r"(?:[ \t\f\r\n]++|\\\r?\n|#[^\n]*+)*+")
_SIMPLE = {
    "\n": "", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n",
    "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip
_NUMBERED = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|N\{([^}]*)\})"
)


class Piece(NamedTuple):
    """Text, and the bytes of the file that it is written in; of equal length: verbatim."""

    text: str
    start: int
    end: int


def pieces(written: str, start: int) -> list[Piece] | None:
    """The pieces of one or more literals next to each other, which begin at byte `start`.

    `None` for what is no string literal, or is one of bytes, or has values in it.
    """
    found: list[Piece] = []
    at = 0
    begun = _Bytes(written, start)
    while at < len(written):
        between = _BETWEEN.match(written, at)
        at = between.end() if between is not None else at
        # Parentheses around a part belong to the expression, not to its text.
        if at < len(written) and written[at] in "()":
            at += 1
            continue
        if at >= len(written):
            break
        opening = _OPENING.match(written, at)
        if opening is None or "b" in opening[1].lower():
            return None
        prefix, quote = opening[1].lower(), opening[2]
        end = _literal(written, opening.end(), quote, prefix, begun, found)
        if end is None:
            return None
        at = end
    return found


class _Bytes:
    """Bytes of the file before a character, counted as the reading goes on."""

    def __init__(self, written: str, start: int) -> None:
        self.written = written
        self.character = 0
        self.byte = start

    def at(self, character: int) -> int:
        part = self.written[self.character : character]
        self.byte += len(part) if part.isascii() else len(part.encode("utf-8", "surrogatepass"))
        self.character = character
        return self.byte


def _literal(
    written: str, at: int, quote: str, prefix: str, begun: _Bytes, found: list[Piece]
) -> int | None:
    """Read one literal's inside; the position after its closing quote."""
    special = re.compile(r"[\\\r{}]|" + re.escape(quote))
    verbatim = at
    while True:
        following = special.search(written, at)
        if following is None:
            return None
        at = following.start()
        mark = following.group()
        if mark == quote:
            _keep(written, verbatim, at, begun, found)
            return at + len(quote)
        length, text = _escape(written, at, prefix)
        if text is None:
            return None
        if text == written[at : at + length]:
            at += length
            continue
        _keep(written, verbatim, at, begun, found)
        begin = begun.at(at)
        found.append(Piece(text, begin, begun.at(at + length)))
        at += length
        verbatim = at


def _keep(written: str, start: int, end: int, begun: _Bytes, found: list[Piece]) -> None:
    if end > start:
        begin = begun.at(start)
        found.append(Piece(written[start:end], begin, begun.at(end)))


def _escape(written: str, at: int, prefix: str) -> tuple[int, str | None]:
    """How many characters at a mark stand for which text; `None`: it cannot be told."""
    mark = written[at]
    if mark == "\r":
        return (2 if written[at + 1 : at + 2] == "\n" else 1), "\n"
    if mark in "{}":
        if "f" not in prefix:
            return 1, mark
        return (2, mark) if written[at + 1 : at + 2] == mark else (1, None)
    following = written[at + 1 : at + 2]
    if "r" in prefix:
        # A raw string keeps the backslash, and with it the quote behind it.
        return (1, "\\") if following == "\r" else (2, "\\" + following)
    if following == "\r":
        return (3 if written[at + 2 : at + 3] == "\n" else 2), ""
    if following in _SIMPLE:
        return 2, _SIMPLE[following]
    numbered = _NUMBERED.match(written, at)
    if numbered is None:
        return 2, "\\" + following
    octal, *hexadecimal, name = numbered.groups()
    length = numbered.end() - at
    if octal is not None:
        return length, chr(int(octal, 8))
    if name is not None:
        try:
            return length, unicodedata.lookup(name)
        except KeyError:
            return length, None
    code = int(next(digits for digits in hexadecimal if digits is not None), 16)
    return length, chr(code) if code < 0x110000 else None
