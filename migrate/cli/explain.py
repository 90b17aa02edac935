"""`migrate explain`: the page of a rule, a mapping or a target."""

from __future__ import annotations

import sys

from migrate.cli import OK, SAYS_NO, VERBS
from migrate.cli.common import Parser, emit


def run(arguments: list[str]) -> int:
    """Exit 1 for an unknown id."""
    parser = Parser(
        "explain",
        VERBS["explain"],
        [
            "migrate explain MAP101",
            "migrate explain elements-left-out",
            "migrate explain mask.bounded-slice",
            "migrate explain trn2 --json",
        ],
    )
    parser.add_argument(
        "id", metavar="ID", help="a rule's id or name, a mapping, or a target (trn1, trn2, trn3)"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    options = parser.parse_args(arguments)

    from migrate.report import explain

    page = explain.page(options.id)
    if page is None:
        print(f"migrate: {_unknown(options.id, explain.nearest(options.id))}", file=sys.stderr)
        return SAYS_NO
    if options.json:
        emit(page.to_json(), None)
    elif sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console(file=sys.stdout).print(Markdown(page.markdown, hyperlinks=False))
    else:
        sys.stdout.write(page.markdown)
    return OK


def _unknown(given: str, near: tuple[str, ...]) -> str:
    from migrate.source import neutral

    hint = f"did you mean {' or '.join(near)}?" if near else "rules look like MAP101"
    return f"nothing is called '{neutral(given)}'; {hint}"
