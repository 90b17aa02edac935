"""C++ preprocessing tokens, and the marks that split a text into directives and the rest."""

from __future__ import annotations

import re
from typing import NamedTuple

from migrate.source import MAX_NAME, Source, SourceError

MAX_TOKENS = 400_000
"""In one file: some 40,000 lines of code.  A token takes 200 bytes, a syntax node more."""

# What is not closed ends with its line or with the text, and no repetition is tried twice:
# the time is linear in the text.
_COMMENT = rb"//(?:[^\n\\]++|\\(?:\r?\n|.)?)*+|/\*.*?(?:\*/|\Z)"
_RAW = rb'(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(.*?(?:\)(?P=fence)"|\Z)'
_QUOTED = rb'"(?:\\.|[^"\\\n]++)*+(?:"|(?=\n)|\\?\Z)'
_CHARACTER = rb"'(?:\\.|[^'\\\n]++)++(?:'|(?=\n)|\\?\Z)"
_NUMBER = rb"\.?[0-9](?:[eEpP][+-]|'(?=[0-9a-zA-Z])|[0-9A-Za-z_.])*+"

_PATTERN = re.compile(
    rb"(?P<newline>\n)"
    rb"|(?P<space>(?:[ \t\r\f\v]++|\\\r?\n)++)"
    rb"|(?P<comment>" + _COMMENT + rb")"
    rb"|(?P<string>" + _RAW + rb"|(?:u8|[uUL])?" + _QUOTED + rb"|(?:u8|[uUL])?" + _CHARACTER + rb")"
    rb"|(?P<name>[A-Za-z_$][A-Za-z0-9_$]*+)"
    rb"|(?P<number>" + _NUMBER + rb")"
    rb"|(?P<punctuation>\#\#|\.\.\.|[\x80-\xff]+|.)",
    re.DOTALL,
)

# Every alternative begins with a fixed character, which makes the search fast; the careful
# form also knows what that cannot tell apart, raw strings and digit separators.
_DIRECTIVE = rb"\#"
_MARKS = re.compile(rb"|".join((_COMMENT, _QUOTED, _CHARACTER, _DIRECTIVE)), re.DOTALL)
_CAREFUL = re.compile(
    rb"|".join((_COMMENT, rb"\b" + _RAW, rb"\b" + _NUMBER, _QUOTED, _CHARACTER, _DIRECTIVE)),
    re.DOTALL,
)
_NEEDS_CARE = re.compile(rb"R\"|[0-9a-fA-F]'[0-9a-fA-F]")
_FIRST_DIRECTIVE = re.compile(rb"[ \t]*+\#")
_REST_OF_DIRECTIVE = re.compile(
    rb"(?:[^\n\\/\"']++|\\\r?\n|\\|"
    + rb"|".join((_COMMENT, _QUOTED, _CHARACTER, rb".(?<!\n)"))
    + rb")*+",
    re.DOTALL,
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


made = tuple.__new__
"""What `Token` is made with where there are many; its own constructor takes twice as long."""


class Marks(NamedTuple):
    """Where a text's directives are, and its comments and literals, all in order.

    A directive reaches from its `#` to the end of its (continued) line.  `quiet_starts` and
    `quiet_ends` belong together: in between nothing is a name or a directive.
    """

    directives: list[tuple[int, int]]
    quiet_starts: list[int]
    quiet_ends: list[int]


def marks(text: bytes) -> Marks:
    """Split a text without looking at its words."""
    directives: list[tuple[int, int]] = []
    starts: list[int] = []
    ends: list[int] = []
    pattern = _CAREFUL if _NEEDS_CARE.search(text) else _MARKS
    first = _FIRST_DIRECTIVE.match(text)
    position = 0
    if first is not None:
        position = _directive(text, first.end() - 1, directives)
    while (found := pattern.search(text, position)) is not None:
        start, position = found.span()
        mark = text[start]
        if mark == 0x23:
            if not text[text.rfind(b"\n", 0, start) + 1 : start].strip(b" \t"):
                position = _directive(text, start, directives)
            continue
        starts.append(start)
        ends.append(position)
        if mark == 0x2F:
            # A directive may stand behind a comment that begins its line.
            behind = _FIRST_DIRECTIVE.match(text, position)
            if behind is not None and not text[text.rfind(b"\n", 0, start) + 1 : start].strip():
                position = _directive(text, behind.end() - 1, directives)
    return Marks(directives, starts, ends)


def _directive(text: bytes, start: int, directives: list[tuple[int, int]]) -> int:
    found = _REST_OF_DIRECTIVE.match(text, start)
    end = found.end() if found is not None else len(text)
    directives.append((start, end))
    return end


def tokens(
    source: Source | None, text: bytes, start: int = 0, end: int | None = None
) -> list[Token]:
    """The tokens of (a part of) a text; `spaced` tells that blanks or a comment stood before.

    Blanks and comments are left out, newlines are kept.  Raises `SourceError` for more than
    `MAX_TOKENS`, and for a name that nobody writes.
    """
    out: list[Token] = []
    nothing: frozenset[bytes] = frozenset()
    spaced = False
    for found in _PATTERN.finditer(text, start, len(text) if end is None else end):
        kind = found.lastgroup or "punctuation"
        if kind == "fence":
            kind = "string"
        if kind in ("space", "comment"):
            spaced = True
            continue
        if len(out) >= MAX_TOKENS:
            raise refused(source, found.span(), f"has more than {MAX_TOKENS:,} words")
        if kind == "name" and found.end() - found.start() > MAX_NAME:
            message = f"a name has more than {MAX_NAME:,} characters"
            raise refused(source, found.span(), message)
        first, last = found.span()
        token = (kind, found.group(), source, first, last, None, None, nothing, spaced)
        out.append(made(Token, token))
        spaced = False
    return out


def check_size(source: Source) -> None:
    """Refuse a text of more than `MAX_TOKENS` words.  Raises `SourceError`."""
    text = source.encoded
    if len(text) <= MAX_TOKENS:
        return
    count = 0
    for found in _PATTERN.finditer(text):
        count += found.lastgroup not in ("space", "comment", "newline")
        if count > MAX_TOKENS:
            raise refused(source, found.span(), f"has more than {MAX_TOKENS:,} words")


def refused(source: Source | None, place: tuple[int, int], message: str) -> SourceError:
    """The error for a text that is not read, at its place."""
    if source is None:
        return SourceError(message, file="a definition")
    return SourceError(message, file=source.name, where=source.span(*place))
