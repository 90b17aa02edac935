"""`migrate explain`: the page of a rule, a mapping, a target, a name or a version of NKI."""

from __future__ import annotations

import sys

from migrate.cli import OK, SAYS_NO, VERBS
from migrate.cli.common import Parser, emit


def run(arguments: list[str]) -> int:
    """Exit 1 for an unknown id, or one that may mean several things."""
    parser = Parser(
        "explain",
        VERBS["explain"],
        [
            "migrate explain",
            "migrate explain MAP101",
            "migrate explain elements-left-out",
            "migrate explain mask.bounded-slice",
            "migrate explain nisa.nc_matmul",
            "migrate explain nl.load --format md",
            "migrate explain 0.3.0",
            "migrate explain trn2 --format json",
        ],
        "exit codes: 0 fine, 1 nothing is called so, or several things are, 2 usage",
    )
    parser.add_argument(
        "id",
        metavar="ID",
        nargs="?",
        help="a rule's id or name, a mapping, a target (trn1, trn2, trn3), a name of NKI"
        " (nisa.nc_matmul, nl.load, nki.isa.engine) or a version of it (0.3.0);"
        " without one, everything that can be explained",
    )
    parser.add_argument(
        "--format",
        choices=("text", "md", "json"),
        help="how it is shown (default: text on a terminal, else md)",
    )
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    options = parser.parse_args(arguments)
    if options.json and options.format not in (None, "json"):
        parser.error("--json and --format ask for different things")
    form = "json" if options.json else options.format

    from migrate.report import explain

    if options.id is None:
        if form == "json":
            emit(explain.index_json(), None)
        else:
            _show(explain.index_markdown(), form)
        return OK
    page = explain.page(options.id)
    if not isinstance(page, explain.Page):
        near = page or explain.nearest(options.id)
        print(f"migrate: {_unclear(options.id, page, near)}", file=sys.stderr)
        return SAYS_NO
    if form == "json":
        emit(page.to_json(), None)
    else:
        _show(page.markdown, form)
    return OK


def _show(markdown: str, form: str | None) -> None:
    """Markdown as it is, or laid out (in colours on a terminal)."""
    if form == "md" or (form is None and not sys.stdout.isatty()):
        sys.stdout.write(markdown)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(file=sys.stdout).print(Markdown(markdown, hyperlinks=False))


def _unclear(given: str, meant: tuple[str, ...], near: tuple[str, ...]) -> str:
    from migrate.source import neutral, shortened

    asked = neutral(shortened(given, 100))
    if meant:
        return f"'{asked}' may be {' or '.join(meant)}"
    hint = f"did you mean {' or '.join(near)}?" if near else "rules look like MAP101"
    return f"nothing is called '{asked}'; {hint}"
