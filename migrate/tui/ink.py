"""Text with a role for each piece: what the model says and the widgets paint.

An `Ink` says what a piece *is*; which colour that takes is the theme's business.  All text
in a `Piece` is harmless already (`migrate.source.neutral`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from migrate.results import ConstructVerdict, Severity, Status, Verdict

Ink: TypeAlias = Literal[
    "text",
    "strong",
    "muted",
    "error",
    "warning",
    "note",
    "good",
    "comment",
    "string",
    "number",
    "keyword",
    "type",
    "api",
    "directive",
]
INKS: Final[tuple[Ink, ...]] = get_args(Ink)


class Piece(NamedTuple):
    """Some text in one ink."""

    text: str
    ink: Ink = "text"


Line: TypeAlias = tuple[Piece, ...]

VERDICT_INKS: Final[dict[ConstructVerdict, Ink]] = {
    "matched": "good",
    "transformed": "good",
    "not-needed": "muted",
    "mismapped": "error",
    "missing": "error",
    "extra": "warning",
    "unknown": "warning",
}
SEVERITY_INKS: Final[dict[Severity, Ink]] = {"error": "error", "warning": "warning", "note": "note"}
SEVERITY_LETTERS: Final[dict[Severity, str]] = {"error": "E", "warning": "W", "note": "N"}
STATUS_INKS: Final[dict[Status, Ink]] = {
    "pass": "good",
    "investigate": "warning",
    "fail": "error",
    "not-run": "muted",
}
OUTCOMES: Final[dict[Verdict, tuple[str, Ink]]] = {
    "faithful": ("✓", "good"),
    "faithful-with-findings": ("!", "warning"),
    "not-faithful": ("✗", "error"),
    "undetermined": ("?", "warning"),
}
"""A sign and an ink for the verdict on the pair; the word always stands beside it."""


def plain(lines: Iterable[Line]) -> str:
    """The text of the lines alone."""
    return "\n".join("".join(piece.text for piece in line) for line in lines)
