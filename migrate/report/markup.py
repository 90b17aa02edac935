"""Reviewed text in Markdown that nothing can break out of.

GitHub's dialect is what is guarded against: besides Markdown and HTML, it turns
`@name`, `#12`, `owner/name#12`, addresses and `:name:` in plain text into something else,
also behind a backslash.  Words that hold one of these become code, where nothing acts.
"""

from __future__ import annotations

import re
from typing import Final

from migrate.source import neutral

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~&!$^])")
_ACTING: Final = re.compile(r"@|#|://|www\.|\bGH-\d|:[\w+-]+:", re.IGNORECASE)
_BLOCK_START: Final = re.compile(r"([-+=:]|\d+[.)])")
_TICKS: Final = re.compile(r"`+")


def line(text: str) -> str:
    """Text on one line: line ends and runs of blanks become a blank, what could act a sign."""
    return " ".join(neutral(text, keep_newlines=True).split())


def plain(text: str) -> str:
    """Reviewed text as text of a paragraph, a list item or a cell of a table."""
    words = [cell(w) if _ACTING.search(w) else _escaped(w) for w in line(text).split(" ")]
    shown = " ".join(words)
    return _BLOCK_START.sub(_behind_backslash, shown, count=1) if _starts(shown) else shown


def code(text: str) -> str:
    """Reviewed text as a code span, outside of tables."""
    return _span(line(text))


def cell(text: str) -> str:
    """Reviewed text as code spans that may stand in a cell of a table.

    A bar ends a cell even within code, and how a backslash before it is read depends on
    the reader: bars stand between the spans.
    """
    return r"\|".join(_span(part) for part in line(text).split("|"))


def block(text: str, language: str) -> str:
    """Reviewed text as a fenced block: the fence is longer than any in the text."""
    kept = neutral(text, keep_newlines=True)
    fence = "`" * max(3, _longest(kept) + 1)
    return f"{fence}{language}\n{kept}\n{fence}"


def _span(flat: str) -> str:
    """A line, or a part of one with its blanks, as a code span."""
    if not flat.strip():
        return flat
    fence = "`" * (_longest(flat) + 1)
    # A blank on both sides is taken away again; a backtick at an end needs them.
    ends = {flat[0], flat[-1]}
    pad = " " if "`" in ends or ends == {" "} else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _starts(shown: str) -> bool:
    return _BLOCK_START.match(shown) is not None


def _behind_backslash(match: re.Match[str]) -> str:
    found = match.group()
    return f"{found[:-1]}\\{found[-1]}"


def _longest(text: str) -> int:
    return max((len(run) for run in _TICKS.findall(text)), default=0)
