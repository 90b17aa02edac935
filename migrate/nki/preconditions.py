"""What a docstring demands of sizes: `K and M are multiples of 128`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

MAX_TEXT: Final = 40_000
"""Characters of a docstring that are read."""

MAX_BACK: Final = 120
"""Characters before `multiple of` in which the sizes are named."""

_OF: Final = re.compile(
    r"\b(?:multiples?\s+(?:of|for)|divisible\s+by)\s+`*([\w.]{1,60})`*(\s*[*/])?"
)
_RESTLESS: Final = re.compile(r"\b([A-Za-z_]\w{0,60})\s*%\s*(\w{1,60})\s*==\s*0\b")
_LABEL: Final = re.compile(
    r"\s*(?:[-*•]\s*)?[`*]{0,3}([A-Za-z_]\w{0,60})[`*]{0,3}\s*(?:\(.*?\)\s*)?:"
)
_TOKEN: Final = re.compile(r"\w+|[^\w\s`*]")
_FILLERS: Final = frozenset(
    {"is", "are", "must", "should", "shall", "has", "have", "needs", "need", "to", "be", "both"}
    | {"all", "each", "a", "an", "also", "always", "evenly", "integer", "exact", "and", "between"}
    | {"=", "<", ">", "≤", "≥", ","}
)
_REFUSING: Final = frozenset({"not", "no", "non", "if", "unless", "when", "whether"})


def multiples(text: str) -> dict[str, int]:
    """The names that a docstring calls multiples, with the number; 0 where it is no plain one."""
    text = text[:MAX_TEXT]
    found: dict[str, int] = {}
    for match in _OF.finditer(text):
        number = 0 if match[2] else _number(match[1].rstrip("."))
        for name in _names(text, match.start()):
            found[name] = number
    for match in _RESTLESS.finditer(text):
        found[match[1]] = _number(match[2])
    return found


def _number(word: str) -> int:
    return int(word) if word.isdigit() and len(word) < 9 else 0


def _names(text: str, end: int) -> Iterator[str]:
    """The sizes that are said to be multiples, before the words that say it."""
    before = _TOKEN.findall(text[max(end - MAX_BACK, 0) : end])
    while before and (before[-1].lower() in _FILLERS or before[-1].isdigit()):
        before.pop()
    named = False
    while before and before[-1].isidentifier() and before[-1].lower() not in _REFUSING:
        yield before.pop()
        named = True
        if not before or before[-1] not in {"and", ",", "&"}:
            break
        while before and before[-1] in {"and", ",", "&"}:
            before.pop()
    line = text[text.rfind("\n", 0, end) + 1 : end]
    label = _LABEL.match(line[:MAX_BACK])
    if label is not None and (named or not before or before[-1].lower() not in _REFUSING):
        yield label[1]
