"""C++ preprocessing tokens of a byte string, with their places."""

from __future__ import annotations

import re
from typing import NamedTuple

from migrate.source import MAX_NAME, Source, SourceError

MAX_TOKENS = 400_000
"""In one file: some 40,000 lines of code.  A token takes 200 bytes, a syntax node more."""

# What is not closed ends with its line or with the text, and no repetition is tried twice:
# the time is linear in the text.
_PATTERN = re.compile(
    rb"""
      (?P<newline>\n)
    | (?P<space>(?:[ \t\r\f\v]++|\\\r?\n)++)
    | (?P<comment>//(?:[^\n\\]++|\\(?:\r?\n|.)?)*+|/\*.*?(?:\*/|\Z))
    | (?P<string>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(.*?(?:\)(?P=fence)"|\Z)
        |(?:u8|[uUL])?"(?:\\.|[^"\\\n]++)*+(?:"|(?=\n)|\\?\Z)
        |(?:u8|[uUL])?'(?:\\.|[^'\\\n]++)++(?:'|(?=\n)|\\?\Z))
    | (?P<name>[A-Za-z_$][A-Za-z0-9_$]*+)
    | (?P<number>\.?[0-9](?:[eEpP][+-]|'(?=[0-9a-zA-Z])|[0-9A-Za-z_.])*+)
    | (?P<punctuation>\#\#|\.\.\.|[\x80-\xff]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)


class Expansion(NamedTuple):
    """One use of a macro: where it stands, and inside which other use."""

    name: str
    source: Source | None
    start: int
    end: int
    parent: Expansion | None


class Token(NamedTuple):
    """A token with its spelling's place.

    `expansion` is the macro use whose body it was spelled in (`None`: in the file itself),
    `inside` the innermost macro use that it came out of; they differ for an argument.
    `hidden` are the macros that may not expand it again.
    """

    kind: str
    text: bytes
    source: Source | None
    start: int
    end: int
    expansion: Expansion | None = None
    inside: Expansion | None = None
    hidden: frozenset[bytes] = frozenset()
    spaced: bool = False


def tokens(source: Source | None, text: bytes) -> list[Token]:
    """Every token of a text; `spaced` tells that blanks or a comment stood before it.

    Blanks and comments are left out, newlines are kept (they end directives).  Raises
    `SourceError` for more than `MAX_TOKENS`, and for a name that nobody writes.
    """
    out: list[Token] = []
    spaced = False
    for found in _PATTERN.finditer(text):
        kind = found.lastgroup or "punctuation"
        if kind == "fence":
            kind = "string"
        if kind in ("space", "comment"):
            spaced = True
            continue
        if len(out) >= MAX_TOKENS:
            raise _refused(source, found, f"has more than {MAX_TOKENS:,} words")
        if kind == "name" and found.end() - found.start() > MAX_NAME:
            raise _refused(source, found, f"a name has more than {MAX_NAME:,} characters")
        out.append(Token(kind, found.group(), source, found.start(), found.end(), spaced=spaced))
        spaced = False
    return out


def _refused(source: Source | None, found: re.Match[bytes], message: str) -> SourceError:
    if source is None:
        return SourceError(message, file="a definition")
    return SourceError(message, file=source.name, where=source.span(found.start(), found.end()))
