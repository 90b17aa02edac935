"""A result as JSON."""

from __future__ import annotations

from typing import Final

from migrate.results import Comparison, IrDocument, LintDocument

INDENT: Final = 2


def render(result: Comparison | IrDocument | LintDocument) -> bytes:
    """UTF-8 JSON, indented, with a final newline; equal results give equal bytes."""
    return result.to_json(indent=INDENT) + b"\n"
